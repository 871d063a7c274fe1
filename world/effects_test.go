package world_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func decodeJSON(t testing.TB, text string, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), v))
}

// Replies of the outside.
func retryable() worldtest.Reply {
	return worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure}
}

func givenBack() worldtest.Reply {
	return worldtest.Reply{Status: receipt.StatusCancelled, Class: receipt.OutcomeRetryableFailure, Unsent: true}
}

func TestTimeGoesOnWhileLiveEffectsAreInFlight(t *testing.T) {
	p := live(t)
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a"}, {Timer: 5}}})
	p.Drive()
	require.EqualValues(t, 6, p.Status().Time)
	require.Len(t, p.out.Tasks(receipt.Perform), 1)
	require.False(t, p.Idle())
	p.reply(worldtest.OK(nil))
	require.Equal(t, []string{"1:go ", "6:alarm after 5", "6:receipt 0 ok"}, p.seen("a"), "it is handled in the tick in which it came")
	require.True(t, p.Idle())
}

func TestNothingTicksWhileOnlyEffectsAreInFlight(t *testing.T) {
	p := live(t)
	p.ask()
	before := p.Status()
	got, err := p.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, world.Waiting, got)
	require.Equal(t, before, p.Status())
}

func TestReceiptsOfLiveEffectsAreAdmittedAsTheyCome(t *testing.T) {
	p := live(t)
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}}})
	p.Drive()
	tasks := p.out.Tasks(receipt.Perform)
	p.out.Reply(tasks[1], worldtest.OK(nil))
	p.out.Reply(tasks[0], worldtest.Fail(nil))
	p.Drive()
	p.tells("y1 ok", "x0 error")
}

func TestStepAwaitsLiveReceiptsAtTheBarrier(t *testing.T) {
	p := live(t)
	p.out.Play = func(t receipt.Task) { p.out.Reply(t, worldtest.OK(nil)) }
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a"}}})
	p.Step(1)
	p.tells("0 ok")
	p.out.Play = nil
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a"}}})
	require.ErrorIs(t, p.World.World.Step(t.Context()), worldtest.ErrNoAnswer)
}

func TestDeterministicEffectsAreAwaitedBesideLiveOnes(t *testing.T) {
	p := live(t)
	p.out.Deterministic = []string{"tool.a"}
	p.out.Play = func(t receipt.Task) {
		if t.Kind == "tool.a" {
			p.out.Reply(t, worldtest.OK(nil))
		}
	}
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.l"}, {Effect: "tool.a"}}})
	p.Drive()
	p.tells("1 ok")
	require.Equal(t, "tool.l", p.performing().Kind)
}

func TestFreedSlotGoesToTheOldestOpenIntent(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 2 })
	for _, to := range []string{"a", "b", "c", "d"} {
		p.Submit("go", order{To: to, Do: []act{{Effect: "tool.a", Param: to}}})
	}
	p.Drive()
	require.Len(t, p.out.Tasks(receipt.Perform), 2)
	p.out.Reply(p.out.Tasks(receipt.Perform)[1], worldtest.OK(nil))
	p.Drive()
	tasks := p.out.Tasks(receipt.Perform)
	require.Equal(t, []string{"bot/a", "bot/c"}, []string{tasks[0].Cell, tasks[1].Cell})
	require.EqualValues(t, 1, p.entry(tasks[1].Key).Slot, "the slot that was freed")
	p.lose()
	require.Equal(t, "bot/d", p.out.Tasks(receipt.Perform)[1].Cell, "an effect in doubt holds no slot")
}

