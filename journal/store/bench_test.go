package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// BenchmarkAppend appends batches of 1000 records of 150 bytes to the file
// system of $TMPDIR, pipelined. One op is a record.
func BenchmarkAppend(b *testing.B) {
	const perBatch, ahead = 1000, 8
	s, err := Create(filepath.Join(b.TempDir(), ".world"), Options{AnchorKey: []byte("key")})
	require.NoError(b, err)
	w := &writer{}
	payload := strings.Repeat("p", 100)
	batches := make([]journal.Batch, 0, b.N/perBatch+1)
	for n := 0; n < b.N; n += perBatch {
		batch := journal.Batch{After: w.head, Head: w.head}
		for i := range min(perBatch, b.N-n) {
			w.add(&batch, fmt.Sprintf("%s%025d", payload[:75], n+i))
		}
		batches = append(batches, batch)
	}
	b.SetBytes(int64(len(batches[0].Records[0].Bytes)))
	b.ReportAllocs()
	var waiting []journal.Pending
	for b.ResetTimer(); len(batches) > 0; batches = batches[1:] {
		p, err := s.Append(batches[0])
		require.NoError(b, err)
		if waiting = append(waiting, p); len(waiting) == ahead {
			require.NoError(b, waiting[0].Wait())
			waiting = waiting[1:]
		}
	}
	for _, p := range waiting {
		require.NoError(b, p.Wait())
	}
	b.StopTimer()
	require.NoError(b, s.Close())
}

// createOnDisk creates a store in the file system of $TMPDIR.
func createOnDisk(b *testing.B) (*Store, *writer) {
	b.Helper()
	s, err := Create(filepath.Join(b.TempDir(), ".world"), Options{})
	require.NoError(b, err)
	return s, &writer{}
}

// BenchmarkScan reads and chains records. One op is a record.
func BenchmarkScan(b *testing.B) {
	s, w := createOnDisk(b)
	for w.head.ID < journal.Seq(b.N) {
		batch := journal.Batch{After: w.head, Head: w.head}
		for range 1000 {
			w.add(&batch, strings.Repeat("p", 100))
		}
		appendAll(b, s, batch)
	}
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for _, err := range s.Scan(0) {
		require.NoError(b, err)
		if n++; n == b.N {
			break
		}
	}
	b.StopTimer()
	require.NoError(b, s.Close())
}

// BenchmarkImage loads an image. One op is a cell of 200 bytes.
func BenchmarkImage(b *testing.B) {
	s, w := createOnDisk(b)
	appendAll(b, s, w.batch("a"))
	img := &journal.Image{Head: w.head}
	for i := range b.N {
		img.Cells = append(img.Cells, journal.CellVersion{Cell: fmt.Sprintf("agent/%09d", i), Bytes: make([]byte, 200)})
	}
	require.NoError(b, s.Checkpoint(img))
	b.ReportAllocs()
	b.ResetTimer()
	img, err := s.Image(journal.Last)
	require.NoError(b, err)
	require.Len(b, img.Cells, b.N)
	b.StopTimer()
	require.NoError(b, s.Close())
}
