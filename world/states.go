package world

import (
	"iter"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
)

// States yields the names and the states of the cells that have one, in no order. The bytes
// are canonical, the world's own, and good until it changes. After an error of reading it
// ends, and Unread has that.
func (m *Moment) States() iter.Seq2[string, journal.Data] {
	return func(yield func(string, journal.Data) bool) {
		for c := range m.k.cells.allCells() {
			if c.born && len(c.state) > 0 && !yield(c.name, c.state) {
				return
			}
		}
	}
}

// SortedStates is States by name. Of the cells that are not in memory it has the names, and
// reads one state at a time.
func (m *Moment) SortedStates() iter.Seq2[string, journal.Data] {
	return func(yield func(string, journal.Data) bool) {
		type place struct {
			name string
			here *cell // nil: in the image store
		}
		var order []place
		for c := range m.k.cells.allCells() { // sorted below
			if c.born && len(c.state) > 0 {
				order = append(order, place{c.name, m.k.cells.here[c.name]})
			}
		}
		slices.SortFunc(order, func(a, b place) int { return strings.Compare(a.name, b.name) })
		for _, p := range order {
			c := p.here
			if c == nil {
				if c = m.k.cells.peek(p.name); c == nil {
					return
				}
			}
			if !yield(c.name, c.state) {
				return
			}
		}
	}
}
