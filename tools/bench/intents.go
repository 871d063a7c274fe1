package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/local"
)

// intentsBench is the size of `bench intents`.
type intentsBench struct {
	effects, window, cells, memory int
	same, unverified               bool
	scope
}

const intentsText = `Many intents: what an effect costs, and what memory they take, as more and more have ended.

Cells ask for effects until there were so many, each for another one every time; those that have
ended are left to the store beyond --memory. CPU is that of all threads over a window of effects;
process is the most that the kernel says it had in memory (VmHWM) since the round or the
verification began.`

func newIntentsCommand(p *program) *cobra.Command {
	var b intentsBench
	cmd, f := b.command(p, "intents", intentsText, "  bench intents\n  bench intents --effects 4000000 --memory 256\n  bench intents --same", 1, b.each(b.round))
	f.IntVar(&b.effects, "effects", 1_000_000, "how many effects the world performs")
	f.IntVar(&b.window, "window", 200_000, "over how many effects CPU is measured")
	f.IntVar(&b.cells, "cells", 1_000, "how many cells ask for them")
	f.IntVar(&b.memory, "memory", 64, "how many MiB of the world may be in memory")
	f.BoolVar(&b.same, "same", false, "cells ask for the same in each window")
	b.profile(f)
	f.BoolVar(&b.unverified, "unverified", false, "leave out the verification at the end")
	return cmd
}

func (b *intentsBench) round(ctx context.Context, r *run) {
	opts := effectsOptions()
	if !b.same {
		opts.Reducers = reducer.Registry{"agent@1": reducer.Typed(1, calling(true))}
	}
	opts.Memory = b.memory << 20
	forgetPeak()
	lw := r.world(r.dir, agentRules(), "", opts)
	var first, last float64
	done := 0
	for done < b.effects {
		each := max(1, min(b.window, b.effects-done)/b.cells)
		r.begin(ctx, lw, b.cells, each)
		m := b.measurePart(r, fmt.Sprint(done), func() { r.must(lw.Run(ctx)) })
		done += each * b.cells
		if last = m.CPU.Seconds() * 1e6 / float64(each*b.cells); first == 0 {
			first = last
		}
		r.add(fmt.Sprintf("CPU an effect, to effect %d", done), "us/effect", "", last)
		r.add(fmt.Sprintf("heap, at effect %d", done), "MiB", "<= 1024", float64(heap())/(1<<20))
		b.note("%d effects: %.1f us of CPU an effect, %.0f MiB of process so far", done, last, peak())
	}
	r.add("the last of these / the first", "ratio", "<= 1.1", last/first)
	r.add("process", "MiB", "<= 1024", peak())
	r.closeAfter(lw, done)
	bytes, err := sizeOf(r.dir)
	r.must(err)
	r.add("on disk", "bytes/effect", "", float64(bytes)/float64(done))
	opening := measure(func() { lw = r.open(r.dir, opts) })
	r.add("open", "s", "<= 1", opening.Wall.Seconds())
	r.add("heap, opened", "MiB", "", float64(heap())/(1<<20))
	if b.unverified {
		r.must(lw.Close())
		return
	}
	forgetPeak()
	most, err := heapWhile(func() error { return proven(lw.Verify(ctx, local.Verification{})) })
	r.must(err)
	r.add("verify, heap", "MiB", "", most)
	r.add("verify, process", "MiB", "", peak())
	r.must(lw.Close())
}

// heap returns how many bytes live on it.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// peak returns how many MiB of memory the process has had at most since forgetPeak; 0: this
// system does not say.
func peak() float64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }() // it was read only
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib float64
		if n, err := fmt.Sscanf(lines.Text(), "VmHWM: %f kB", &kib); n == 1 && err == nil {
			return kib / 1024
		}
	}
	return 0
}

// forgetPeak begins anew with what peak says.
func forgetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // where it cannot, the peak is that of all
}
