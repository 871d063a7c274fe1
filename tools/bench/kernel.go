package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// kernelBench is the size of `bench kernel`.
type kernelBench struct {
	events int
	cells  int
	idle   int
	scope
}

const kernelText = `Durable steps, replay, opening and memory, beside their ceilings.

The ceiling of durable steps encodes, chains and appends the same records to a
Pebble store of its own, synced and pipelined in the same batches, without a
kernel. The ceiling of replay reads them from there, decodes and chains them.
All is measured in one run, round by round; the medians are shown.`

func newKernelCommand(p *program) *cobra.Command {
	var b kernelBench
	cmd, f := b.command(p, "kernel", kernelText, "  bench kernel\n  bench kernel --events 100000 --idle 100000 --rounds 1", 3, b.run)
	f.IntVar(&b.events, "events", 1_000_000, "how many events to handle")
	f.IntVar(&b.cells, "cells", 10_000, "over how many cells")
	f.IntVar(&b.idle, "idle", 1_000_000, "how many idle cells of 200 bytes to hold")
	return cmd
}

// The world of the benchmark: accounts that add up what they are sent.
const benchManifest = `world: bench
version: 1
reducers:
  account: {%s}
events:
  account.credited: {}
routing:
  - {event: account.credited, reducer: account, key: event.data.to}
`

const benchStarlark = `def reduce(ctx, state, event):
    if state == None:
        state = {"count": 0, "total": 0}
    state["count"] += 1
    state["total"] += event.data["by"]
    return state
`

type account struct {
	Count uint64 `cbor:"count"`
	Total uint64 `cbor:"total"`
}

type credit struct {
	To string `cbor:"to"`
	By uint64 `cbor:"by"`
}

func credited(_ *reducer.Context, a account, c credit) (account, error) {
	return account{Count: a.Count + 1, Total: a.Total + c.By}, nil
}

func benchOptions() local.Options {
	return local.Options{Reducers: reducer.Registry{"account@1": reducer.Typed(1, credited)}}
}

// load makes events, in memory that it reuses.
type load struct {
	sent, events, cells int
	buf                 []byte
}

func (l *load) done() bool { return l.sent == l.events }

func (l *load) next(n int) iter.Seq2[world.Submission, error] {
	return func(yield func(world.Submission, error) bool) {
		for ; n > 0 && l.sent < l.events; n-- {
			b := canon.AppendMap(l.buf[:0], 2)
			b = canon.AppendUint(canon.AppendText(b, "by"), uint64(l.sent%1000))
			b = canon.AppendText(b, "to")
			at := len(b)
			b = append(b, 0x60, 'c') // a text string, whose length follows
			b = strconv.AppendInt(b, int64(l.sent%l.cells), 10)
			b[at] |= byte(len(b) - at - 1)
			l.buf = b
			l.sent++
			if !yield(world.Submission{Name: "account.credited", Data: b}, nil) {
				return
			}
		}
	}
}

// run measures everything, round by round.
func (b *kernelBench) run(ctx context.Context, dir string, r *rows) error {
	if err := b.each(b.round)(ctx, dir, r); err != nil {
		return err
	}
	b.note("idle cells")
	return errors.Join(b.starlark(ctx, filepath.Join(dir, "star"), r), b.memory(ctx, filepath.Join(dir, "idle"), r))
}

const benchChunk = 100_000 // events a tick

func (b *kernelBench) round(ctx context.Context, dir string, r *rows) error {
	lw, err := accounts(dir)
	if err != nil {
		return err
	}
	events := float64(b.events)
	durable, err := measure(func() error {
		return drive(ctx, lw, &load{events: b.events, cells: b.cells})
	})
	if err != nil {
		return err
	}
	records := float64(lw.Status().Head.ID)
	raw, scan, err := ceilings(filepath.Join(dir, "raw"), lw)
	if err != nil {
		return err
	}
	r.add("raw append", "records/s", "", records/raw.Wall.Seconds())
	r.add("durable steps", "records/s", "", records/durable.Wall.Seconds())
	r.add("durable events", "events/s", "", events/durable.Wall.Seconds())
	r.add("durable / raw append", "ratio", ">= 0.5", raw.Wall.Seconds()/durable.Wall.Seconds())
	r.add("durable CPU", "us/event", "", float64(durable.CPU.Microseconds())/events)
	r.add("durable allocations", "objects/event", "<= 2", float64(durable.Allocs)/events)
	again, err := replay(lw)
	if err != nil {
		return err
	}
	r.add("raw scan", "records/s", "", records/scan.Wall.Seconds())
	r.add("replay", "records/s", "", records/again.Wall.Seconds())
	r.add("replay / raw scan", "ratio", ">= 0.5", scan.Wall.Seconds()/again.Wall.Seconds())
	if err := lw.Close(); err != nil {
		return err
	}
	opening, err := measure(func() error {
		lw, err = local.Open(dir, benchOptions())
		return err
	})
	if err != nil {
		return err
	}
	r.add("open", "s", "<= 1", opening.Wall.Seconds())
	return lw.Close()
}

