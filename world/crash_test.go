package world_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

func mustData(t testing.TB, v any) journal.Data {
	t.Helper()
	b, err := canon.Marshal(v)
	require.NoError(t, err)
	return b
}

// small keeps batches and slots small, so that one run has many boundaries.
func small(m *manifest.Manifest) { m.Limits.InFlight = 2 }

// story is a run with everything in it: events, effects, timers, failures.
func story() []order {
	var out []order
	for i := range 6 {
		to := fmt.Sprint("c", i%3)
		out = append(out, order{To: to, Do: []act{
			{Effect: "tool.a", Param: to},
			{Emit: "ping", Key: fmt.Sprint("c", (i+1)%3), Do: []act{{Effect: "tool.a", Param: "ping"}}},
			{Timer: uint64(1 + i%2), Do: []act{{Effect: "tool.bad"}, {Random: 100}}},
		}})
	}
	return append(out, order{To: "c0", Do: []act{{Fail: "no"}}})
}

type result struct {
	head journal.Head
	root journal.Hash
	ran  int
}

func TestCrashAnywhereGivesTheSameWorld(t *testing.T) {
	undisturbed, appends := runStory(t, nil)
	require.Greater(t, appends, 20)
	for n := range appends {
		for _, where := range []string{"append", "wait"} {
			got, _ := runStory(t, func(j *worldtest.Journal) {
				fail := func(at int) error {
					if at == n {
						return worldtest.ErrInjected
					}
					return nil
				}
				if where == "append" {
					j.FailAppend = fail
				} else {
					j.FailWait = fail
				}
			})
			require.Equal(t, undisturbed.head, got.head, "failed at %s %d", where, n)
			require.Equal(t, undisturbed.root, got.root, "failed at %s %d", where, n)
		}
	}
}

// runStory runs the story with a journal that fails as inject says; after each
// failure the world is opened again and goes on.
func runStory(t *testing.T, inject func(*worldtest.Journal)) (result, int) {
	j := new(worldtest.Journal)
	performed := 0
	w := botsWith(t, worldtest.Options{Journal: j, BatchRecords: 1, CheckpointRecords: 30, Answer: func(p receipt.Permit) worldtest.Reply {
		require.True(t, started(t, j, p), "performed before its permit was durable")
		performed++
		return worldtest.OK(p.Tag)
	}}, small)
	appends := 0
	count := func(int) error { //nolint:unparam // the shape of a Journal hook
		appends++
		return nil
	}
	j.FailAppend = count
	if inject != nil {
		inject(j)
	}
	do := func(f func() error) {
		for {
			err := f()
			if err == nil {
				return
			}
			require.ErrorIs(t, err, worldtest.ErrInjected)
			j.FailAppend, j.FailWait = count, nil
			w.Crash()
		}
	}
	for i, o := range story() {
		do(func() error {
			if w.Status().EventsPending > i {
				return nil // it was durable before the failure was reported
			}
			return w.TrySubmit("go", o)
		})
	}
	do(func() error { return w.World.Run(context.Background()) })
	w.RequireReplay()
	return result{head: w.Status().Head, root: w.StateRoot(), ran: performed}, appends
}

// started reports whether the permit is in the journal.
func started(t *testing.T, j *worldtest.Journal, p receipt.Permit) bool {
	for _, s := range j.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		if rec.Kind != journal.KindStarted {
			continue
		}
		body, err := rec.Body()
		require.NoError(t, err)
		if b, ok := body.(*journal.Started); ok && b.Key == p.Key && b.Attempt == p.Attempt && b.Nonce == p.Nonce {
			return true
		}
	}
	return false
}

func TestReplayIsRunIsAnyImageAndTail(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := new(worldtest.Journal)
		w := botsWith(t, worldtest.Options{Journal: j, BatchRecords: rapid.IntRange(1, 50).Draw(rt, "batch"), CheckpointRecords: 20}, small, func(m *manifest.Manifest) {
			m.Limits.EventsPerTick = uint64(rapid.IntRange(1, 20).Draw(rt, "events per tick"))
		})
		twin := botsWith(t, worldtest.Options{}, small, func(m *manifest.Manifest) {
			m.Limits.EventsPerTick = w.Manifest().Limits.EventsPerTick
		})
		acts := actGen(3)
		rt.Repeat(map[string]func(*rapid.T){
			"submit": func(rt *rapid.T) {
				o := order{To: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "to"), Do: rapid.SliceOfN(acts, 0, 3).Draw(rt, "do")}
				w.Submit("go", o)
				twin.Submit("go", o)
			},
			"step":       func(*rapid.T) { w.Step(1); twin.Step(1) },
			"crash":      func(*rapid.T) { w.Crash() },
			"checkpoint": func(*rapid.T) { require.NoError(t, w.Checkpoint()) },
			"": func(rt *rapid.T) {
				if w.Status().Head != twin.Status().Head || w.StateRoot() != twin.StateRoot() {
					rt.Fatalf("a crash or a checkpoint shows: %v and %v", w.Status(), twin.Status())
				}
			},
		})
		w.RequireReplay()
		if len(j.Records()) > 1 {
			n := journal.Seq(rapid.IntRange(1, len(j.Records())-1).Draw(rt, "cut"))
			_, err := world.Replay(t.Context(), j.Truncate(n), world.ReplayConfig{Registry: botRegistry()})
			var d *world.Divergence
			if err != nil && !errors.As(err, &d) {
				rt.Fatalf("replay of the first %d records: %v", n, err)
			}
		}
	})
}

