package world_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// Whatever falls due falls due by the last tick of the clock, or is refused: no sum of ticks
// wraps, and the calendar has a time for each.
func TestNothingFallsDueAfterTheClockEnds(t *testing.T) {
	w := bots(t)
	last := w.Manifest().Clock.Last()
	late := time.Unix(0, w.Manifest().Clock.At(last)).Add(time.Hour).UnixNano()
	never := int64(math.MaxInt64)
	for name, when := range map[string]world.When{
		"a tick later": {At: last + 1}, "the last tick of 64 bits": {At: math.MaxUint64}, "beyond what JSON tells": {At: manifest.MaxTick + 1},
		"a later time": {Time: &late}, "the last time": {Time: &never}, "after so long": {In: math.MaxInt64},
	} {
		head := w.Head()
		_, err := w.World.Submit(t.Context(), world.Submission{Name: "go", Data: mustData(t, order{To: "a"}), When: when})
		require.ErrorIs(t, err, world.ErrNoTick, name)
		require.Equal(t, head, w.Head(), name)
	}
	for _, after := range []uint64{uint64(last), math.MaxUint64} {
		said := ""
		w.TellFailures(func(f world.Failure) { said = f.Error })
		w.Submit("go", order{To: fmt.Sprint("t", after), Do: []act{{Timer: after}}})
		w.Run()
		require.Contains(t, said, world.ErrNoTick.Error())
	}
	w.RequireReplay()
}

// At the end of the clock time stands, and the world goes on: what comes is handled, in the
// last tick, and only timers are refused.
func TestAWorldAtTheEndOfItsClockGoesOn(t *testing.T) {
	w := bots(t)
	last := w.Manifest().Clock.Last()
	_, err := w.World.Submit(t.Context(), world.Submission{Name: "go", Data: mustData(t, order{To: "a", Say: "at last"}), When: world.When{At: last}})
	require.NoError(t, err)
	w.Run()
	require.Equal(t, last, w.Time())
	for range 3 {
		w.Submit("go", order{To: "b", Do: []act{{Emit: "go", Key: "c"}}})
		w.Run()
	}
	w.Step(2)
	require.Equal(t, last, w.Time())
	w.Crash()
	w.Submit("go", order{To: "c", Say: "again"})
	w.Run()
	require.Contains(t, w.State("bot/c"), fmt.Sprintf("%d:go again", last))
	w.RequireReplay()
}

// A journal that was written before there was an end has events after it. They are never
// due, and hold up nothing.
func TestAnEventAfterTheEndIsNeverDue(t *testing.T) {
	for _, due := range []manifest.Tick{manifest.MaxTick + 1, math.MaxUint64} {
		w := bots(t)
		_, err := w.World.Submit(t.Context(), world.Submission{Name: "go", Data: mustData(t, order{To: "a"}), When: world.When{At: 9}})
		require.NoError(t, err)
		at := w.Journal.Head().ID
		j := forged(t, w.Journal, at, journal.KindSubmitted,
			&journal.Submitted{Version: journal.V(journal.BodyVersion), Name: "go", Due: due, To: []string{"bot/a"}, Data: mustData(t, order{To: "a"})})
		opened, err := world.Open(world.Config{
			Journal: j, History: j, Registry: botRegistry(), Keys: worldtest.Keyring(t, "test"),
			NewHost: func(string, *manifest.Manifest) (world.Host, error) { return nil, nil },
		})
		require.NoError(t, err)
		_, err = opened.Submit(t.Context(), world.Submission{Name: "go", Data: mustData(t, order{To: "b", Do: []act{{Timer: 3}}})})
		require.NoError(t, err)
		require.NoError(t, opened.Run(t.Context()))
		require.EqualValues(t, 4, opened.Time()) // the event, and the timer three ticks later
		_, comes := opened.NextDue()
		require.False(t, comes)
		got, err := world.Replay(t.Context(), worldtest.Chained{History: j}, world.ReplayConfig{Registry: botRegistry()})
		require.NoError(t, err)
		require.Equal(t, opened.StateRoot(), got.StateRoot)
	}
}

// Rules with a longer tick have an earlier end: they do not come into force where that has
// passed.
func TestAClockThatEndsBeforeNowIsNotProposed(t *testing.T) {
	is := manifest.Clock{Tick: int64(time.Second)}
	next := manifest.Clock{Tick: int64(time.Hour)}
	require.NoError(t, world.CheckClock(is, next, next.Last()))
	require.ErrorIs(t, world.CheckClock(is, next, next.Last()+1), world.ErrNoTick)
	require.NoError(t, world.CheckClock(next, next, next.Last()+1))
}
