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

// What is a repeat of what, and what is none: who stands for what another history has
// done, and which words of a person hold where.

// TestWhatOneStandsForTheNextDoesNotRepeat: one history, one payment, and one that is
// another.
func TestWhatOneStandsForTheNextDoesNotRepeat(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) { e.OnRepeat = manifest.RepeatReuse }))
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	p.back("before")
	p.otherwise()
	require.Empty(t, p.out.Tasks(receipt.Perform), "it has the result of the first")
	p.order("x")
	p.Drive()
	require.Len(t, p.out.Tasks(receipt.Perform), 1, "as often as it is asked for")
}

func TestWhatAPersonRefusedStandsForNothing(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	p.back("before")
	p.otherwise()
	p.decide(p.Intents()[1].Intent.Key, journal.Disapprove)
	p.order("x")
	p.Drive()
	require.Equal(t, receipt.StateAwaitingApproval, p.Intents()[2].State, "it repeats the first")
}

// TestWhoReturnsToWhatWasReusedLeavesNothingBehind: the history that comes back has
// itself asked for what the other had the result of.
func TestWhoReturnsToWhatWasReusedLeavesNothingBehind(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	p.snapshot("after")
	p.back("before")
	p.otherwise()
	p.decide(p.Intents()[1].Intent.Key, world.Reuse)
	p.tells("x0 ok")
	require.Empty(t, p.back("after").Abandoned)
	require.Len(t, p.back("before").Abandoned, 1)
}

// TestOneAttemptThatDidNotHappenSaysNothingOfAnother, which nobody knows about.
func TestOneAttemptThatDidNotHappenSaysNothingOfAnother(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	key := p.decided(journal.RetryAnyway)
	p.lose()
	p.decide(key, journal.NotExecuted)
	if p.entry(key).State == receipt.StateInFlight {
		p.reply(worldtest.Fail("no"))
	}
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
	require.Len(t, p.back("before").Abandoned, 1)
	p.otherwise()
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval], "the first may have happened")
}

func TestWhatWasMadeUpForIsNothingToRepeat(t *testing.T) {
	p := undone(t)
	p.snapshot("before")
	key := p.decided(journal.RetryAnyway)
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	p.back("before", compensating)
	p.reply(worldtest.OK(nil))
	require.Equal(t, receipt.OutcomeCompensated, p.entry(key).Outcome)
	p.otherwise()
	require.Equal(t, "x0", p.performing().Tag)
}

// TestWhoLeavesAHistoryOfFreshEffectsMeansNothingAnew: that was said of the history
// which is left.
func TestWhoLeavesAHistoryOfFreshEffectsMeansNothingAnew(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	p.back("before", fresh)
	p.back("before")
	p.otherwise()
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval])
}

func TestWhatComesBackIsNothingToRepeat(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	p.tells("x0 ok")
	p.snapshot("after")
	p.back("before")
	p.back("after")
	p.order("x")
	p.Drive()
	require.Len(t, p.out.Tasks(receipt.Perform), 1, "it is asked for twice in one history")
}

// TestConfirmationIsAskedWhenItsRecordCanBeRead asks again for what has just ended: the
// record of that is on its way to the disk.
func TestConfirmationIsAskedWhenItsRecordCanBeRead(t *testing.T) {
	out := new(worldtest.Outside)
	p := &play{out: out, t: t, World: botsWith(t, worldtest.Options{Journal: &worldtest.Journal{Slow: true}, Outside: out, BatchRecords: 100}, tool(func(e *manifest.Effect) {
		e.Verify = &manifest.Verify{Adapter: "test", Mode: manifest.VerifyWarn}
	}))}
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.back("before")
	p.order("x") // the same step
	p.out.Reply(p.performing(), worldtest.OK(nil))
	p.Drive()
	p.out.Find(p.out.Task(receipt.Confirm), receipt.Happened, nil, "it is there")
	p.Drive()
	p.tells("x0 ok")
	p.requireSound()
}

// denied has a person deny an intent, and returns to before it was asked for. The part
// in which it is denied has a snapshot.
func (p *play) denied() receipt.Key {
	p.t.Helper()
	p.snapshot("before")
	key := p.ask()
	p.decide(key, journal.Disapprove)
	p.tells("x0 denied")
	p.snapshot("denied")
	p.back("before")
	return key
}

// TestWhatWasDeniedHereAndDoneElsewhereIsLeftBehind: in one history a person denies
// the intent, in another it is performed under the same key. Whoever returns to the
// first leaves an effect behind.
func TestWhatWasDeniedHereAndDoneElsewhereIsLeftBehind(t *testing.T) {
	p := live(t, approvals)
	key := p.denied()
	require.Equal(t, key, p.ask(), "the same step")
	p.decide(key, journal.Approve)
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
	require.Len(t, p.out.Performed, 1)
	p.requireSideEffects("denied", "it was done, and nobody acknowledged it")
}

func TestWhatWasDeniedHereAndDoneElsewhereIsARepeat(t *testing.T) {
	p := live(t, approvals, func(m *manifest.Manifest) { // the second order's tag is another
		m.Policies[len(m.Policies)-1].When = `intent.kind == "tool.a" && intent.tag == "x0"`
	})
	key := p.denied()
	p.ask()
	p.decide(key, journal.Approve)
	p.reply(worldtest.OK(nil))
	p.back("denied")
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.l", Param: "y"}, {Effect: "tool.a", Param: "x"}}})
	p.Drive()
	require.Len(t, p.out.Performed, 2, "the first, and y: x was done once")
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval])
}