func TestRetryableFailureIsAttemptedAgainAfterItsBackoff(t *testing.T) {
	p := live(t)
	key := p.ask()
	p.reply(retryable())
	require.Empty(t, p.out.Tasks(receipt.Perform), "before its backoff is over")
	require.Equal(t, receipt.StateOpen, p.entry(key).State)
	require.False(t, p.Idle())
	p.due()
	require.EqualValues(t, 2, p.performing().Attempt)
	p.reply(retryable())
	p.due()
	p.tells()
	p.reply(retryable())
	p.tells("x0 error")
	e := p.entry(key)
	require.Equal(t, []any{receipt.StateFailed, uint64(3), receipt.OutcomePermanentFailure}, []any{e.State, e.Attempt, e.Outcome})
	require.Len(t, p.out.Performed, 3)
	nonces := map[receipt.Nonce]bool{}
	for _, permit := range p.out.Performed {
		require.Equal(t, key, permit.Key, "one key for all attempts")
		nonces[permit.Nonce] = true
	}
	require.Len(t, nonces, 3)
	require.Empty(t, p.out.Tasks(receipt.Retry))
	require.Zero(t, p.out.Stored(), "what is in the journal is let go")
}

func TestOnlyTheLastOutcomeIsDelivered(t *testing.T) {
	p := live(t)
	p.ask()
	p.reply(retryable())
	p.due()
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
}

func TestPermanentFailureIsNotAttemptedAgain(t *testing.T) {
	p := live(t)
	p.ask()
	p.reply(worldtest.Fail(nil))
	p.tells("x0 error")
	require.True(t, p.Idle())
}

func TestGivenBackAttemptsDoNotCount(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 2 }))
	key := p.ask()
	for range 3 {
		p.reply(givenBack())
		require.Empty(t, p.out.Tasks(receipt.Retry), "it needs no backoff")
	}
	p.reply(retryable())
	p.due()
	p.tells()
	require.EqualValues(t, 5, p.performing().Attempt)
	p.reply(retryable())
	p.tells("x0 error")
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
}

func TestGivenBackAttemptIsGrantedAgainByTheNextProcess(t *testing.T) {
	p := live(t)
	p.ask()
	p.out.Store(p.performing(), givenBack()) // by a host that closed
	p.crash()
	p.Drive()
	require.EqualValues(t, 2, p.performing().Attempt)
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
}

func TestReceiptThatAlsoComesByHandIsTakenOnce(t *testing.T) {
	for name, r := range map[string]worldtest.Reply{"the last": worldtest.OK(nil), "another follows": retryable(), "given back": givenBack()} {
		t.Run(name, func(t *testing.T) {
			p := live(t)
			p.ask()
			task := p.performing()
			data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", task.Permit, r)
			require.NoError(t, err)
			_, err = p.Receive(data)
			require.NoError(t, err)
			p.out.Reply(task, r)
			p.Drive()
			require.Len(t, worldtest.Bodies[*journal.Finished](t, p.Journal), 1)
		})
	}
}

func TestAnsweredAttemptTakesNoSecondReceipt(t *testing.T) {
	p := live(t)
	p.ask()
	first := p.performing()
	sign := func(permit receipt.Permit) []byte {
		data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", permit, worldtest.OK(nil))
		require.NoError(t, err)
		return data
	}
	p.reply(retryable())
	refused := func(permit receipt.Permit, want error) {
		before := p.Status()
		_, err := p.Receive(sign(permit))
		require.ErrorIs(t, err, want)
		require.Equal(t, before, p.Status())
	}
	refused(first.Permit, receipt.ErrWrongAttempt)
	p.due()
	refused(first.Permit, receipt.ErrWrongAttempt)
	ahead := p.performing().Permit
	ahead.Attempt++
	refused(ahead, receipt.ErrWrongAttempt)
	second := p.performing().Permit
	second.Nonce = first.Nonce
	refused(second, receipt.ErrWrongAttempt)
	second = p.performing().Permit
	p.reply(worldtest.OK(nil))
	refused(second, receipt.ErrDuplicate)
	refused(first.Permit, receipt.ErrDuplicate)
}

