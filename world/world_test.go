package world_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func TestEventReachesItsCell(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Say: "hello"})
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go hello"]}`, w.State("bot/a"))
	require.Equal(t, []journal.Kind{journal.KindCreated, journal.KindSubmitted, journal.KindAdvanced, journal.KindStepped}, w.Kinds())
	require.True(t, w.Idle())
	w.RequireReplay()
}

func TestRoutesGoInManifestOrder(t *testing.T) {
	w := bots(t)
	w.Submit("both", order{To: "a"})
	w.Run()
	require.JSONEq(t, `{"seen": ["1:both "]}`, w.State("bot/a"))
	require.JSONEq(t, `{"seen": ["1:both "]}`, w.State("skip/all"))
	w.RequireReplay()
}

// Who submits an event is told its record, and to which cells it goes, in the manifest's order.
func TestWhoSubmitsIsToldToWhichCellsItGoes(t *testing.T) {
	w := bots(t)
	data, err := reducer.Encode(order{To: "a"})
	require.NoError(t, err)
	sent, err := w.Accept(t.Context(), world.Submission{Name: "both", Data: data})
	require.NoError(t, err)
	require.Equal(t, world.Sent{ID: w.Head().ID, To: []string{"bot/a", "skip/all"}}, sent)
	require.NoError(t, w.Sync())
}

func TestEmittedEventsCountForTheNextRound(t *testing.T) {
	w := bots(t)
	// a pings b; b has an event of its own already, which comes first.
	w.Submit("go", order{To: "a", Do: []act{{Emit: "ping", Key: "b"}, {Emit: "ping", Key: "c"}}})
	w.Submit("go", order{To: "b", Say: "own"})
	w.Submit("go", order{To: "a", Say: "second"})
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go own", "1:ping a"]}`, w.State("bot/b"))
	require.JSONEq(t, `{"seen": ["1:go ", "1:go second"]}`, w.State("bot/a"))
	require.JSONEq(t, `{"seen": ["1:ping a"]}`, w.State("bot/c"))
	w.RequireReplay()
}

func TestTickEndsAtItsLimitAndTheRestWaits(t *testing.T) {
	w := bots(t, func(m *manifest.Manifest) { m.Limits.EventsPerTick = 2 })
	for range 5 {
		w.Submit("go", order{To: "a"})
	}
	w.Step(1)
	require.JSONEq(t, `{"seen": ["1:go ", "1:go "]}`, w.State("bot/a"))
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go ", "1:go ", "2:go ", "2:go ", "3:go "]}`, w.State("bot/a"))
	w.RequireReplay()
}

func TestTimersFireByDeadlineThenID(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Do: []act{{Timer: 5}, {Timer: 2}, {Timer: 5, Do: []act{{Timer: 1}}}}})
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go ", "3:alarm after 2", "6:alarm after 5", "6:alarm after 5", "7:alarm after 1"]}`, w.State("bot/a"))
	w.RequireReplay()
}

func TestScheduledEventWaitsForItsTick(t *testing.T) {
	w := bots(t)
	data := mustData(t, order{To: "a", Say: "later"})
	_, err := w.World.Submit(context.Background(), world.Submission{Name: "go", Data: data, When: world.When{At: 9}})
	require.NoError(t, err)
	require.Equal(t, 1, w.Status().EventsPending)
	w.Crash()
	w.Run()
	require.JSONEq(t, `{"seen": ["9:go later"]}`, w.State("bot/a"))
	w.RequireReplay()
}

func TestEventToANamedCell(t *testing.T) {
	w := bots(t)
	cell := reducer.Cell{Reducer: "bot", Key: "direct"}
	_, err := w.World.Submit(context.Background(), world.Submission{Name: "lost", Data: mustData(t, order{}), To: &cell})
	require.NoError(t, err)
	w.Run()
	require.JSONEq(t, `{"seen": ["1:lost "]}`, w.State("bot/direct"))
	w.RequireReplay()
}

