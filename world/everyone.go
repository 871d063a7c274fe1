package world

import (
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// An event that a route sends to each cell of a reducer has a recipient that is no cell, with
// the name "REDUCER/", which no cell has: so its record, and what an image has of one that
// falls due later, do not grow with the number of cells. Whom it reaches is found out when it
// is delivered.

// everyone returns the recipient that stands for each cell of a reducer.
func everyone(of string) *cell { return newCell(reducer.Cell{Reducer: of}, receipt.History{}) }

// isEveryone reports whether the name of a recipient stands for each cell of a reducer.
func isEveryone(name string) bool {
	return strings.HasSuffix(name, "/") && strings.Count(name, "/") == 1
}

// there reports whether what goes to each cell of a reducer reaches one: it has a state, or
// is about to handle an event. A cell that was deleted is reached by what is sent to it alone.
func (c *cell) there() bool { return c.born && (len(c.state) > 0 || c.mail.len() > 0) }

// inOrder returns the cells of a reducer in the order in which an event goes to them.
func (r *roster) inOrder(everyone *cell, x *mail) []*cell {
	of := everyone.id().Reducer
	all := r.cells.cellsOf(of)
	if !r.inRandomOrder(of, x.name) {
		return all
	}
	r.order = append(r.order[:0], all...)
	r.order = slices.DeleteFunc(r.order, func(c *cell) bool { return !c.there() })
	rng := reducer.Seed{World: r.seed, Cell: reducer.Cell{Reducer: of, Key: "\x00" + x.name}, Step: uint64(r.now)}.New()
	for i := len(r.order) - 1; i > 0; i-- {
		j, err := rng.Below(uint64(i) + 1)
		if err == nil { // there are numbers below i+1
			r.order[i], r.order[j] = r.order[j], r.order[i]
		}
	}
	return r.order
}

// inRandomOrder reports whether an event goes to the cells of a reducer in random order: the
// rules in force say, when it is delivered.
func (r *roster) inRandomOrder(of, event string) bool {
	rule := r.rules.events[event]
	return rule != nil && slices.ContainsFunc(rule.routes, func(rt route) bool { return rt.each != nil && rt.reducer == of && rt.random })
}

// full returns the first cell whose mailbox has no room for the events that are planned to go to it,
// nil where all have, and how many it may hold. It takes time in proportion to what is delivered.
func (r *roster) full(planned []*cell) (*cell, uint64) {
	most := r.rules.manifest.Limits.Mailbox
	if uint64(r.longest+len(planned)) <= most {
		return nil, most // even if all of them went to the longest
	}
	direct, each := make(map[string]int), make(map[string]int) // by cell, by reducer
	over := func(c *cell) bool {
		waiting := c.mail.len() + direct[c.name]
		if c.there() {
			waiting += each[c.id().Reducer]
		}
		return uint64(waiting) > most
	}
	for i, c := range planned {
		if !isEveryone(c.name) {
			direct[c.name]++
			if over(c) {
				return c, most
			}
			continue
		}
		each[c.id().Reducer]++
		if uint64(r.longest+i+1) <= most {
			continue
		}
		all := r.cells.cellsOf(c.id().Reducer)
		if at := slices.IndexFunc(all, over); at >= 0 {
			return all[at], most
		}
	}
	return nil, most
}

// byName is the cells of one reducer that are in memory, all of them.
type byName struct {
	sorted []*cell // by name
	fresh  []*cell // come since
}

// cellsOf returns the cells of a reducer by name, those among them that nothing has reached, too.
// All of them are in memory then.
func (x *cells) cellsOf(name string) []*cell {
	r := x.sorted[name]
	if r == nil {
		r = &byName{fresh: x.bring(func(c *cell) bool { return c.id().Reducer == name })}
		if x.sorted == nil {
			x.sorted = make(map[string]*byName)
		}
		x.sorted[name] = r
	}
	if len(r.fresh) > 0 {
		r.sorted = append(r.sorted, r.fresh...)
		r.fresh = r.fresh[:0]
		slices.SortFunc(r.sorted, func(a, b *cell) int { return strings.Compare(a.name, b.name) })
	}
	return r.sorted
}
