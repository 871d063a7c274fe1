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

// dispositions returns what a rollback said of each side effect, by its tag.
func (p *play) dispositions(b *journal.RolledBack) map[string]journal.Disposition {
	p.t.Helper()
	out := make(map[string]journal.Disposition)
	for _, x := range b.Abandoned {
		out[p.entry(x.Key).Intent.Tag] = x.Disposition
	}
	return out
}

// other has the bot take another step than before, so that what it asks for next has
// another key.
func (p *play) other() {
	p.t.Helper()
	p.Submit("go", order{To: "a", Say: "something else"})
}

// otherwise is other, and then the same order.
func (p *play) otherwise() {
	p.t.Helper()
	p.other()
	p.order("x")
	p.Drive()
}

// TestWhatComesBackIsCompensatedWhenItIsLeftAgain is the second of the ways in which
// something was lost sight of: a rollback led to the part that another one had left.
func TestWhatComesBackIsCompensatedWhenItIsLeftAgain(t *testing.T) {
	p := paid(t)
	p.snapshot("after")
	p.back("before")
	p.crash()
	p.back("after")
	done := p.back("before", compensating)
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Compensated}, p.dispositions(done))
	require.Equal(t, "tool.l", p.performing().Kind)
	p.reply(worldtest.OK(nil))
	require.Empty(t, p.back("before", compensating).Abandoned, "it is made up for")
}

// TestWhatAnotherStoodForIsCompensated leaves behind what had its result from a part
// that was left before.
func TestWhatAnotherStoodForIsCompensated(t *testing.T) {
	p := paid(t)
	p.back("before")
	p.otherwise()
	second := p.Intents()[1]
	require.Equal(t, receipt.StateAwaitingApproval, second.State)
	p.decide(second.Intent.Key, world.Reuse)
	p.tells("x0 ok")
	done := p.back("before", compensating)
	require.Len(t, done.Abandoned, 1)
	require.Equal(t, p.Intents()[0].Intent.Key, done.Abandoned[0].Key, "the intent that was performed")
	require.Equal(t, journal.Compensated, done.Abandoned[0].Disposition)
	p.reply(worldtest.OK(nil))
	p.otherwise() // the step of the second history
	p.tells("x0 rejected")
	require.Len(t, p.out.Performed, 2, "the payment, and its return")
}

// TestReturnToWhatWasMadeUpForIsSaid returns to a part in which a cell counts on what
// has been undone since: somebody has to know.
func TestReturnToWhatWasMadeUpForIsSaid(t *testing.T) {
	p := paid(t)
	p.snapshot("after")
	p.back("before", compensating)
	p.requireSideEffects("after", "while it is under way, too")
	p.reply(worldtest.OK(nil))
	p.requireSideEffects("after", "when it is made up for")
	done := p.back("after")
	require.Equal(t, map[string]journal.Disposition{"x0": journal.MadeUpFor}, p.dispositions(done))
	p.tells("x0 ok")
	require.Empty(t, p.back("before").Abandoned)
	require.Len(t, p.out.Performed, 2)
}

func TestCompensationInVainIsNoReturnToWhatWasMadeUpFor(t *testing.T) {
	p := paid(t)
	p.snapshot("after")
	p.back("before", compensating)
	p.reply(worldtest.Fail("no"))
	require.Empty(t, p.back("after").Abandoned)
	p.tells("x0 ok")
	require.Len(t, p.back("before").Abandoned, 1)
}

// TestCompensationThatEndsAfterTheReturnIsToldOnce lets the compensation come to its
// end when its intent's cell is where it has its receipt already.
func TestCompensationThatEndsAfterTheReturnIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		reply worldtest.Reply
		left  int
	}{"done": {worldtest.OK(nil), 0}, "in vain": {worldtest.Fail("no"), 1}} {
		t.Run(name, func(t *testing.T) {
			p := paid(t)
			p.tells("x0 ok")
			p.snapshot("after")
			p.back("before", compensating)
			p.back("after")
			p.reply(c.reply)
			p.tells("x0 ok")
			require.Len(t, p.back("before").Abandoned, c.left)
		})
	}
}

