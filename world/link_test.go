package world_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// relinked is a journal in which one record is stored with another chain root than it
// has.
type relinked struct {
	*worldtest.Journal

	at   journal.Seq
	flip int // of the link's bytes
}

func (j relinked) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for s, err := range j.Journal.Scan(after) {
			if s.ID == j.at {
				s.Link[j.flip] ^= 1
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// Records may be what the inputs give and still not be those that the chain was made
// of: the link tells. What comes before is replayed.
func TestReplayComparesTheLinkThatIsStoredWithARecord(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Do: []act{{Emit: "ping", Key: "b"}, {Effect: "tool.a"}, {Timer: 1}}})
	w.Run()
	w.RequireReplay()
	for at := journal.Seq(1); at <= w.Journal.Head().ID; at++ {
		for _, i := range []int{0, journal.LinkBytes - 1} {
			other := relinked{w.Journal, at, i}
			var said []string
			for _, h := range []journal.History{other, worldtest.Chained{History: other}} {
				var replayed journal.Seq
				_, err := world.Replay(t.Context(), h, world.ReplayConfig{
					Registry: botRegistry(), Visit: func(s journal.Scanned) error { replayed = s.ID; return nil },
				})
				require.Error(t, err, "record #%d, byte %d", at, i)
				require.Equal(t, at-1, replayed)
				said = append(said, err.Error())
			}
			require.Equal(t, said[0], said[1], "whoever computes the chain")
		}
	}
}

// sparse is a history that knows only the roots of some records.
type sparse struct {
	worldtest.Chained

	of func(journal.Seq) bool
}

func (h sparse) ScanChain(after journal.Head) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for s, err := range h.Chained.ScanChain(after) {
			if !h.of(s.ID) {
				s.Root = journal.Hash{}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// What a replay takes from there is what it would have computed, within a unit too, and
// nonces are of the root before them.
func TestReplayTakesRootsFromWhoReadsAhead(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Do: []act{{Emit: "ping", Key: "b"}, {Effect: "tool.a"}, {Effect: "tool.b"}, {Timer: 1}}})
	w.Run()
	for name, of := range map[string]func(journal.Seq) bool{
		"all": func(journal.Seq) bool { return true }, "none": func(journal.Seq) bool { return false },
		"even": func(id journal.Seq) bool { return id%2 == 0 }, "odd": func(id journal.Seq) bool { return id%2 == 1 },
	} {
		got, err := world.Replay(t.Context(), sparse{worldtest.Chained{History: w.Journal}, of}, world.ReplayConfig{Registry: botRegistry()})
		require.NoError(t, err, name)
		require.Equal(t, w.Status().Head, got.Head, name)
		require.Equal(t, w.StateRoot(), got.StateRoot, name)
	}
}
