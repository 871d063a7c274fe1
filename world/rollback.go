package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/snapshot"
)

// ErrOtherState means that an image does not have the state root in its snapshot's record. Nothing has changed.
var ErrOtherState = errors.New("world: the stored image is not the snapshot's")

// SideEffectsError lists the side effects that a rollback would leave behind without an
// acknowledgement. Nothing has changed.
type SideEffectsError struct {
	Snapshot string
	Effects  []journal.SideEffect
	Reads    []journal.SideEffect // effects that only read; if the caller has not separated them, they are in Effects
}

// Back returns the number of effects that were compensated, and whose intents come back with the history.
func (e *SideEffectsError) Back() int {
	done := journal.RolledBack{Abandoned: e.Effects}
	return done.Count(journal.MadeUpFor)
}

func (e *SideEffectsError) Error() string {
	done, back := journal.RolledBack{Abandoned: e.Effects}, e.Back()
	var does []string
	if n := len(e.Effects) - back - done.Count(journal.Cancelled); n > 0 {
		does = append(does, fmt.Sprintf("leaves %d side effects behind", n))
	}
	if n := len(e.Reads); n > 0 {
		does = append(does, fmt.Sprintf("leaves %d reads behind", n))
	}
	if back > 0 {
		does = append(does, fmt.Sprintf("brings back %d that were made up for since and are done no more", back))
	}
	return fmt.Sprintf("world: a rollback to %s %s, which has to be acknowledged", e.Snapshot, strings.Join(does, " and "))
}

// Rollback returns cells, mailboxes and timers to what they were at a snapshot. Snapshot, Reason and Actor of b are
// required; Ack, Compensate and Fresh say how. It returns its record, durable, with the record's body. Attempts
// that it leaves behind and that the host has not begun never begin. The errors are *SideEffectsError,
// ErrOtherState and *InputError.
func (w *World) Rollback(ctx context.Context, b journal.RolledBack) (id journal.Seq, done *journal.RolledBack, err error) {
	if err := w.atNow(ctx); err != nil {
		return 0, nil, err
	}
	if err := w.sync(); err != nil {
		return 0, nil, err
	}
	b.V, b.Abandoned = journal.BodyVersion, nil
	p, err := w.k.readPast(w.cfg.History, &b, w.cfg.History.Part)
	if err = w.judged(err); err != nil {
		return 0, nil, err
	}
	withdrawn, err := w.withdraw(p)
	if err != nil {
		return 0, nil, err
	}
	done, err = w.k.rollback(b, p)
	if err = w.judged(err); err != nil {
		w.startTasks(withdrawn)
		return 0, nil, err
	}
	clear(w.confirming) // other results wait for their cells now
	if err := w.sync(); err != nil {
		return 0, nil, err
	}
	if err := w.k.deliverRecalled(w.cfg.History); err != nil {
		return 0, nil, w.fail(err)
	}
	return done.PriorLen + 1, done, w.Checkpoint()
}

// Leaves returns the side effects that a rollback to a snapshot would leave behind.
func (m *Moment) Leaves(b journal.RolledBack) ([]journal.SideEffect, error) {
	p, err := m.k.readPast(m.past, &b, m.past.Part)
	if err != nil {
		return nil, err
	}
	return p.sideEffects(&m.k.effects, &b), nil
}

// rollback writes a rollback.applied and carries it out.
func (k *kernel) rollback(b journal.RolledBack, p *past) (*journal.RolledBack, error) {
	if b.Reason == "" || b.Actor == "" {
		return nil, refuse(ErrNoReason, "reason", "say who rolls back, and why")
	}
	b.Reason, b.Actor = journal.Text(b.Reason), journal.Text(b.Actor)
	b.Snapshot, b.Hash, b.SnapshotLen, b.PriorLen = p.to.Name, p.to.Hash, journal.Seq(p.to.At), k.last
	b.Abandoned = p.sideEffects(&k.effects, &b)
	unknown := func(x journal.SideEffect) bool {
		return x.Disposition == journal.Kept && !operatorsCell(x.Cell) || x.Disposition == journal.MadeUpFor && !b.Ack
	}
	if slices.ContainsFunc(b.Abandoned, unknown) {
		return nil, &SideEffectsError{Snapshot: b.Snapshot, Effects: b.Abandoned}
	}
	scheduled, err := k.shifted(p, p.scheduled)
	if err != nil {
		return nil, fmt.Errorf("world: snapshot %s: %w", b.Snapshot, err)
	}
	timers, err := k.shifted(p, p.timers)
	if err != nil {
		return nil, fmt.Errorf("world: snapshot %s: %w", b.Snapshot, err)
	}
	if err := k.checkRoot(p, scheduled, timers); err != nil {
		return nil, err
	}
	all, err := k.migrate(k.rules, p.ofOtherCode())
	if err != nil {
		k.dropTree() // it has the snapshot's leaves
		return nil, err
	}
	id := k.writeRecord(journal.KindRollback, 0, &b)
	k.touchLists()
	k.scheduled = scheduled
	k.setTimers(timers)
	k.touchLists()
	k.returnTo(&b, p, id)
	for i := range all {
		all[i].cell = k.cells.get(all[i].cell.id())
	}
	k.takeOver(all, id)
	p.abandon(&k.effects, &b, id)
	p.repeatAnswers(&k.effects, id)
	p.carryOutAgain(&k.effects, id)
	if b.Fresh {
		k.refresh()
	}
	return &b, nil
}