// TestWhatWasDeniedHereAndWaitsElsewhereIsCancelled: nobody here waits for it, and its
// cell was told that it was denied.
func TestWhatWasDeniedHereAndWaitsElsewhereIsCancelled(t *testing.T) {
	p := live(t, approvals)
	key := p.denied()
	p.ask()
	require.Equal(t, receipt.StateAwaitingApproval, p.entry(key).State)
	p.back("denied")
	require.Equal(t, receipt.StateDenied, p.entry(key).State)
	p.tells("x0 denied")
}

// TestStrictConfirmationMakesNoDeedUndone: the verifier looks a moment after the
// receipt and sees nothing yet, as one that is asked about a doubt may.
func TestStrictConfirmationMakesNoDeedUndone(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: manifest.VerifyStrict} }))
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	p.back("before")
	p.order("x") // the same step: its recorded result is confirmed before it is told
	p.Drive()
	p.out.Find(p.out.Task(receipt.Confirm), receipt.NotHappened, nil, "not there yet")
	p.Drive()
	p.tells("x0 rejected")
	require.Len(t, p.back("before").Abandoned, 1, "its receipt says that it happened")
	p.otherwise()
	require.Len(t, p.out.Performed, 1)
}

// TestFreshEffectsDoNotWaiveWhatWasDoneAfterThem: the intent was asked for before the
// rollback with fresh effects, cancelled by it, and performed by a later history.
func TestFreshEffectsDoNotWaiveWhatWasDoneAfterThem(t *testing.T) {
	first := true
	p := live(t)
	p.out.Unbegun = func(receipt.Task) bool { return first }
	p.snapshot("before")
	key := p.ask()
	p.back("before", fresh)
	require.Equal(t, receipt.StateDenied, p.entry(key).State)
	first = false
	p.snapshot("fresh")
	p.back("before")
	require.Equal(t, key, p.ask())
	p.reply(worldtest.OK(nil))
	require.Len(t, p.out.Performed, 1)
	p.back("fresh")
	p.order("x")
	p.Drive()
	require.Len(t, p.out.Performed, 1, "what was left behind after the fresh beginning is a repeat there")
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval])
}

// TestReusedResultIsNotToldWhileItIsBeingMadeUpFor: a step whose result was reused is
// taken again while the payment is on its way back.
func TestReusedResultIsNotToldWhileItIsBeingMadeUpFor(t *testing.T) {
	p := paid(t)
	p.back("before")
	p.otherwise()
	p.decide(p.Intents()[1].Intent.Key, world.Reuse)
	p.back("before", compensating)
	p.otherwise() // the step of the second history
	p.tells()     // the compensation is under way: it is not told that it was done
	p.reply(worldtest.OK(nil))
	p.tells("x0 rejected")
}

// TestDenialInAForkMakesNoAttemptUndone: the parent may have done it, the person of
// the fork says that it shall not be done again, and a rollback has it done again.
func TestDenialInAForkMakesNoAttemptUndone(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtRetry))
	p.snapshot("before")
	key := p.ask()
	p.lose()
	require.Equal(t, receipt.StateOpen, p.entry(key).State)
	child := p.forked()
	require.Equal(t, receipt.StateAwaitingApproval, child.entry(key).State)
	child.decide(key, journal.Disapprove)
	child.requireSideEffects("before", "it may have happened")
	child.back("before")
	child.order("x")
	child.Drive()
	require.Empty(t, child.out.Performed)
}

// TestWhatTheHistoryThatGoesOnCountsOnIsNotMadeUpFor: the result was given to another
// intent of the history that stays, and the payment's own step was in the part left.
func TestWhatTheHistoryThatGoesOnCountsOnIsNotMadeUpFor(t *testing.T) {
	p := live(t, approvals, tool(func(e *manifest.Effect) {
		e.Compensate = &manifest.Compensate{Kind: "tool.l", Params: `{"undo": receipt.payload.id}`}
	}))
	p.snapshot("before")
	one := p.ask()
	two := p.ask()
	p.decide(two, journal.Approve)
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	p.back("before")
	require.Equal(t, one, p.ask())
	p.order("x")
	require.NoError(t, p.resolve(one, world.Reuse))
	p.snapshot("reused")
	p.Drive()
	require.False(t, p.entry(two).Abandoned, "its own step came up")
	p.back("reused", compensating)
	require.Len(t, p.out.Performed, 1, "one stands for the payment in the history that goes on")
}

// TestWhatTwoHistoriesReusedIsNotMadeUpForInOne: the second and the third history have
// the result of the first. Who returns from the third to the second counts on it there.
func TestWhatTwoHistoriesReusedIsNotMadeUpForInOne(t *testing.T) {
	p := undone(t)
	reuse := func() {
		p.order("x")
		p.Drive()
		all := p.Intents()
		p.decide(all[len(all)-1].Intent.Key, world.Reuse)
		p.tells("x0 ok")
	}
	p.snapshot("before")
	p.done("x", worldtest.OK(map[string]any{"id": 7}))
	p.back("before")
	p.other()
	reuse()
	p.snapshot("second")
	p.back("before")
	p.Submit("go", order{To: "a", Say: "a third history"})
	reuse()
	p.back("second", compensating)
	p.tells("x0 ok")
	require.Len(t, p.out.Performed, 1, "the second history was told that it is paid")
}
