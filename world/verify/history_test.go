package verify

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// TestHistoryThatGoesOnIsWhatLedToIt holds it against a list: before[i] is the record
// that record i went on from, 0 for none.
func TestHistoryThatGoesOnIsWhatLedToIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, before := new(verifier), []journal.Seq{0, 0}
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			last := journal.Seq(len(before) - 1)
			to := last
			if rapid.IntRange(0, 3).Draw(t, "rolls back") == 0 {
				to = journal.Seq(rapid.IntRange(1, int(last)).Draw(t, "to")) // also to a part that was left
				v.turnings = append(v.turnings, turning{record: last + 1, to: to})
			}
			before = append(before, to)
		}
		v.now = journal.Seq(len(before) - 1)
		led := make(map[journal.Seq]bool)
		for record := v.now; record != 0; record = before[record] {
			led[record] = true
		}
		for record := journal.Seq(1); record <= v.now; record++ {
			require.Equal(t, led[record], v.inHistory(record), "#%d of %v", record, before)
		}
	})
}
