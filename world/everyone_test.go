package world_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// toEach adds events that go to each bot, and to each skip in random order and the bot a.
func toEach(m *manifest.Manifest) {
	m.Events["all"], m.Events["mixed"] = manifest.Event{}, manifest.Event{}
	m.Routing = append(m.Routing,
		manifest.Route{Event: "all", Reducer: "bot", Each: true},
		manifest.Route{Event: "mixed", Reducer: "bot", Key: "'a'"},
		manifest.Route{Event: "mixed", Reducer: "skip", Each: true, Order: manifest.OrderRandom},
		manifest.Route{Event: "mixed", Reducer: "bot", Each: true},
	)
}

// reached returns the cells that handled what a record brought, in their order.
func reached(t *testing.T, j *worldtest.Journal, record journal.Seq) (cells []string) {
	t.Helper()
	for _, s := range j.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		if rec.Kind == journal.KindStepped && rec.CausedBy == record {
			body, err := rec.Body()
			require.NoError(t, err)
			cells = append(cells, body.(*journal.Stepped).Cell) //nolint:forcetypeassert // of that kind
		}
	}
	return cells
}

func submit(t *testing.T, w *worldtest.World, s world.Submission, o order) journal.Seq {
	t.Helper()
	var err error
	s.Data, err = canon.Marshal(o)
	require.NoError(t, err)
	id, err := w.World.Submit(t.Context(), s)
	require.NoError(t, err)
	return id
}

func TestAnEventToEachIsOneRecordAndReachesTheCellsThatAreThereByName(t *testing.T) {
	w := bots(t, toEach)
	for _, to := range []string{"c", "a", "b", "gone"} {
		w.Submit("go", order{To: to})
	}
	w.Submit("go", order{To: "gone", Do: []act{{Delete: true}}})
	w.Run()
	head := w.Journal.Head().ID
	w.Submit("go", order{To: "new"}) // it has no state yet, and is about to
	id := submit(t, w, world.Submission{Name: "all"}, order{Do: []act{{Emit: "ping", Key: "later"}}})
	require.Equal(t, head+2, id)
	w.Run()
	require.Equal(t, []string{"bot/a", "bot/b", "bot/c", "bot/new"}, reached(t, w.Journal, id))
	body, err := journal.ReadBody(w.Journal, id)
	require.NoError(t, err)
	require.Equal(t, []string{"bot/"}, body.(*journal.Submitted).To) //nolint:forcetypeassert // it is one
	require.Empty(t, w.State("bot/gone"))
	require.NotContains(t, w.State("bot/later"), "all", "it was born during the broadcast")
	w.RequireReplay()
}

func TestAnEventThatComesLaterReachesTheCellsThatAreThereThen(t *testing.T) {
	w := bots(t, toEach)
	w.Submit("go", order{To: "old"})
	id := submit(t, w, world.Submission{Name: "all", When: world.When{At: 5}}, order{})
	w.Submit("go", order{To: "young"})
	w.Submit("go", order{To: "old", Do: []act{{Delete: true}}})
	w.Crash()
	w.Run()
	require.Equal(t, []string{"bot/young"}, reached(t, w.Journal, id))
	w.RequireReplay()
}

// TestAnEventToEachIsAnEmitToEach has two worlds do the same, one with a route to each and
// one with an emit for each cell.
func TestAnEventToEachIsAnEmitToEach(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	inner := []act{{Random: 100}, {Timer: 2, Do: []act{{Random: 9}}}}
	live := func(change func(*manifest.Manifest), emits []act) *worldtest.World {
		w := bots(t, change)
		for _, to := range []string{"d", "b", "a", "c"} {
			w.Submit("go", order{To: to, Do: []act{{Random: 5}}})
		}
		w.Step(1)
		w.Submit("go", order{To: "b", Do: emits})
		w.Submit("go", order{To: "c", Do: emits})
		w.Run()
		w.RequireReplay()
		return w
	}
	single := make([]act, len(names))
	for i, to := range names {
		single[i] = act{Emit: "all", Key: to, Do: inner}
	}
	each := live(toEach, []act{{Emit: "all", Do: inner}})
	one := live(func(m *manifest.Manifest) {
		m.Events["all"] = manifest.Event{}
		m.Routing = append(m.Routing, manifest.Route{Event: "all", Reducer: "bot", Key: "event.data.to"})
	}, single)
	for _, name := range names {
		require.Equal(t, one.State("bot/"+name), each.State("bot/"+name))
	}
	require.Less(t, each.Journal.Head().ID, one.Journal.Head().ID)
}

