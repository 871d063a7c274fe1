package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world/local"
)

// intentsBench is the size of `bench intents`.
type intentsBench struct {
	effects, window, cells, memory int
	scope
}

const intentsText = `Many intents: what an effect costs, and what memory they take, as more and more have ended.

Cells ask for effects until there were so many; those that have ended are left to the store
beyond --memory. CPU is that of all threads over a window of effects.`

func newIntentsCommand(p *program) *cobra.Command {
	var b intentsBench
	cmd, f := b.command(p, "intents", intentsText, "  bench intents\n  bench intents --effects 4000000 --memory 256", 1, b.each(b.round))
	f.IntVar(&b.effects, "effects", 1_000_000, "how many effects the world performs")
	f.IntVar(&b.window, "window", 200_000, "over how many effects CPU is measured")
	f.IntVar(&b.cells, "cells", 1_000, "how many cells ask for them")
	f.IntVar(&b.memory, "memory", 64, "how many MiB of the world may be in memory")
	return cmd
}

func (b *intentsBench) round(ctx context.Context, r *run) {
	opts := effectsOptions()
	opts.Memory = b.memory << 20
	lw := r.world(r.dir, agentRules(), "", opts)
	var first, last float64
	done := 0
	for done < b.effects {
		each := max(1, min(b.window, b.effects-done)/b.cells)
		r.begin(ctx, lw, b.cells, each)
		m := measure(func() { r.must(lw.Run(ctx)) })
		done += each * b.cells
		if last = m.CPU.Seconds() * 1e6 / float64(each*b.cells); first == 0 {
			first = last
		}
		r.add(fmt.Sprintf("CPU an effect, to effect %d", done), "us/effect", "", last)
		r.add(fmt.Sprintf("heap, at effect %d", done), "MiB", "<= 1024", float64(heap())/(1<<20))
	}
	r.add("the last of these / the first", "ratio", "<= 1.1", last/first)
	r.closeAfter(lw, done)
	bytes, err := sizeOf(r.dir)
	r.must(err)
	r.add("on disk", "bytes/effect", "", float64(bytes)/float64(done))
	opening := measure(func() { lw = r.open(r.dir, opts) })
	r.add("open", "s", "<= 1", opening.Wall.Seconds())
	r.add("heap, opened", "MiB", "", float64(heap())/(1<<20))
	most, err := heapWhile(func() error { return proven(lw.Verify(ctx, local.Verification{})) })
	r.must(err)
	r.add("verify, heap", "MiB", "", most)
	r.must(lw.Close())
}
