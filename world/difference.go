package world

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/snapshot"
)

// Difference is what differs between two moments a and b, of one world or of
// two. Where nothing does its slices are empty, and all else says the same twice.
type Difference struct {
	CellsAdded   []CellView   // in b only, by name
	CellsGone    []CellView   // in a only, by name
	CellsChanged []CellChange // by name
	Histories    int          // cells that look the same, and came there by other events

	// Intents are the same where cell, kind, params and occurrence are: keys differ
	// between worlds. They come in this order. Those that a rollback left behind
	// count for nothing.
	IntentsAdded   []receipt.Entry // asked for in b only
	IntentsGone    []receipt.Entry // asked for in a only
	IntentsChanged []IntentChange  // they stand, or ended, otherwise

	Scheduled AlarmChange // events that fall due later
	Timers    AlarmChange
}

// CellChange is a cell that is in both moments and not the same: steps, state,
// mailbox or whether it is halted.
type CellChange struct{ A, B CellView }

// IntentChange is an intent that both moments have, in another state or with
// another outcome.
type IntentChange struct{ A, B receipt.Entry }

// AlarmChange says how many timers or scheduled events there are.
type AlarmChange struct {
	A    int  `json:"a"`
	B    int  `json:"b"`
	Same bool `json:"same"` // they are for the same cells, with the same data, in as many ticks
}

// Same reports whether nothing differs. Two moments with one state root are the
// same but for their intents; those of two manifests may be the same with two
// roots, which hold the reducers' code.
func (d *Difference) Same() bool {
	return len(d.CellsAdded)+len(d.CellsGone)+len(d.CellsChanged)+d.Histories == 0 &&
		len(d.IntentsAdded)+len(d.IntentsGone)+len(d.IntentsChanged) == 0 &&
		d.Scheduled.Same && d.Timers.Same
}

// Compare returns what differs between two moments. It looks at every cell and
// every intent of both, but for cells that are left out by name, with their intents, their
// timers and the events scheduled for them.
func Compare(a, b *Moment, left ...string) Difference {
	var d Difference
	out := make(map[string]bool, len(left))
	for _, name := range left {
		out[name] = true
	}
	d.compareCells(a.k.sortedCells(out), b.k.sortedCells(out))
	d.compareIntents(a.k.ledger.standing(out), b.k.ledger.standing(out))
	d.Scheduled = compareAlarms(a.k, a.k.scheduled.without(out), b.k, b.k.scheduled.without(out))
	d.Timers = compareAlarms(a.k, a.k.timers.without(out), b.k, b.k.timers.without(out))
	return d
}

// without returns the alarms that are not only for cells which are left out.
func (a alarms) without(left map[string]bool) alarms {
	if len(left) == 0 {
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(x *alarm) bool {
		return len(x.to) > 0 && !slices.ContainsFunc(x.to, func(c *cell) bool { return !left[c.name] })
	})
}

// sortedCells returns the cells that are there and not left out, by name.
func (r *roster) sortedCells(left map[string]bool) []*cell {
	cells := make([]*cell, 0, r.cells.len())
	for c := range r.cells.allCells() { // sorted below
		if c.born && !left[c.name] {
			cells = append(cells, c)
		}
	}
	slices.SortFunc(cells, func(a, b *cell) int { return strings.Compare(a.name, b.name) })
	return cells
}

func (d *Difference) compareCells(a, b []*cell) {
	for x, y := range paired(a, b, func(x, y *cell) int { return strings.Compare(x.name, y.name) }) {
		switch {
		case x == nil:
			d.CellsAdded = append(d.CellsAdded, y.view())
		case y == nil:
			d.CellsGone = append(d.CellsGone, x.view())
		case !x.looksLike(y):
			d.CellsChanged = append(d.CellsChanged, CellChange{A: x.view(), B: y.view()})
		case x.history != y.history:
			d.Histories++
		}
	}
}

// looksLike reports whether two cells show the same, whatever led there.
func (c *cell) looksLike(o *cell) bool {
	sameMail := func(x, y mail) bool { return x.name == y.name && bytes.Equal(x.data, y.data) }
	return c.n == o.n && c.halted == o.halted && bytes.Equal(c.state, o.state) &&
		slices.EqualFunc(c.mail.pending(), o.mail.pending(), sameMail)
}

func byRequest(a, b *receipt.Entry) int {
	return cmp.Or(
		strings.Compare(a.Intent.Cell, b.Intent.Cell),
		strings.Compare(a.Intent.Kind, b.Intent.Kind),
		bytes.Compare(a.Params[:], b.Params[:]),
		cmp.Compare(a.Intent.Occurrence, b.Intent.Occurrence),
	)
}

func (d *Difference) compareIntents(a, b []*receipt.Entry) {
	for x, y := range paired(a, b, byRequest) {
		switch {
		case x == nil:
			d.IntentsAdded = append(d.IntentsAdded, *y)
		case y == nil:
			d.IntentsGone = append(d.IntentsGone, *x)
		case x.State != y.State || x.Ended() && x.Outcome != y.Outcome: // else it is that of an earlier attempt
			d.IntentsChanged = append(d.IntentsChanged, IntentChange{A: *x, B: *y})
		}
	}
}

// paired merges two sorted slices: it yields what is equal in pairs, and what
// has no other beside nil. The n-th of equals goes with the n-th.
func paired[T any](a, b []*T, compare func(x, y *T) int) iter.Seq2[*T, *T] {
	return func(yield func(x, y *T) bool) {
		for len(a) > 0 || len(b) > 0 {
			order := 0
			switch {
			case len(a) == 0:
				order = 1
			case len(b) == 0:
				order = -1
			default:
				order = compare(a[0], b[0])
			}
			var x, y *T
			if order <= 0 {
				x, a = a[0], a[1:]
			}
			if order >= 0 {
				y, b = b[0], b[1:]
			}
			if !yield(x, y) {
				return
			}
		}
	}
}

// compareAlarms compares what is due in as many ticks, for whom and with what.
func compareAlarms(a *kernel, of alarms, b *kernel, others alarms) AlarmChange {
	c := AlarmChange{A: len(of), B: len(others)}
	c.Same = c.A == c.B && snapshot.Root(alarmLeaves(of, nil, a.now)) == snapshot.Root(alarmLeaves(others, nil, b.now))
	return c
}
