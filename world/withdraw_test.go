package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// twoOrders returns a play in which two attempts are permitted after the snapshot
// "before", and a budget of calls for them.
func twoOrders(t *testing.T) *play {
	t.Helper()
	p := live(t, func(m *manifest.Manifest) { m.Budget.Calls = 2 })
	p.snapshot("before")
	p.order("x")
	p.order("y")
	p.Drive()
	require.Len(t, p.out.Tasks(receipt.Perform), 2)
	return p
}

// TestWhatWasNotBegunNeverIsAfterARollback is the fifth of the ways in which something
// was done that should not be: it was permitted, not begun, rolled back, and performed.
func TestWhatWasNotBegunNeverIsAfterARollback(t *testing.T) {
	p := twoOrders(t)
	p.out.Unbegun = func(task receipt.Task) bool { return task.Tag == "y0" }
	done := p.back("before")
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged, "y0": journal.Cancelled}, p.dispositions(done))
	require.Equal(t, 1, p.Status().Intents[receipt.StateDenied])
	p.crash()
	p.Drive()
	require.Len(t, p.out.Performed, 1)

	p.order("x") // the same history: y is another attempt, and its call was given back
	p.order("y")
	p.Drive()
	require.Equal(t, "y0", p.performing().Tag)
	require.EqualValues(t, 2, p.performing().Attempt, "a number names one attempt")
	p.reply(worldtest.OK(nil))
	p.tells("y0 ok")
	p.order("z")
	p.Drive()
	require.Equal(t, 2, p.Status().Intents[receipt.StateDenied]+p.Status().Intents[receipt.StateInDoubt], "no third call is there")
}

func TestRefusedRollbackLeavesWhatWasNotBegunToBeBegun(t *testing.T) {
	p := twoOrders(t)
	p.out.Unbegun = func(task receipt.Task) bool { return task.Tag == "y0" }
	head := p.Status().Head
	_, _, err := p.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so"})
	var left *world.SideEffectsError
	require.ErrorAs(t, err, &left)
	require.Len(t, left.Effects, 2)
	require.Contains(t, err.Error(), "leaves 1 side effects")
	require.Equal(t, head, p.Status().Head)
	require.Len(t, p.out.Tasks(receipt.Perform), 2)
	p.reply(worldtest.OK(nil))
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok", "y0 ok")
}

// TestWhatAStopGaveBackIsCancelledByARollback: the process before ended with permits
// that nobody had begun, whether the world has heard of that yet or not.
func TestWhatAStopGaveBackIsCancelledByARollback(t *testing.T) {
	t.Run("unheard", func(t *testing.T) {
		p := twoOrders(t)
		p.out.Store(p.out.Tasks(receipt.Perform)[1], givenBack())
		p.out.Store(p.out.Tasks(receipt.Perform)[0], worldtest.OK(nil))
		p.crash()
		done := p.back("before")
		require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged, "y0": journal.Cancelled}, p.dispositions(done))
		require.Empty(t, p.out.Tasks(receipt.Perform))
		require.Zero(t, p.out.Stored())
	})
	t.Run("heard", func(t *testing.T) {
		p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
		p.snapshot("before")
		p.order("x")
		p.order("y")
		p.Drive()
		p.out.Store(p.performing(), givenBack())
		p.crash()
		p.other()
		p.Drive() // x is open again, and in flight again
		require.EqualValues(t, 2, p.performing().Attempt)
		p.out.Store(p.performing(), givenBack())
		p.crash()
		require.Equal(t, map[string]journal.Disposition{"x0": journal.Cancelled, "y0": journal.Cancelled}, p.dispositions(p.back("before")))
		require.Empty(t, p.out.Tasks(receipt.Perform))
	})
	t.Run("after the rollback", func(t *testing.T) {
		p := twoOrders(t)
		p.back("before")
		p.out.Reply(p.out.Tasks(receipt.Perform)[1], givenBack())
		p.Drive()
		require.Len(t, p.out.Tasks(receipt.Perform), 1, "nobody waits for the other")
		require.Equal(t, 1, p.Status().Intents[receipt.StateDenied])
		p.reply(givenBack())
		require.Empty(t, p.out.Tasks(receipt.Perform))
	})
}

// TestWhatWasAttemptedBeforeIsNotUntouched: an attempt that is given back says nothing
// of the one before.
func TestWhatWasAttemptedBeforeIsNotUntouched(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	key := p.ask()
	p.lose()
	p.decide(key, journal.RetryAnyway)
	p.out.Unbegun = func(receipt.Task) bool { return true }
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged}, p.dispositions(p.back("before")))
	p.otherwise()
	require.Equal(t, 1, p.Status().Intents[receipt.StateParked], "it may have happened")
}

// TestForkStopsWhatWasAttempted and a rollback there lists it: it may have happened.
func TestForkStopsWhatWasAttempted(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtRetry))
	p.snapshot("before")
	p.ask()
	p.lose()
	out := new(worldtest.Outside)
	child := &play{World: p.Fork(journal.ForkLive, worldtest.Options{ID: "child", Reducers: botRegistry(), Outside: out, BatchRecords: 1}), out: out, t: t}
	child.Drive()
	require.Equal(t, 1, child.Status().Intents[receipt.StateParked])
	require.Len(t, child.back("before").Abandoned, 1)
	child.otherwise()
	require.Empty(t, out.Performed)
}

// TestWhatIsAskedForAnewIsWithdrawnAnew, and the history that asked for it first is
// still one that did.
func TestWhatIsAskedForAnewIsWithdrawnAnew(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.snapshot("asked")
	p.out.Unbegun = func(receipt.Task) bool { return true }
	for attempt := range 3 {
		require.EqualValues(t, attempt+1, p.performing().Attempt)
		require.Equal(t, map[string]journal.Disposition{"x0": journal.Cancelled}, p.dispositions(p.back("before")))
		require.Empty(t, p.out.Tasks(receipt.Perform))
		p.order("x")
		p.Drive()
	}
	p.reply(worldtest.OK(nil))
	p.back("asked")
	p.tells("x0 ok")
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged}, p.dispositions(p.back("before")))
}