func TestFreshEffectsAreMeantInTheirOwnHistoryOnly(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	p.back("before", fresh)
	p.snapshot("fresh")
	p.done("x", worldtest.OK(nil))
	require.Len(t, p.out.Performed, 2, "it is meant anew")
	p.back("fresh")
	p.crash()
	p.otherwise()
	require.Equal(t, receipt.StateAwaitingApproval, p.Intents()[2].State, "the second is left behind, and the first is waived")
	p.back("before")
	p.other()
	p.order("x")
	p.order("x")
	p.Drive()
	require.Equal(t, 2, p.Status().Intents[receipt.StateAwaitingApproval], "both are left behind")
	require.Len(t, p.out.Performed, 2)
}

func TestAResultIsForOneIntent(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(nil))
	p.back("before")
	p.other()
	p.order("x")
	p.order("x")
	p.Drive()
	all := p.Intents()
	require.NoError(t, p.resolve(all[1].Intent.Key, world.Reuse))
	p.refusesReuse(all[2].Intent.Key, "another intent stands for")
	p.Drive()
	p.tells("x0 ok")
}

// refusesReuse has the reuse of a result refused, and why be said.
func (p *play) refusesReuse(key receipt.Key, why string) {
	p.t.Helper()
	err := p.resolve(key, world.Reuse)
	require.ErrorIs(p.t, err, world.ErrNoRepeat)
	var refused *world.InputError
	require.ErrorAs(p.t, err, &refused)
	require.Contains(p.t, refused.Rule, why)
}

// TestWhatIsBeingMadeUpForHasNoResultToReuse asks about what would get the result of a
// payment that is on its way back.
func TestWhatIsBeingMadeUpForHasNoResultToReuse(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) {
		e.OnRepeat = manifest.RepeatReuse
		e.Compensate = &manifest.Compensate{Kind: "tool.l", Params: `{"undo": receipt.payload.id}`}
	}))
	p.snapshot("before")
	p.done("x", worldtest.OK(map[string]any{"id": 7}))
	p.back("before", compensating)
	p.otherwise()
	again := p.Intents()[2].Intent.Key
	require.Equal(t, receipt.StateAwaitingApproval, p.entry(again).State)
	p.refusesReuse(again, "is being made up for")
	p.reply(worldtest.OK(nil))
	p.refusesReuse(again, "has no result: it is compensated")
	p.decide(again, journal.Approve)
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
}

// TestDoubtThatCountsAsFailedIsSomethingToRepeat: on_in_doubt fail, retry and a
// person's retry make nothing undone.
func TestDoubtThatCountsAsFailedIsSomethingToRepeat(t *testing.T) {
	repeated := func(p *play) {
		p.t.Helper()
		require.Len(t, p.back("before").Abandoned, 1, "it may have happened")
		p.otherwise()
		all := p.Intents()
		require.Equal(p.t, receipt.StateAwaitingApproval, all[len(all)-1].State)
	}
	t.Run("fail", func(t *testing.T) {
		p := live(t, inDoubt(manifest.InDoubtFail))
		p.snapshot("before")
		p.ask()
		p.lose()
		p.crash()
		repeated(p)
	})
	t.Run("retry by a person", func(t *testing.T) {
		p := live(t)
		p.snapshot("before")
		p.decided(journal.RetryAnyway)
		p.reply(worldtest.Fail("no"))
		repeated(p)
	})
	t.Run("late", func(t *testing.T) {
		p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 1 }), func(m *manifest.Manifest) { m.Budget.Calls = 1 })
		p.snapshot("before")
		key := p.ask()
		lost := p.lose()
		p.decide(key, journal.NotExecuted)
		require.Equal(t, receipt.StateFailed, p.entry(key).State)
		p.out.Reply(lost, worldtest.OK(nil))
		p.Drive()
		repeated(p)
	})
}

func TestWhatSurelyDidNotHappenIsNothingToRepeat(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.decided(journal.NotExecuted)
	p.reply(worldtest.Fail("no"))
	require.Empty(t, p.back("before").Abandoned)
	p.otherwise()
	require.Len(t, p.out.Tasks(receipt.Perform), 1)
}

// halves is a failure that left something behind.
func halves() worldtest.Reply {
	return worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeCompensatable, Payload: map[string]any{"id": 7}}
}

