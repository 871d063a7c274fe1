package world_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// recorded returns a world that was opened again with receipts for the bots a
// and b which they have not handled; the verifier says verdict about a's.
func recorded(t *testing.T, mode string, verdict receipt.FoundVerdict) *play {
	t.Helper()
	return recordedAfter(t, mode, verdict)
}

// recordedAfter is recorded, and other bots have got an event before.
func recordedAfter(t *testing.T, mode string, verdict receipt.FoundVerdict, others ...string) *play {
	t.Helper()
	p := live(t, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: mode} }))
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}}})
	p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a", Param: "y"}}})
	p.Drive()
	for _, to := range others {
		p.Submit("go", order{To: to})
	}
	for _, task := range p.out.Tasks(receipt.Perform) {
		data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", task.Permit, worldtest.OK(nil))
		require.NoError(t, err)
		_, err = p.Receive(data)
		require.NoError(t, err)
	}
	p.crash()
	p.out.Play = func(t receipt.Task) {
		if t.Work != receipt.Confirm {
			return
		}
		found := receipt.Happened
		if t.Cell == "bot/a" {
			found = verdict
		}
		p.out.Find(t, found, nil, "it was looked at")
	}
	return p
}

// requireConfirmed confirms, which goes well and comes to want.
func (p *play) requireConfirmed(want world.Confirmation) {
	p.t.Helper()
	done, err := p.Confirm(p.t.Context())
	require.NoError(p.t, err)
	require.Equal(p.t, want, done)
}

func TestConfirmedResultIsDelivered(t *testing.T) {
	p := recorded(t, manifest.VerifyStrict, receipt.Happened)
	p.requireConfirmed(world.Confirmation{Confirmed: 2})
	p.Drive()
	p.tells("x0 ok")
	require.Len(t, p.out.Performed, 2)
	p.requireConfirmed(world.Confirmation{}) // what was handled is past
}

func TestStrictConfirmationFailsTheIntent(t *testing.T) {
	p := recorded(t, manifest.VerifyStrict, receipt.NotHappened)
	p.requireConfirmed(world.Confirmation{Confirmed: 1, Failed: 1})
	p.crash()
	p.Drive()
	p.tells("x0 rejected")
	require.Equal(t, 1, p.Status().Intents[receipt.StateFailed])
	require.Equal(t, 1, p.Status().Intents[receipt.StateCommitted])
}

func TestWarningIsRecordedCountedAndPassed(t *testing.T) {
	p := recorded(t, manifest.VerifyWarn, receipt.NotHappened)
	p.requireConfirmed(world.Confirmation{Confirmed: 1, Warned: 1})
	p.Drive()
	p.tells("x0 ok")
	r, err := verify.Verify(t.Context(), p.Journal, verify.Config{Registry: botRegistry()})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Ledger.ConfirmedNot)
}

func TestPersonConfirmsWhatTheVerifierDidNot(t *testing.T) {
	p := recorded(t, manifest.VerifyHuman, receipt.NotHappened)
	done, err := p.Confirm(t.Context())
	require.ErrorIs(t, err, world.ErrConfirmationRequired)
	require.Equal(t, world.Confirmation{Confirmed: 1, Awaiting: 1}, done)
	p.crash()
	p.Drive()
	p.tells()
	require.Equal(t, []string{"1:go ", "1:receipt y0 ok"}, p.seen("b"), "others go on")
	require.True(t, p.Idle())
	key := p.Intents()[0].Intent.Key
	require.Equal(t, receipt.StateAwaitingConfirmation, p.entry(key).State)
	require.ErrorIs(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), key, "ada", "")), world.ErrNoReason)
	require.ErrorIs(t, p.resolve(key, journal.Approve), world.ErrNotWaiting)
	require.NoError(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), key, "ada", "she called them")))
	require.ErrorIs(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), key, "ada", "again")), world.ErrNotWaiting)
	p.Drive()
	p.tells("x0 ok")
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
}

func TestPersonRejectsWhatTheVerifierDidNotConfirm(t *testing.T) {
	p := recorded(t, manifest.VerifyHuman, receipt.NotHappened)
	_, err := p.Confirm(t.Context())
	require.ErrorIs(t, err, world.ErrConfirmationRequired)
	key := p.Intents()[0].Intent.Key
	p.decide(key, journal.Disapprove)
	p.tells("x0 rejected")
	e := p.entry(key)
	require.Equal(t, receipt.StateFailed, e.State)
	require.Empty(t, e.Held)
}

// The bot was ready, and what it was ready for is taken away: it must neither
// have a turn nor keep the tick open, in this process or in a replay.
func TestHeldResultTakesItsCellsTurn(t *testing.T) {
	p := recorded(t, manifest.VerifyHuman, receipt.NotHappened)
	_, err := p.Confirm(t.Context())
	require.ErrorIs(t, err, world.ErrConfirmationRequired)
	p.requireSound()
	p.Submit("go", order{To: "c"})
	p.Step(1)
	require.Equal(t, []string{"1:go ", "1:receipt y0 ok"}, p.seen("b"))
	require.Equal(t, []string{"2:go "}, p.seen("c"))
}

func TestVerifierThatCannotTellChangesNothing(t *testing.T) {
	p := recorded(t, manifest.VerifyStrict, receipt.Unknown)
	done, err := p.Confirm(t.Context())
	require.ErrorIs(t, err, world.ErrUnconfirmed)
	require.Equal(t, world.Confirmation{Confirmed: 1}, done)
	require.Len(t, worldtest.Bodies[*journal.Confirmed](t, p.Journal), 1)
	p.Drive()
	p.tells("x0 ok")
}

func TestAnswerThatNobodyWaitsForAnyMoreIsDropped(t *testing.T) {
	p := recorded(t, manifest.VerifyStrict, receipt.Happened)
	answer := p.out.Play
	p.out.Play = nil
	_, err := p.Confirm(t.Context())
	require.ErrorIs(t, err, worldtest.ErrNoAnswer)
	for _, task := range p.out.Tasks(receipt.Confirm) {
		answer(task)
	}
	p.Submit("go", order{To: "c", Do: []act{{Effect: "tool.l"}}})
	p.Drive()
	got, err := p.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, world.Waiting, got, "tool.l is in flight")
	require.Empty(t, worldtest.Bodies[*journal.Confirmed](t, p.Journal))
}

func TestConfirmationEndsWithItsContext(t *testing.T) {
	p := recorded(t, manifest.VerifyStrict, receipt.Happened)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Confirm(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, worldtest.Bodies[*journal.Confirmed](t, p.Journal))
}

// A result can be taken away in the middle of a round, where a process died: the
// others keep their turns.
func TestResultIsTakenAwayInTheMiddleOfARound(t *testing.T) {
	asked := 0
	for n := range 8 {
		p := recordedAfter(t, manifest.VerifyHuman, receipt.NotHappened, "c")
		left := n
		p.Journal.FailWait = func(int) error {
			if left--; left < 0 {
				return worldtest.ErrInjected
			}
			return nil
		}
		err := p.World.World.Run(t.Context())
		p.Journal.FailWait = nil
		if err == nil {
			break
		}
		require.ErrorIs(t, err, worldtest.ErrInjected)
		p.crash()
		done, err := p.Confirm(t.Context())
		if done.Awaiting > 0 {
			asked++
			require.ErrorIs(t, err, world.ErrConfirmationRequired)
		}
		p.Drive()
		require.Contains(t, p.seen("b"), "2:receipt y0 ok")
	}
	require.Greater(t, asked, 1)
}