// ceilings measures a store without a kernel on the world's records: appending
// them, and reading them back.
func ceilings(dir string, lw *local.World) (raw, scan measured, err error) {
	envelopes, err := envelopesOf(lw)
	if err != nil {
		return raw, scan, err
	}
	db, err := pebble.Open(dir, &pebble.Options{
		MemTableSize: 64 << 20, FormatMajorVersion: pebble.FormatNewest, Logger: quietLogger{},
	})
	if err != nil {
		return raw, scan, err
	}
	if raw, err = measure(func() error { return rawAppend(db, envelopes) }); err == nil {
		scan, err = measure(func() error { return rawScan(db) })
	}
	return raw, scan, errors.Join(err, db.Close())
}

// rawAppend encodes, chains and appends records: one batch is computed while the
// one before syncs.
func rawAppend(db *pebble.DB, envelopes []canon.Envelope) error {
	chain := new(canon.Chain)
	var pending *pebble.Batch
	var buf []byte
	for len(envelopes) > 0 {
		n := min(world.DefaultBatchRecords, len(envelopes))
		batch := db.NewBatch()
		for _, e := range envelopes[:n] {
			buf = canon.AppendEnvelope(buf[:0], e)
			chain.Add(e.ID, e.Kind, buf)
			op := batch.SetDeferred(8, len(buf))
			binary.BigEndian.PutUint64(op.Key, e.ID)
			copy(op.Value, buf)
			if err := op.Finish(); err != nil {
				return err
			}
		}
		envelopes = envelopes[n:]
		if err := db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
			return err
		}
		if pending != nil {
			if err := errors.Join(pending.SyncWait(), pending.Close()); err != nil {
				return err
			}
		}
		pending = batch
	}
	return errors.Join(pending.SyncWait(), pending.Close())
}

// rawScan reads, decodes and chains all records.
func rawScan(db *pebble.DB) error {
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	chain := new(canon.Chain)
	for ok := it.First(); ok; ok = it.Next() {
		e, err := canon.DecodeEnvelopeAs(it.Value(), journal.KindOf)
		if err != nil {
			return errors.Join(err, it.Close())
		}
		chain.Add(e.ID, e.Kind, it.Value())
	}
	return errors.Join(it.Error(), it.Close())
}

type quietLogger struct{ pebble.Logger }

func (quietLogger) Infof(string, ...any)           {}
func (quietLogger) Errorf(string, ...any)          {}
func (quietLogger) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func envelopesOf(lw *local.World) ([]canon.Envelope, error) {
	out := make([]canon.Envelope, 0, lw.Status().Head.ID)
	for s, err := range lw.Scan(0) {
		if err != nil {
			return nil, err
		}
		e, err := canon.DecodeEnvelope(append([]byte(nil), s.Bytes...))
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// starlark measures the same world with its reducer in Starlark.
func (b *kernelBench) starlark(ctx context.Context, dir string, r *rows) error {
	lw, err := benchWorld(dir, map[string]string{
		local.ManifestFile: fmt.Sprintf(benchManifest, "engine: starlark, source: account.star"),
		"account.star":     benchStarlark,
	}, local.Options{})
	if err != nil {
		return err
	}
	events := max(1, b.events/5)
	m, err := measure(func() error {
		return drive(ctx, lw, &load{events: events, cells: b.cells})
	})
	r.add("Starlark events", "events/s of CPU", ">= 60000", float64(events)/m.CPU.Seconds())
	return errors.Join(err, lw.Close())
}

// memory measures the heap that idle cells of 200 bytes take.
func (b *kernelBench) memory(ctx context.Context, dir string, r *rows) error {
	lw, err := benchWorld(dir, map[string]string{
		local.ManifestFile: fmt.Sprintf(benchManifest, `engine: go, name: note, version: "1"`),
	}, noteOptions())
	if err != nil {
		return err
	}
	if err := drive(ctx, lw, &load{events: b.idle, cells: b.idle}); err != nil {
		return err
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.add("heap for idle cells", "MiB", "<= 1024 for 1000000", float64(m.HeapAlloc)/(1<<20))
	r.add("heap a cell", "bytes", "", float64(m.HeapAlloc)/float64(b.idle))
	return lw.Close()
}

type note struct {
	Text string `cbor:"text"`
}

// noteOptions has a reducer whose state takes 200 bytes.
func noteOptions() local.Options {
	text := strings.Repeat("x", 200-len("\xa1\x64text\x78\x00"))
	return local.Options{Reducers: reducer.Registry{"note@1": reducer.Typed(1, func(*reducer.Context, note, credit) (note, error) {
		return note{Text: text}, nil
	})}}
}
