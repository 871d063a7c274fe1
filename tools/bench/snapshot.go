package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// snapshotBench is the size of `bench snapshot`.
type snapshotBench struct {
	cells  int
	share  int // 1 in so many cells changes
	events int
	keys   int
	bytes  int64
	scope
}

const snapshotText = `Snapshots, rollbacks, forks and looks back, beside what they would cost in full.

A snapshot and a rollback after one cell in a hundred has changed are compared
with those after all have. A snapshot counts until its image is stored. Looks
back are at random cells and moments of a long journal. The fork is of a world
whose store has so many bytes.`

func newSnapshotCommand(p *program) *cobra.Command {
	var b snapshotBench
	cmd, f := b.command(p, "snapshot", snapshotText, "  bench snapshot\n  bench snapshot --cells 10000 --events 100000 --bytes 100000000 --rounds 1", 3, b.each(b.round))
	f.IntVar(&b.cells, "cells", 100_000, "how many cells of 200 bytes to take snapshots of")
	f.IntVar(&b.share, "share", 100, "one in `N` of them changes between two snapshots")
	f.IntVar(&b.events, "events", 500_000, "how many events, of two records each, to look back over")
	f.IntVar(&b.keys, "keys", 10_000, "over how many cells")
	f.Int64Var(&b.bytes, "bytes", 1<<30, "how large a world to fork")
	return cmd
}

