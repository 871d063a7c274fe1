package world_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestWhatIsAcceptedIsDurable: whoever was told so may lose power then.
func TestWhatIsAcceptedIsDurable(t *testing.T) {
	j := new(worldtest.Journal)
	stuck := errors.New("the line is dead")
	w := botsWith(t, worldtest.Options{Journal: j, Answer: func(receipt.Permit) worldtest.Reply { return worldtest.Reply{Err: stuck} }})
	durable := func(id journal.Seq, err error) {
		t.Helper()
		require.NoError(t, err)
		require.NotZero(t, id)
		require.Equal(t, w.Head(), j.Head())
	}
	id, _, err := w.Emit(t.Context(), journal.OperatorEffect{Actor: "ada", Kind: "tool.a", Cap: "tools", Reason: "so"})
	durable(id, err)
	id, _, err = w.SubmitAll(t.Context(), events(world.Submission{Name: "go", Data: mustData(t, order{To: "a"})}))
	durable(id, err)
	require.ErrorIs(t, w.World.Step(t.Context()), stuck)
	e := w.Intents()[0]
	data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", receipt.Permit{Intent: e.Intent, Attempt: e.Attempt, Nonce: e.Nonce}, worldtest.OK("x"))
	require.NoError(t, err)
	durable(w.Receive(data))
}

func events(all ...world.Submission) func(func(world.Submission, error) bool) {
	return func(yield func(world.Submission, error) bool) {
		for s := range slices.Values(all) {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// TestWorldStopsAtAFailedAppend: what it has in memory is not what the journal has.
func TestWorldStopsAtAFailedAppend(t *testing.T) {
	j := new(worldtest.Journal)
	w := botsWith(t, worldtest.Options{Journal: j})
	fail := true
	j.FailWait = func(int) error {
		if fail {
			return worldtest.ErrInjected
		}
		return nil
	}
	require.ErrorIs(t, w.World.Step(t.Context()), worldtest.ErrInjected)
	fail = false
	require.ErrorIs(t, w.World.Step(t.Context()), worldtest.ErrInjected)
	require.ErrorIs(t, w.Sync(), worldtest.ErrInjected)
}

func TestEverythingOfACellIsInItsLeaf(t *testing.T) {
	seen := make(map[journal.Hash]bool)
	for _, l := range []world.CellLeaf{
		{}, {N: 1}, {History: journal.Hash{1}}, {State: journal.Hash{1}}, {Reducer: journal.Hash{1}}, {Halted: true},
	} {
		require.False(t, seen[l.Hash()], "%+v", l)
		seen[l.Hash()] = true
	}
}

// TestStateRootKnowsWhatWaits: a rollback returns mailboxes, too.
func TestStateRootKnowsWhatWaits(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a"})
	w.Run()
	before := w.StateRoot()
	w.Submit("go", order{To: "a"})
	require.NotEqual(t, before, w.StateRoot())
}

// TestWhatWasAnsweredBeforeItBeganDoesNotBegin: a receipt that comes by hand, before the
// permit is durable, is that of its attempt.
func TestWhatWasAnsweredBeforeItBeganDoesNotBegin(t *testing.T) {
	out := new(worldtest.Outside)
	w := botsWith(t, worldtest.Options{Journal: &worldtest.Journal{Slow: true}, Outside: out})
	w.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a"}}})
	did, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, world.Ticked, did)
	e := w.Intents()[0]
	require.Equal(t, receipt.StateInFlight, e.State)
	require.Empty(t, out.Performed, "its permit is not durable")
	data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", receipt.Permit{Intent: e.Intent, Attempt: e.Attempt, Nonce: e.Nonce}, worldtest.OK("x"))
	require.NoError(t, err)
	_, err = w.Receive(data)
	require.NoError(t, err)
	require.Empty(t, out.Performed)
}
