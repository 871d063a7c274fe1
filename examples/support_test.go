package examples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// order is what the tests look at of a desk's state.
type order struct{ Status, Customer string }

// runSupport runs the support desk on its events, with old replaced by new in its
// world.yaml.
func runSupport(t *testing.T, old, changed string) *local.World {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, examples.Copy("support", dir))
	manifest := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(manifest, []byte(strings.Replace(string(text), old, changed, 1)), 0o600))
	require.NoError(t, local.Create(dir, local.CreateOptions{}, local.Options{}))
	w, err := local.Open(dir, local.Options{Paranoid: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	events, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	require.NoError(t, err)
	_, _, err = w.SubmitAll(t.Context(), lines(bytes.NewReader(events)))
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	return w
}

// booked returns how often each order is in the bank's book.
func booked(t *testing.T, w *local.World) map[string]int {
	t.Helper()
	book, err := os.ReadFile(filepath.Join(w.Dir(), "bank", "book"))
	require.NoError(t, err)
	paid := make(map[string]int)
	for line := range strings.Lines(string(book)) {
		fields := strings.Fields(line)
		require.Len(t, fields, 3, line)
		paid[fields[1]]++
	}
	return paid
}

// in returns the intents that are in a state.
func in(w *local.World, s receipt.State) []receipt.Entry {
	var found []receipt.Entry
	w.View(func(w *world.Moment) {
		for _, e := range w.Intents() {
			if e.State == s {
				found = append(found, e)
			}
		}
	})
	return found
}

// only returns the one intent that is in a state.
func only(t *testing.T, w *local.World, s receipt.State) receipt.Entry {
	t.Helper()
	found := in(w, s)
	require.Len(t, found, 1)
	return found[0]
}

func TestSupportPaysOnceAndAsksWhereItCannotTell(t *testing.T) {
	w := runSupport(t, "on_in_doubt: ask", "on_in_doubt: ask")
	require.Equal(t, "refunded", state[order](t, w, "desk/A-1").Status)
	require.Equal(t, "unknown", state[order](t, w, "desk/C-3").Status)
	require.Equal(t, map[string]int{"A-1": 1, "D-4": 1}, booked(t, w))

	big, cut := only(t, w, receipt.StateAwaitingApproval), only(t, w, receipt.StateInDoubt)
	require.Equal(t, "desk/B-2", big.Intent.Cell)
	require.Equal(t, "desk/D-4", cut.Intent.Cell)
	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Resolve(t.Context(), journal.Resolved{
			Key: big.Intent.Key, How: journal.Approve, Params: big.Params, Actor: "eve", Reason: "it is on its way back",
		}))
	}))
	told, err := canon.Marshal(map[string]any{"booked": "D-4"})
	require.NoError(t, err)
	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Resolve(t.Context(), journal.Resolved{
			Key: cut.Intent.Key, How: journal.Executed, Params: cut.Params, Payload: told, Actor: "eve", Reason: "it is in the book",
		}))
	}))
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, map[string]int{"A-1": 1, "B-2": 1, "D-4": 1}, booked(t, w))
	for _, cell := range []string{"desk/A-1", "desk/B-2", "desk/D-4"} {
		require.Equal(t, "refunded", state[order](t, w, cell).Status, cell)
	}
}

func TestSupportsBookDecidesWhereItIsAsked(t *testing.T) {
	w := runSupport(t, "on_in_doubt: ask", "on_in_doubt: verify")
	require.Equal(t, order{Status: "refunded", Customer: "dora"}, state[order](t, w, "desk/D-4"))
	require.Equal(t, map[string]int{"A-1": 1, "D-4": 1}, booked(t, w))
}

// Whose lookup ends first pays first. Where that is D-4, nobody can tell whether it
// used the call, and A-1 waits until somebody does.
func TestSupportsTillIsEmptyAfterItsBudget(t *testing.T) {
	w := runSupport(t, "budget: {calls: 100}", "budget: {calls: 1}")
	require.Len(t, booked(t, w), 1)
	for _, cut := range in(w, receipt.StateInDoubt) {
		require.Empty(t, in(w, receipt.StateDenied))
		require.NoError(t, w.Update(func(w *world.World) error {
			return worldtest.ErrorOf(w.Resolve(t.Context(), journal.Resolved{
				Key: cut.Intent.Key, How: journal.Executed, Params: cut.Params, Actor: "eve", Reason: "it is in the book",
			}))
		}))
	}
	require.NoError(t, w.Run(t.Context()))
	require.Len(t, booked(t, w), 1)
	only(t, w, receipt.StateDenied)
}
