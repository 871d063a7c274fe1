package api_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestVerificationNamesTheRecordsThatAreDamaged flips one bit of a block on the disk.
func TestVerificationNamesTheRecordsThatAreDamaged(t *testing.T) {
	testlog.Skip(t, "it damages the copy, which is read through")
	w := create(t, "w")
	const mark = "a text that is found again"
	noise := rand.New(rand.NewPCG(1, 1)) // of which tables get many blocks
	note := func() string {
		b := make([]byte, 2000)
		for i := range b {
			b[i] = 'a' + byte(noise.IntN(26))
		}
		return string(b)
	}
	for i := range 60 {
		text := note()
		if i == 30 {
			text = mark + text
		}
		_, err := w.Submit(context.Background(), "go", map[string]any{"to": "a", "do": []any{map[string]any{"random": 9, "note": text}}})
		require.NoError(t, err)
	}
	require.NoError(t, w.Run(context.Background()))
	err := w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(context.Background(), "", "", "test")) })
	require.NoError(t, err)
	require.NoError(t, w.Close())
	flip(t, filepath.Join(w.Dir(), ".world", "store"), mark)
	w, err = local.Open(w.Dir(), local.Options{})
	require.NoError(t, err, "what is damaged is not needed to open the world")
	t.Cleanup(func() { _ = w.Close() })

	s := serve(t, api.Config{Worlds: wrap(w)})
	p := s.get("/api/worlds/w/verify").problem(http.StatusServiceUnavailable, "unreadable")
	require.Regexp(t, `every record from #\d+ to #\d+`, p.Detail)
	require.NotContains(t, p.Detail, w.Dir())
	s.get("/api/worlds/w/records").problem(http.StatusServiceUnavailable, "unreadable")
}

// flip changes what follows a text in the file that holds it.
func flip(t *testing.T, dir, text string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if at := bytes.Index(data, []byte(text)); at >= 0 {
			data[at] ^= 1
			require.NoError(t, os.WriteFile(file, data, 0o600))
			return
		}
	}
	require.Fail(t, "no table holds it")
}

func TestEveryFaultCountsAgainstAProof(t *testing.T) {
	good := func() *verify.Report {
		return &verify.Report{OK: true, Ledger: verify.LedgerProof{OK: true}, Replay: verify.ReplayProof{OK: true}}
	}
	v := api.VerificationOf(good())
	require.True(t, v.Ledger.OK && v.Replay.OK)
	for name, spoil := range map[string]func(*verify.Report){
		"ledger":      func(r *verify.Report) { r.Ledger.OK = false },
		"receipts":    func(r *verify.Report) { r.Receipts.Bad = 1 },
		"replay":      func(r *verify.Report) { r.Replay.OK = false },
		"snapshots":   func(r *verify.Report) { r.Snapshots.Bad = 1 },
		"checkpoints": func(r *verify.Report) { r.Checkpoints.Bad = 1 },
		"governance":  func(r *verify.Report) { r.Governance.Bad = 1 },
		"anchor":      func(r *verify.Report) { r.Anchor = &verify.AnchorProof{ID: 3} },
		"the rest":    func(*verify.Report) {},
	} {
		r := good()
		spoil(r)
		r.OK, r.Faults = false, []verify.Fault{{Place: "record #3", Message: "it is wrong"}}
		v := api.VerificationOf(r)
		require.False(t, v.Ledger.OK && v.Replay.OK, name)
		if !v.Replay.OK {
			require.Equal(t, "record #3: it is wrong", v.Replay.Error, name)
		}
		require.Equal(t, r.Faults, v.Replay.Faults, name)
	}
}

func TestTextsOfTheStoreNameNoFiles(t *testing.T) {
	require.Equal(t, "archive of #2 to #9: open (a file) no such file", api.WithoutPaths("archive of #2 to #9: open /home/ada lee/x.arch: no such file"))
	require.Equal(t, "in (a file) agent/ada is there", api.WithoutPaths(`in "/home/x" agent/ada is there`))
	require.NotContains(t, api.WithoutPaths("(/secret)"), "secret")
}
