package pglog

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// benched is a world that is owned, with raw tables beside it.
func benched(b *testing.B, worlds int) []*World {
	b.Helper()
	url := newURL(b)
	run(b, url, "CREATE TABLE raw (wid bigint, first bigint, last bigint, body bytea, PRIMARY KEY (wid, first)); ALTER TABLE raw ALTER COLUMN body SET STORAGE EXTERNAL")
	s := open(b, url, Options{Connections: 16})
	var out []*World
	for i := range worlds {
		id := fmt.Sprintf("w%d", i)
		require.NoError(b, s.Create(b.Context(), id, testKey))
		w := s.World(id, Claim{Key: testKey})
		_, err := w.Own(b.Context())
		require.NoError(b, err)
		out = append(out, w)
	}
	return out
}

// event makes the records of an event as a world writes them, about 110 bytes each.
func (c *chain) event() journal.Batch {
	b := journal.Batch{After: c.at}
	for i, kind := range []journal.Kind{journal.KindSubmitted, journal.KindStepped, journal.KindEmitted} {
		id := uint64(c.at.ID) + 1
		payload := fmt.Appendf(nil, `{"cell":"person/p%d","seq":%d,"version":1,"gas":%d,"state":"%x"}`, id%100, id, 40+i, canon.Sum([]byte{byte(id), byte(id >> 8)}).String()[:16])
		data := canon.AppendEnvelope(nil, canon.Envelope{ID: id, Time: id * 7, Kind: string(kind), CausedBy: id - uint64(min(i, 1)), Payload: payload})
		c.at = journal.Head{ID: journal.Seq(id), Root: c.chain.Add(id, string(kind), data)}
		b.Records = append(b.Records, journal.Stored{ID: c.at.ID, Bytes: data, Root: c.at.Root})
	}
	b.Head = c.at
	return b
}

const sqlRaw = "INSERT INTO raw (wid, first, last, body) VALUES ($1, $2, $3, $4)"

// BenchmarkOneEvent waits for each event of a world.
func BenchmarkOneEvent(b *testing.B) {
	b.Run("log", func(b *testing.B) {
		w := benched(b, 1)[0]
		var c chain
		for b.Loop() {
			require.NoError(b, appended(w, c.event()))
		}
	})
	b.Run("raw", func(b *testing.B) {
		w := benched(b, 1)[0]
		var c chain
		for b.Loop() {
			e := c.event()
			f := w.store.pack.frames(e.After, slices.Values(e.Records))[0]
			require.NoError(b, w.store.rows(b.Context(), sqlRaw, []any{w.wid, f.first, f.last, f.body}, nil))
		}
	})
}

// BenchmarkManyEvents has 512 events of a world under way. The raw statements carry as much as
// those of the log.
func BenchmarkManyEvents(b *testing.B) {
	const under = 512
	b.Run("log", func(b *testing.B) {
		w := benched(b, 1)[0]
		var c chain
		var waits []journal.Pending
		for b.Loop() {
			p, err := w.Append(c.event())
			require.NoError(b, err)
			if waits = append(waits, p); len(waits) == under {
				require.NoError(b, waits[0].Wait())
				waits = waits[1:]
			}
		}
		for _, p := range waits {
			require.NoError(b, p.Wait())
		}
		report(b, w)
	})
	b.Run("raw", func(b *testing.B) {
		w := benched(b, 1)[0]
		var c chain
		events := make(chan journal.Batch, under)
		go func() {
			defer close(events)
			for b.Loop() {
				events <- c.event()
			}
		}()
		for more := true; more; {
			var records []journal.Stored
			var after journal.Head
			e, ok := <-events
			for after = e.After; ok && len(records) < maxFrameRecords; {
				records = append(records, e.Records...)
				if len(events) == 0 {
					break
				}
				e, ok = <-events
			}
			more = ok
			for _, f := range w.store.pack.frames(after, slices.Values(records)) {
				require.NoError(b, w.store.rows(b.Context(), sqlRaw, []any{w.wid, f.first, f.last, f.body}, nil))
			}
		}
	})
}

// report says how many bytes a record takes in the table of frames.
func report(b *testing.B, w *World) {
	var bytes, records float64
	require.NoError(b, w.store.row(b.Context(), "SELECT sum(pg_column_size(f.*)), sum(last - first + 1) FROM worldkernel.frame f", nil, &bytes, &records))
	b.ReportMetric(bytes/records, "B/record")
}

// BenchmarkQuietWorlds has 64 worlds wait for each of their events; alone: each in a statement of
// its own.
func BenchmarkQuietWorlds(b *testing.B) {
	for _, alone := range []bool{false, true} {
		b.Run(map[bool]string{false: "grouped", true: "alone"}[alone], func(b *testing.B) {
			worlds := benched(b, 64)
			n := b.N/len(worlds) + 1
			b.ResetTimer()
			var all sync.WaitGroup
			for _, w := range worlds {
				all.Go(func() {
					var c chain
					for range n {
						e := c.event()
						if !alone {
							require.NoError(b, appended(w, e))
							continue
						}
						p := &pending{batch: e, done: make(chan struct{})}
						f := &flight{world: w, wid: w.wid, token: w.token, epoch: w.epoch, after: e.After, head: e.Head, batches: []*pending{p}}
						landed, err := w.store.transmit(b.Context(), []*flight{f})
						require.NoError(b, err)
						require.Len(b, landed, 1)
					}
				})
			}
			all.Wait()
		})
	}
}

// BenchmarkRecords reads a journal from its beginning.
func BenchmarkRecords(b *testing.B) {
	w := benched(b, 1)[0]
	var c chain
	var last journal.Pending
	for range 40000 {
		var err error
		last, err = w.Append(c.event())
		require.NoError(b, err)
	}
	require.NoError(b, last.Wait())
	for b.Loop() {
		n := 0
		for _, err := range w.Records(b.Context(), 0) {
			require.NoError(b, err)
			n++
		}
		b.ReportMetric(float64(n), "records")
	}
}

// BenchmarkFrames packs 2,048 records.
func BenchmarkFrames(b *testing.B) {
	p, err := newPacker()
	require.NoError(b, err)
	var c chain
	var all []journal.Stored
	for len(all) < maxFrameRecords {
		all = append(all, c.event().Records...)
	}
	all = all[:maxFrameRecords]
	var f []frame
	b.ReportAllocs()
	for b.Loop() {
		f = p.frames(journal.Head{}, slices.Values(all))
	}
	b.ReportMetric(float64(len(f[0].body)), "B/frame")
}
