package world

import (
	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Wait is the reason why an open intent is not attempted. An intent that only waits for a slot has none.
type Wait struct {
	Until manifest.Tick         // when the rate of its kind lets it start; 0: the rate is not the reason
	Short []governance.Shortage // budgets that have no room because of reservations of others
	Ahead []Ahead               // older intents that wait, whose needs leave no room in the same budget
}

// Ahead is the oldest of the intents that an intent waits behind, which all draw on the same budget.
type Ahead struct {
	Of   governance.Budgeted
	Unit governance.Unit
	Key  receipt.Key
}

// For reports whether an intent waits for a budget.
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
		_, gone, w := l.examine(e)
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
