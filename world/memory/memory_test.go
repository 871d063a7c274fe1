package memory_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/memory"
	"github.com/worldkernel/worldkernel/world/source"
)

func load(t *testing.T, dir string) *source.Loaded {
	t.Helper()
	loaded, err := source.Load(filepath.Join(dir, "world.yaml"))
	require.NoError(t, err)
	return loaded
}

func makeOf(t *testing.T, l *source.Loaded, o memory.Options) *memory.World {
	t.Helper()
	w, err := memory.New(l.Manifest, l.Contents, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// submissions reads the lines that worldctl send - takes.
func submissions(t *testing.T, file string) (out []world.Submission) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for dec := json.NewDecoder(strings.NewReader(string(text))); dec.More(); {
		var line struct {
			Event string
			Data  json.RawMessage
			At    manifest.Tick
		}
		require.NoError(t, dec.Decode(&line))
		data, err := canon.FromJSON(line.Data)
		require.NoError(t, err)
		out = append(out, world.Submission{Name: line.Event, Data: data, When: world.When{At: line.At}})
	}
	return out
}

// visits are what a world of villagers gets.
func visits(t *testing.T) (out []world.Submission) {
	t.Helper()
	for i := range 300 {
		data, err := canon.Marshal(map[string]any{
			"step": i / 10, "time": "noon", "who": fmt.Sprint("v", i%20), "x": i * 7 % 5, "y": i % 3, "doing": "walks", "emoji": "", "chat": nil,
		})
		require.NoError(t, err)
		out = append(out, world.Submission{Name: "persona.moved", Data: data, When: world.When{At: manifest.Tick(i / 10)}})
	}
	return out
}

// outcome is what must not depend on where a world lies.
type outcome struct {
	Execution, State journal.Hash
	Status           world.Status
}

func outcomeOf(t *testing.T, m *world.Moment) outcome {
	t.Helper()
	hash, err := m.ExecutionHash()
	require.NoError(t, err)
	o := outcome{Execution: hash, State: m.StateRoot(), Status: m.Status()}
	o.Status.Head.Root = journal.Hash{} // a world of which nothing is kept has none
	return o
}

func TestAWorldInMemoryIsTheSameAsOnADisk(t *testing.T) {
	for name, inputs := range map[string]func(dir string) []world.Submission{
		"town":  func(dir string) []world.Submission { return submissions(t, filepath.Join(dir, "events.jsonl")) },
		"ville": func(string) []world.Submission { return visits(t) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, seed := t.TempDir(), uint64(7)
			require.NoError(t, examples.Copy(name, dir))
			loaded := load(t, dir)
			loaded.Manifest.Defaults.SnapshotEvery = 100
			require.NoError(t, local.CreateOf(loaded, dir, local.CreateOptions{ID: memory.DefaultID, Seed: &seed}, local.Options{Scratch: true}))
			disk, err := local.Open(dir, local.Options{Scratch: true})
			require.NoError(t, err)
			defer disk.Close() //nolint:errcheck // thrown away
			light := makeOf(t, loaded, memory.Options{Seed: &seed})
			kept := makeOf(t, loaded, memory.Options{Seed: &seed, Journal: new(memory.Journal)})
			for _, s := range inputs(dir) {
				sent, err := disk.SubmitEvent(t.Context(), s)
				require.NoError(t, err)
				got, err := light.Submit(t.Context(), s)
				require.NoError(t, err)
				require.Equal(t, sent.ID, got, "records have the same numbers")
				_, err = kept.Submit(t.Context(), s)
				require.NoError(t, err)
			}
			require.NoError(t, disk.Run(t.Context()))
			require.NoError(t, light.Run(t.Context()))
			require.NoError(t, kept.Run(t.Context()))
			var want outcome
			disk.View(func(m *world.Moment) { want = outcomeOf(t, m) })
			require.Greater(t, want.Status.Snapshots, 1, "they are records, too")
			require.Equal(t, want, outcomeOf(t, &light.Moment))
			require.Equal(t, want, outcomeOf(t, &kept.Moment))
			report, err := disk.Verify(t.Context(), local.Verification{})
			require.NoError(t, err)
			require.Equal(t, want.Execution, report.ExecutionHash)

			replayed, err := kept.Replay(t.Context())
			require.NoError(t, err)
			require.Equal(t, want.State, replayed.StateRoot)
			for i, c := range kept.Cells() {
				require.Equal(t, c, light.Cells()[i])
			}
		})
	}
}

func TestWhatTakesAPastIsRefusedWhereNothingIsKept(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, examples.Copy("counter", dir))
	loaded := load(t, dir)
	w := makeOf(t, loaded, memory.Options{})
	require.NoError(t, w.Step(t.Context()))
	before := outcomeOf(t, &w.Moment)

	_, err := w.Snapshot(t.Context(), "now", "", "me")
	require.ErrorIs(t, err, world.ErrNotKept)
	_, err = w.Replay(t.Context())
	require.ErrorIs(t, err, world.ErrNotKept)
	require.ErrorIs(t, world.Fork(t.Context(), w.Config(), &journal.Forked{World: "other", Effects: journal.ForkHold}, nil), world.ErrNotKept)
	require.NoError(t, w.Checkpoint(), "there is nothing to do")
	require.Equal(t, before, outcomeOf(t, &w.Moment))
}

func TestAForkInMemorySharesThePast(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, examples.Copy("town", dir))
	j := new(memory.Journal)
	w := makeOf(t, load(t, dir), memory.Options{Journal: j})
	for _, s := range submissions(t, filepath.Join(dir, "events.jsonl")) {
		_, err := w.Submit(t.Context(), s)
		require.NoError(t, err)
	}
	require.NoError(t, w.Step(t.Context()))
	f, err := memory.Fork(t.Context(), journal.ForkLive, "me", nil, memory.Options{ID: "fork", Journal: j.Clone()})
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // it performs nothing
	require.Equal(t, w.Status().Cells, f.Status().Cells)
	require.NoError(t, w.Run(t.Context()))
	require.NoError(t, f.Run(t.Context()))
	require.Equal(t, w.StateRoot(), f.StateRoot())
	require.Equal(t, "fork", f.Status().ID)
	_, err = f.Replay(t.Context())
	require.NoError(t, err)
}