func TestRandomOrderIsAnotherEachTickAndAFactOfTheSeed(t *testing.T) {
	orders := func(seed uint64) (out []string) {
		w := bots(t, toEach, func(m *manifest.Manifest) { m.Seed = seed })
		for i := range 8 {
			w.Submit("skip.go", order{To: fmt.Sprint("s", i)})
			w.Submit("go", order{To: string(rune('a' + i%3))})
		}
		for range 3 {
			w.Step(1)
			id := submit(t, w, world.Submission{Name: "mixed"}, order{})
			w.Step(1)
			got := reached(t, w.Journal, id)
			require.Equal(t, "bot/a", got[0], "routes in their order, and each cell once")
			require.Equal(t, []string{"bot/b", "bot/c"}, got[9:])
			require.False(t, slices.IsSorted(got[1:9]))
			out = append(out, strings.Join(got, " "))
			slices.Sort(got[1:9])
			require.Len(t, slices.Compact(got), 11)
		}
		return out
	}
	first := orders(1)
	require.Equal(t, first, orders(1))
	require.NotEqual(t, first, orders(2))
	require.NotEqual(t, first[0], first[1])
}

func TestAFullMailboxIsForEachAsForOne(t *testing.T) {
	w := bots(t, toEach, func(m *manifest.Manifest) { m.Limits.Mailbox = 2 })
	w.Submit("go", order{To: "a"})
	w.Submit("go", order{To: "b"})
	w.Run()
	w.Submit("go", order{To: "b"})
	w.Submit("go", order{To: "b", Do: []act{{Emit: "all"}, {Emit: "all"}}})
	require.ErrorIs(t, w.TrySubmit("all", order{}), world.ErrMailboxFull)
	require.Equal(t, 2, w.Status().EventsPending, "and nobody got it")
	w.Run()
	failed := worldtest.Bodies[*journal.Failed](t, w.Journal)
	require.Len(t, failed, 1)
	require.Contains(t, failed[0].Error, "emit to bot/b: the cell's mailbox is full")
	w.RequireReplay()
}

// TestLivesWithEventsToEach has random lives in which cells come and go, leave memory, fail
// and are rolled back, and looks at all of it in every way there is.
func TestLivesWithEventsToEach(t *testing.T) {
	stride := fault.Stride(3)
	for seed := fault.From(t, stride); seed < 12; seed += stride {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			calm, rng := liveToEach(t, uint64(seed), worldtest.Options{})
			w, _ := liveToEach(t, uint64(seed), worldtest.Options{Memory: 1, CheckpointRecords: 7, BatchRecords: 3})
			require.Equal(t, calm.Status().Head, w.Status().Head, "where cells are does not show")
			require.Equal(t, calm.StateRoot(), w.StateRoot())
			w.RequireReplay()
			calm.RequireMoments(rng)
			calm.RequireSpilling(1)
			requireCellsAt(t, calm, new(ways))
		})
	}
}

func liveToEach(t *testing.T, seed uint64, o worldtest.Options) (*worldtest.World, *rand.Rand) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 20))
	w := botsWith(t, o, toEach)
	disturbed := o.Memory > 0
	acts := func() []act {
		all := []act{
			{Emit: "all", Do: []act{{Random: 7}}},
			{Emit: "mixed"},
			{Emit: "all", Do: []act{{Delete: true}}},
			{Delete: true},
			{Timer: 2, Do: []act{{Emit: "all"}}},
			{Emit: "ping", Key: "p"},
			{Fail: "so"},
			{Random: 9},
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:rng.IntN(3)]
	}
	w.Submit("go", order{To: "a"})
	_, err := w.Snapshot(t.Context(), "before", "", "ada")
	require.NoError(t, err)
	for range 14 {
		to := string(rune('a' + rng.IntN(5)))
		switch rng.IntN(7) {
		case 0, 1:
			w.Submit("go", order{To: to, Do: acts()})
		case 2:
			w.Submit("skip.go", order{To: to, Do: acts()})
		case 3:
			submit(t, w, world.Submission{Name: "all", When: world.When{At: w.Status().Time + 2}}, order{Do: acts()})
		case 4:
			submit(t, w, world.Submission{Name: "mixed"}, order{Do: acts()})
		case 5:
			if rng.IntN(3) == 0 {
				_, _, err := w.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so", Ack: true})
				require.NoError(t, err)
			}
		case 6:
			for _, c := range w.HaltedCells() {
				_, err := w.Resume(t.Context(), c.Cell, world.SkipEvent, "", "")
				require.NoError(t, err)
			}
		}
		if disturbed && rng.IntN(3) == 0 {
			w.Crash()
		} else if !disturbed {
			rng.IntN(3)
		}
		w.Step(1)
	}
	return w, rng
}
