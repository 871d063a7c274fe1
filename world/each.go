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

// recipient returns whom a name of a record or an image means.
func (k *kernel) recipient(name string) (*cell, error) {
	if isEveryone(name) {
		return everyone(strings.TrimSuffix(name, "/")), nil
	}
	id, err := reducer.ParseCell(name)
	if err != nil {
		return nil, err
	}
	return k.cellFor(id), nil
}

// there reports whether what goes to each cell of a reducer reaches one: it has a state, or
// is about to handle an event. A cell that was deleted is reached by what is sent to it alone.
func (c *cell) there() bool { return c.born && (len(c.state) > 0 || c.mail.len() > 0) }

// deliverAll puts an event into the mailboxes of its recipients.
func (k *kernel) deliverAll(to []*cell, x mail) {
	for _, c := range to {
		if k.rules.guard.ended() != nil {
			return // all is thrown away
		}
		if !isEveryone(c.name) {
			k.deliver(c, x)
			continue
		}
		for _, each := range k.inOrder(c, &x) {
			if k.rules.guard.ended() != nil {
				return
			}
			named := len(to) > 1 && slices.ContainsFunc(to, func(o *cell) bool { return o.name == each.name })
			if each.there() && !named {
				k.deliver(each, x)
			}
		}
	}
}

// inOrder returns the cells of a reducer in the order in which an event goes to them.
func (k *kernel) inOrder(everyone *cell, x *mail) []*cell {
	of := everyone.id().Reducer
	all := k.cells.of(of)
	if !k.inRandomOrder(of, x.name) {
		return all
	}
	k.order = append(k.order[:0], all...)
	k.order = slices.DeleteFunc(k.order, func(c *cell) bool { return !c.there() })
	rng := reducer.Seed{World: k.seed, Cell: reducer.Cell{Reducer: of, Key: "\x00" + x.name}, Step: uint64(k.now)}.New()
	for i := len(k.order) - 1; i > 0; i-- {
		j, err := rng.Below(uint64(i) + 1)
		if err == nil { // there are numbers below i+1
			k.order[i], k.order[j] = k.order[j], k.order[i]
		}
	}
	return k.order
}

// inRandomOrder reports whether an event goes to the cells of a reducer in random order: the
// rules in force say, when it is delivered.
func (k *kernel) inRandomOrder(of, event string) bool {
	rule := k.rules.events[event]
	return rule != nil && slices.ContainsFunc(rule.routes, func(rt route) bool { return rt.each != nil && rt.reducer == of && rt.random })
}

// full returns the first cell whose mailbox has no room for the events that are planned to go to it,
// nil where all have, and how many it may hold. It takes time in proportion to what is delivered.
func (k *kernel) full() (*cell, uint64) {
	most, planned := k.rules.manifest.Limits.Mailbox, k.plan.targets
	if uint64(k.longest+len(planned)) <= most {
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
		if uint64(k.longest+i+1) <= most {
			continue
		}
		all := k.cells.of(c.id().Reducer)
		if at := slices.IndexFunc(all, over); at >= 0 {
			return all[at], most
		}
	}
	return nil, most
}

// roster is the cells of one reducer that are in memory, all of them.
type roster struct {
	sorted []*cell // by name
	fresh  []*cell // come since
}

// of returns the cells of a reducer by name, those among them that nothing has reached, too.
// All of them are in memory then.
func (x *cells) of(name string) []*cell {
	r := x.rosters[name]
	if r == nil {
		r = &roster{fresh: x.bring(func(c *cell) bool { return c.id().Reducer == name })}
		if x.rosters == nil {
			x.rosters = make(map[string]*roster)
		}
		x.rosters[name] = r
	}
	if len(r.fresh) > 0 {
		r.sorted = append(r.sorted, r.fresh...)
		r.fresh = r.fresh[:0]
		slices.SortFunc(r.sorted, func(a, b *cell) int { return strings.Compare(a.name, b.name) })
	}
	return r.sorted
}