func TestEmittedEventWithoutRouteIsDroppedOnTheRecord(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Do: []act{{Emit: "lost"}}})
	w.Run()
	require.Contains(t, w.Kinds(), journal.KindDropped)
	w.RequireReplay()
}

func TestReceiptComesBackInTheSameTick(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}}})
	w.Step(1)
	require.JSONEq(t, `{"seen": ["1:go ", "1:receipt x0 ok"]}`, w.State("bot/a"))
	require.Equal(t, 1, w.Status().Intents[receipt.StateCommitted])
	w.RequireReplay()
}

func TestReceiptsAreAdmittedInIntentOrder(t *testing.T) {
	w := bots(t, func(m *manifest.Manifest) { m.Limits.InFlight = 2 })
	for _, to := range []string{"a", "b", "c", "d", "e"} {
		w.Submit("go", order{To: to, Do: []act{{Effect: "tool.a", Param: to}}})
	}
	w.Step(1)
	var keys []receipt.Key
	for _, s := range w.Journal.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		body, err := rec.Body()
		require.NoError(t, err)
		if f, ok := body.(*journal.Finished); ok {
			r, err := receipt.Decode(f.Receipt)
			require.NoError(t, err)
			keys = append(keys, r.Key)
		}
	}
	var want []receipt.Key
	for _, e := range w.Intents() {
		want = append(want, e.Intent.Key)
	}
	require.Equal(t, want, keys)
	require.Len(t, keys, 5)
	w.RequireReplay()
}

func TestDeniedEffectIsAnsweredWithTheReason(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Do: []act{{Effect: "tool.bad"}, {Effect: "other.x"}}})
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go ", "1:receipt 0 denied", "1:receipt 1 denied"]}`, w.State("bot/a"))
	require.Equal(t, 2, w.Status().Intents[receipt.StateDenied])
	w.RequireReplay()
}

func TestFailedStepLeavesNothingAndHalts(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Say: "first"})
	w.Submit("go", order{To: "a", Do: []act{{Emit: "ping", Key: "b"}, {Effect: "tool.a"}, {Fail: "no"}}})
	w.Submit("go", order{To: "a", Say: "third"})
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go first"]}`, w.State("bot/a"))
	require.Equal(t, 1, w.Status().Cells, "the ping was not sent")
	require.Empty(t, w.Intents())
	require.Equal(t, 1, w.Status().Halted)
	require.True(t, w.Idle(), "halted cells do not count")

	w.Crash()
	a := reducer.Cell{Reducer: "bot", Key: "a"}
	require.NoError(t, worldtest.ErrorOf(w.Resume(context.Background(), a, world.RetryEvent, "", "")))
	w.Run()
	require.Equal(t, 1, w.Status().Halted, "it failed again")
	require.NoError(t, worldtest.ErrorOf(w.Resume(context.Background(), a, world.SkipEvent, "", "")))
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go first", "3:go third"]}`, w.State("bot/a"))
	require.ErrorIs(t, worldtest.ErrorOf(w.Resume(context.Background(), a, world.SkipEvent, "", "")), world.ErrNotHalted)
	w.RequireReplay()
}

func TestSkippingReducerGoesOn(t *testing.T) {
	w := bots(t)
	w.Submit("skip.go", order{To: "a", Do: []act{{Fail: "no"}}})
	w.Submit("skip.go", order{To: "a", Say: "next"})
	w.Run()
	require.JSONEq(t, `{"seen": ["1:skip.go next"]}`, w.State("skip/a"))
	view, ok := w.Cell(reducer.Cell{Reducer: "skip", Key: "a"})
	require.True(t, ok)
	require.EqualValues(t, 2, view.N, "the event that failed was consumed")
	w.RequireReplay()
}

func TestDeletedCellKeepsItsHistory(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Do: []act{{Delete: true}}})
	w.Run()
	require.Empty(t, w.State("bot/a"))
	w.Submit("go", order{To: "a", Say: "again"})
	w.Run()
	view, _ := w.Cell(reducer.Cell{Reducer: "bot", Key: "a"})
	require.EqualValues(t, 2, view.N)
	w.RequireReplay()
}

