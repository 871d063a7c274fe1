package world

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// pasts is a journal as a list: before[i] is the record that the history of record i
// went on from, 0 for none.
type pasts struct {
	before    []journal.Seq
	rollbacks []turning
}

func drawPasts(t *rapid.T) *pasts {
	p := &pasts{before: []journal.Seq{0, 0}}
	for range rapid.IntRange(0, 30).Draw(t, "records") {
		before := p.last()
		if rapid.IntRange(0, 3).Draw(t, "rolls back") == 0 {
			before = journal.Seq(rapid.IntRange(1, int(before)).Draw(t, "to")) // also to a part that was left
			p.rollbacks = append(p.rollbacks, turning{Record: p.last() + 1, To: before})
		}
		p.before = append(p.before, before)
	}
	return p
}

func (p *pasts) last() journal.Seq { return journal.Seq(len(p.before) - 1) }

// history returns the records that led to one, the last one first.
func (p *pasts) history(of journal.Seq) (records []journal.Seq) {
	for ; of != 0; of = p.before[of] {
		records = append(records, of)
	}
	return records
}

func (p *pasts) kernel() *kernel {
	k := newKernel(nil, false)
	k.rollbacks = p.rollbacks
	k.last = p.last()
	return k
}

// checkPasts checks what holds for any history with rollbacks.
func checkPasts(t *testing.T, holds func(*rapid.T, *pasts, *kernel)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPasts(t)
		holds(t, p, p.kernel())
	})
}

func TestHistoryOfARecordIsWhatLedToIt(t *testing.T) {
	checkPasts(t, func(t *rapid.T, p *pasts, k *kernel) {
		for of := range p.last() + 1 {
			history := p.history(of)
			for record := journal.Seq(1); record <= p.last(); record++ {
				require.Equal(t, slices.Contains(history, record), k.inHistory(record, of), "#%d in the history of #%d: %v", record, of, p.before)
			}
		}
	})
}

func TestHistoriesPartWhereTheyHaveTheLastRecordInCommon(t *testing.T) {
	checkPasts(t, func(t *rapid.T, p *pasts, k *kernel) {
		now := p.history(p.last())
		for of := journal.Seq(1); of <= p.last(); of++ {
			both := slices.DeleteFunc(p.history(of), func(record journal.Seq) bool { return !slices.Contains(now, record) })
			require.Equal(t, slices.Max(both), k.common(k.last, of), "of #%d: %v", of, p.before)
		}
	})
}

func TestStretchesAreTheHistorySinceARecord(t *testing.T) {
	checkPasts(t, func(t *rapid.T, p *pasts, k *kernel) {
		now := p.history(p.last())
		for from := journal.Seq(1); from <= p.last(); from++ {
			stretches, err := k.stretches(from)
			at := slices.Index(now, from)
			if at < 0 {
				require.ErrorIs(t, err, ErrLeftPart, "from #%d: %v", from, p.before)
				continue
			}
			require.NoError(t, err)
			var since []journal.Seq
			for _, s := range stretches {
				for record := s.first; record <= s.last; record++ {
					since = append(since, record)
				}
			}
			slices.Reverse(since)
			require.Equal(t, now[:at], append([]journal.Seq{}, since...), "from #%d: %v", from, p.before)
		}
	})
}
