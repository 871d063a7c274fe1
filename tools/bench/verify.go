package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
)

// verifyBench is the size of `bench verify`.
type verifyBench struct {
	records int
	cells   int
	scope
}

const verifyText = `Verification of a world beside its replay, and what memory it takes.

Accounts add up what they are sent. The same open world is replayed and verified, one
after the other in each round, and the medians are shown. Then it is verified once more
as a directory, and so is one of a quarter of its records, over as many cells: what is
alive on the heap must not grow with the journal.`

func newVerifyCommand(p *program) *cobra.Command {
	var b verifyBench
	cmd, f := b.command(p, "verify", verifyText, "  bench verify\n  bench verify --records 200000 --rounds 1", 3, b.each(b.round))
	f.IntVar(&b.records, "records", 1_000_000, "how many records to verify")
	f.IntVar(&b.cells, "cells", 10_000, "over how many cells")
	return cmd
}

func (b *verifyBench) round(ctx context.Context, r *run) {
	whole, quarter := r.at("whole"), r.at("quarter")
	b.times(ctx, r, whole)
	r.must(b.world(ctx, r, quarter, b.records/4).Close())
	var peaks [2]float64
	for i, at := range []string{whole, quarter} {
		var err error
		peaks[i], err = peakHeap(func() error { return proven(local.Verify(ctx, at, accountOptions(), local.Verification{})) })
		r.must(err)
	}
	r.add("heap of verify", "MiB", "", peaks[0])
	r.add("heap of verify, a quarter of the records", "MiB", "", peaks[1])
	r.add("heap / heap of a quarter", "ratio", "<= 1.25", peaks[0]/peaks[1])
}

// times makes a world and measures replay and verification of it while it is open.
func (b *verifyBench) times(ctx context.Context, r *run, dir string) {
	lw := b.world(ctx, r, dir, b.records)
	records := float64(lw.Status().Head.ID)
	again := r.replay(lw)
	check := measure(func() { r.must(proven(lw.Verify(ctx, local.Verification{}))) })
	r.must(lw.Close())
	r.add("replay", "records/s", "", records/again.Wall.Seconds())
	r.add("verify", "records/s", "", records/check.Wall.Seconds())
	r.add("verify / replay", "ratio of time", "<= 1.5", check.Wall.Seconds()/again.Wall.Seconds())
	r.add("verify / replay, CPU", "ratio of time", "", check.CPU.Seconds()/again.CPU.Seconds())
}

// proven returns why a world was not proven.
func proven(r *verify.Report, err error) error {
	if err == nil && !r.OK {
		err = fmt.Errorf("the world is not proven: %v", r.Faults)
	}
	return err
}

// world makes a world of so many records, of which two are an event.
func (b *verifyBench) world(ctx context.Context, r *run, dir string, records int) *local.World {
	lw := r.accounts(dir)
	r.credit(ctx, lw, records/2, b.cells)
	return lw
}

// peakHeap runs work with a collector that runs often, and returns the most that was
// alive on the heap meanwhile beyond what was there before, in MiB.
func peakHeap(work func() error) (float64, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	return heapWhile(work)
}

// heapWhile is peakHeap with the collector as it is.
func heapWhile(work func() error) (float64, error) {
	runtime.GC() // twice: what is pooled goes with the second
	runtime.GC()
	before, most := liveHeap(), uint64(0)
	done := make(chan error, 1)
	go func() { done <- work() }()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return float64(most) / (1 << 20), err
		case <-look.C:
			if live := liveHeap(); live > before {
				most = max(most, live-before)
			}
		}
	}
}

// liveHeap returns the bytes that the last collection has found alive.
func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
