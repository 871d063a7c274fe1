package verify_test

import (
	"bytes"
	"errors"
	"iter"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// watched is a history that counts how often all of it is read, and can end in the midst.
type watched struct {
	journal.History
	reads int
	end   journal.Seq // 0: it does not
}

var errUnreadable = errors.New("the disk is broken")

func (h *watched) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	if after == 0 {
		h.reads++
	}
	return func(yield func(journal.Scanned, error) bool) {
		for s, err := range h.History.Scan(after) {
			if h.end != 0 && s.ID == h.end {
				yield(journal.Scanned{}, errUnreadable)
				return
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// lengthy is a world of more records than are handed over to the replay at once.
func lengthy(t *testing.T) *play {
	t.Helper()
	p := live(t)
	for range 600 {
		p.order()
	}
	p.Drive()
	require.Greater(t, len(p.Journal.Records()), 1200)
	return p
}

func TestJournalIsReadOnceForEverything(t *testing.T) {
	p := lengthy(t)
	h := &watched{History: p.Journal}
	r := once(t, h, verify.Config{Keys: worldtest.Keyring(t, "test")})
	require.Empty(t, r.Faults)
	require.True(t, r.Replay.OK)
	require.Equal(t, p.StateRoot(), r.StateRoot)
	require.Equal(t, 1, h.reads)
}

func TestReplayThatEndsEarlyHoldsNothingUp(t *testing.T) {
	p := lengthy(t)
	x := tamper(p.Journal)
	x.records[9].Bytes[len(x.records[9].Bytes)-1] ^= 1
	r := withKeys(t, x)
	require.Contains(t, places(r), place(10))
	require.False(t, r.Replay.OK)
	require.EqualValues(t, len(x.records), r.Records, "all of it was read")
}

// Reading, hashing, scan and replay are goroutines: a report must not tell how they met.
func TestReportIsTheSameOnOneProcessorAndOnTwo(t *testing.T) {
	p := lengthy(t)
	last := len(p.Journal.Records()) - 1
	for _, at := range []int{0, 255, 256, 700, last} {
		x := tamper(p.Journal)
		changed := bytes.Clone(x.records[at].Bytes)
		changed[len(changed)-1] ^= 1
		x.records[at].Bytes = changed
		x.records[last/2].Root[0] ^= 1
		var reports []*verify.Report
		for _, processors := range []int{1, 2} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			reports = append(reports, withKeys(t, x))
		}
		require.Contains(t, places(reports[0]), place(journal.Seq(min(at, last/2)+1)))
		require.Equal(t, reports[0], reports[1])
	}
}

func TestReadingThatEndsEndsTheReplay(t *testing.T) {
	p := lengthy(t)
	for _, end := range []journal.Seq{1, 2, 257, 1000} {
		r := run(t, &watched{History: p.Journal, end: end}, verify.Config{})
		require.Equal(t, []string{place(end)}, places(r), "one fault, once")
		require.Contains(t, r.Replay.Error, errUnreadable.Error())
	}
}

func TestImagesMustBeInTheJournal(t *testing.T) {
	w := story(t)
	var heads []journal.Head
	for _, s := range w.Journal.Records() {
		heads = append(heads, journal.Head{ID: s.ID, Root: s.Root})
	}
	last := heads[len(heads)-1].ID
	later := append(heads[:len(heads):len(heads)], journal.Head{ID: last + 1, Root: journal.Hash{1}})
	require.Empty(t, run(t, w.Journal, verify.Config{Images: later}).Faults, "what is still to come is the anchor's to say")
	for _, some := range [][]journal.Head{heads, heads[4:5]} {
		some[0].Root[31] ^= 1
		require.Equal(t, []string{place(some[0].ID)}, places(run(t, w.Journal, verify.Config{Images: some})))
		some[0].Root[31] ^= 1
	}
}

func TestDamagedRecordsAreAskedForWhereSomethingIsWrong(t *testing.T) {
	w := story(t)
	asked := 0
	records := func(yield func(error) bool) {
		asked++
		yield(errUnreadable)
	}
	require.Empty(t, run(t, w.Journal, verify.Config{Records: records}).Faults)
	require.Zero(t, asked)
	other := w.Status().Head
	other.Root[0] ^= 1
	r := once(t, w.Journal, verify.Config{Records: records, Anchor: other})
	require.Equal(t, []string{"store", "anchor"}, places(r))
	require.Equal(t, 1, asked)
}
