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

// cancel has the bot a cancel the tag of its tool.a.
func (p *play) cancel() {
	p.t.Helper()
	p.Submit("go", order{To: "a", Do: []act{{Cancel: "x0"}}})
	p.Drive()
}

// stands requires where an intent stands, after how many attempts.
func (p *play) stands(key receipt.Key, state receipt.State, attempts int) {
	p.t.Helper()
	e := p.entry(key)
	require.Equal(p.t, state, e.State)
	require.Len(p.t, p.out.Performed, attempts)
}

// What has not begun ends at once, and gives back what was reserved for it.
func TestWhatIsCancelledBeforeItBeganEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*manifest.Manifest)
		before func(p *play)
	}{
		"waits for approval": {approvals, func(*play) {}},
		"waits for a slot": {func(m *manifest.Manifest) { m.Limits.InFlight = 1 }, func(p *play) {
			p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.l"}}})
		}},
		"nobody has begun it": {calls(1), func(p *play) {
			p.out.Unbegun = func(receipt.Task) bool { return true }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, c.change)
			c.before(p)
			p.ask()
			before := len(p.out.Performed)
			p.cancel()
			p.tells("x0 cancelled cancelled")
			p.cancel()
			p.tells("x0 cancelled cancelled")
			p.crash()
			p.Drive()
			all := p.Intents()
			require.Equal(t, receipt.StateDenied, all[len(all)-1].State)
			counts := p.Status().Intents
			require.Equal(t, []int{1, 0}, []int{counts[receipt.StateCancelled], counts[receipt.StateDenied]}, "nobody said no")
			require.LessOrEqual(t, len(p.out.Performed), before)
			if name == "nobody has begun it" {
				require.Empty(t, p.out.Performed)
				require.True(t, p.another(), "its call was given back")
			}
		})
	}
}

// A step that cancels frees what the same step asks for anew.
func TestWhatIsCancelledMakesRoomInTheBudgetOfTheStep(t *testing.T) {
	p := live(t, calls(2), func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.l"}}})
	p.ask()
	p.Submit("go", order{To: "a", Do: []act{{Cancel: "x0"}, {Effect: "tool.a", Param: "y"}}})
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.reply(worldtest.OK(nil))
	p.tells("x0 cancelled cancelled", "y1 ok")
}

// What a step asks for and cancels is not asked for.
func TestAStepCanCancelWhatItHasAskedFor(t *testing.T) {
	p := live(t)
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Cancel: "x0"}, {Effect: "tool.a", Param: "y"}}})
	p.Drive()
	require.Equal(t, "y2", p.performing().Tag)
	require.Len(t, p.Intents(), 1)
	p.tells()
}

// What is under way goes on to its end, which is told apart; and no attempt follows.
func TestTheReceiptOfWhatWasCancelledUnderWayIsToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*manifest.Manifest)
		before func(p *play) // of the cancelling
		after  func(p *play)
		told   string
		state  receipt.State
	}{
		"it happened":       {nil, nil, func(p *play) { p.reply(worldtest.OK("late")) }, "x0 ok cancelled", receipt.StateCommitted},
		"it failed":         {nil, nil, func(p *play) { p.reply(worldtest.Fail(nil)) }, "x0 error cancelled", receipt.StateFailed},
		"it could go again": {nil, nil, func(p *play) { p.reply(retryable()) }, "x0 error cancelled", receipt.StateFailed},
		"a crash between": {nil, nil, func(p *play) {
			p.out.Store(p.performing(), worldtest.OK(nil))
			p.crash()
			p.Drive()
		}, "x0 ok cancelled", receipt.StateCommitted},
		"it is lost, fail":  {inDoubt(manifest.InDoubtFail), nil, func(p *play) { p.lose() }, "x0 rejected cancelled", receipt.StateFailed},
		"it is lost, retry": {inDoubt(manifest.InDoubtRetry), nil, func(p *play) { p.lose() }, "x0 rejected cancelled", receipt.StateFailed},
		"it was in doubt": {nil, func(p *play) { p.lose() }, func(p *play) {
			key := p.Intents()[0].Intent.Key
			require.ErrorIs(p.t, p.resolve(key, journal.RetryAnyway), world.ErrNotWaiting)
			p.decide(key, journal.NotExecuted)
		}, "x0 rejected cancelled", receipt.StateFailed},
		"it was in doubt, and happened": {nil, func(p *play) { p.lose() }, func(p *play) {
			p.decide(p.Intents()[0].Intent.Key, journal.Executed)
		}, "x0 ok cancelled", receipt.StateCommitted},
		"a verifier says no": {inDoubt(manifest.InDoubtVerify), func(p *play) { p.lose() }, func(p *play) {
			p.out.Find(p.out.Task(receipt.Verify), receipt.NotHappened, nil, "it looked")
			p.Drive()
		}, "x0 rejected cancelled", receipt.StateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*manifest.Manifest) {}
			}
			p := live(t, change)
			key := p.ask()
			if c.before != nil {
				c.before(p)
			}
			p.cancel()
			p.tells()
			c.after(p)
			p.tells(c.told)
			p.stands(key, c.state, 1)
			require.Empty(t, p.out.Tasks(receipt.Retry))
			require.True(t, p.Idle())
		})
	}
}

