package worldtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func bots(t testing.TB, o worldtest.Options) *worldtest.World {
	t.Helper()
	return worldtest.Load(t, "testdata/bots", o)
}

// order tells a bot what to do.
func order(to string, acts ...map[string]any) map[string]any {
	do := make([]any, len(acts))
	for i, a := range acts {
		do[i] = a
	}
	return map[string]any{"to": to, "do": do}
}

func effect(param string) map[string]any { return map[string]any{"effect": "tool.a", "param": param} }

func TestWithoutAScriptTheManifestsAdaptersAnswer(t *testing.T) {
	w := bots(t, worldtest.Options{})
	w.Submit("go", order("a", effect("x"), effect("error")))
	w.Run()
	require.JSONEq(t, `{"seen": ["1: go ", "1: receipt x ok", "1: receipt error error"]}`, w.State("bot/a"))
	w.RequireReplay()
}

func TestScriptSeesThePermitAndDecidesTheAnswer(t *testing.T) {
	var asked []string
	w := bots(t, worldtest.Options{Answer: func(p receipt.Permit) worldtest.Reply {
		asked = append(asked, p.Kind+" "+p.Tag+" for "+p.Cell)
		if p.Tag == "x" {
			return worldtest.OK([]any{1, "two"})
		}
		return worldtest.Fail(nil)
	}})
	w.Submit("go", order("a", effect("x"), effect("y")))
	w.Run()
	require.Equal(t, []string{"tool.a x for bot/a", "tool.a y for bot/a"}, asked)
	require.JSONEq(t, `{"seen": ["1: go ", "1: receipt x ok", "1: receipt y error"]}`, w.State("bot/a"))
}

func TestReplyWithoutReceiptStaysInFlightUntilItIsAnswered(t *testing.T) {
	dead, alive := errors.New("the line is dead"), false
	w := bots(t, worldtest.Options{Answer: func(receipt.Permit) worldtest.Reply {
		if !alive {
			return worldtest.Reply{Err: dead}
		}
		return worldtest.OK(nil)
	}})
	w.Submit("go", order("a", effect("x")))
	require.ErrorIs(t, w.World.Step(context.Background()), dead)
	require.Equal(t, 1, w.Status().Intents[receipt.StateInFlight])
	w.Crash()
	require.Equal(t, 1, w.Status().Intents[receipt.StateInFlight])
	alive = true
	w.Run()
	require.Equal(t, 1, w.Status().Intents[receipt.StateCommitted])
	w.RequireReplay()
}

func TestEqualRunsGiveEqualJournals(t *testing.T) {
	run := func() *worldtest.World {
		w := bots(t, worldtest.Options{})
		w.Submit("go", order("a", effect("x"), map[string]any{"random": 1000}, map[string]any{"emit": "ping", "to": "b"}))
		w.Run()
		return w
	}
	first, second := run(), run()
	require.Equal(t, first.Journal.Records(), second.Journal.Records())
}

func TestCrashLosesWhatWasNotDurableAndNothingElse(t *testing.T) {
	w := bots(t, worldtest.Options{})
	w.Submit("go", order("a"))
	durable := w.Journal.Head()
	w.Journal.FailWait = func(int) error { return worldtest.ErrInjected }
	require.ErrorIs(t, w.TrySubmit("go", order("b")), worldtest.ErrInjected)
	require.ErrorIs(t, w.TrySubmit("go", order("b")), worldtest.ErrInjected, "it stopped")
	w.Journal.FailWait = nil
	w.Crash()
	require.Equal(t, durable, w.Status().Head)
	require.Equal(t, 1, w.Status().EventsPending)
}

func TestUnknownAppendIsDurableAllTheSame(t *testing.T) {
	w := bots(t, worldtest.Options{})
	w.Journal.FailWait = func(int) error { return journal.ErrUnknown }
	require.ErrorIs(t, w.TrySubmit("go", order("a")), journal.ErrUnknown)
	w.Journal.FailWait = nil
	w.Crash()
	require.Equal(t, 1, w.Status().EventsPending)
	w.RequireReplay()
}

