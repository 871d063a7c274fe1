package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
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
	require.Equal(t, receipt.StateParked, p.Intents()[2].State, "it repeats the first")
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
	p.reuse(1)
	p.tells("x0 ok")
	require.Empty(t, p.back("after").Abandoned)
	require.Len(t, p.back("before").Abandoned, 1)
}

// TestOneAttemptThatDidNotHappenSaysNothingOfAnother, which nobody knows about.
func TestOneAttemptThatDidNotHappenSaysNothingOfAnother(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	key := p.ask()
	p.lose()
	p.decide(key, journal.RetryAnyway)
	p.lose()
	p.decide(key, journal.NotExecuted)
	if p.entry(key).State == receipt.StateInFlight {
		p.reply(worldtest.Fail("no"))
	}
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
	require.Len(t, p.back("before").Abandoned, 1)
	p.otherwise()
	require.Equal(t, 1, p.Status().Intents[receipt.StateParked], "the first may have happened")
}

func TestWhatWasMadeUpForIsNothingToRepeat(t *testing.T) {
	p := undone(t)
	p.snapshot("before")
	key := p.ask()
	p.lose()
	p.decide(key, journal.RetryAnyway)
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
	require.Equal(t, 1, p.Status().Intents[receipt.StateParked])
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
