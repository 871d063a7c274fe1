package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func TestRecordedResultIsAskedForAgainOnceARollback(t *testing.T) {
	p := asked(t)
	p.reply(worldtest.OK(nil))
	key := keysOf(p, 0)
	require.Equal(t, key, p.forged(claim(key[0], "recorded")).DuplicateKeys, "no rollback led to it")
	p.back()
	p.Drive()
	require.Equal(t, []string{"allow", "recorded"}, p.decisions())
	require.EqualValues(t, 1, p.proven().Ledger.Attempts)
	require.Equal(t, key, p.forged(claim(key[0], "recorded")).DuplicateKeys, "not twice")
	require.Equal(t, key, p.forged(start(&p.Intents()[0], 2)).DuplicateKeys, "a rollback lets nothing start again")
	p.back()
	require.Equal(t, key, p.forged(claim(key[0], "waits")).OrphanKeys, "it has ended")
	require.Equal(t, key, p.forged(claim(key[0], "rejected")).OrphanKeys, "nothing made up for it")
	require.Equal(t, key, p.forged(claim(key[0], "allow")).DuplicateKeys, "nor does it let it be decided again")
	require.Equal(t, key, p.forged(claim(key[0], "perhaps")).OrphanKeys)
	absent := receipt.Key{Hash: journal.Hash{9}}
	require.Equal(t, []receipt.Key{absent}, p.forged(claim(absent, "recorded")).OrphanKeys)
}

// A rollback to a moment after the intent was asked for does not lead to its step.
func TestRollbackThatLeadsPastTheStepLetsNobodyAskAgain(t *testing.T) {
	p := asked(t)
	p.reply(worldtest.OK(nil))
	p.snapshot("after")
	p.order()
	p.Drive()
	p.back(func(b *journal.RolledBack) { b.Snapshot = "after" })
	p.proven()
	require.Equal(t, keysOf(p, 0), p.forged(claim(keysOf(p, 0)[0], "recorded")).DuplicateKeys)
	p.back()
	p.back(func(b *journal.RolledBack) { b.Snapshot = "after" })
	p.proven()
	require.Equal(t, keysOf(p, 0), p.forged(claim(keysOf(p, 0)[0], "recorded")).DuplicateKeys, "it is in the history that was returned to")
}

func TestWhatIsUnderWayIsWaitedForAgain(t *testing.T) {
	p := asked(t)
	p.back()
	p.Drive()
	require.Equal(t, []string{"allow", "waits"}, p.decisions())
	require.Equal(t, keysOf(p, 0), p.proven().Ledger.PendingIdempotencyKeys)
	p.back()
	require.Equal(t, keysOf(p, 0), p.forged(claim(keysOf(p, 0)[0], "recorded")).OrphanKeys, "it has not ended")
	p.reply(worldtest.OK(nil))
	p.proven()
}

func TestCancelledIntentMayBeginAgainAndNothingElse(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	p.order(act{"effect": "tool.a", "param": "x"}, act{"effect": "tool.a", "param": "y"})
	p.snapshot("before")
	p.Drive()
	flying, open := p.Intents()[0], p.Intents()[1]
	require.Equal(t, keysOf(p, 1), p.forged(end(open.Intent.Key, receipt.StatusCancelled)).OrphanKeys, "no rollback left it behind")
	p.back()
	require.Equal(t, receipt.StateDenied, p.Intents()[1].State)
	p.proven()
	keys := keysOf(p, 1)
	f := &forger{t: t}
	require.Equal(t, keys, p.forged(&journal.Finished{Version: journal.V(1), Receipt: f.receipt(open, 1, receipt.Nonce{})}).OrphanKeys)
	require.Equal(t, keys, p.forged(start(&open, 1)).OrphanKeys)
	require.Equal(t, keys, p.forged(claim(keys[0], "recorded")).OrphanKeys)
	require.Equal(t, keys, p.forged(end(keys[0], receipt.StatusOK)).DuplicateKeys)
	rollback, _, _ := find(t, p.Journal, journal.KindRollback)
	x := tamper(p.Journal)
	x.addCausedBy(t, journal.KindEnded, rollback, marshal(t, end(flying.Intent.Key, receipt.StatusCancelled)))
	require.Equal(t, keysOf(p, 0), withKeys(t, x.relink(t)).Ledger.OrphanKeys, "it was attempted")
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.reply(worldtest.OK(nil))
	require.Equal(t, []string{"allow", "allow", "waits", "allow"}, p.decisions())
	require.EqualValues(t, 2, p.proven().Ledger.Attempts)
}

