package main

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// segmentsBench is the size of `bench segments`.
type segmentsBench struct {
	events, cells int
	scope
}

const segmentsText = `Where records belong: in Pebble, or in files of our own.

The records of a world are written twice, with what stands around each of them in a
world: to Pebble, 4 KiB of them to a key, as a world does; and one after the other
into files of 64 MiB. Batches are the
world's, each synced before the next but one. CPU is that of all threads, until all
of it is flushed; bytes are what the process had the system write.`

func newSegmentsCommand(p *program) *cobra.Command {
	var b segmentsBench
	cmd, f := b.command(p, "segments", segmentsText, "  bench segments\n  bench segments --events 100000 --rounds 1", 3, b.each(b.round))
	f.IntVar(&b.events, "events", 1_000_000, "how many events the world has handled")
	f.IntVar(&b.cells, "cells", 10_000, "over how many cells")
	return cmd
}

func (b *segmentsBench) round(ctx context.Context, r *run) {
	lw := r.accounts(r.at("world"))
	r.credit(ctx, lw, b.events, b.cells)
	var frames [][]byte
	size := 0
	for s, err := range lw.Scan(0) {
		r.must(err)
		frames = append(frames, frameOf(s))
		size += len(s.Bytes)
	}
	r.must(lw.Close())
	for _, way := range []struct {
		name string
		work func([][]byte)
	}{{"Pebble", r.toPebble}, {"files", r.toFiles}} {
		before := bytesWritten()
		m := measure(func() { way.work(frames) })
		r.add(way.name+": CPU", "us/record", "", m.CPU.Seconds()*1e6/float64(len(frames)))
		r.add(way.name+": written / record bytes", "ratio", "", float64(bytesWritten()-before)/float64(size))
		r.add(way.name+": wall", "us/record", "", m.Wall.Seconds()*1e6/float64(len(frames)))
	}
	r.add("a record", "bytes", "", float64(size)/float64(len(frames)))
}

// frameOf is a record as a segment holds it.
func frameOf(s journal.Scanned) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(s.Bytes)))
	b = append(append(b, s.Bytes...), s.Link[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func (r *run) toPebble(frames [][]byte) {
	o := &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, Logger: quietLogger{}, MemTableSize: 32 << 20, MemTableStopWritesThreshold: 4,
		L0CompactionThreshold: 12, DisableTableStats: true,
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = 32 << 10
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.MinLZCompression }
	}
	db, err := pebble.Open(r.at("pebble"), o)
	r.must(err)
	var pending *pebble.Batch
	n := uint64(0)
	for some := range slices.Chunk(frames, world.DefaultBatchRecords) {
		batch := db.NewBatch()
		for len(some) > 0 {
			size, count := 0, 0
			for count < len(some) && size < 4<<10 {
				size += len(some[count])
				count++
			}
			op := batch.SetDeferred(8, size)
			binary.BigEndian.PutUint64(op.Key, n)
			at := op.Value
			for _, f := range some[:count] {
				at = at[copy(at, f):]
			}
			r.must(op.Finish())
			n, some = n+uint64(count), some[count:]
		}
		r.must(db.ApplyNoSyncWait(batch, pebble.Sync))
		if pending != nil {
			r.must(errors.Join(pending.SyncWait(), pending.Close()))
		}
		pending = batch
	}
	r.must(errors.Join(pending.SyncWait(), pending.Close(), db.Flush(), db.Close()))
}

// segmentSize is how long a file of our own gets. Filling it with zeros ahead, by 128 KiB
// or 1 MiB, was no faster and wrote up to four times as much.
const segmentSize = 64 << 20

func (r *run) toFiles(frames [][]byte) {
	dir := r.at("files")
	r.must(os.Mkdir(dir, 0o700))
	var f *os.File
	synced := make(chan error, 1)
	pending := false
	wait := func() {
		if pending {
			r.must(<-synced)
		}
		pending = false
	}
	at, number := int64(segmentSize), 0
	var buf []byte
	for some := range slices.Chunk(frames, world.DefaultBatchRecords) {
		buf = buf[:0]
		for _, frame := range some {
			buf = append(buf, frame...)
		}
		n := int64(len(buf))
		if at+n > segmentSize {
			wait()
			if f != nil {
				r.must(f.Close())
			}
			var err error
			f, err = os.Create(filepath.Join(dir, strconv.Itoa(number)))
			r.must(err)
			at, number = 0, number+1
		}
		_, err := f.WriteAt(buf, at)
		r.must(err)
		at += n
		wait()
		pending = true
		go func() { synced <- unix.Fdatasync(int(f.Fd())) }()
	}
	wait()
	r.must(f.Close())
}

// bytesWritten is what this process has had the system write to disks; 0 where the system
// does not tell.
func bytesWritten() int64 {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			v, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return v
		}
	}
	return 0
}