// Between two attempts nothing is under way.
func TestRetriesThatAreCancelledEnd(t *testing.T) {
	p := live(t, calls(2))
	key := p.ask()
	p.reply(retryable())
	p.cancel()
	p.tells("x0 rejected cancelled")
	p.due()
	p.stands(key, receipt.StateFailed, 1)
	require.True(t, p.another(), "what was set aside for the second attempt")

	p = live(t, calls(2), inDoubt(manifest.InDoubtRetry))
	key = p.ask()
	p.lose()
	p.cancel()
	p.tells("x0 rejected cancelled")
	p.stands(key, receipt.StateFailed, 1)
	require.True(t, p.entry(key).Uncertain, "nobody can tell of the first")
	require.True(t, p.another())
}

// A receipt that has come, and is not handled yet, is told apart as well.
func TestAReceiptThatWaitsIsToldApart(t *testing.T) {
	p := live(t)
	p.ask()
	p.Submit("go", order{To: "a", Do: []act{{Cancel: "x0"}}})
	data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", p.performing().Permit, worldtest.OK(nil))
	require.NoError(t, err)
	_, err = p.Receive(data)
	require.NoError(t, err)
	p.crash()
	p.Drive()
	p.tells("x0 ok cancelled")
	require.Len(t, worldtest.Bodies[*journal.TagCancelled](t, p.Journal)[0].Receipts, 1)
	require.Empty(t, worldtest.Bodies[*journal.IntentCancelled](t, p.Journal))
}

// What a person has tried again is told apart, too: by the word of its cell nothing of that
// tag is wanted. It is an intent of its own, with its retries, and so is what is tried again
// after that.
func TestWhatWasCancelledAndIsTriedAgainIsToldApart(t *testing.T) {
	p := live(t)
	key := p.ask()
	p.snapshot("asked")
	p.cancel()
	p.reply(worldtest.Fail("no"))
	p.snapshot("told")
	require.NoError(t, p.resolve(key, journal.RetryAnyway))
	p.crash()
	p.Drive()
	p.reply(retryable())
	p.due()
	p.reply(worldtest.Fail("no"))
	p.stands(p.newest().Intent.Key, receipt.StateFailed, 3)
	require.NoError(t, p.resolve(p.newest().Intent.Key, journal.RetryAnyway))
	p.Drive()
	p.requireSameFromImages(3)
	p.reply(worldtest.OK(nil))
	p.tells("x0 error cancelled", "x0 error cancelled", "x0 ok cancelled")
	p.back("told")
	require.NoError(t, p.resolve(key, journal.RetryAnyway))
	p.Drive()
	p.tells("x0 error cancelled", "x0 error cancelled")

	p.back("asked")
	p.Drive()
	p.tells("x0 error")
	require.NoError(t, p.resolve(key, journal.RetryAnyway))
	p.Drive()
	p.tells("x0 error", "x0 error")
}

// So is what takes the place of that.
func TestWhatWasCancelledAndIsTriedAgainAndEditedIsToldApart(t *testing.T) {
	p := live(t, approvals)
	key := p.ask()
	p.decide(key, journal.Approve)
	p.cancel()
	p.reply(worldtest.Fail("no"))
	p.decide(key, journal.RetryAnyway)
	require.NoError(t, p.edit(p.newest().Intent.Key, "y"))
	p.crash()
	p.decide(p.newest().Intent.Key, journal.Approve)
	p.reply(worldtest.OK(nil))
	p.tells("x0 error cancelled", "x0 ok cancelled")
}

