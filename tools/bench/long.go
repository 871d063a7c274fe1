package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world/local"
)

// longBench is the size of `bench long`.
type longBench struct {
	records, window, cells, memory int
	scope
}

const longText = `A long run: what an event costs as the journal grows, and what opening it costs.

A world handles events until it has so many records. What an event costs is the CPU of
all threads over a window of records, so that what is done once in a while counts: the
first begins with record 100,000, the last ends with the last record. With more cells than
fit into --memory the others are in the store. In the end it is replayed and verified with as
much memory.`

func newLongCommand(p *program) *cobra.Command {
	var b longBench
	cmd, f := b.command(p, "long", longText, "  bench long\n  bench long --records 4000000 --rounds 1", 1, b.each(b.round))
	f.IntVar(&b.records, "records", 10_000_000, "how many records the world gets")
	f.IntVar(&b.window, "window", 2_000_000, "over how many records CPU is measured")
	f.IntVar(&b.cells, "cells", 10_000, "over how many cells")
	b.profile(f)
	f.IntVar(&b.memory, "memory", 1024, "how many MiB of the world may be in memory")
	return cmd
}

// longBegin is how many records there are when the first window begins.
const longBegin = 100_000

func (b *longBench) round(ctx context.Context, r *run) {
	opts := accountOptions()
	opts.Memory = b.memory << 20
	lw := r.accountsWith(r.dir, opts)
	sent := 0
	grow := func(records int) time.Duration {
		events := records / 2 // each is submitted, and a step
		defer func() { sent += events }()
		work := func() { r.creditFrom(ctx, lw, sent, events, b.cells) }
		return b.measurePart(r, fmt.Sprint(2*sent), work).CPU / time.Duration(max(1, events))
	}
	grow(longBegin)
	var first, last time.Duration
	for at := longBegin; at < b.records; at += b.window {
		n := min(b.window, b.records-at)
		last = grow(n)
		if first == 0 {
			first = last
		}
		r.add(fmt.Sprintf("CPU an event, to record %d", at+n), "us/event", "", last.Seconds()*1e6)
		b.note("%d records: %.2f us of CPU an event", at+n, last.Seconds()*1e6)
	}
	r.add("the last of these / the first", "ratio", "<= 1.1", last.Seconds()/first.Seconds())
	r.add("heap", "MiB", "", float64(heap())/(1<<20))
	r.must(lw.Close())
	opening := measure(func() { lw = r.open(r.dir, opts) })
	r.add("open", "s", "<= 1", opening.Wall.Seconds())
	r.add("open, CPU", "s", "<= 0.3", opening.CPU.Seconds())
	b.computeAgain(ctx, r, lw)
	r.must(lw.Close())
}

// computeAgain replays and verifies what the world has come to.
func (b *longBench) computeAgain(ctx context.Context, r *run, lw *local.World) {
	for _, x := range []struct {
		name string
		work func() error
	}{
		{"replay", func() error { return errorOf(lw.Replay(ctx, 0, nil)) }},
		{"verify", func() error { return proven(lw.Verify(ctx, local.Verification{})) }},
	} {
		var heap float64
		m := measure(func() {
			var err error
			heap, err = heapWhile(x.work)
			r.must(err)
		})
		r.add(x.name+", CPU", "us/record", "", m.CPU.Seconds()*1e6/float64(b.records))
		r.add(x.name, "s", "", m.Wall.Seconds())
		r.add(x.name+", heap", "MiB", "", heap)
	}
}

func errorOf[T any](_ T, err error) error { return err }