// checkRoot checks that the state which a rollback would return has the snapshot's state root.
func (a *calendar) checkRoot(p *past, scheduled, timers alarms) error {
	root := a.rootThen(p, snapshot.Root(alarmLeaves(scheduled, timers, a.now)))
	if err := a.store.err; err != nil {
		return err
	}
	if root != p.to.State {
		a.dropTree()
		return fmt.Errorf("%w: %s has state root %s, the image %s", ErrOtherState, p.to.Name, p.to.State, root)
	}
	return nil
}

// rootThen returns the root of the state which a rollback would return. If there is a tree, it then has the leaves
// of that state.
func (r *roster) rootThen(p *past, alarms journal.Hash) journal.Hash {
	if r.tree == nil && r.cells.stored > 0 {
		return r.rootWithoutTree(alarms, func(c *cell) (*cell, journal.Hash) {
			code, other := p.codes[c.id().Reducer]
			if !other {
				code = r.codeOf(c)
			}
			if c.changed > journal.Seq(p.to.Record) {
				c = p.cells[c.id()]
			}
			return c, code
		})
	}
	r.refreshTree()
	for _, c := range p.changed {
		was := p.cells[c.id()]
		if was == nil {
			was = &cell{name: c.name}
		}
		r.setLeaves(was)
	}
	if len(p.codes) > 0 {
		r.setLeavesThen(p)
	}
	return snapshot.StateRoot(r.tree.cells.Root(), r.tree.mailboxes.Root(), alarms)
}

// setLeavesThen puts cells into the tree, under the code of then, if their reducers had other code at the snapshot.
func (r *roster) setLeavesThen(p *past) {
	for c := range r.cells.allCells() { // the tree is the same in any order
		code, other := p.codes[c.id().Reducer]
		switch was := p.cells[c.id()]; {
		case !other:
		case was != nil:
			r.setLeavesUnder(code, was)
		case c.changed <= journal.Seq(p.to.Record):
			r.setLeavesUnder(code, c)
		}
	}
}

// dropTree drops the tree, so that the next state root is computed from all cells.
func (r *roster) dropTree() {
	if r.tree != nil {
		r.settleTree()
	}
	r.tree = nil
}

// settleTree notes that the tree agrees with the cells.
func (r *roster) settleTree() {
	for _, c := range r.tree.stale {
		c.stale = false
	}
	r.tree.stale = r.tree.stale[:0]
}

// returnTo returns cells and scheduler to what they were. The cells' accounts stay: what is spent stays spent.
func (k *kernel) returnTo(b *journal.RolledBack, p *past, id journal.Seq) {
	k.lineage = p.core.Lineage
	for _, c := range k.scheduler.queue[k.scheduler.first:] {
		c.queued = false
	}
	k.scheduler = scheduler{}
	for _, c := range p.changed {
		was := p.cells[c.id()]
		if was == nil {
			was = new(cell)
		}
		delete(k.halted, c.id())
		if was.halted {
			k.halted[c.id()] = c
		}
		c.state, c.n, c.history, c.mail, c.halted = was.state, was.n, was.history, was.mail, was.halted
		k.longest = max(k.longest, c.mail.len())
		c.returnAsks(was.asks)
		k.cells.bear(c, was.born)
		k.touch(c)
	}
	if len(p.codes) > 0 {
		k.dropTree()
	} else if k.tree != nil {
		k.settleTree() // checkRoot has put them there
	}
	for _, name := range p.core.Ready {
		if c := k.cells.named(name); c != nil {
			k.scheduler.push(c)
		}
	}
	k.rollbacks = append(k.rollbacks, turning{Record: id, To: journal.Seq(p.to.Record)})
	if b.Fresh {
		k.fresh = append(k.fresh, id)
	}
	k.ledger.Reconsider()
	k.inTick, k.handled = false, 0
}

// returnAsks returns the cell's asks to what they were, except the account.
func (c *cell) returnAsks(was *asks) {
	if was == nil {
		if c.asks == nil {
			return
		}
		was = new(asks)
	}
	of := c.toAsk()
	of.awaits, of.cancelled = was.awaits, was.cancelled
}

// refresh changes the history of every cell, so that intents of all later steps get new keys.
func (r *roster) refresh() {
	root := r.root()
	mix := func(h receipt.History) receipt.History {
		return canon.Sum(append(slices.Clone(h[:]), root[:]...))
	}
	r.lineage = mix(r.lineage)
	for _, c := range r.cells.bring(func(c *cell) bool { return c.born }) { // in any order; cells that are not born begin with the lineage
		c.history = mix(c.history)
		r.touch(c)
	}
}
