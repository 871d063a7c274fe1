package world_test

import (
	"context"
	"fmt"
	"iter"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// wander lets a world of bots do something that was drawn.
func wander(t *rapid.T, w *worldtest.World) {
	for range rapid.IntRange(0, 4).Draw(t, "inputs") {
		to := fmt.Sprintf("c%d", rapid.IntRange(0, 3).Draw(t, "cell"))
		b, err := canon.Marshal(order{To: to, Say: rapid.StringMatching("[ab]").Draw(t, "say"), Do: drawActs(t)})
		require.NoError(t, err)
		s := world.Submission{Name: "go", Data: b}
		if rapid.Bool().Draw(t, "later") {
			s.At = w.Time() + manifest.Tick(rapid.IntRange(1, 4).Draw(t, "after"))
		}
		_, err = w.World.Submit(context.Background(), s)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "operator") {
			_, _, err = w.Emit(context.Background(), journal.OperatorEffect{Actor: "ada", Kind: "tool.a", Cap: "tools", Reason: "so"})
			require.NoError(t, err)
		}
		w.Step(rapid.IntRange(0, 2).Draw(t, "ticks"))
	}
}

func drawActs(t *rapid.T) []act {
	acts := make([]act, rapid.IntRange(0, 3).Draw(t, "acts"))
	for i := range acts {
		acts[i] = rapid.SampledFrom([]act{
			{Emit: "ping", Key: "c1"},
			{Effect: "tool.a", Param: "x"},
			{Effect: "tool.a", Param: "y"},
			{Effect: "tool.bad", Param: "x"},
			{Timer: 2},
			{Timer: 3},
			{Delete: true},
			{Fail: "it has to"},
		}).Draw(t, "act")
	}
	return acts
}

// TestDifferenceOfAMomentWithItselfIsEmpty also for a fork that nothing has
// happened in, whose intents will have other keys.
func TestDifferenceOfAMomentWithItselfIsEmpty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := bots(t)
		wander(rt, w)
		d := world.Compare(&w.Moment, &w.Moment)
		require.True(rt, d.Same(), "%+v", d)
		f := w.Fork(journal.ForkRecorded, worldtest.Options{ID: "fork", Reducers: botRegistry(), Answer: obliging})
		d = world.Compare(&w.Moment, &f.Moment)
		require.True(rt, d.Same(), "%+v", d)
		require.NotEqual(rt, w.Status().ID, f.Status().ID)
	})
}

func obliging(receipt.Permit) worldtest.Reply { return worldtest.OK("done") }

// TestDifferenceTurnsWithItsSides and is empty just where the state roots and
// the intents are the same.
func TestDifferenceTurnsWithItsSides(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := bots(t)
		wander(rt, w)
		f := w.Fork(journal.ForkRecorded, worldtest.Options{ID: "fork", Reducers: botRegistry(), Answer: obliging})
		wander(rt, w)
		wander(rt, f)
		there, back := world.Compare(&w.Moment, &f.Moment), world.Compare(&f.Moment, &w.Moment)
		require.Equal(rt, there.CellsAdded, back.CellsGone)
		require.Equal(rt, there.CellsGone, back.CellsAdded)
		require.Equal(rt, there.Histories, back.Histories)
		require.Len(rt, back.CellsChanged, len(there.CellsChanged))
		for i, c := range there.CellsChanged {
			require.Equal(rt, world.CellChange{A: c.B, B: c.A}, back.CellsChanged[i])
		}
		require.Equal(rt, there.IntentsAdded, back.IntentsGone)
		require.Equal(rt, there.IntentsGone, back.IntentsAdded)
		require.Len(rt, back.IntentsChanged, len(there.IntentsChanged))
		for i, c := range there.IntentsChanged {
			require.Equal(rt, world.IntentChange{A: c.B, B: c.A}, back.IntentsChanged[i])
		}
		require.Equal(rt, world.AlarmChange{A: there.Timers.B, B: there.Timers.A, Same: there.Timers.Same}, back.Timers)
		require.Equal(rt, there.Same(), back.Same())

		intents := len(there.IntentsAdded) + len(there.IntentsGone) + len(there.IntentsChanged)
		require.Equal(rt, w.StateRoot() == f.StateRoot() && intents == 0, there.Same())
	})
}