func actGen(depth int) *rapid.Generator[act] {
	return rapid.Custom(func(rt *rapid.T) act {
		var do []act
		if depth > 0 {
			do = rapid.SliceOfN(actGen(depth-1), 0, 2).Draw(rt, "do")
		}
		switch rapid.IntRange(0, 6).Draw(rt, "what") {
		case 0:
			return act{Effect: rapid.SampledFrom([]string{"tool.a", "tool.bad", "other.x"}).Draw(rt, "kind"), Param: "p"}
		case 1:
			return act{Timer: rapid.Uint64Range(1, 3).Draw(rt, "after"), Do: do}
		case 2:
			return act{Random: 10}
		case 3:
			return act{Delete: true}
		case 4:
			return act{Fail: "told to"}
		default:
			return act{Emit: "ping", Key: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "key"), Do: do}
		}
	})
}

func TestReplayNamesTheFirstRecordThatDiffers(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Say: "one"})
	w.Submit("go", order{To: "b", Say: "two"})
	w.Run()
	j := w.Journal.Clone()
	for i := range j.Records() {
		rec, err := journal.DecodeRecord(j.Records()[i].Bytes)
		require.NoError(t, err)
		if rec.Kind != journal.KindStepped || rec.ID < 6 {
			continue
		}
		j.Records()[i].Bytes = append([]byte(nil), j.Records()[i].Bytes...)
		b := j.Records()[i].Bytes
		b[len(b)-1] ^= 1 // the gas
		_, err = world.Replay(t.Context(), j, world.ReplayConfig{Registry: botRegistry()})
		var d *world.Divergence
		require.ErrorAs(t, err, &d)
		require.Equal(t, rec.ID, d.Record)
		require.Equal(t, "bot/b", d.Cell)
		require.NotEqual(t, d.Journal, d.Computed)
		return
	}
	t.Fatal("no second step")
}

func TestBulkSaysHowManyAreDurable(t *testing.T) {
	events := func(yield func(world.Submission, error) bool) {
		for range 40 {
			if !yield(world.Submission{Name: "go", Data: mustData(t, order{To: "a"})}, nil) {
				return
			}
		}
	}
	for n := range 45 {
		j := new(worldtest.Journal)
		w := botsWith(t, worldtest.Options{Journal: j, BatchRecords: 3})
		first := -1
		j.FailWait = func(at int) error {
			if first < 0 {
				first = at
			}
			if at == first+n {
				return worldtest.ErrInjected
			}
			return nil
		}
		before := len(j.Records())
		id, taken, err := w.SubmitAll(context.Background(), events)
		if n < 14 { // batches of 3
			require.ErrorIs(t, err, worldtest.ErrInjected)
		} else {
			require.NoError(t, err)
			require.EqualValues(t, 40, taken)
		}
		require.EqualValues(t, len(j.Records())-before, taken, "failed at wait %d", n)
		if taken > 0 {
			require.EqualValues(t, before+1, id, "the record of the first")
		} else {
			require.Zero(t, id)
		}
	}
}

// Batches under way are memory.
func TestBulkIsAppendedByItsBytesToo(t *testing.T) {
	j := new(worldtest.Journal)
	w := botsWith(t, worldtest.Options{Journal: j})
	data := mustData(t, map[string]any{"to": "a", "pad": strings.Repeat("x", 600<<10)})
	batches := 0
	j.FailWait = func(int) error {
		batches++
		return nil
	}
	_, taken, err := w.SubmitAll(context.Background(), func(yield func(world.Submission, error) bool) {
		for range 40 {
			if !yield(world.Submission{Name: "go", Data: data}, nil) {
				return
			}
		}
	})
	require.NoError(t, err)
	require.EqualValues(t, 40, taken)
	require.Equal(t, 20, batches)
}

// A replay stops between two units, so that there is a state to speak of, and
// has compared everything that its head covers.
func TestReplayUpToARecordComparesAllThatItCounts(t *testing.T) {
	w := bots(t)
	for _, o := range story() {
		w.Submit("go", o)
	}
	w.Run()
	records := w.Journal.Records()
	for n := range records {
		to := journal.Seq(n + 1)
		last := journal.Seq(0)
		done, err := world.Replay(t.Context(), w.Journal, world.ReplayConfig{
			Registry: botRegistry(), To: to,
			Visit: func(s journal.Scanned) error { last = s.ID; return nil },
		})
		require.NoError(t, err)
		require.GreaterOrEqual(t, done.Head.ID, to)
		require.Equal(t, done.Head.ID, last, "replay up to #%d counts what it did not compare", to)
		require.Equal(t, records[done.Head.ID-1].Root, done.Head.Root)
	}
}