func TestRefusedInputsLeaveNoTrace(t *testing.T) {
	w := bots(t, func(m *manifest.Manifest) { m.Limits.Mailbox, m.Limits.Payload = 2, 1000 })
	w.Submit("go", order{To: "full"})
	w.Submit("go", order{To: "full"})
	before := w.Status()
	for name, c := range map[string]struct {
		event string
		data  any
		want  error
	}{
		"unknown event":  {"nope", order{}, world.ErrUnknownEvent},
		"no route":       {"lost", order{}, world.ErrNoRoute},
		"missing key":    {"go", order{}, world.ErrBadKey},
		"ill-typed key":  {"go", map[string]any{"to": []any{}}, world.ErrBadKey},
		"negative key":   {"go", map[string]any{"to": -1}, world.ErrBadKey},
		"control in key": {"go", order{To: "a\nb"}, world.ErrBadKey},
		"data not a map": {"go", "text", world.ErrBadKey},
		"too large":      {"go", order{To: "a", Say: string(make([]byte, 1000))}, world.ErrTooLarge},
		"mailbox full":   {"go", order{To: "full"}, world.ErrMailboxFull},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.TrySubmit(c.event, c.data)
			require.ErrorIs(t, err, c.want)
			var input *world.InputError
			require.ErrorAs(t, err, &input)
			require.NotEmpty(t, input.Field)
			require.Equal(t, before, w.Status())
		})
	}
}

func TestEmitThatOverflowsFailsTheStep(t *testing.T) {
	w := bots(t, func(m *manifest.Manifest) { m.Limits.Mailbox = 2 })
	w.Submit("go", order{To: "a", Do: []act{{Emit: "ping", Key: "b"}, {Emit: "ping", Key: "b"}, {Emit: "ping", Key: "b"}}})
	w.Run()
	require.Equal(t, 1, w.Status().Halted)
	require.Equal(t, 1, w.Status().Cells)
	w.RequireReplay()
}

func TestReceiptIsRefusedUnlessItAnswersTheAttempt(t *testing.T) {
	stuck := errors.New("the line is dead")
	w := botsWith(t, worldtest.Options{Answer: func(receipt.Permit) worldtest.Reply {
		return worldtest.Reply{Err: stuck}
	}})
	w.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a"}}})
	require.ErrorIs(t, w.World.Step(context.Background()), stuck)
	e := w.Intents()[0]
	require.Equal(t, receipt.StateInFlight, e.State)
	p := receipt.Permit{Intent: e.Intent, Attempt: e.Attempt, Nonce: e.Nonce}
	keys := worldtest.Keyring(t, "test")
	sign := func(keys *receipt.Keyring, world string, change func(*receipt.Permit)) []byte {
		p := p
		change(&p)
		data, err := worldtest.Sign(keys, world, p, worldtest.OK("x"))
		require.NoError(t, err)
		return data
	}
	same := func(*receipt.Permit) {}
	good := sign(keys, "test", same)
	forged := append([]byte(nil), good...)
	forged[len(forged)-1] ^= 1
	before := w.Status()
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"unknown intent": {sign(keys, "test", func(p *receipt.Permit) { p.Key.Hash[0]++ }), receipt.ErrUnknownIntent},
		"wrong attempt":  {sign(keys, "test", func(p *receipt.Permit) { p.Attempt++ }), receipt.ErrWrongAttempt},
		"wrong nonce":    {sign(keys, "test", func(p *receipt.Permit) { p.Nonce[0]++ }), receipt.ErrWrongAttempt},
		"wrong params":   {sign(keys, "test", func(p *receipt.Permit) { p.Params = []byte{0} }), receipt.ErrWrongIntent},
		"foreign world":  {sign(keys, "other", same), receipt.ErrWrongWorld},
		"foreign keys":   {sign(worldtest.Keyring(t, "other"), "test", same), receipt.ErrUnknownKey},
	} {
		_, err := w.Receive(c.data)
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, before, w.Status(), name)
	}
	_, err := w.Receive(forged)
	require.Error(t, err)
	require.Equal(t, before, w.Status())
	large, err := worldtest.Sign(keys, "test", p, worldtest.OK(strings.Repeat("x", manifest.DefaultReceipt)))
	require.NoError(t, err)
	_, err = w.Receive(large)
	require.ErrorIs(t, err, receipt.ErrOverSize)
	require.Equal(t, before, w.Status())

	_, err = w.Receive(good)
	require.NoError(t, err)
	_, err = w.Receive(good)
	require.ErrorIs(t, err, receipt.ErrDuplicate)
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go ", "1:receipt 0 ok"]}`, w.State("bot/a"))
	w.RequireReplay()
}