func TestRollbackCancelsNothingOfTheHistoryThatItReturnsTo(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	p.order(act{"effect": "tool.a", "param": "x"}, act{"effect": "tool.a", "param": "y"})
	p.Drive()
	p.snapshot("before")
	p.back()
	p.proven()
	x := tamper(p.Journal)
	id := x.add(t, journal.KindEnded, marshal(t, end(keysOf(p, 1)[0], receipt.StatusCancelled)))
	r := withKeys(t, x.relink(t))
	require.Contains(t, places(r), place(id))
	require.Equal(t, keysOf(p, 1), r.Ledger.OrphanKeys)
}

func TestDeniedIntentMayBeDeniedAgainAfterARollback(t *testing.T) {
	p := live(t)
	p.order(act{"effect": "tool.bad"})
	p.snapshot("before")
	p.Drive()
	p.back()
	p.Drive()
	denials := worldtest.Bodies[*journal.IntentDenied](t, p.Journal)
	require.Len(t, denials, 2)
	p.proven()
	require.Equal(t, keysOf(p, 0), p.forged(denials[1]).DuplicateKeys, "no other rollback led to it")
}

func undo(m *manifest.Manifest) {
	tool(func(e *manifest.Effect) {
		e.Compensate = &manifest.Compensate{Kind: "tool.b", Params: `{"p": "undo"}`}
	})(m)
}

func TestRollbackEndsWhatItsCompensationMakesUpFor(t *testing.T) {
	for name, c := range map[string]struct {
		reply   worldtest.Reply
		outcome receipt.Outcome
		again   string
	}{
		"compensated": {worldtest.OK(nil), receipt.OutcomeCompensated, "rejected"},
		"in vain":     {worldtest.Fail(nil), receipt.OutcomeSideEffectCommitted, "recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			p := asked(t, undo)
			p.reply(worldtest.OK(nil))
			require.Equal(t, keysOf(p, 0), p.forged(end(keysOf(p, 0)[0], receipt.StatusError)).DuplicateKeys, "no rollback asked for a compensation")
			p.back(compensate)
			p.proven()
			p.Drive()
			require.Equal(t, []string{"allow", "allow", "waits"}, p.decisions())
			p.reply(c.reply)
			require.Equal(t, c.outcome, worldtest.Bodies[*journal.IntentEnded](t, p.Journal)[0].Outcome)
			p.proven()
			require.Equal(t, keysOf(p, 0), p.forged(start(&p.Intents()[0], 2)).DuplicateKeys)
			p.back()
			p.Drive()
			require.Equal(t, c.again, p.decisions()[3])
			p.proven()
		})
	}
}

// A compensation in vain leaves the receipt in force: it can be confirmed.
func TestReceiptThatNothingMadeUpForCanBeConfirmed(t *testing.T) {
	p := asked(t, undo, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: manifest.VerifyStrict} }))
	p.reply(worldtest.OK(nil))
	p.back(compensate)
	p.Drive()
	p.reply(worldtest.Fail(nil))
	p.out.Find(p.out.Task(receipt.Confirm), receipt.Happened, nil, "it was looked at")
	p.Drive()
	require.Len(t, worldtest.Bodies[*journal.Confirmed](t, p.Journal), 1)
	p.proven()
}

func TestRollbackCannotMakeUpForWhatHasNotHappened(t *testing.T) {
	p := asked(t, undo)
	absent := receipt.Key{Hash: journal.Hash{9}}
	left := func(key receipt.Key) *journal.RolledBack {
		return &journal.RolledBack{Version: journal.V(1), SnapshotLen: 2, Abandoned: []journal.SideEffect{{Key: key, Disposition: journal.Compensated}}}
	}
	require.Equal(t, keysOf(p, 0), p.forged(left(keysOf(p, 0)[0])).OrphanKeys, "it is in flight")
	require.Equal(t, []receipt.Key{absent}, p.forged(left(absent)).OrphanKeys)
}

