package worldctl

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// greedy is a world whose rules may take nearly anything.
const greedy = `
world: greedy
version: 1
reducers:
  r: {engine: starlark, source: r.star, limits: {gas: 10000000000, memory: 17179869184, value: 64MiB, state: 64MiB}}
events:
  go:
routing:
  - {event: go, reducer: r, key: event.data.to}
`

// strangers packs a journal, and a tick besides that nobody has lived through; nobody
// has signed it.
func strangers(t *testing.T, j *worldtest.Journal, tick bool) []byte {
	t.Helper()
	f := &crafter{t: t}
	chain := new(canon.Chain)
	written := make(map[journal.Hash]bool)
	blob := func(h journal.Hash) []byte {
		content, err := j.Blob(h)
		require.NoError(t, err)
		if !written[h] {
			f.blob(content)
		}
		written[h] = true
		return content
	}
	put := func(data []byte, kind journal.Kind) {
		f.last++
		root := chain.Add(f.last, string(kind), data)
		f.items = append(append(f.items, 0x82), data...)
		f.items = canon.AppendBytes(f.items, root[:journal.LinkBytes])
	}
	for s, err := range j.Scan(0) {
		require.NoError(t, err)
		if !s.Record.Blob.IsZero() {
			blob(s.Record.Blob)
		}
		if s.Record.Kind == journal.KindCreated {
			body, err := journal.ReadBody(j, s.ID)
			require.NoError(t, err)
			name, _ := journal.ManifestOf(body)
			m, err := manifest.Decode(blob(name))
			require.NoError(t, err)
			for _, h := range m.Contents() {
				blob(h)
			}
		}
		put(s.Bytes, s.Record.Kind)
	}
	for _, x := range []journal.Body{
		&journal.Advanced{Version: journal.V(journal.BodyVersion), To: 1},
		&journal.Stepped{Version: journal.V(journal.BodyVersion), Cell: "r/a", N: 1},
	} {
		if !tick {
			break
		}
		kind := journal.KindAdvanced
		if _, step := x.(*journal.Stepped); step {
			kind = journal.KindStepped
		}
		put(canon.AppendEnvelope(nil, canon.Envelope{ID: f.last + 1, Time: 1, Kind: string(kind), Payload: journal.Append(nil, x)}), kind)
	}
	return f.file(nil)
}

// TestStrangersRulesCostWhatTheReaderAllows has worldctl verify and import bundles and
// journals whose rules would take all of a machine: what they take is what the reader
// allows, and no verdict comes of it.
func TestStrangersRulesCostWhatTheReaderAllows(t *testing.T) {
	worlds, trust := owners(t)
	s := secondVerifier(t, worlds, trust...)
	program, err := exec.LookPath("worldctl")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, x := range map[string]struct {
		program, says string
		cells         int
		flags         []string
	}{
		"a loop without end":      {"    while True:\n        pass\n", "--max-gas", 1, nil},
		"texts that nobody keeps": {"    for _ in range(1000000000):\n        x = 'a' * 10000000\n", "--max-memory", 1, nil},
		"one list of millions":    {"    x = []\n    while True:\n        x += [[1, 2, 3, 4]]\n", "--max-", 1, nil},
		"time":                    {"    while True:\n        pass\n", "--max-time", 1, []string{"--max-gas", "10000000000", "--max-time", "50ms"}},
		"many large states":       {"    return 'a' * 3000000\n", "--max-memory", 120, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			home := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(home, "world.yaml"), []byte(greedy), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(home, "r.star"), []byte("def reduce(ctx, state, event):\n"+x.program), 0o600))
			loaded, err := source.Load(filepath.Join(home, "world.yaml"))
			require.NoError(t, err)
			w := worldtest.New(t, *loaded.Manifest, loaded.Contents, worldtest.Options{})
			for i := range x.cells {
				w.Submit("go", map[string]any{"to": fmt.Sprint(i)})
			}
			if x.cells > 1 {
				w.Run()
			}
			file := filepath.Join(dir, "greedy.bundle")
			require.NoError(t, os.WriteFile(file, strangers(t, w.Journal, x.cells == 1), 0o600))
			ours := s.weigh(append([]string{program, "verify", file}, x.flags...)...)
			t.Logf("%d MiB, %.1f s: %s", ours.KiB>>10, ours.CPU, ours.Err)
			require.Equal(t, exitFailed, ours.Code, "no verdict: %s %s", ours.Out, ours.Err)
			require.Contains(t, ours.Err, x.says)
			require.LessOrEqual(t, ours.KiB, 512<<10)
		})
	}
}

// A verification can be ended at any point.
func TestVerificationOfABundleCanBeCancelled(t *testing.T) {
	loaded := botsOf(t)
	g, _ := goodBundle(t, 1, loaded, make(map[journal.Kind]int))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := local.VerifyBundle(ctx, bytes.NewReader(g.data), local.Options{}, local.Verification{})
	require.ErrorIs(t, err, context.Canceled)
	for n := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		how := local.Verification{Progress: func(done, _ uint64) {
			if done > uint64(n) {
				cancel()
			}
		}}
		_, err := local.VerifyBundle(ctx, bytes.NewReader(g.data), local.Options{}, how)
		cancel()
		require.ErrorIs(t, err, context.Canceled, "after #%d", n)
	}
}