func TestRefusedAppendEndsTheWorld(t *testing.T) {
	w := bots(t, worldtest.Options{})
	w.Journal.FailAppend = func(int) error { return journal.ErrFenced }
	require.ErrorIs(t, w.TrySubmit("go", order("a")), journal.ErrFenced)
	w.Journal.FailAppend = nil
	require.ErrorIs(t, w.World.Step(context.Background()), journal.ErrFenced, "until it is opened again")
}

func TestJournalFencesAnAppendToAnotherHead(t *testing.T) {
	w := bots(t, worldtest.Options{})
	first := w.Journal.Records()[0]
	_, err := w.Journal.Append(journal.Batch{Head: journal.Head{ID: 1, Root: first.Root}, Records: []journal.Stored{first}})
	require.ErrorIs(t, err, journal.ErrFenced)
}

func TestJournalRefusesABatchWhoseChainIsWrong(t *testing.T) {
	first := bots(t, worldtest.Options{}).Journal.Records()[0]
	for name, b := range map[string]journal.Batch{
		"another root of the record": {
			Head: journal.Head{ID: 1, Root: first.Root}, Records: []journal.Stored{{ID: 1, Bytes: first.Bytes, Root: journal.Hash{1}}},
		},
		"another head":        {Head: journal.Head{ID: 1, Root: journal.Hash{1}}, Records: []journal.Stored{first}},
		"another id":          {Head: journal.Head{ID: 2, Root: first.Root}, Records: []journal.Stored{{ID: 2, Bytes: first.Bytes, Root: first.Root}}},
		"bytes of no record":  {Head: journal.Head{ID: 1}, Records: []journal.Stored{{ID: 1, Bytes: []byte{0xff}}}},
		"a head of no record": {Head: journal.Head{ID: 1, Root: first.Root}},
	} {
		j := new(worldtest.Journal)
		_, err := j.Append(b)
		require.Error(t, err, name)
		require.Empty(t, j.Records(), name)
	}
}

func TestCloneAndTruncateLeaveTheJournalAlone(t *testing.T) {
	w := bots(t, worldtest.Options{})
	w.Submit("go", order("a"))
	w.Run()
	before := w.Journal.Head()
	cut := w.Journal.Truncate(2)
	require.EqualValues(t, 2, cut.Head().ID)
	clone := w.Journal.Clone()
	require.Equal(t, before, clone.Head())
	clone.Records()[0] = journal.Stored{}
	require.NotEqual(t, journal.Stored{}, w.Journal.Records()[0])
	require.Equal(t, before, w.Journal.Head())
	_, err := cut.Record(3)
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = cut.Blob(journal.Hash{1})
	require.ErrorIs(t, err, journal.ErrNotFound)
}

func TestEffectWithAReceiptIsNotPerformedAgain(t *testing.T) {
	for name, reopen := range map[string]bool{"as the world stands": false, "as it is opened again": true} {
		t.Run(name, func(t *testing.T) {
			performed := 0
			w := bots(t, worldtest.Options{Answer: func(receipt.Permit) worldtest.Reply {
				performed++
				return worldtest.Reply{Err: errors.New("no answer")}
			}})
			w.Submit("go", order("a", effect("x")))
			require.Error(t, w.World.Step(context.Background()))
			require.Equal(t, 1, performed)
			if reopen {
				w.Crash()
			}
			e := w.Intents()[0]
			p := receipt.Permit{Intent: e.Intent, Attempt: e.Attempt, Nonce: e.Nonce}
			data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", p, worldtest.OK("by hand"))
			require.NoError(t, err)
			_, err = w.Receive(data)
			require.NoError(t, err)

			w.Submit("go", order("b", effect("y")))
			require.Error(t, w.World.Run(context.Background()))
			require.Equal(t, 2, performed, "only the second effect was still to be performed")
			require.JSONEq(t, `{"seen": ["1: go ", "1: receipt x ok"]}`, w.State("bot/a"))
			w.RequireReplay()
		})
	}
}
