package world_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// epoch is tick 0 of the real clocks here.
func epoch() time.Time { return time.Unix(1000, 0) }

// realBots returns bots whose clock is real, ticks of a second, and stands at tick 100.
func realBots(t *testing.T, o worldtest.Options, change ...func(*manifest.Manifest)) (*worldtest.World, *worldtest.Clock) {
	t.Helper()
	o.Clock = worldtest.NewClock(epoch().Add(100 * time.Second))
	change = append(change, func(m *manifest.Manifest) {
		m.Clock = manifest.Clock{Mode: manifest.ClockReal, Epoch: epoch().UnixNano()}
	})
	return botsWith(t, o, change...), o.Clock
}

// An event need not wait for the next tick: that of now goes on for it.
func TestARealTickGoesOnForWhatComesInIt(t *testing.T) {
	w, clock := realBots(t, worldtest.Options{})
	w.Submit("go", order{To: "a"})
	require.EqualValues(t, 100, w.Time(), "the world is brought to now before the input")
	w.Drive()
	clock.Move(999 * time.Millisecond)
	w.Submit("go", order{To: "a", Say: "again"})
	w.Drive()
	clock.Move(time.Millisecond)
	w.Submit("go", order{To: "a", Say: "later"})
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "100:go again", "101:go later"]}`, w.State("bot/a"))
	w.RequireReplay()
	w.Crash()
	require.EqualValues(t, 101, w.Time())
}

func TestTimersWaitForTheWallClock(t *testing.T) {
	w, clock := realBots(t, worldtest.Options{})
	w.Submit("go", order{To: "a", Do: []act{{Timer: 5}, {Timer: 2}}})
	w.Drive()
	clock.Move(1999 * time.Millisecond)
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go "]}`, w.State("bot/a"))
	due, waits := w.NextDue()
	require.True(t, waits)
	require.EqualValues(t, 102, due)
	require.False(t, w.Idle())
	clock.Move(time.Millisecond)
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "102:alarm after 2"]}`, w.State("bot/a"))
	clock.Move(time.Hour)
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "102:alarm after 2", "105:alarm after 5"]}`, w.State("bot/a"))
	require.True(t, w.Idle())
	w.RequireReplay()
}

// What fell due while nobody ran the world comes first, each thing in its tick, and the
// ticks between are jumped over; also where an input is what opens it.
func TestWhatFellDueMeanwhileComesFirstInItsOrder(t *testing.T) {
	w, clock := realBots(t, worldtest.Options{})
	w.Submit("go", order{To: "a", Do: []act{{Timer: 50}, {Timer: 20, Do: []act{{Timer: 7}}}}})
	data := mustData(t, order{To: "a", Say: "scheduled"})
	_, err := w.World.Submit(context.Background(), world.Submission{Name: "go", Data: data, When: world.When{At: 130}})
	require.NoError(t, err)
	w.Drive()
	clock.Move(time.Hour)
	w.Crash()
	before := w.Journal.Head().ID
	w.Submit("go", order{To: "a", Say: "input"})
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "120:alarm after 20", "127:alarm after 7", "130:go scheduled",
		"150:alarm after 50", "3700:go input"]}`, w.State("bot/a"))
	advanced := 0
	for _, kind := range w.Kinds()[before:] {
		if kind == journal.KindAdvanced {
			advanced++
		}
	}
	require.Equal(t, 6, advanced, "one for each tick with something in it, that of now, and its going on")
	w.RequireReplay()
}

// A clock that is set back takes the world nowhere: it waits. No timer fires twice, and
// none is lost.
func TestAClockThatIsSetBackHasTheWorldWait(t *testing.T) {
	w, clock := realBots(t, worldtest.Options{})
	w.Submit("go", order{To: "a", Do: []act{{Timer: 10}, {Timer: 20}}})
	w.Drive()
	clock.Move(10 * time.Second)
	w.Drive()
	clock.Move(-time.Hour)
	w.Submit("go", order{To: "a", Say: "while it waits", Do: []act{{Timer: 1}}})
	w.Drive()
	clock.Move(time.Hour)
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "110:alarm after 10", "110:go while it waits"]}`, w.State("bot/a"))
	clock.Move(2 * time.Hour)
	w.Drive()
	clock.Move(-2 * time.Hour)
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "110:alarm after 10", "110:go while it waits", "111:alarm after 1",
		"120:alarm after 20"]}`, w.State("bot/a"))
	w.RequireReplay()
}

// A deadline that has passed when an answer comes reaches its cell first.
func TestADeadlineComesBeforeALaterReceipt(t *testing.T) {
	out := new(worldtest.Outside)
	w, clock := realBots(t, worldtest.Options{Outside: out})
	w.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Timer: 3}}})
	w.Drive()
	clock.Move(4 * time.Second)
	out.Reply(out.Task(receipt.Perform), worldtest.OK("late"))
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "103:alarm after 3", "104:receipt x0 ok"]}`, w.State("bot/a"))
	w.RequireReplay()
}

