package world_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// grown is the state of version 2 of the bot, which cannot read that of version 1.
type grown struct {
	Version uint64   `cbor:"version"`
	Lines   []string `cbor:"lines"`
}

var errStubborn = errors.New("this one does not change")

// grownRegistry has the bots, and their next version, which takes over the states
// of version 1 but for those that hold the word stubborn.
func grownRegistry() reducer.Registry {
	r := botRegistry()
	f := reducer.Typed(1, func(_ *reducer.Context, s grown, e reducer.Event) (grown, error) {
		s.Lines = append(s.Lines, e.Name)
		return s, nil
	})
	r["bot@2"] = reducer.Migrating(f, func(state reducer.Data) (grown, error) {
		var old botState
		if err := canon.Unmarshal(state, &old); err != nil {
			return grown{}, err
		}
		for _, line := range old.Seen {
			if line == "1:go stubborn" {
				return grown{}, errStubborn
			}
		}
		return grown{Version: 2, Lines: old.Seen}, nil
	})
	return r
}

// growing is a world of bots, and its manifest with version 2 of them.
func growing(t *testing.T) (*worldtest.World, manifest.Manifest) {
	t.Helper()
	m := botManifest()
	w := worldtest.New(t, m, nil, worldtest.Options{
		Reducers: grownRegistry(), Answer: func(receipt.Permit) worldtest.Reply { return worldtest.OK(nil) },
	})
	next := *w.Manifest()
	next.Reducers = map[string]manifest.Reducer{}
	for name, def := range w.Manifest().Reducers {
		def.Version = "2"
		next.Reducers[name] = def
	}
	return w, next
}

func adopt(t *testing.T, w *worldtest.World, m *manifest.Manifest) error {
	t.Helper()
	return worldtest.Adopt(t.Context(), w.World, m, nil)
}

func TestNewCodeTakesOverEveryState(t *testing.T) {
	w, next := growing(t)
	for i := range 3 {
		w.Submit("go", order{To: fmt.Sprint("b", i), Say: "hello"})
	}
	w.Run()
	require.NoError(t, adopt(t, w, &next))
	require.JSONEq(t, `{"version": 2, "lines": ["1:go hello"]}`, w.State("bot/b1"))
	taken := worldtest.Bodies[*journal.Migrated](t, w.Journal)
	require.Len(t, taken, 3)
	require.Equal(t, "bot/b0", taken[0].Cell, "in the order of their names")
	w.Submit("go", order{To: "b1"})
	w.Run()
	require.JSONEq(t, `{"version": 2, "lines": ["1:go hello", "go"]}`, w.State("bot/b1"))
	w.RequireReplay()
	w.Crash()
	w.RequireReplay()
	require.JSONEq(t, `{"version": 2, "lines": ["1:go hello", "go"]}`, w.State("bot/b1"))
}

func TestOneCellThatCannotBeMigratedKeepsTheManifest(t *testing.T) {
	w, next := growing(t)
	w.Submit("go", order{To: "a", Say: "hello"})
	w.Submit("go", order{To: "b", Say: "stubborn"})
	w.Run()
	before, root := w.Status().Manifest, w.StateRoot()
	err := adopt(t, w, &next)
	require.ErrorIs(t, err, world.ErrMigration)
	require.ErrorContains(t, err, "bot/b")
	require.Equal(t, before, w.Status().Manifest)
	require.Equal(t, root, w.StateRoot())
	require.JSONEq(t, `{"seen": ["1:go hello"]}`, w.State("bot/a"))
	w.RequireReplay()
}

func TestRollbackToBeforeNewCodeMigratesAgain(t *testing.T) {
	w, next := growing(t)
	w.Submit("go", order{To: "a", Say: "hello"})
	w.Submit("go", order{To: "c", Say: "hello"})
	w.Run()
	_, err := w.Snapshot(t.Context(), "old", "", "ada")
	require.NoError(t, err)
	w.Submit("go", order{To: "a", Say: "again"})
	w.Submit("go", order{To: "b", Say: "new"})
	w.Run()
	require.NoError(t, adopt(t, w, &next))
	w.Submit("go", order{To: "a"})
	w.Run()
	_, _, err = w.Rollback(t.Context(), journal.RolledBack{Snapshot: "old", Actor: "ada", Reason: "so"})
	require.NoError(t, err)
	require.Equal(t, 2, w.Status().Cells)
	require.JSONEq(t, `{"version": 2, "lines": ["1:go hello"]}`, w.State("bot/a"), "under the code of now")
	require.JSONEq(t, `{"version": 2, "lines": ["1:go hello"]}`, w.State("bot/c"))
	w.RequireReplay()
	w.Crash()
	w.RequireReplay()
}

func TestRollbackToWhatCannotBeMigratedIsRefused(t *testing.T) {
	w, next := growing(t)
	w.Submit("go", order{To: "b", Say: "stubborn"})
	w.Run()
	_, err := w.Snapshot(t.Context(), "old", "", "ada")
	require.NoError(t, err)
	w.Submit("go", order{To: "b", Do: []act{{Delete: true}}})
	w.Run()
	require.NoError(t, adopt(t, w, &next), "nothing is left to migrate")
	before, root := w.Status(), w.StateRoot()
	_, _, err = w.Rollback(t.Context(), journal.RolledBack{Snapshot: "old", Actor: "ada", Reason: "so"})
	require.ErrorIs(t, err, world.ErrMigration)
	require.Equal(t, before, w.Status())
	require.Equal(t, root, w.StateRoot())
	w.RequireReplay()
}

// Cells outlive their reducer, and are what they were when it returns.
func TestCellsOfADroppedReducerWaitForIt(t *testing.T) {
	w := bots(t)
	first := w.Manifest()
	w.Submit("go", order{To: "a", Say: "hello", Do: []act{{Timer: 5}}})
	w.Step(1)
	_, err := w.Snapshot(t.Context(), "with", "", "ada")
	require.NoError(t, err)
	w.Submit("go", order{To: "b", Say: "waits"})
	next := *first
	next.Reducers = map[string]manifest.Reducer{"skip": first.Reducers["skip"]}
	next.Routing = []manifest.Route{{Event: "skip.*", Reducer: "skip", Key: "event.data.to"}}
	require.NoError(t, adopt(t, w, &next))
	w.Run()
	require.Equal(t, 2, w.Status().Halted, "one with its timer, the other with its event")
	require.JSONEq(t, `{"seen": ["1:go hello"]}`, w.State("bot/a"))
	_, err = w.Snapshot(t.Context(), "without", "", "ada")
	require.NoError(t, err)
	w.RequireReplay()

	require.NoError(t, adopt(t, w, first))
	for _, key := range []string{"a", "b"} {
		require.NoError(t, worldtest.ErrorOf(w.Resume(t.Context(), reducer.Cell{Reducer: "bot", Key: key}, world.RetryEvent, "", "")))
	}
	w.Run()
	seen := `{"seen": ["1:go hello", "7:alarm after 5"]}`
	require.JSONEq(t, seen, w.State("bot/a"))
	for _, to := range []string{"without", "with"} {
		_, _, err = w.Rollback(t.Context(), journal.RolledBack{Snapshot: to, Actor: "ada", Reason: "a try"})
		require.NoError(t, err)
		require.JSONEq(t, `{"seen": ["1:go hello"]}`, w.State("bot/a"))
		w.RequireReplay()
		w.Crash()
	}
	w.RequireReplay()
}
