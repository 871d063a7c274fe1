package world

import (
	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Wait is why an open intent is not attempted. One that is only behind others that wait
// for a slot has none.
type Wait struct {
	Until manifest.Tick         // when the rate of its kind lets it start; 0: that is not why
	Short []governance.Shortage // only what is set aside for others leaves no room
	Ahead []Ahead               // older intents wait, and will need of the same what leaves no room
}

// Ahead is the oldest of those that an intent waits behind: all want the same of a budget.
type Ahead struct {
	Of   governance.Budgeted
	Unit governance.Unit
	Key  receipt.Key
}

// For reports whether a budget is what an intent waits for.
func (w *Wait) For(of governance.Budgeted) bool {
	for i := range w.Short {
		if w.Short[i].Of == of {
			return true
		}
	}
	for i := range w.Ahead {
		if w.Ahead[i].Of == of {
			return true
		}
	}
	return false
}

// Waits returns why open intents wait, by their keys.
func (m *Moment) Waits() map[receipt.Key]Wait {
	out := make(map[receipt.Key]Wait)
	l := line{effects: &m.k.effects}
	for _, e := range m.k.ledger.Open() {
		_, gone, w := l.look(e)
		if gone != nil || !w.is() {
			continue
		}
		wait := Wait{Until: w.until, Short: w.short}
		for _, x := range w.behind {
			wait.Ahead = append(wait.Ahead, Ahead{x.Of, x.Unit, l.first[x].Intent.Key})
		}
		out[e.Intent.Key] = wait
	}
	return out
}