func TestApprovalsRunOutInRealTime(t *testing.T) {
	w, clock := realBots(t, worldtest.Options{}, func(m *manifest.Manifest) {
		m.Policies = []manifest.Policy{{Name: "ask", When: "true", Decide: manifest.DecideRequireApproval}}
	})
	require.EqualValues(t, 24*3600, w.Manifest().Defaults.ApprovalTTL, "a day, whatever a tick is")
	w.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}}})
	w.Drive()
	require.True(t, w.Idle())
	due, waits := w.NextDue()
	require.True(t, waits)
	require.EqualValues(t, 100+24*3600, due)
	clock.Move(24 * time.Hour)
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "86500:receipt x0 denied"]}`, w.State("bot/a"))
	w.RequireReplay()
}

func TestNobodyStepsARealClock(t *testing.T) {
	w, _ := realBots(t, worldtest.Options{})
	require.ErrorIs(t, w.World.Step(context.Background()), world.ErrRealClock)
}

// A real clock keeps what deadlines are counted in; its mode can change.
func TestARealClockKeepsItsTick(t *testing.T) {
	w, _ := realBots(t, worldtest.Options{})
	for name, c := range map[string]struct {
		change func(*manifest.Clock)
		is     error
	}{
		"tick":      {func(c *manifest.Clock) { c.Tick *= 2 }, world.ErrClock},
		"epoch":     {func(c *manifest.Clock) { c.Epoch++ }, world.ErrClock},
		"simulated": {func(c *manifest.Clock) { c.Mode, c.Tick = "", 7 }, nil},
	} {
		next := *w.Manifest()
		c.change(&next.Clock)
		_, _, err := w.Propose(context.Background(), world.Proposal{
			Candidate: &next, Base: w.Status().Manifest, Actor: "ada", Reason: name,
		})
		require.ErrorIs(t, err, c.is, name)
	}
}

// Many timers, and a clock that is moved about: each fires once, none early, and in the
// order in which they fall due.
func TestTimersUnderAMovedClock(t *testing.T) {
	w, clock := realBots(t, worldtest.Options{})
	const cells = 40
	for i := range cells {
		w.Submit("go", order{To: fmt.Sprint(i), Do: []act{{Timer: uint64(1 + i*7%100)}}})
	}
	w.Drive()
	for i, by := range []time.Duration{7 * time.Second, -time.Hour, time.Hour, 20 * time.Second, time.Hour, -time.Hour, -time.Minute, time.Hour} {
		clock.Move(by)
		if i%3 == 2 {
			w.Crash()
		}
		w.Drive()
		last := max(manifest.Clock{Epoch: epoch().UnixNano(), Tick: int64(time.Second)}.Since(clock.UnixNano()), w.Time())
		due, waits := w.NextDue()
		require.True(t, !waits || due > last, "everything that is due has come")
		require.LessOrEqual(t, w.Time(), last)
	}
	for i := range cells {
		after := 1 + i*7%100
		require.JSONEq(t, fmt.Sprintf(`{"seen": ["100:go ", "%d:alarm after %d"]}`, 100+after, after), w.State(fmt.Sprintf("bot/%d", i)))
	}
	w.RequireReplay()
}

// A cell that sets, moves and cancels timers under tags while the clock is moved about sees
// what a model of a few lines sees: each fires once, in its tick and order, or never.
func TestTaggedTimersUnderAMovedClock(t *testing.T) {
	type waiting struct{ due, set, after uint64 }
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 33))
		w, clock := realBots(t, worldtest.Options{})
		var want []string
		model := make(map[string]waiting)
		wall := func() uint64 { return uint64(clock.Now().Sub(epoch()) / time.Second) }
		now := uint64(0) // the world's tick
		for n := range uint64(30) {
			tag := string(rune('p' + rng.IntN(3)))
			switch rng.IntN(4) {
			case 0:
				clock.Move(time.Duration(rng.IntN(9)-3) * time.Second)
				for {
					next := ""
					for tag, x := range model { // order cannot show: the first of all
						if y := model[next]; x.due <= wall() && (next == "" || x.due < y.due || x.due == y.due && x.set < y.set) {
							next = tag
						}
					}
					if next == "" {
						break
					}
					now = model[next].due
					want = append(want, fmt.Sprintf("%d:alarm after %d", now, model[next].after))
					delete(model, next)
				}
				if rng.IntN(3) == 0 {
					w.Crash()
				}
			case 1:
				w.Submit("go", order{To: "a", Do: []act{{Cancel: tag}}})
				now = max(now, wall())
				want = append(want, fmt.Sprintf("%d:go ", now))
				delete(model, tag)
			default:
				after := uint64(1 + rng.IntN(6))
				w.Submit("go", order{To: "a", Do: []act{{Timer: after, Tag: tag}}})
				now = max(now, wall())
				want = append(want, fmt.Sprintf("%d:go ", now))
				model[tag] = waiting{due: now + after, set: n, after: after}
			}
			w.Drive()
		}
		var state botState
		if len(want) > 0 {
			decodeJSON(t, w.State("bot/a"), &state)
		}
		require.Equal(t, want, state.Seen, "seed %d", seed)
		require.Len(t, model, w.Status().Timers)
		w.RequireReplay()
	}
}

// Times and durations become ticks of the world's clock, real or not; what has passed is
// refused.
func TestEventsAreScheduledByTheCalendar(t *testing.T) {
	minutes := manifest.Clock{Epoch: epoch().UnixNano(), Tick: int64(time.Minute)}
	w := bots(t, func(m *manifest.Manifest) { m.Clock = minutes })
	w.Step(3)
	send := func(item map[string]any) (manifest.Tick, error) {
		var s world.Submission
		item["event"], item["data"] = "go", map[string]any{"to": "a"}
		if err := s.Decode(mustData(t, item)); err != nil {
			return 0, err
		}
		id, err := w.World.Submit(context.Background(), s)
		if err != nil {
			return 0, err
		}
		body, err := journal.ReadBody(w.Journal, id)
		require.NoError(t, err)
		return body.(*journal.Submitted).Due, nil
	}
	for _, c := range []struct {
		item map[string]any
		due  manifest.Tick
	}{
		{map[string]any{}, 0},
		{map[string]any{"at": 9}, 9},
		{map[string]any{"at": nil, "in": "2h"}, 123},
		{map[string]any{"in": "61s"}, 5},
		{map[string]any{"at": "1970-01-01T00:26Z"}, 10},
		{map[string]any{"at": "1970-01-01T01:26:00+01:00"}, 10},
	} {
		due, err := send(c.item)
		require.NoError(t, err)
		require.Equal(t, c.due, due, "%v", c.item)
	}
	for _, at := range []string{"1970-01-01T00:00:00Z", epoch().UTC().Format(time.RFC3339), "1970-01-01T00:18Z"} {
		_, err := send(map[string]any{"at": at})
		require.ErrorIs(t, err, world.ErrBadTick, at)
	}
	for _, item := range []map[string]any{{"at": 9, "in": "2h"}, {"in": 2}, {"in": "-2h"}, {"at": "tomorrow"}, {"at": "9"}, {"at": true}} {
		_, err := send(item)
		var wrong *world.NotEventError
		require.ErrorAs(t, err, &wrong, "%v", item)
	}
	w.RequireReplay()
}
