package worldtest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// cancelled holds the journal to what cancelling promises: of a cell's timers no two
// have a tag at a time; one that was cancelled or has fired does not fire; no attempt of
// an intent begins after its cell has cancelled it; and each receipt of what was
// cancelled, or asked for in its place, is told apart, and no other. A rollback brings back what was before.
func (s *liveSimulation) cancelled() {
	type timer struct{ cell, tag string }
	waits := make(map[journal.Seq]timer)
	gone := make(map[journal.Seq]bool)
	cancelled := make(map[receipt.Key]bool)
	apart := toldApart{cells: make(map[string]int), keys: make(map[receipt.Key]bool), decided: make(map[journal.Seq]receipt.Key)}
	turned := false
	for rec, body := range s.bodies() {
		switch b := body.(type) {
		case *journal.TimerSet:
			is := timer{b.Cell, b.Tag}
			for _, other := range waits { // order cannot show
				require.False(s.t, b.Tag != "" && is == other, "#%d: there is a timer of that tag", rec.ID)
			}
			waits[rec.ID] = is
		case *journal.TimerFired:
			require.False(s.t, gone[rec.CausedBy], "#%d: timer #%d was cancelled or has fired", rec.ID, rec.CausedBy)
			gone[rec.CausedBy] = true
			delete(waits, rec.CausedBy)
			s.total["timers fired"]++
		case *journal.TagCancelled:
			if b.Timer != 0 {
				require.False(s.t, gone[b.Timer], "#%d: timer #%d was cancelled or has fired", rec.ID, b.Timer)
				gone[b.Timer] = true
				delete(waits, b.Timer)
				s.total["timers cancelled"]++
			}
			apart.cells[b.Cell] += len(b.Receipts)
		case *journal.IntentCancelled:
			require.False(s.t, cancelled[b.Key], "#%d: it was cancelled before", rec.ID)
			cancelled[b.Key] = true
			apart.tell(b.Key, b.Cell)
			s.total["cancelled"]++
		case *journal.Resolved:
			apart.decided[rec.ID] = b.Key
		case *journal.IntentEmitted:
			apart.ask(b.Key, b.Cell, rec.CausedBy)
		case *journal.IntentAwaitingApproval:
			apart.ask(b.Key, b.Cell, rec.CausedBy)
		case *journal.IntentEnded:
			if apart.keys[apart.decided[rec.CausedBy]] && b.Status == receipt.StatusCancelled {
				apart.cells[b.Cell]-- // it was edited, and its cell hears of what takes its place
			}
		case *journal.Started:
			require.False(s.t, cancelled[b.Key], "#%d: an attempt after its cell has cancelled it", rec.ID)
		case *journal.RolledBack:
			turned = true
			clear(waits)
			clear(gone)
			clear(cancelled)
		}
	}
	if !turned {
		s.toldApart(apart.cells)
	}
}

// toldApart are the intents whose ends are told apart, and how many each cell is told.
type toldApart struct {
	cells   map[string]int
	keys    map[receipt.Key]bool
	decided map[journal.Seq]receipt.Key // what a person has decided about
}

func (x *toldApart) tell(key receipt.Key, cell string) {
	if !x.keys[key] {
		x.keys[key] = true
		x.cells[cell]++
	}
}

// ask takes that an intent is asked for, by a decision about another one where that is its
// cause.
func (x *toldApart) ask(key receipt.Key, cell string, cause journal.Seq) {
	if of, ok := x.decided[cause]; ok && of != key && x.keys[of] {
		x.tell(key, cell)
	}
}

// toldApart requires that cells have seen so many receipts that were told apart, but for
// those of intents in doubt, which have none yet.
func (s *liveSimulation) toldApart(want map[string]int) {
	for _, e := range s.w.Intents() {
		if !e.Ended() {
			delete(want, e.Intent.Cell) // it may be one of them
		}
	}
	for cell, n := range want { // order cannot show: each by itself
		require.Equal(s.t, n, strings.Count(s.w.State(cell), " cancelled\""), "%s: %s", cell, s.w.State(cell))
		s.total["told apart"] += n
	}
}