// A rollback to before the cancelling undoes it, one to after it does not; and what it
// has ended is ended.
func TestACancellingIsPartOfItsHistory(t *testing.T) {
	p := live(t)
	key := p.ask()
	p.snapshot("asked")
	p.cancel()
	p.snapshot("cancelled")
	p.back("asked")
	p.reply(retryable())
	p.due()
	require.Len(t, p.out.Performed, 2, "it is wanted again")
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
	p.back("cancelled")
	p.Drive()
	p.tells("x0 ok cancelled")
	p.stands(key, receipt.StateCommitted, 2)

	p = live(t, approvals)
	key = p.ask()
	p.snapshot("asked")
	p.cancel()
	p.back("asked")
	p.Drive()
	p.tells("x0 cancelled")
	p.stands(key, receipt.StateDenied, 0)
}

// Where a rollback leads back to after the cancelling, what was readied for another attempt
// in the history that it leaves ends: its cell does not want it here.
func TestARollbackToWhereItWasCancelledEndsWhatIsReady(t *testing.T) {
	for name, ready := range map[string]func(p *play, key receipt.Key){
		"a person says that it did not happen": func(p *play, key receipt.Key) {
			p.lose()
			require.NoError(p.t, p.resolve(key, journal.NotExecuted))
		},
		"it waits for its next attempt": func(p *play, _ receipt.Key) { p.reply(retryable()) },
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t)
			key := p.ask()
			p.snapshot("asked")
			p.cancel()
			p.snapshot("cancelled")
			p.back("asked")
			ready(p, key)
			p.back("cancelled")
			p.crash()
			p.Drive()
			p.tells("x0 rejected cancelled")
			p.stands(key, receipt.StateFailed, 1)
		})
	}
}

// What a rollback has turned back is no cancelling: the intent ends for want of a budget, and
// the cell is told no more than that.
func TestAfterACancellingThatWasTurnedBackABudgetEndsIt(t *testing.T) {
	p := live(t, calls(1))
	key := p.ask()
	p.snapshot("asked")
	p.cancel()
	p.back("asked")
	refused := retryable()
	refused.Exact = true
	p.reply(refused)
	p.asks("b", "tool.l")
	p.reply(worldtest.OK(nil))
	p.due()
	p.stands(key, receipt.StateFailed, 2)
	p.tells("x0 rejected")
}

// A step that a rollback leads to again asks anew for what was cancelled before it began.
func TestWhatACellCancelledMayBeAskedForAgain(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.l"}}})
	p.Drive()
	p.ordered()
	p.cancel()
	p.tells("x0 cancelled cancelled")
	p.back("before")
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
}

// What is made up for goes on to be, and the cell is told apart what it came to.
func TestACompensationOfWhatWasCancelledGoesOn(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) {
		e.Compensate = &manifest.Compensate{Kind: "tool.l", Params: "intent.params"}
	}))
	p.ask()
	p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeCompensatable})
	p.cancel()
	p.tells()
	p.reply(worldtest.OK(nil))
	p.tells("x0 error cancelled")
}

// A result that a person has to confirm is told apart as any other.
func TestAConfirmedResultOfWhatWasCancelledIsToldApart(t *testing.T) {
	for _, mode := range []string{manifest.VerifyStrict, manifest.VerifyHuman} {
		p := live(t, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: mode} }))
		key := p.ask()
		p.cancel()
		data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", p.performing().Permit, worldtest.OK(nil))
		require.NoError(t, err)
		_, err = p.Receive(data)
		require.NoError(t, err)
		p.crash()
		p.out.Play = func(task receipt.Task) {
			if task.Work == receipt.Confirm {
				p.out.Find(task, receipt.NotHappened, nil, "it was looked at")
			}
		}
		_, err = p.Confirm(t.Context())
		if mode == manifest.VerifyHuman {
			require.ErrorIs(t, err, world.ErrConfirmationRequired)
			p.crash()
			require.NoError(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), key, "ada", "she called them")))
			p.Drive()
			p.tells("x0 ok cancelled")
			continue
		}
		require.NoError(t, err)
		p.Drive()
		p.tells("x0 rejected cancelled")
	}
}
