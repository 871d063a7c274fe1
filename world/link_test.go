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
			var replayed journal.Seq
			_, err := world.Replay(t.Context(), relinked{w.Journal, at, i}, world.ReplayConfig{
				Registry: botRegistry(), Visit: func(s journal.Scanned) error { replayed = s.ID; return nil },
			})
			require.Error(t, err, "record #%d, byte %d", at, i)
			require.Equal(t, at-1, replayed)
		}
	}
}
