package world

import (
	"errors"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// roster has the cells of a world: mailboxes, turns, the cells that are out of memory, and the tree of the
// state root.
type roster struct {
	*ground

	store     *imageStore
	cells     cells
	queues    queues
	longest   int // upper bound of the length of a mailbox
	scheduler scheduler
	inTick    bool   // from clock.advanced to the next input other than a receipt
	handled   uint64 // events handled in this tick
	halted    map[reducer.Cell]*cell
	dirty     []*cell    // changed since the last image
	tree      *stateTree // nil: not computed yet
	order     []*cell    // scratch: recipients of a broadcast
	named     []string   // scratch: see names
}

// errTickOpen refuses an input amid a tick.
var errTickOpen = errors.New("world: a tick is under way: only receipts may come in")

// lacksNext reports whether the next turn needs a reducer that this program does not have.
func (r *roster) lacksNext() bool {
	if r.rules.lacks == nil || !r.tickOpen() {
		return false
	}
	rule := r.rules.reducers[r.scheduler.queue[r.scheduler.first].id().Reducer]
	return rule != nil && rule.impl == nil
}

// noteInput writes an input that ends the tick.
func (r *roster) noteInput(kind journal.Kind, b journal.Body) journal.Seq {
	r.inTick = false
	return r.writeRecord(kind, 0, b)
}

// cellFor returns the cell with a name, or a new cell, which enters the world with its first event.
func (r *roster) cellFor(id reducer.Cell) *cell {
	if c := r.cells.get(id); c != nil {
		return c
	}
	return newCell(id, r.lineage)
}

// recipient returns the cell for a name in a record or an image, or the stand-in for all cells of a reducer.
func (r *roster) recipient(name string) (*cell, error) {
	if isEveryone(name) {
		return everyone(strings.TrimSuffix(name, "/")), nil
	}
	id, err := reducer.ParseCell(name)
	if err != nil {
		return nil, err
	}
	return r.cellFor(id), nil
}

// names returns the cells' names; the next call reuses the slice.
func (r *roster) names(cells []*cell) []string {
	out := r.named[:0]
	for _, c := range cells {
		out = append(out, c.name)
	}
	r.named = out
	return out
}

// deliver puts an event into a cell's mailbox. A new cell enters the world.
func (r *roster) deliver(c *cell, x mail) {
	if !c.born {
		if twin := r.cells.get(c.id()); twin != nil {
			c = twin // another event made it after this event was routed
		} else {
			r.cells.put(c)
		}
	}
	if !c.born {
		c.history = r.lineage
		r.cells.bear(c, true)
	}
	c.mail.push(x, &r.queues)
	r.longest = max(r.longest, c.mail.len())
	r.touch(c)
	if !c.queued && !c.halted {
		r.scheduler.push(c)
	}
}

// deliverAll puts an event into the mailboxes of its recipients.
func (r *roster) deliverAll(to []*cell, x mail) {
	for _, c := range to {
		if r.rules.guard.ended() != nil {
			return // the unit is thrown away
		}
		if !isEveryone(c.name) {
			r.deliver(c, x)
			continue
		}
		for _, each := range r.inOrder(c, &x) {
			if r.rules.guard.ended() != nil {
				return
			}
			named := len(to) > 1 && slices.ContainsFunc(to, func(o *cell) bool { return o.name == each.name })
			if each.there() && !named {
				r.deliver(each, x)
			}
		}
	}
}

// touch notes that a cell changes, just before or after the record of the change is written: no snapshot
// comes between the two.
func (r *roster) touch(c *cell) {
	c.changed = r.last + 1
	if !c.dirty {
		c.dirty = true
		r.dirty = append(r.dirty, c)
	}
	if r.tree != nil && !c.stale {
		c.stale = true
		r.tree.stale = append(r.tree.stale, c)
	}
}

// tickOpen reports whether cells have turns left in this tick.
func (r *roster) tickOpen() bool {
	return r.scheduler.left > 0 ||
		r.inTick && r.scheduler.ready() > 0 && r.handled < r.rules.manifest.Limits.EventsPerTick
}

// cancelledByCell reports whether the cell has cancelled its intent: no further attempt begins.
func (r *roster) cancelledByCell(e *receipt.Entry) bool {
	c := r.cells.named(e.Intent.Cell)
	return c != nil && slices.Contains(c.asked().cancelled, e.Intent.Key)
}

// awaits reports whether a cell waits for the end of its intent.
func (r *roster) awaits(e *receipt.Entry) bool {
	c := r.cells.named(e.Intent.Cell)
	return c != nil && slices.Contains(c.asked().awaits, e.Intent.Key)
}

// cellOf returns the cell of an intent, and the index in its mailbox of the receipt that ended the intent,
// or -1.
func (r *roster) cellOf(e *receipt.Entry) (*cell, int) {
	c := r.cells.named(e.Intent.Cell)
	if c == nil {
		return nil, -1
	}
	return c, slices.IndexFunc(c.mail.pending(), func(x mail) bool {
		return x.record == journal.Seq(e.Finished) && x.name == reducer.ReceiptEvent
	})
}