func TestDifferenceNamesWhatDiffers(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "ada", Do: []act{{Effect: "tool.a", Param: "x"}}})
	w.Run()
	before := w.Fork(journal.ForkRecorded, worldtest.Options{ID: "before", Reducers: botRegistry(), Answer: obliging})
	w.Submit("go", order{To: "ada", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.bad", Param: "x"}, {Timer: 9}}})
	w.Submit("go", order{To: "ben"})
	w.Step(1)

	d := world.Compare(&before.Moment, &w.Moment)
	require.False(t, d.Same())
	require.Len(t, d.CellsAdded, 1)
	require.Equal(t, "bot/ben", d.CellsAdded[0].Cell.String())
	require.Empty(t, d.CellsGone)
	require.Len(t, d.CellsChanged, 1)
	require.Less(t, d.CellsChanged[0].A.N, d.CellsChanged[0].B.N)
	require.NotEqual(t, d.CellsChanged[0].A.State, d.CellsChanged[0].B.State)
	require.Len(t, d.IntentsAdded, 2)
	require.Equal(t, uint64(1), d.IntentsAdded[0].Intent.Occurrence, "the second time that it asks for the same")
	require.Equal(t, receipt.StateDenied, d.IntentsAdded[1].State)
	require.Empty(t, d.IntentsChanged)
	require.Equal(t, world.AlarmChange{A: 0, B: 1}, d.Timers)
	require.Equal(t, world.AlarmChange{Same: true}, d.Scheduled)
}

// TestDifferenceIsOfWhatStands: what a rollback left behind counts for nothing.
func TestDifferenceIsOfWhatStands(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "ada", Do: []act{{Effect: "tool.a", Param: "x"}}})
	w.Run()
	_, err := w.Snapshot(context.Background(), "here", "", "ada")
	require.NoError(t, err)
	before := w.Fork(journal.ForkRecorded, worldtest.Options{ID: "before", Reducers: botRegistry(), Answer: obliging})
	w.Submit("go", order{To: "ada", Do: []act{{Effect: "tool.a", Param: "y"}}})
	w.Run()
	d := world.Compare(&before.Moment, &w.Moment)
	require.Len(t, d.IntentsAdded, 1)
	_, _, err = w.Rollback(context.Background(), journal.RolledBack{Snapshot: "here", Reason: "so", Actor: "ada", Ack: true})
	require.NoError(t, err)
	d = world.Compare(&before.Moment, &w.Moment)
	require.True(t, d.Same(), "%+v", d)
}

// TestDifferenceOfEndsShows, and of what has not ended.
func TestDifferenceOfEndsShows(t *testing.T) {
	live := func(id string, reply worldtest.Reply) *worldtest.World {
		w := botsWith(t, worldtest.Options{ID: id, Answer: func(receipt.Permit) worldtest.Reply { return reply }})
		w.Submit("go", order{To: "ada", Do: []act{{Effect: "tool.a", Param: "x"}}})
		_ = w.World.Step(context.Background()) // fails where there is no answer
		return w
	}
	states := func(a, b *worldtest.World) [2]receipt.State {
		d := world.Compare(&a.Moment, &b.Moment)
		require.Empty(t, d.IntentsAdded)
		require.Empty(t, d.IntentsGone)
		require.Len(t, d.IntentsChanged, 1)
		return [2]receipt.State{d.IntentsChanged[0].A.State, d.IntentsChanged[0].B.State}
	}
	ok, failed, none := live("ok", worldtest.OK("done")), live("failed", worldtest.Fail("no")), live("none", worldtest.Reply{Err: errBot})
	require.Equal(t, [2]receipt.State{receipt.StateCommitted, receipt.StateFailed}, states(ok, failed))
	require.Equal(t, [2]receipt.State{receipt.StateInFlight, receipt.StateCommitted}, states(none, ok))
	held := none.Fork(journal.ForkHold, worldtest.Options{ID: "held", Reducers: botRegistry(), Answer: obliging})
	require.Equal(t, [2]receipt.State{receipt.StateInFlight, receipt.StateInDoubt}, states(none, held))
}

// TestDifferenceOfOrderShows: two cells that show the same after other events.
func TestDifferenceOfOrderShows(t *testing.T) {
	run := func(first, second string) *worldtest.World {
		w := bots(t)
		for _, say := range []string{first, second} {
			w.Submit("skip.go", order{To: "ada", Say: say, Do: []act{{Fail: "both"}}})
		}
		w.Run()
		return w
	}
	a, b := run("x", "y"), run("y", "x")
	d := world.Compare(&a.Moment, &b.Moment)
	require.Empty(t, d.CellsChanged)
	require.Equal(t, 1, d.Histories)
	require.False(t, d.Same())
	require.NotEqual(t, a.StateRoot(), b.StateRoot())
}