// The windows of docs/guarantees.md, "A live effect".
func TestLiveEffectInEveryWindow(t *testing.T) {
	t.Run("1 before the permit is durable", func(t *testing.T) {
		p := live(t)
		p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}}})
		failing := false
		p.Journal.FailWait = func(int) error {
			failing = true
			return worldtest.ErrInjected
		}
		require.ErrorIs(t, p.World.World.Run(t.Context()), worldtest.ErrInjected)
		require.True(t, failing)
		require.Empty(t, p.out.Performed)
		p.Journal.FailWait = nil
		p.crash()
		p.Drive()
		require.Len(t, p.out.Performed, 1)
		p.reply(worldtest.OK(nil))
		p.tells("x0 ok")
	})
	t.Run("2 permit durable, nothing stored", func(t *testing.T) {
		p := live(t)
		key := p.ask()
		p.crash()
		require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
		p.Drive()
		p.crash()
		p.Drive()
		require.Len(t, p.out.Performed, 1, "never performed again blindly")
		require.Len(t, worldtest.Bodies[*journal.InDoubt](t, p.Journal), 1)
		p.tells()
	})
	t.Run("3 result stored, not journaled", func(t *testing.T) {
		p := live(t)
		key := p.ask()
		p.out.Store(p.performing(), worldtest.OK(nil))
		p.crash()
		require.Equal(t, receipt.StateInFlight, p.entry(key).State, "it is caught up on when the world is driven")
		p.crash()
		p.Drive()
		require.Equal(t, receipt.StateCommitted, p.entry(key).State)
		require.Len(t, p.out.Performed, 1)
		require.Zero(t, p.out.Stored())
		p.tells("x0 ok")
	})
	t.Run("4 journaled, not delivered", func(t *testing.T) {
		p := live(t)
		p.ask()
		data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", p.performing().Permit, worldtest.OK(nil))
		require.NoError(t, err)
		_, err = p.Receive(data)
		require.NoError(t, err)
		p.crash()
		p.Drive()
		require.Len(t, p.out.Performed, 1)
		p.tells("x0 ok")
	})
	t.Run("5 delivered", func(t *testing.T) {
		p := live(t)
		p.ask()
		p.reply(worldtest.OK(nil))
		p.crash()
		p.Drive()
		require.Len(t, p.out.Performed, 1)
		p.tells("x0 ok")
	})
}

func TestBackoffOfAProcessBeforeIsWaitedForAgain(t *testing.T) {
	p := live(t)
	p.ask()
	p.reply(retryable())
	p.crash()
	require.Empty(t, p.out.Tasks(receipt.Retry), "looking at a world touches nothing")
	p.Drive()
	p.due()
	require.EqualValues(t, 2, p.performing().Attempt)
}

// What a step may ask for is the manifest's to say, also where the reducer is Go.
func TestStepThatExceedsALimitAsksForNothing(t *testing.T) {
	w := bots(t, func(m *manifest.Manifest) {
		r := m.Reducers["bot"]
		r.Limits.Effects = 2
		m.Reducers["bot"] = r
	})
	w.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "1"}, {Effect: "tool.a", Param: "2"}}})
	w.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a", Param: "1"}, {Effect: "tool.a", Param: "2"}, {Effect: "tool.a", Param: "3"}}})
	w.Run()
	require.Equal(t, 2, w.Status().Intents[receipt.StateCommitted])
	require.Equal(t, 1, w.Status().Halted)
	w.RequireReplay()
}

// TestOnlyItsOwnKeysAreBelieved: a host may have checked a receipt already, but by the
// world's own keyring.
func TestOnlyItsOwnKeysAreBelieved(t *testing.T) {
	p := live(t)
	key := p.ask()
	others, err := receipt.NewKeyring(p.Status().ID, []receipt.Epoch{{Number: 1, Secret: make([]byte, receipt.SecretBytes)}})
	require.NoError(t, err)
	task := p.performing()
	p.out.Forge(task, others, worldtest.Reply{Status: receipt.StatusOK})
	_, err = p.Next(t.Context())
	require.ErrorIs(t, err, receipt.ErrUnknownKey)
	require.Equal(t, receipt.StateInFlight, p.entry(key).State)
	p.out.Forge(task, worldtest.Keyring(t, p.Status().ID), worldtest.Reply{Status: receipt.StatusOK}) // the same secret: looked at again
	p.Drive()
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
}