func TestRecordedResultMayBeConfirmedWhenItIsAskedForAgain(t *testing.T) {
	verified := func(mode string) func(*manifest.Manifest) {
		return tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: mode} })
	}
	again := func(t *testing.T, mode string, verdict receipt.FoundVerdict) *play {
		p := asked(t, verified(mode))
		p.reply(worldtest.OK(nil))
		p.back()
		p.Drive()
		p.out.Find(p.out.Task(receipt.Confirm), verdict, nil, "it was looked at")
		p.Drive()
		return p
	}
	t.Run("happened", func(t *testing.T) { again(t, manifest.VerifyStrict, receipt.Happened).proven() })
	t.Run("strict", func(t *testing.T) {
		p := again(t, manifest.VerifyStrict, receipt.NotHappened)
		require.Len(t, worldtest.Bodies[*journal.IntentEnded](t, p.Journal), 1)
		p.proven()
		p.back()
		p.Drive()
		require.Equal(t, []string{"allow", "recorded", "recorded"}, p.decisions())
		p.proven()
	})
	t.Run("warn", func(t *testing.T) {
		require.EqualValues(t, 1, again(t, manifest.VerifyWarn, receipt.NotHappened).proven().Ledger.ConfirmedNot)
	})
	t.Run("human confirms", func(t *testing.T) {
		p := again(t, manifest.VerifyHuman, receipt.NotHappened)
		key := keysOf(p, 0)[0]
		require.EqualValues(t, 1, p.proven().Ledger.Awaiting)
		verdict := &journal.Confirmed{Version: journal.V(1), Key: key, Mode: manifest.VerifyStrict, Verdict: receipt.Happened}
		require.Equal(t, keysOf(p, 0), p.forged(verdict).OrphanKeys, "a person has to")
		require.NoError(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), key, "ada", "she called them")))
		p.Drive()
		p.proven()
		byHand := &journal.Confirmed{Version: journal.V(1), Key: key, Mode: "person", Verdict: receipt.Happened}
		require.Equal(t, keysOf(p, 0), p.forged(byHand).OrphanKeys, "she was not asked again")
	})
	t.Run("human denies", func(t *testing.T) {
		p := again(t, manifest.VerifyHuman, receipt.NotHappened)
		resolve(t, p.World, 0, journal.Disapprove)
		p.Drive()
		p.proven()
	})
}

// repeat is a play in which a rollback left a tool.a behind, and another history
// asks for the same.
func repeat(t *testing.T, on string) *play {
	t.Helper()
	p := live(t, tool(func(e *manifest.Effect) { e.OnRepeat = on }))
	p.snapshot("before")
	p.order(act{"effect": "tool.a", "param": "x"})
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.back()
	p.order(act{"timer": 9}, act{"effect": "tool.a", "param": "x"})
	p.Drive()
	return p
}

func TestRepeatGetsTheResultOfWhatWasLeftBehind(t *testing.T) {
	repeated := func(t *testing.T) *play {
		p := repeat(t, "")
		require.Equal(t, []string{"possible_repeat"}, worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)[0].Rules)
		require.EqualValues(t, 1, p.proven().Ledger.Awaiting)
		return p
	}
	for how, attempts := range map[journal.Resolution]uint64{world.Reuse: 1, journal.Disapprove: 1, journal.Approve: 2} {
		t.Run(string(how), func(t *testing.T) {
			p := repeated(t)
			resolve(t, p.World, 1, how)
			p.proven()
			p.Drive()
			require.Equal(t, attempts, p.proven().Ledger.Attempts)
		})
	}
	t.Run("by the manifest", func(t *testing.T) {
		p := repeat(t, manifest.RepeatReuse)
		require.Equal(t, []string{"allow", "reused"}, p.decisions())
		require.Equal(t, receipt.StatusOK, worldtest.Bodies[*journal.IntentEnded](t, p.Journal)[0].Status)
		require.EqualValues(t, 1, p.proven().Ledger.Attempts)
		require.Equal(t, keysOf(p, 1), p.forged(start(&p.Intents()[1], 1)).DuplicateKeys, "it never starts")
		require.Equal(t, keysOf(p, 1), p.forged(end(keysOf(p, 1)[0], receipt.StatusOK)).DuplicateKeys)
	})
	t.Run("made up", func(t *testing.T) {
		p := asked(t)
		absent := receipt.Key{Hash: journal.Hash{9}}
		require.Equal(t, []receipt.Key{absent}, p.forged(claim(absent, "reused")).OrphanKeys)
		require.Equal(t, []receipt.Key{absent}, p.forged(&journal.IntentAwaitingApproval{
			Version: journal.V(1), Key: absent, Rules: []string{"possible_repeat"}, Params: journal.Data(canon.Null),
		}).OrphanKeys)
	})
}

func TestLedgerOfManyRollbacksIsProven(t *testing.T) {
	p := asked(t)
	for range 3 {
		p.back()
		p.order(act{"effect": "tool.a", "param": "x"}, act{"effect": "tool.b", "param": "y"})
		p.Drive()
		for len(p.out.Tasks(receipt.Perform)) > 0 {
			p.reply(worldtest.OK(nil))
		}
		p.proven()
	}
	require.Contains(t, p.decisions(), "recorded")
}
