package columns

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// rowsOf is a page's rows.
func rowsOf(t require.TestingT, data []byte) []Row {
	p, err := Decode(data)
	require.NoError(t, err)
	return slices.Collect(p.Rows())
}

// source is a journal of records that nobody stored. It breaks at a record.
type source struct {
	records []journal.Record
	broken  journal.Seq
}

var errBroken = errors.New("broken")

func (s *source) Blob(journal.Hash) ([]byte, error) { return nil, journal.ErrRedacted }

func (s *source) Intent(journal.Hash) (cell, kind string) { return "", "" }

func (s *source) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for _, r := range s.records[after:] {
			if r.ID == s.broken {
				yield(journal.Scanned{}, errBroken)
				return
			}
			if !yield(journal.Scanned{ID: r.ID, Record: r}, nil) {
				return
			}
		}
	}
}

// record makes a record and the row that it has.
func record(rt *rapid.T, id journal.Seq, time manifest.Tick, wide int) (journal.Record, Row) {
	cause := journal.Seq(rapid.Uint64Range(0, uint64(id-1)).Draw(rt, "cause"))
	r := journal.Record{ID: id, Time: time, CausedBy: cause}
	row := Row{Record: id, Time: time, Cause: cause}
	cell := func() string { return fmt.Sprintf("bot/%d\n<b>", rapid.IntRange(0, 300).Draw(rt, "cell")) }
	switch rapid.IntRange(0, 3).Draw(rt, "kind") {
	case 0:
		row.What, r.Kind = "clock.advanced", journal.KindAdvanced
		r.Payload = journal.Append(nil, &journal.Advanced{Version: journal.V(1), To: time})
	case 1:
		row.Cells = []string{cell()}
		row.What, r.Kind = "cell.stepped pure", journal.KindStepped
		r.Payload = journal.Append(nil, &journal.Stepped{Version: journal.V(1), Cell: row.Cells[0], Outcome: "pure"})
	case 2:
		for range rapid.IntRange(0, wide).Draw(rt, "cells") {
			row.Cells = append(row.Cells, cell())
		}
		row.Name = rapid.SampledFrom([]string{"go", "stop", "ünï\u202e"}).Draw(rt, "name")
		row.What, r.Kind = "event.emitted", journal.KindEmitted
		r.Payload = journal.Append(nil, &journal.Emitted{Version: journal.V(1), Name: row.Name, To: row.Cells, Data: journal.Data{0xf6}})
	default:
		row.What, r.Kind, r.Blob = "event.submitted", journal.KindSubmitted, journal.Hash{1} // redacted
	}
	return r, row
}

// TestPagesHaveWhatTheJournalHas, wherever they begin, read by themselves, however the
// index came to its end.
func TestPagesHaveWhatTheJournalHas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s source
		var want []Row
		time := manifest.Tick(0)
		for id := range rapid.IntRange(0, 200).Draw(rt, "records") {
			time += manifest.Tick(rapid.Uint64Range(0, 300).Draw(rt, "ticks"))
			r, row := record(rt, journal.Seq(id+1), time, 4)
			s.records, want = append(s.records, r), append(want, row)
		}
		x := New(&s)
		for end := 0; end < len(want); {
			end = rapid.IntRange(end, len(want)).Draw(rt, "to")
			require.NoError(rt, x.Extend(context.Background(), journal.Seq(end)))
			require.Equal(rt, journal.Seq(end), x.End())
			if rapid.Bool().Draw(rt, "page") && len(x.last.rows) > 0 {
				require.NoError(rt, x.close())
			}
		}
		for range 5 {
			after := rapid.IntRange(0, len(want)).Draw(rt, "after")
			page, last, err := x.Page(journal.Seq(after), false)
			require.NoError(rt, err)
			require.Equal(rt, append([]Row(nil), want[after:last]...), rowsOf(rt, page))
			zipped, _, err := x.Page(journal.Seq(after), true)
			require.NoError(rt, err)
			again, err := unzip(zipped)
			require.NoError(rt, err)
			require.Equal(rt, page, again)
		}
		page, last, err := x.Page(journal.Seq(len(want)), false)
		require.NoError(rt, err)
		require.EqualValues(rt, len(want), last)
		require.Empty(rt, rowsOf(rt, page))
	})
}