func TestRandomnessIsAFactOfTheJournal(t *testing.T) {
	run := func() string {
		w := bots(t)
		w.Submit("go", order{To: "a", Do: []act{{Random: 1000}, {Random: 1000}}})
		w.Run()
		w.RequireReplay()
		return w.State("bot/a")
	}
	first := run()
	require.Equal(t, first, run())
}

func TestReducerThatLooksElsewhereFailsItsStep(t *testing.T) {
	calls := 0
	m := botManifest()
	registry := botRegistry()
	registry["impure@1"] = reducer.Typed(1, func(_ *reducer.Context, _ int, _ reducer.Event) (int, error) {
		calls++
		return calls, nil
	})
	m.Reducers["bot"] = manifest.Reducer{Engine: manifest.EngineGo, Name: "impure", Version: "1"}
	w := worldtest.New(t, m, nil, worldtest.Options{Reducers: registry, Answer: func(receipt.Permit) worldtest.Reply { return worldtest.OK(nil) }})
	w.Submit("go", order{To: "a"})
	w.Run()
	require.Equal(t, 1, w.Status().Halted)
}

func TestLargePayloadsAreBlobs(t *testing.T) {
	w := bots(t)
	big := string(make([]byte, 10_000))
	w.Submit("go", order{To: "a", Say: big, Do: []act{{Effect: "tool.a", Param: big}, {Emit: "ping", Key: big[:0] + "b", Do: []act{{Fail: big}}}}})
	w.Run()
	blobs := 0
	for _, s := range w.Journal.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		require.Less(t, len(s.Bytes), journal.MaxInlineBytes+200)
		if !rec.Blob.IsZero() {
			blobs++
		}
	}
	require.Equal(t, 3, blobs, "the event, the intent and the emitted event")
	w.RequireReplay()
	w.Crash()
	w.RequireReplay()
}

func TestScheduledEventsAndTimersAreLimited(t *testing.T) {
	w := bots(t, func(m *manifest.Manifest) { m.Limits.Alarms = 2 })
	at := func(tick manifest.Tick) error {
		_, err := w.World.Submit(context.Background(), world.Submission{Name: "go", Data: mustData(t, order{To: "a"}), When: world.When{At: tick}})
		return err
	}
	require.NoError(t, at(5))
	require.NoError(t, at(5))
	before := w.Status()
	require.ErrorIs(t, at(5), world.ErrAlarms)
	require.Equal(t, before, w.Status())
	require.NoError(t, at(0), "what is due at once needs no alarm")
	w.Submit("go", order{To: "b", Do: []act{{Timer: 1}, {Timer: 1}, {Timer: 1}}})
	w.Step(1)
	require.Equal(t, 1, w.Status().Halted)
	require.Zero(t, w.Status().Timers)
	w.RequireReplay()
}

func TestNoDataIsNull(t *testing.T) {
	w := bots(t, func(m *manifest.Manifest) { m.Routing[0].Key = `"all"` })
	_, err := w.World.Submit(context.Background(), world.Submission{Name: "go"})
	require.NoError(t, err)
	view, ok := w.Cell(reducer.Cell{Reducer: "bot", Key: "all"})
	require.True(t, ok)
	require.Equal(t, "null", mustJSON(t, view.Mail[0].Data))
	w.Run()
	w.RequireReplay()
}

func mustJSON(t *testing.T, data journal.Data) string {
	t.Helper()
	b, err := data.MarshalJSON()
	require.NoError(t, err)
	return string(b)
}
