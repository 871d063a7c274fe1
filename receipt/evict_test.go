package receipt_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/receipt"
)

// coldOf reads what was saved.
func coldOf(stored map[receipt.Key][]byte) receipt.Cold {
	return receipt.Cold{
		Entry: func(key receipt.Key) (*receipt.Entry, bool) {
			if stored[key] == nil {
				return nil, true
			}
			e, err := receipt.DecodeEntry(key, stored[key])
			return e, err == nil
		},
		Each: func(skip func(receipt.Key) bool, visit func(*receipt.Entry)) {
			for key, data := range stored {
				if e, err := receipt.DecodeEntry(key, data); err == nil && !skip(key) {
					visit(e)
				}
			}
		},
	}
}

// liveOf returns which intents of a ledger that is saved may not leave memory, by all of them.
func liveOf(l *receipt.Ledger) []receipt.Key {
	live := []receipt.Key{}
	for _, e := range l.Select(nil) {
		if !e.Ended() || e.Held != nil || e.Reserved != (receipt.Cost{}) || len(e.Asked) != 1 || e.Abandoned || e.Repeats != nil || len(l.Repeated(e)) > 0 {
			live = append(live, e.Intent.Key)
		}
	}
	slices.SortFunc(live, func(a, b receipt.Key) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return live
}

// Evict has what may leave memory leave it. What is away is what has ended, and as it was.
func (m *ledgerModel) Evict(t *rapid.T) {
	m.Checkpoint(t)
	before := encodeAll(t, m.ledger)
	sum := m.ledger.Bytes()
	m.ledger.Evict(0)
	m.ledger.Evict(0) // what was asked for is spared once
	ended := 0
	for _, r := range m.rows {
		if e := m.ledger.Entry(r.permit.Key); e.Ended() && len(e.Asked) == 1 {
			ended++
		}
	}
	require.Zero(t, m.ledger.Away(), "all were asked for")
	require.Equal(t, before, encodeAll(t, m.ledger))
	m.ledger.Evict(0)
	m.ledger.Evict(0)
	require.Equal(t, ended, m.ledger.Away())
	require.Equal(t, sum, m.ledger.Bytes())
	require.Equal(t, before, encodeAll(t, m.ledger))
}

// cooled is a ledger that has n intents that were done, as the last image has them.
func cooled(n uint64) (*receipt.Ledger, map[receipt.Key][]byte) {
	l, stored := new(receipt.Ledger), make(map[receipt.Key][]byte)
	l.KeepCold(coldOf(stored))
	for i := range n {
		e := l.Emit(modelIntent(i), i+1)
		l.End(e, receipt.OutcomeSideEffectCommitted, i+1)
	}
	save(l, stored)
	return l, stored
}

func save(l *receipt.Ledger, stored map[receipt.Key][]byte) {
	for e := range l.TakeDirty() {
		stored[e.Intent.Key] = e.Append(nil)
	}
}

// TestWhatHasEndedLeavesMemoryBeyondABudget: the oldest first, and what was asked for last.
func TestWhatHasEndedLeavesMemoryBeyondABudget(t *testing.T) {
	const n = 1000
	l, _ := cooled(n)
	l.Evict(1 << 20)
	require.Zero(t, l.Away(), "there is room")
	l.Entry(modelIntent(0).Key)
	l.Evict(1 << 16)
	require.Greater(t, l.Away(), n*8/10)
	before := l.Away()
	require.NotNil(t, l.AtHand(modelIntent(0).Key), "it was asked for")
	require.NotNil(t, l.AtHand(modelIntent(n-1).Key), "it is the last that has ended")
	require.Nil(t, l.AtHand(modelIntent(1).Key))
	require.Equal(t, receipt.ReturnRecordedResult, l.Decide(modelIntent(1).Key))
	require.Equal(t, before-1, l.Away())
	require.Equal(t, n, l.Len())
	require.Equal(t, n, l.Count(receipt.StateCommitted))
	require.Nil(t, l.Entry(modelIntent(n).Key), "nobody asked for it")
	require.Equal(t, before-1, l.Away())
}

// TestWhatIsAwayIsReadAsItWasSaved, and goes again when what changed is saved, too.
func TestWhatIsAwayIsReadAsItWasSaved(t *testing.T) {
	l, stored := cooled(2)
	l.Evict(0)
	require.Equal(t, 2, l.Away())
	e := l.Entry(modelIntent(1).Key)
	e.Uncertain = true
	l.Change(e)
	l.Evict(0)
	require.Same(t, e, l.AtHand(e.Intent.Key), "it is not saved yet")
	for again, first := range l.TakeDirty() {
		require.Same(t, e, again)
		require.False(t, first, "it was saved before")
		stored[e.Intent.Key] = e.Append(nil)
	}
	l.Evict(0)
	l.Evict(0)
	require.Equal(t, 2, l.Away())
	require.True(t, l.Entry(e.Intent.Key).Uncertain)
}

// TestWhatSomethingLooksForStays where it can be found: in memory.
func TestWhatSomethingLooksForStays(t *testing.T) {
	for name, bind := range map[string]func(l *receipt.Ledger, e, other *receipt.Entry){
		"left behind":          func(l *receipt.Ledger, e, _ *receipt.Entry) { l.Abandon(e) },
		"repeats another":      func(l *receipt.Ledger, e, other *receipt.Entry) { l.Repeat(e, other) },
		"is repeated":          func(l *receipt.Ledger, e, other *receipt.Entry) { l.Repeat(other, e) },
		"is confirmed by hand": func(l *receipt.Ledger, e, _ *receipt.Entry) { l.Hold(e, receipt.Data("\x01")) },
		"is being made up for": func(l *receipt.Ledger, e, _ *receipt.Entry) { e.Held = receipt.Data("\x01"); l.Change(e) },
		"something is reserved": func(l *receipt.Ledger, e, _ *receipt.Entry) {
			e.Reserved.Calls = 1
			l.Change(e)
		},
		"was asked for again": func(l *receipt.Ledger, e, _ *receipt.Entry) { l.Claim(e, 7) },
	} {
		l, stored := cooled(2)
		e := l.Entry(modelIntent(0).Key)
		bind(l, e, l.Entry(modelIntent(1).Key))
		save(l, stored)
		l.Evict(0)
		l.Evict(0)
		require.Same(t, e, l.AtHand(e.Intent.Key), name)
		require.Contains(t, l.Standing().Live, e.Intent.Key, name)
		require.Equal(t, liveOf(l), l.Standing().Live, name)
		var again receipt.Ledger
		require.NoError(t, again.Restore(len(stored), maps.All(stored)))
		again.KeepCold(coldOf(stored))
		require.Equal(t, l.Standing().Live, again.Standing().Live, name)
	}
}

// TestStandingHasTheBytesOfAll, whether they are away, have come back, or were never anywhere else.
func TestStandingHasTheBytesOfAll(t *testing.T) {
	l, stored := cooled(3)
	for i := range uint64(2) {
		e := l.Entry(modelIntent(i).Key)
		e.Inputs = []receipt.Input{{Question: receipt.Data("\x61q"), Answer: receipt.Data("\x62no")}}
		l.Change(e)
	}
	save(l, stored)
	const bytes = 2 * 5
	require.EqualValues(t, bytes, l.Standing().Bytes)
	l.Evict(0)
	l.Evict(0)
	require.Equal(t, 3, l.Away())
	require.EqualValues(t, bytes, l.Standing().Bytes)
	require.NotNil(t, l.Entry(modelIntent(1).Key))
	require.EqualValues(t, bytes, l.Standing().Bytes)
	standing := l.Standing()
	var again receipt.Ledger
	require.NoError(t, again.Restore(0, maps.All(map[receipt.Key][]byte{})))
	again.Resume(standing, coldOf(stored))
	require.Equal(t, standing, again.Standing())
}

// TestWhatCannotBeReadIsNothingThatWasAskedFor: whoever reads knows, and takes nothing.
func TestWhatCannotBeReadIsNothingThatWasAskedFor(t *testing.T) {
	l, stored := cooled(1)
	l.Evict(0)
	key := modelIntent(0).Key
	stored[key] = []byte("damaged")
	require.True(t, l.Entry(key).Ended())
	require.Equal(t, 1, l.Away())
	require.Nil(t, l.AtHand(key))
}