func (b *snapshotBench) round(ctx context.Context, dir string, r *rows) error {
	if err := b.snapshots(ctx, filepath.Join(dir, "cells"), r); err != nil {
		return err
	}
	if err := b.looks(ctx, filepath.Join(dir, "journal"), r); err != nil {
		return err
	}
	return b.forks(ctx, filepath.Join(dir, "large"), r)
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

const memoManifest = `world: notes
version: 1
reducers:
  note: {engine: go, name: note, version: "1"}
events:
  noted:
routing:
  - {event: noted, reducer: note, key: event.data.to}
`

func memoOptions() local.Options {
	return local.Options{Reducers: reducer.Registry{"note@1": reducer.Typed(1, func(_ *reducer.Context, n memo, e noted) (memo, error) {
		return memo{Count: n.Count + 1, Text: e.Text}, nil
	})}}
}

// touch has every so many of the cells handle an event.
func (b *snapshotBench) touch(ctx context.Context, lw *local.World, every int, text string) error {
	all := func(yield func(world.Submission, error) bool) {
		for i := 0; i < b.cells; i += every {
			data, err := canon.Marshal(noted{To: "c" + strconv.Itoa(i), Text: text})
			if !yield(world.Submission{Name: "noted", Data: data}, err) {
				return
			}
		}
	}
	if _, _, err := lw.SubmitAll(ctx, all); err != nil {
		return err
	}
	return lw.Run(ctx)
}

// snapshots compares snapshots and rollbacks after little has changed with those
// after everything has.
func (b *snapshotBench) snapshots(ctx context.Context, dir string, r *rows) error {
	opts := memoOptions()
	opts.Checkpoint = 1 << 40 // else a snapshot finds most of the work done
	lw, err := benchWorld(dir, map[string]string{local.ManifestFile: memoManifest}, opts)
	if err != nil {
		return err
	}
	defer func() { _ = lw.Close() }()
	var took [2][2]time.Duration
	every := []int{1, b.share}
	for i := range every { // all the cells first: a first snapshot has no other before it
		if err := b.touch(ctx, lw, every[i], strings.Repeat("a", 180)); err != nil {
			return err
		}
		if took[0][i], err = snapshotTime(ctx, lw, fmt.Sprint("every", every[i])); err != nil {
			return err
		}
	}
	for _, i := range []int{1, 0} {
		if err := b.touch(ctx, lw, every[i], strings.Repeat("b", 180)); err != nil {
			return err
		}
		if took[1][i], err = rollbackTime(ctx, lw, fmt.Sprint("every", b.share)); err != nil {
			return err
		}
	}
	for i, what := range []string{"snapshot", "rollback"} {
		all, few := took[i][0].Seconds(), took[i][1].Seconds()
		r.add(what+", all changed", "ms", "", all*1e3)
		r.add(fmt.Sprintf("%s, 1 in %d changed", what, b.share), "ms", "", few*1e3)
		r.add(what+", few / all", "ratio", "<= 0.05", few/all)
	}
	return nil
}

// snapshotTime makes a snapshot and waits until its image is stored. What was
// written before is stored before.
func snapshotTime(ctx context.Context, lw *local.World, name string) (time.Duration, error) {
	if _, err := lw.Image(0); err != nil {
		return 0, err
	}
	start := time.Now()
	var s snapshot.Snapshot
	err := lw.Update(func(w *world.World) (err error) {
		s, err = w.Snapshot(ctx, name, "", "bench")
		return err
	})
	if err != nil {
		return 0, err
	}
	_, err = lw.Part(journal.Seq(s.Record), nil)
	return time.Since(start), err
}

// rollbackTime rolls back and waits until what returned is stored.
func rollbackTime(ctx context.Context, lw *local.World, name string) (time.Duration, error) {
	if _, err := lw.Image(0); err != nil {
		return 0, err
	}
	start := time.Now()
	b := journal.RolledBack{Snapshot: name, Actor: "bench", Reason: "to measure"}
	err := lw.Update(func(w *world.World) error {
		_, _, err := w.Rollback(ctx, b)
		return err
	})
	if err != nil {
		return 0, err
	}
	_, err = lw.Image(0)
	return time.Since(start), err
}

// lookRounds is how many cells and moments are looked at.
const lookRounds = 200

// looks looks at random cells and moments of a long journal.
func (b *snapshotBench) looks(ctx context.Context, dir string, r *rows) error {
	lw, err := accounts(dir)
	if err != nil {
		return err
	}
	if err := drive(ctx, lw, &load{events: b.events, cells: b.keys}); err != nil {
		return err
	}
	if err := lw.Close(); err != nil { // what a later process finds
		return err
	}
	if lw, err = local.Open(dir, benchOptions()); err != nil {
		return err
	}
	defer func() { _ = lw.Close() }()
	rng := rand.New(rand.NewPCG(1, 2))
	end := uint64(lw.Status().Head.ID)
	var show, tell []float64
	for range lookRounds {
		cell := reducer.Cell{Reducer: "account", Key: "c" + strconv.Itoa(rng.IntN(b.keys))}
		start := time.Now()
		if _, _, err := lw.CellAt(cell, journal.Seq(1+rng.Uint64N(end))); err != nil {
			return err
		}
		show = append(show, time.Since(start).Seconds()*1e3)
		start = time.Now()
		if err := readTimeline(view.Journal{Local: lw}, cell.String()); err != nil {
			return err
		}
		tell = append(tell, time.Since(start).Seconds()*1e3)
	}
	r.add("records to look back over", "records", "", float64(end))
	r.add("cell show --at, median", "ms", "<= 50", median("", "", "", show).Value)
	r.add("timeline, median", "ms", "<= 100", median("", "", "", tell).Value)
	return nil
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
func (b *snapshotBench) forks(ctx context.Context, dir string, r *rows) error {
	lw, err := benchWorld(dir, map[string]string{local.ManifestFile: memoManifest}, memoOptions())
	if err != nil {
		return err
	}
	defer func() { _ = lw.Close() }()
	rng := rand.New(rand.NewPCG(1, 2))
	const textBytes = 100 << 10
	for left := b.bytes; left > 0; {
		const chunk = 500
		all := func(yield func(world.Submission, error) bool) {
			for i := 0; i < chunk && left > 0; i++ {
				text := make([]byte, textBytes)
				for j := range text {
					text[j] = byte('!' + rng.IntN(90)) // does not compress to nothing
				}
				data, err := canon.Marshal(noted{To: "c" + strconv.Itoa(i), Text: string(text)})
				left -= textBytes
				if !yield(world.Submission{Name: "noted", Data: data}, err) {
					return
				}
			}
		}
		if _, _, err := lw.SubmitAll(ctx, all); err != nil {
			return err
		}
		if err := lw.Run(ctx); err != nil {
			return err
		}
	}
	if err := lw.Close(); err != nil { // what was written is not the fork's to wait for
		return err
	}
	if lw, err = local.Open(dir, memoOptions()); err != nil {
		return err
	}
	size, err := sizeOf(dir)
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := lw.Fork(dir+"-fork", local.ForkOptions{Effects: journal.ForkHold, Actor: "bench"}); err != nil {
		return err
	}
	r.add("world to fork", "MB", "", float64(size)/1e6)
	r.add("fork", "ms", "<= 1000", time.Since(start).Seconds()*1e3)
	return nil
}