func TestFailureThatIsHalfDoneIsSomethingToRepeat(t *testing.T) {
	p := undone(t)
	p.snapshot("before")
	p.done("x", halves())
	p.reply(worldtest.Fail("no")) // its compensation
	p.tells("x0 error")
	require.Len(t, p.back("before").Abandoned, 1)
	p.otherwise()
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval])
}

// TestMakingUpForIsNotForgottenInACrash: the result of what is being made up for is
// for nobody, also in the next process, which begins with an image.
func TestMakingUpForIsNotForgottenInACrash(t *testing.T) {
	p := paid(t)
	p.back("before")
	p.otherwise()
	p.decide(p.Intents()[1].Intent.Key, world.Reuse)
	p.back("before", compensating) // of what was left behind before
	p.crash()
	p.Submit("go", order{To: "a", Say: "a third history"})
	p.order("x")
	p.Drive()
	third := p.Intents()[3].Intent.Key
	p.refusesReuse(third, "is being made up for")
	require.Equal(t, receipt.StateAwaitingApproval, p.entry(third).State)
}

// forked returns the play of a fork with live effects, which is not judged: its receipts are of two
// worlds.
func (p *play) forked() *play {
	p.t.Helper()
	out := new(worldtest.Outside)
	return &play{out: out, t: p.t, World: p.Fork(journal.ForkLive, worldtest.Options{
		ID: "child", Reducers: botRegistry(), Outside: out, BatchRecords: 1,
	})}
}

// TestForkDoesNotAskForItsParent: a verifier would be asked about the external key of
// the fork, of which the outside never heard.
func TestForkDoesNotAskForItsParent(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtVerify))
	p.ask()
	p.lose()
	require.Len(t, p.out.Tasks(receipt.Verify), 1)
	child := p.forked()
	child.Drive()
	require.Empty(t, child.out.Tasks(receipt.Verify))
	require.Equal(t, 1, child.Status().Intents[receipt.StateInDoubt], "a person decides")
	child.RequireReplay()
}

func TestForkDoesNotMakeUpForWhatItsParentIsMakingUpFor(t *testing.T) {
	p := paid(t)
	p.snapshot("after")
	p.back("before", compensating)
	p.back("after")
	child := p.forked()
	require.Equal(t, journal.Acknowledged, child.back("before", compensating).Abandoned[0].Disposition)
	require.Empty(t, child.out.Performed)
}

// TestForkAndItsParentMakeUpForTheSameStep: one step, two intents, two compensations.
func TestForkAndItsParentMakeUpForTheSameStep(t *testing.T) {
	p := undone(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	child := p.forked() // where it is in doubt
	child.back("before")
	child.order("x") // the same step, which is another intent here
	child.Drive()
	theirs, mine := child.Intents()[0].Intent, child.Intents()[1].Intent
	require.Equal(t, theirs.Step, mine.Step)
	child.decide(mine.Key, journal.Approve)
	child.reply(halves())
	child.reply(worldtest.OK(nil))
	child.decide(theirs.Key, journal.RetryAnyway)
	child.reply(halves())
	child.reply(worldtest.OK(nil))
	require.Equal(t, receipt.OutcomeCompensated, child.entry(theirs.Key).Outcome)
	require.Equal(t, receipt.OutcomeCompensated, child.entry(mine.Key).Outcome)
	require.Equal(t, mine.Step+"!compensate", child.Intents()[2].Intent.Step)
	require.Equal(t, mine.Step+"!compensate~"+receipt.StepID(theirs.Key.String()[:16]), child.Intents()[3].Intent.Step)
	child.RequireReplay()
}

// TestConfirmationIsAskedAgainAfterARollback: the one that was asked before has
// nobody to tell.
func TestConfirmationIsAskedAgainAfterARollback(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: manifest.VerifyWarn} }))
	p.ordered()
	p.reply(worldtest.OK(nil))
	p.back("before")
	require.Len(t, p.out.Tasks(receipt.Confirm), 1)
	p.out.Find(p.out.Task(receipt.Confirm), receipt.Unknown, nil, "the line is dead")
	p.Drive()
	require.Empty(t, p.out.Tasks(receipt.Confirm))
	p.back("before")
	require.Len(t, p.out.Tasks(receipt.Confirm), 1)
	p.out.Find(p.out.Task(receipt.Confirm), receipt.Happened, nil, "it is there")
	p.Drive()
	p.tells("x0 ok")
}
