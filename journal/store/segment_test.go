package store

import (
	"fmt"
	"testing"

	"github.com/worldkernel/worldkernel/internal/fault"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// manyInSegments is a world whose records share segments.
func manyInSegments(t *testing.T) (Options, *vfs.MemFS, *writer) {
	t.Helper()
	mem := memFS(t)
	opts := testOptions(mem)
	opts.segmentBytes = 0
	s, err := Create(testDir, opts)
	require.NoError(t, err)
	w := &writer{}
	for i := range 4 {
		var payloads []string
		for j := range 100 {
			payloads = append(payloads, fmt.Sprintf("agent/%d agent/%d", i, j))
		}
		appendAll(t, s, w.batch(payloads...))
	}
	require.NoError(t, s.Close())
	return opts, mem, w
}

func TestRecordsOfSegmentsAreReadBack(t *testing.T) {
	opts, _, w := manyInSegments(t)
	s, err := Open(testDir, opts)
	require.NoError(t, err)
	require.Equal(t, w.head, s.Head())
	all := scanAll(t, s, 0)
	require.Len(t, all, 400)
	for _, r := range all {
		got, err := s.Record(r.ID)
		require.NoError(t, err)
		require.Equal(t, r.Bytes, got)
		require.Equal(t, append([]journal.Scanned(nil), all[r.ID:]...), scanAll(t, s, r.ID))
	}
	_, err = s.Record(401)
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
}

func TestAnyFlippedByteOfASegmentNamesItsRecord(t *testing.T) {
	opts, mem, _ := manyInSegments(t)
	s, err := Open(testDir, opts)
	require.NoError(t, err)
	whole := scanAll(t, s, 0)
	require.NoError(t, s.Close())
	record, end := journal.Seq(101), 0 // of the record whose frame the byte is in
	size := 0
	change(t, clone(mem), recordKey(101), func(v []byte) []byte { size = len(v); return v })
	tried, stride := 0, 7*fault.Stride(17)
	first := fault.From(t, stride)
	for at := 0; at < size; at++ {
		if next := end + frameBytes + len(whole[record-1].Bytes); at == next {
			record, end = record+1, next
		}
		if int64(at)%stride != first && at-end >= frameLen { // all bytes of lengths, some of the rest
			continue
		}
		tried++
		damaged := opts
		damaged.FS = clone(mem)
		change(t, damaged.FS, recordKey(101), func(v []byte) []byte { v[at] ^= 0x10; return v })
		s, err := Open(testDir, damaged)
		require.NoError(t, err)
		found := (*DamageError)(nil)
		_, err = s.Record(record)
		require.ErrorAs(t, err, &found, "byte %d", at)
		require.Equal(t, record, found.ID)
		require.NotEmpty(t, damageOf(s))
		if record > 101 {
			_, err = s.Record(record - 1)
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
	}
}
