package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
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

const benchStarlark = `def reduce(ctx, state, event):
    if state == None:
        state = {"count": 0, "total": 0}
    state["count"] += 1
    state["total"] += event.data["by"]
    return state
`

// run measures everything, round by round.
func (b *kernelBench) run(ctx context.Context, r *run) {
	b.each(b.round)(ctx, r)
	b.note("idle cells")
	b.starlark(ctx, r)
	b.memory(ctx, r)
}

func (b *kernelBench) round(ctx context.Context, r *run) {
	lw := r.accounts(r.dir)
	events := float64(b.events)
	durable := measure(func() { r.credit(ctx, lw, b.events, b.cells) })
	records := float64(lw.Status().Head.ID)
	raw, scan := r.ceilings(lw)
	r.add("raw append", "records/s", "", records/raw.Wall.Seconds())
	r.add("durable steps", "records/s", "", records/durable.Wall.Seconds())
	r.add("durable events", "events/s", "", events/durable.Wall.Seconds())
	r.add("durable / raw append", "ratio", ">= 0.8", raw.Wall.Seconds()/durable.Wall.Seconds())
	r.add("durable CPU", "us/event", "<= 3.5", float64(durable.CPU.Microseconds())/events)
	r.add("durable allocations", "objects/event", "<= 2", float64(durable.Allocs)/events)
	again := r.replay(lw)
	r.add("raw scan", "records/s", "", records/scan.Wall.Seconds())
	r.add("replay", "records/s", "", records/again.Wall.Seconds())
	r.add("replay / raw scan", "ratio", ">= 0.8", scan.Wall.Seconds()/again.Wall.Seconds())
	r.must(lw.Close())
	opening := measure(func() { lw = r.open(r.dir, accountOptions()) })
	r.add("open", "s", "<= 1", opening.Wall.Seconds())
	r.must(lw.Close())
}

// ceilings measures a store without a kernel on the world's records: appending
// them, and reading them back.
func (r *run) ceilings(lw *local.World) (raw, scan measured) {
	envelopes := make([]canon.Envelope, 0, lw.Status().Head.ID)
	for s, err := range lw.Scan(0) {
		r.must(err)
		e, err := canon.DecodeEnvelope(bytes.Clone(s.Bytes))
		r.must(err)
		envelopes = append(envelopes, e)
	}
	db, err := pebble.Open(r.at("raw"), &pebble.Options{
		MemTableSize: 64 << 20, FormatMajorVersion: pebble.FormatNewest, Logger: quietLogger{},
	})
	r.must(err)
	raw = measure(func() { r.rawAppend(db, envelopes) })
	scan = measure(func() { r.rawScan(db) })
	r.must(db.Close())
	return raw, scan
}

// rawAppend encodes, chains and appends records: one batch is computed while the
// one before syncs.
func (r *run) rawAppend(db *pebble.DB, envelopes []canon.Envelope) {
	chain := new(canon.Chain)
	var pending *pebble.Batch
	var buf []byte
	for some := range slices.Chunk(envelopes, world.DefaultBatchRecords) {
		batch := db.NewBatch()
		for _, e := range some {
			buf = canon.AppendEnvelope(buf[:0], e)
			chain.Add(e.ID, e.Kind, buf)
			op := batch.SetDeferred(8, len(buf))
			binary.BigEndian.PutUint64(op.Key, e.ID)
			copy(op.Value, buf)
			r.must(op.Finish())
		}
		r.must(db.ApplyNoSyncWait(batch, pebble.Sync))
		if pending != nil {
			r.must(errors.Join(pending.SyncWait(), pending.Close()))
		}
		pending = batch
	}
	r.must(errors.Join(pending.SyncWait(), pending.Close()))
}

// rawScan reads, decodes and chains all records.
func (r *run) rawScan(db *pebble.DB) {
	it, err := db.NewIter(nil)
	r.must(err)
	chain := new(canon.Chain)
	for ok := it.First(); ok; ok = it.Next() {
		e, err := canon.DecodeEnvelopeAs(it.Value(), journal.KindOf)
		r.must(err)
		chain.Add(e.ID, e.Kind, it.Value())
	}
	r.must(errors.Join(it.Error(), it.Close()))
}

type quietLogger struct{ pebble.Logger }

func (quietLogger) Infof(string, ...any)           {}
func (quietLogger) Errorf(string, ...any)          {}
func (quietLogger) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// starlark measures the same world with its reducer in Starlark.
func (b *kernelBench) starlark(ctx context.Context, r *run) {
	lw := r.world(r.at("star"), rules("account", inStarlark, "account.credited"), benchStarlark, local.Options{})
	events := max(1, b.events/5)
	m := measure(func() { r.credit(ctx, lw, events, b.cells) })
	r.add("Starlark events", "events/s of CPU", ">= 250000", float64(events)/m.CPU.Seconds())
	r.must(lw.Close())
}

// memory measures the heap that idle cells of 200 bytes take.
func (b *kernelBench) memory(ctx context.Context, r *run) {
	text := strings.Repeat("x", 200-len("\xa2\x65count\x00\x64text\x78\x00"))
	lw := r.world(r.at("idle"), rules("account", inGo("memo"), "account.credited"), "", local.Options{Reducers: reducer.Registry{
		"memo@1": reducer.Typed(1, func(*reducer.Context, memo, credit) (memo, error) { return memo{Text: text}, nil }),
	}})
	r.credit(ctx, lw, b.idle, b.idle)
	_, _, err := lw.CellAt(reducer.Cell{Reducer: "account", Key: "c0"}, lw.Head().ID) // waits for images that are being written
	r.must(err)
	used := heap()
	r.add("heap for idle cells", "MiB", "<= 430 for 1000000", float64(used)/(1<<20))
	r.add("heap a cell", "bytes", "<= 450", float64(used)/float64(b.idle))
	r.must(lw.Close())
}
