package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// momentBench is the size of `bench moment`.
type momentBench struct {
	events int
	ahead  int
	keys   int
	looks  int
	whole  int
	scope
}

const momentText = `Any moment of a long journal with much scheduled ahead: a cell, its timeline, the world.

Events are submitted for ticks to come, as imports do it, and the world is driven until a
part of them is still ahead. Then random cells are looked at, as they were at random
records, and the whole world at random records. Figures are processor time.`

func newMomentCommand(p *program) *cobra.Command {
	var b momentBench
	cmd, f := b.command(p, "moment", momentText, "  bench moment\n  bench moment --events 60000 --ahead 20000 --rounds 1", 1, b.each(b.round))
	f.IntVar(&b.events, "events", 600_000, "how many events to submit, of a record each, and another one when it is handled")
	f.IntVar(&b.ahead, "ahead", 200_000, "how many of them are still ahead at the end")
	f.IntVar(&b.keys, "keys", 10_000, "over how many cells")
	f.IntVar(&b.looks, "looks", 50, "how many cells to look at")
	f.IntVar(&b.whole, "whole", 5, "how often to look at the whole world")
	return cmd
}

// momentSource is an agent in Starlark that adds up what it is sent.
const momentSource = `def reduce(ctx, state, event):
    if state == None:
        state = {"count": 0, "total": 0}
    return {"count": state["count"] + 1, "total": state["total"] + event.data["by"]}
`

// eventsPerTick is how many of the events that lie ahead fall due in one tick.
const eventsPerTick = 1000

func (b *momentBench) round(ctx context.Context, r *run) {
	dir := r.at("ahead")
	lw := r.world(dir, rules("account", inStarlark, "account.credited"), momentSource, local.Options{})
	grow := measure(func() { b.grow(ctx, r, lw) })
	r.must(lw.Close()) // what a later process finds
	size, err := sizeOf(dir)
	r.must(err)
	lw = r.open(dir, local.Options{})
	end := uint64(lw.Status().Head.ID)
	r.add("records", "records", "", float64(end))
	r.add("growing, CPU a record", "µs", "", grow.CPU.Seconds()*1e6/float64(end))
	r.add("world on disk", "MB", "", float64(size)/1e6)
	b.look(r, lw, end)
	r.must(lw.Close())
}

// grow submits all events, a part of them at a time, and handles those that are not to
// stay ahead.
func (b *momentBench) grow(ctx context.Context, r *run, lw *local.World) {
	const parts = 4
	ticks := 0
	for part := range parts {
		from, to := part*b.events/parts, (part+1)*b.events/parts
		_, _, err := lw.SubmitAll(ctx, func(yield func(world.Submission, error) bool) {
			for i := from; i < to; i++ {
				s, err := b.submission(i)
				if !yield(s, err) {
					return
				}
			}
		})
		r.must(err)
		for want := (part + 1) * (b.events - b.ahead) / parts / eventsPerTick; ticks < want; ticks++ {
			r.must(lw.Step(ctx))
		}
	}
}

// submission is the i-th event: those of one tick go to cells side by side.
func (b *momentBench) submission(i int) (world.Submission, error) {
	data, err := canon.Marshal(map[string]any{"to": b.key(i), "by": uint64(i % 1000)})
	return world.Submission{Name: "account.credited", Data: data, When: world.When{At: manifest.Tick(1 + i/eventsPerTick)}}, err
}

func (b *momentBench) key(i int) string { return "c" + strconv.Itoa(i%b.keys) }

func (b *momentBench) look(r *run, lw *local.World, end uint64) {
	rng := rand.New(rand.NewPCG(1, 2))
	j := view.Journal{Local: lw}
	var show, tell, whole []float64
	for range b.looks {
		cell := reducer.Cell{Reducer: "account", Key: b.key(rng.IntN(b.keys))}
		at := journal.Seq(1 + rng.Uint64N(end))
		show = append(show, milliseconds(func() {
			_, _, err := lw.CellAt(cell, at)
			r.must(err)
		}))
		tell = append(tell, milliseconds(func() { r.must(readTimeline(j, cell.String())) }))
	}
	for range b.whole {
		at := journal.Seq(1 + rng.Uint64N(end))
		whole = append(whole, milliseconds(func() {
			_, err := lw.At(at)
			r.must(err)
		}))
	}
	for _, x := range []struct {
		what, reach string
		took        []float64
	}{{"a cell at a record", "<= 50", show}, {"timeline of a cell", "<= 100", tell}, {"the world at a record", "<= 1000", whole}} {
		slices.Sort(x.took)
		r.add(x.what+", median", "ms CPU", x.reach, x.took[len(x.took)/2])
		r.add(x.what+", most", "ms CPU", x.reach, x.took[len(x.took)-1])
	}
}

func milliseconds(work func()) float64 { return measure(work).CPU.Seconds() * 1e3 }
