package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// snapshotBench is the size of `bench snapshot`.
type snapshotBench struct {
	cells int
	share int // 1 in so many cells changes
	bytes int64
	scope
}

const snapshotText = `Snapshots, rollbacks and forks, beside what they would cost in full.

A snapshot and a rollback after one cell in a hundred has changed are compared
with those after all have. A snapshot counts until its image is stored. The fork
is of a world whose store has so many bytes.`

func newSnapshotCommand(p *program) *cobra.Command {
	var b snapshotBench
	cmd, f := b.command(p, "snapshot", snapshotText, "  bench snapshot\n  bench snapshot --cells 10000 --bytes 100000000 --rounds 1", 3, b.each(b.round))
	f.IntVar(&b.cells, "cells", 100_000, "how many cells of 200 bytes to take snapshots of")
	f.IntVar(&b.share, "share", 100, "one in `N` of them changes between two snapshots")
	f.Int64Var(&b.bytes, "bytes", 1<<30, "how large a world to fork")
	return cmd
}

func (b *snapshotBench) round(ctx context.Context, r *run) {
	b.snapshots(ctx, r)
	b.forks(ctx, r)
}

// memo is a cell's state of about 200 bytes.
type memo struct {
	Count uint64 `cbor:"count"`
	Text  string `cbor:"text"`
}

type noted struct {
	To   string `cbor:"to"`
	Text string `cbor:"text"`
}

func memoOptions() local.Options {
	return local.Options{Reducers: reducer.Registry{"note@1": reducer.Typed(1, func(_ *reducer.Context, n memo, e noted) (memo, error) {
		return memo{Count: n.Count + 1, Text: e.Text}, nil
	})}}
}

// memos makes a world of cells that keep the last text they were sent.
func (r *run) memos(dir string, opts local.Options) *local.World {
	return r.world(dir, rules("note", inGo("note"), "noted"), "", opts)
}

// note sends a text to every so many of the cells.
func (r *run) note(ctx context.Context, lw *local.World, cells, every int, text string) {
	r.feed(ctx, lw, "noted", (cells+every-1)/every, chunk, func(i int) ([]byte, error) {
		return canon.Marshal(noted{To: "c" + strconv.Itoa(i*every), Text: text})
	})
}

// snapshots compares snapshots and rollbacks after little has changed with those
// after everything has.
func (b *snapshotBench) snapshots(ctx context.Context, r *run) {
	opts := memoOptions()
	opts.Checkpoint = 1 << 40 // else a snapshot finds most of the work done
	lw := r.memos(r.at("cells"), opts)
	var took [2][2]measured
	every := []int{1, b.share}
	r.note(ctx, lw, b.cells, 1, strings.Repeat("a", 180)) // a first snapshot has no other before it
	took[0][0] = r.snapshotCost(ctx, lw, "all")
	few := make([]measured, fewRounds) // the first of them come while the store still moves what all were
	for i := range few {
		r.note(ctx, lw, b.cells, b.share, strings.Repeat("a", 180))
		few[i] = r.snapshotCost(ctx, lw, fmt.Sprint("few", i))
	}
	took[0][1] = middle(few)
	for _, i := range []int{1, 0} {
		r.note(ctx, lw, b.cells, every[i], strings.Repeat("b", 180))
		took[1][i] = r.rollbackCost(ctx, lw, fmt.Sprint("few", fewRounds-1))
	}
	for i, what := range []string{"snapshot", "rollback"} {
		all, few := took[i][0], took[i][1]
		r.add(what+", all changed", "ms", "", all.Wall.Seconds()*1e3)
		r.add(fmt.Sprintf("%s, 1 in %d changed", what, b.share), "ms", "", few.Wall.Seconds()*1e3)
		r.add(what+", few / all", "ratio", "<= 0.02", few.Wall.Seconds()/all.Wall.Seconds())
		r.add(what+", few / all, CPU", "ratio", "<= 0.02", few.CPU.Seconds()/all.CPU.Seconds())
	}
	r.must(lw.Close())
}

// fewRounds is how many snapshots of little are made.
const fewRounds = 7

// middle returns the median of each of what was measured.
func middle(all []measured) measured {
	by := func(of func(measured) time.Duration) time.Duration {
		slices.SortFunc(all, func(a, b measured) int { return cmp.Compare(of(a), of(b)) })
		return of(all[len(all)/2])
	}
	return measured{
		Wall: by(func(m measured) time.Duration { return m.Wall }),
		CPU:  by(func(m measured) time.Duration { return m.CPU }),
	}
}

// snapshotCost makes a snapshot and waits until its image is stored. What was
// written before is stored before.
func (r *run) snapshotCost(ctx context.Context, lw *local.World, name string) measured {
	r.stored(lw)
	return measure(func() {
		var s snapshot.Snapshot
		r.must(lw.Update(func(w *world.World) (err error) {
			s, err = w.Snapshot(ctx, name, "", "bench")
			return err
		}))
		_, err := lw.Part(journal.Seq(s.Record), nil)
		r.must(err)
	})
}

// rollbackCost rolls back and waits until what returned is stored.
func (r *run) rollbackCost(ctx context.Context, lw *local.World, name string) measured {
	r.stored(lw)
	b := journal.RolledBack{Snapshot: name, Actor: "bench", Reason: "to measure"}
	return measure(func() {
		r.must(lw.Update(func(w *world.World) error {
			_, _, err := w.Rollback(ctx, b)
			return err
		}))
		r.stored(lw)
	})
}

// stored waits until the last image is.
func (r *run) stored(lw *local.World) {
	_, err := lw.Image(0)
	r.must(err)
}

// readTimeline reads what worldctl timeline puts into words: the records of a cell
// and the causes of its steps.
func readTimeline(j view.Journal, cell string) error {
	for e, err := range j.OfCell(cell, 0) {
		if err == nil && e.Kind == journal.KindStepped {
			_, err = j.Entry(e.CausedBy)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forks forks a large world.
func (b *snapshotBench) forks(ctx context.Context, r *run) {
	dir := r.at("large")
	lw := r.memos(dir, memoOptions())
	rng := rand.New(rand.NewPCG(1, 2))
	const chunk, textBytes = 500, 100 << 10
	events := int((b.bytes + textBytes - 1) / textBytes)
	r.feed(ctx, lw, "noted", events, chunk, func(i int) ([]byte, error) {
		text := make([]byte, textBytes)
		for j := range text {
			text[j] = byte('!' + rng.IntN(90)) // does not compress to nothing
		}
		return canon.Marshal(noted{To: "c" + strconv.Itoa(i%chunk), Text: string(text)})
	})
	r.must(lw.Close()) // what was written is not the fork's to wait for
	lw = r.open(dir, memoOptions())
	size, err := sizeOf(dir)
	r.must(err)
	start := time.Now()
	_, err = lw.Fork(context.Background(), dir+"-fork", local.ForkOptions{Effects: journal.ForkHold, Actor: "bench"})
	r.must(err)
	r.add("world to fork", "MB", "", float64(size)/1e6)
	r.add("fork", "ms", "<= 1000", time.Since(start).Seconds()*1e3)
	r.must(lw.Close())
}
