package worker

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// own is an adapter that nobody calls.
type own struct{ host.Adapter }

// A world's scripts are run where the world is.
func TestAWorkerRunsNoScript(t *testing.T) {
	config, err := canon.FromJSON([]byte(`{"script": "s.star"}`))
	require.NoError(t, err)
	source := []byte("fail(1)\ndef answer(kind, params, n):\n    return 1\n")
	sum := canon.Sum(source)
	m := &manifest.Manifest{Effects: map[string]manifest.Effect{
		"look": {Adapter: "stub", Config: config, Files: map[string]manifest.Hash{"script": sum}},
	}}
	logged := new(bytes.Buffer)
	cfg := &Config{Dir: t.TempDir(), Trust: trust.All(), Log: slog.New(slog.NewTextHandler(logged, nil))}
	w, err := newWorldWorker(cfg, nil, "w")
	require.NoError(t, err)
	open := func(kinds ...string) {
		r := &rules{manifest: m, contents: map[manifest.Hash][]byte{sum: source}}
		h, err := w.open(t.Context(), r)
		require.NoError(t, err)
		require.ElementsMatch(t, kinds, kindsOf(h, r))
		require.NoError(t, h.Close())
	}
	open()
	require.Empty(t, logged.String(), "nothing has failed")
	cfg.Adapters = map[string]host.Factory{"stub": func(host.Setup) (host.Adapter, error) { return own{}, nil }}
	open("look") // an adapter of the program's own
}
