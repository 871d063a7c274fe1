package store

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// What a scan yields may be kept, though the memory that it came in is used again, and
// whoever has enough may leave in the midst.
func TestScanReadsAheadOnOneProcessorAndOnTwo(t *testing.T) {
	s := create(t, memFS(t))
	w, all := new(writer), []journal.Stored(nil)
	for n := range 12 {
		payloads := make([]string, chunkRecords/2+n)
		for i := range payloads {
			payloads[i] = strconv.Itoa(n*chunkRecords + i)
		}
		b := w.batch(payloads...)
		appendAll(t, s, b)
		all = append(all, b.Records...)
	}
	for _, processors := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		require.Equal(t, scannedAll(all), scanAll(t, s, 0))
		for _, after := range []int{0, 1, chunkRecords, len(all) - 1, len(all)} {
			var from journal.Head
			if after > 0 {
				from = journal.Head{ID: all[after-1].ID, Root: all[after-1].Root}
			}
			var got []journal.Scanned
			for r, err := range s.ScanChain(from) {
				require.NoError(t, err)
				if len(got)%chunkRecords == 1 {
					runtime.Gosched() // on one processor the reader gets as far ahead as it can
				}
				got = append(got, r)
			}
			want := scannedAll(all[after:])
			for i := range want {
				want[i].Root = all[after+i].Root
			}
			require.Equal(t, want, got)
		}
		for enough := range 5 {
			seen := 0
			for _, err := range s.Scan(0) {
				require.NoError(t, err)
				if seen++; seen > enough*chunkRecords/2 {
					break
				}
			}
		}
	}
	require.NoError(t, s.Close())
}
