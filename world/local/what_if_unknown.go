package local

import (
	"cmp"
	"slices"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// UnknownCell is a cell of a fork of which nobody can say what it would have come to: an
// effect that nothing answers was left open, and the cell asked for it, or hangs on one that
// did.
type UnknownCell struct {
	Cell   string
	Since  journal.Seq   // a record of the fork: what the cell does after it is not known
	Tick   manifest.Tick // of that
	Why    Why
	Of     string          // the cell that makes it unknown; empty: it is the one that asks
	Effect *host.MissError // which nothing answers, and all of this follows from
}

// Why says how a cell hangs on an effect that nothing answers.
type Why string

// The reasons for an unknown cell.
const (
	WhyAsks  Why = "asks"  // it asks for the effect
	WhyTold  Why = "told"  // an unknown cell tells it something
	WhyWaits Why = "waits" // an unknown cell told it something in the world from there on, or is asked something that its like answers there
	WhyRoom  Why = "room"  // what it asks for has no slot or no budget at the end, and had in the world
)

// unknowns finds the cells that hang on effects which nothing answers.
type unknowns struct {
	fork, world *story
	last        manifest.Tick // of both, that is looked at
	pending     []UnknownCell // first those that are unknown first
	known       map[string]bool
}

// findUnknown says which of the fork's cells are unknown, and from where on.
func (x *Supposed) findUnknown() error {
	if len(x.Unanswered) == 0 {
		return nil
	}
	fork, err := readStory(x.Fork, x.Forked.At)
	if err != nil {
		return err
	}
	was, err := readStory(x.World, x.Forked.At)
	if err != nil {
		return err
	}
	u := unknowns{fork: fork, world: was, last: x.Last, known: make(map[string]bool)}
	began := x.Forked.At + 1 // of what was under way then
	for _, miss := range x.Unanswered {
		u.add(UnknownCell{Cell: miss.Cell, Since: max(began, fork.asked[miss.Step]), Why: WhyAsks, Effect: miss})
	}
	first := u.pending[0]
	for _, in := range x.withoutRoom() {
		u.add(UnknownCell{Cell: in.Cell, Since: max(first.Since, fork.asked[in.Step]), Why: WhyRoom, Of: first.Cell, Effect: first.Effect})
	}
	x.Unknown = u.spread()
	return nil
}

// withoutRoom returns the fork's intents that are not attempted for want of a slot or a
// budget, but for those that the world does not attempt either.
func (x *Supposed) withoutRoom() (held []receipt.Intent) {
	open := func(m *world.Moment) []receipt.Entry {
		return slices.DeleteFunc(m.Intents(), func(e receipt.Entry) bool { return e.State != receipt.StateOpen || e.Waiting || e.Abandoned })
	}
	was := make(map[receipt.Request]bool)
	x.World.View(func(m *world.Moment) {
		for _, e := range open(m) {
			was[e.Request()] = true
		}
	})
	x.Fork.View(func(m *world.Moment) {
		full := uint64(len(m.InFlight())) >= m.Manifest().Limits.WithDefaults().InFlight
		waits := m.Waits()
		for _, e := range open(m) {
			w := waits[e.Intent.Key]
			if (full || len(w.Short)+len(w.Ahead) > 0) && !was[e.Request()] {
				held = append(held, e.Intent)
			}
		}
	})
	return held
}

func sooner(a, b UnknownCell) int {
	return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Of, b.Of))
}

func (u *unknowns) add(c UnknownCell) {
	if u.known[c.Cell] {
		return // and sooner
	}
	c.Tick = u.fork.tickOf(c.Since)
	at, _ := slices.BinarySearchFunc(u.pending, c, sooner)
	u.pending = slices.Insert(u.pending, at, c)
}

// spread returns all cells that are unknown, in the order in which they are so first. What follows from one
// is never unknown sooner than that is, so whoever comes first is settled.
func (u *unknowns) spread() (all []UnknownCell) {
	for len(u.pending) > 0 {
		c := u.pending[0]
		u.pending = u.pending[1:]
		if u.known[c.Cell] {
			continue
		}
		u.known[c.Cell] = true
		all = append(all, c)
		u.tell(&c)
		u.keepWaiting(&c)
	}
	return all
}

// follow adds a cell that is unknown because of another one.
func (u *unknowns) follow(of *UnknownCell, cell string, since journal.Seq, why Why) {
	u.add(UnknownCell{Cell: cell, Since: max(of.Since, since), Why: why, Of: of.Cell, Effect: of.Effect})
}

// tell goes on to whom an unknown cell tells something in the fork.
func (u *unknowns) tell(c *UnknownCell) {
	for _, x := range u.fork.by[c.Cell] {
		if x.id > c.Since {
			u.follow(c, x.to, x.id, WhyTold)
		}
	}
}

// keepWaiting goes on to who waits for an unknown cell: whom it told something in the world
// from there on waits since then; and who has sent it something in the fork that it has not
// answered waits where a cell like it answered one like that in the world.
func (u *unknowns) keepWaiting(c *UnknownCell) {
	n := u.fork.step(c.Cell, c.Since)
	for _, x := range u.world.by[c.Cell] {
		if x.at <= u.last && (x.at > c.Tick || x.at == c.Tick && x.n > n) {
			u.follow(c, x.to, u.fork.since(x.at).id, WhyWaits)
		}
	}
	answered := make(map[string]journal.Seq)
	for _, x := range u.fork.by[c.Cell] {
		if x.id <= c.Since {
			answered[x.to] = x.id
		}
	}
	for _, x := range u.fork.to[c.Cell] {
		if x.id > answered[x.from] && u.world.likes[[2]string{reducerOf(c.Cell), reducerOf(x.from)}] {
			u.follow(c, x.from, x.id, WhyWaits)
		}
	}
}