// TestDifferenceOfAlarmsShows where there are as many.
func TestDifferenceOfAlarmsShows(t *testing.T) {
	at := func(tick manifest.Tick) *worldtest.World {
		w := bots(t)
		b, err := canon.Marshal(order{To: "ada"})
		require.NoError(t, err)
		_, err = w.World.Submit(context.Background(), world.Submission{Name: "go", Data: b, When: world.When{At: tick}})
		require.NoError(t, err)
		return w
	}
	d := world.Compare(&at(3).Moment, &at(4).Moment)
	require.Equal(t, world.AlarmChange{A: 1, B: 1}, d.Scheduled)
	require.Equal(t, world.AlarmChange{Same: true}, d.Timers)
	require.False(t, d.Same())
}

// counting counts what is read of a journal.
type counting struct {
	journal.History
	reads *int
}

func (c counting) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for s, err := range c.History.Scan(after) {
			*c.reads++
			if !yield(s, err) {
				return
			}
		}
	}
}

func TestPartingIsFoundWithFewReads(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := bots(t)
		wander(rt, w)
		f := w.Fork(journal.ForkLive, worldtest.Options{ID: "fork", Reducers: botRegistry(), Answer: obliging})
		at := w.Journal.Head().ID
		wander(rt, w)
		wander(rt, f)

		want := journal.Parting{Common: at, B: at + 1}
		endA, endB := w.Journal.Head().ID, f.Journal.Head().ID
		if endA > at {
			want.A = at + 1
		}
		reads := 0
		got, err := journal.PartingOf(counting{w.Journal, &reads}, counting{f.Journal, &reads}, endA, endB)
		require.NoError(rt, err)
		require.Equal(rt, want, got)
		require.LessOrEqual(rt, reads, 2*bits.Len64(uint64(min(endA, endB))))

		// Looked at only up to where they had not parted yet.
		early := journal.Seq(rapid.Uint64Range(1, uint64(at)).Draw(rt, "early"))
		got, err = journal.PartingOf(w.Journal, f.Journal, early, at)
		require.NoError(rt, err)
		want = journal.Parting{Common: early}
		if early < at {
			want.B = early + 1
		}
		require.Equal(rt, want, got)
	})
}

func TestStrangersPartBeforeTheFirstRecord(t *testing.T) {
	a, b := bots(t), botsWith(t, worldtest.Options{ID: "other"})
	got, err := journal.PartingOf(a.Journal, b.Journal, 1, 1)
	require.NoError(t, err)
	require.Equal(t, journal.Parting{A: 1, B: 1}, got)
	_, err = journal.PartingOf(a.Journal, b.Journal, 5, 5)
	require.ErrorIs(t, err, journal.ErrNotFound)
}

func TestSpentSumsReceipts(t *testing.T) {
	unsent := false
	w := botsWith(t, worldtest.Options{Answer: func(receipt.Permit) worldtest.Reply {
		return worldtest.Reply{Status: receipt.StatusOK, Unsent: unsent, Cost: receipt.Cost{Calls: 1, Tokens: 7, Bytes: 3, Micros: 2}}
	}})
	asks := order{To: "ada", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}}}
	w.Submit("go", asks)
	w.Run()
	middle := w.Journal.Head().ID
	unsent = true
	w.Submit("go", asks)
	w.Run()

	got, err := journal.Spent(w.Journal, 0, middle)
	require.NoError(t, err)
	require.Equal(t, journal.Spending{Cost: receipt.Cost{Calls: 2, Tokens: 14, Bytes: 6, Micros: 4}, Answers: 2}, got)
	got, err = journal.Spent(w.Journal, middle, w.Journal.Head().ID)
	require.NoError(t, err)
	require.Equal(t, journal.Spending{Cost: receipt.Cost{Tokens: 14, Bytes: 6, Micros: 4}, Answers: 2}, got, "nothing left")
}

// TestNextTickIsTheOneThatNextRuns, and where there is none, none is run.
func TestNextTickIsTheOneThatNextRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := bots(t)
		wander(rt, w)
		for {
			at, ok := w.NextTick()
			p, err := w.Next(context.Background())
			require.NoError(rt, err)
			require.Equal(rt, ok, p == world.Ticked)
			if !ok {
				return
			}
			require.Equal(rt, at, w.Time())
		}
	})
}