// stepped is a journal of equal steps of some cells.
func stepped(n int, cell func(i int) string) *source {
	s := new(source)
	for i := range n {
		s.records = append(s.records, journal.Record{
			ID: journal.Seq(i + 1), Time: manifest.Tick(i / 1000), Kind: journal.KindStepped, CausedBy: journal.Seq(i),
			Payload: journal.Append(nil, &journal.Stepped{Version: journal.V(1), Cell: cell(i), Outcome: "success"}),
		})
	}
	return s
}

// pagesOf reads all pages, and returns how many records each has, and bytes.
func pagesOf(t *testing.T, x *Index) (records, bytes []int) {
	t.Helper()
	for after := journal.Seq(0); ; {
		page, last, err := x.Page(after, false)
		require.NoError(t, err)
		if last == after {
			return records, bytes
		}
		records, bytes, after = append(records, int(last-after)), append(bytes, len(page)), last
	}
}

func TestPageIsBoundedByItsRecordsAndItsBytes(t *testing.T) {
	short := New(stepped(MaxRecords+10, func(i int) string { return fmt.Sprint("bot/", i%100) }))
	require.NoError(t, short.Extend(t.Context(), MaxRecords+10))
	records, bytes := pagesOf(t, short)
	require.Equal(t, []int{MaxRecords, 10}, records)
	require.Less(t, bytes[0], 8*MaxRecords, "a record takes few bytes")

	name := strings.Repeat("x", 1000)
	long := New(stepped(4000, func(i int) string { return fmt.Sprint("bot/", i%2500, name) }))
	require.NoError(t, long.Extend(t.Context(), 4000))
	records, bytes = pagesOf(t, long)
	require.Greater(t, len(records), 1)
	for _, n := range bytes {
		require.Less(t, n, maxBytes+2000, "cells of pages before count, too")
	}
}

func TestDensityCountsEveryRecordOnce(t *testing.T) {
	const n = 5*bucketRecords + 7
	x := New(stepped(n, func(int) string { return "bot/a" }))
	require.Empty(t, x.Density(1))
	require.NoError(t, x.Extend(t.Context(), n))
	for _, buckets := range []int{1, 2, 3, 5, 6, 100} {
		got, next, sum := x.Density(buckets), journal.Seq(1), uint64(0)
		require.LessOrEqual(t, len(got), buckets)
		for _, b := range got {
			require.Equal(t, next, b.First)
			require.Equal(t, []manifest.Tick{manifest.Tick(b.First-1) / 1000, manifest.Tick(b.Last-1) / 1000}, []manifest.Tick{b.From, b.To})
			require.EqualValues(t, b.Last-b.First+1, b.Counts["cell.stepped success"])
			next, sum = b.Last+1, sum+b.Counts["cell.stepped success"]
		}
		require.EqualValues(t, n, sum)
	}
}

// TestWhatWasReadStays where the journal cannot be read on.
func TestWhatWasReadStays(t *testing.T) {
	s := stepped(20, func(int) string { return "bot/a" })
	s.broken = 12
	x := New(s)
	require.ErrorIs(t, x.Extend(t.Context(), 20), errBroken)
	require.EqualValues(t, 11, x.End())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	x.reading <- struct{}{}
	require.ErrorIs(t, x.Extend(ended, 20), context.Canceled, "somebody else reads")
	<-x.reading
	s.broken = 0
	require.NoError(t, x.Extend(t.Context(), 20))
	page, _, err := x.Page(0, false)
	require.NoError(t, err)
	require.Len(t, rowsOf(t, page), 20)
}

// FuzzDecode: no bytes do harm, and what is a page says the same once it is encoded again.
func FuzzDecode(f *testing.F) {
	x := New(stepped(5, func(i int) string { return fmt.Sprint("bot/", i%2) }))
	x.of.(*source).records[2].Kind = journal.KindEmitted
	x.of.(*source).records[2].Payload = journal.Append(nil, &journal.Emitted{Version: journal.V(1), Name: "go", To: []string{"bot/0", "bot/1"}, Data: journal.Data{0xf6}})
	require.NoError(f, x.Extend(f.Context(), 5))
	for after := range journal.Seq(6) {
		page, _, err := x.Page(after, false)
		require.NoError(f, err)
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data)
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		again, err := p.Encode()
		require.NoError(t, err)
		require.Equal(t, slices.Collect(p.Rows()), rowsOf(t, again))
	})
}
