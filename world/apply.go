package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Outcome is the outcome of an apply.
type Outcome struct {
	Migrated int // cells whose states the candidate's code took over
	Open     Opened
}

// Apply puts the candidate of a proposal in force and returns its record, durable. A new host performs later effects;
// it treats attempts in flight as after a crash: see Hold and Landed. If Apply refuses, nothing has changed: the
// errors are governance's, and an *InputError of ErrUnderWay or ErrMigration. The candidate is bounded by its own
// limits, and by ctx until its record is written.
func (w *World) Apply(ctx context.Context, proposal uint64, actor string) (id journal.Seq, done Outcome, err error) {
	if err := w.atNow(ctx); err != nil {
		return 0, Outcome{}, err
	}
	next, err := w.ready(proposal, newGuard(ctx, Bounds{}))
	if err != nil {
		return 0, Outcome{}, err
	}
	id, done, err = w.k.apply(journal.Applied{Proposal: proposal, Actor: actor}, next)
	if err != nil {
		return 0, Outcome{}, err
	}
	if err := w.Checkpoint(); err != nil {
		return 0, Outcome{}, err
	}
	w.held, w.came, w.found, w.asked = nil, nil, nil, 0 // the new host is asked for all of it again
	if err := w.start(); err != nil {
		return 0, Outcome{}, w.fail(fmt.Errorf("world: the manifest is in force, and nobody can perform its effects: %w", err))
	}
	return id, done, w.recover()
}

// WouldApply returns why Apply would refuse a proposal now, or the number of cells that the candidate's code would take
// over. It runs that code, as Apply does. To look at a proposal call PreviewApply.
func (m *Moment) WouldApply(ctx context.Context, proposal uint64) (migrated int, err error) {
	next, err := m.ready(proposal, newGuard(ctx, Bounds{}))
	if err != nil {
		return 0, err
	}
	all, err := m.k.migrate(next, m.k.otherCode(next))
	return len(all), err
}

// Ready returns what a proposal lacks for an apply, as an error of governance.
func (m *Moment) Ready(proposal uint64) error {
	if _, err := m.k.proposals.Ready(proposal, m.k.inForce()); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	return nil
}

// ready returns the rules of a proposal that can be applied.
func (m *Moment) ready(proposal uint64, g *guard) (*rules, error) {
	p, err := m.k.proposals.Ready(proposal, m.k.inForce())
	if err != nil {
		return nil, fmt.Errorf("world: %w", err)
	}
	next, err := rulesOf(p.Candidate, m.past, m.registry, g)
	if err != nil {
		return nil, err
	}
	if err := m.k.fits(next); err != nil {
		return nil, err
	}
	return next, m.canPerform(next, m.past.Blob)
}

// canPerform returns why the effects of a candidate cannot be performed.
func (m *Moment) canPerform(candidate *rules, content func(manifest.Hash) ([]byte, error)) error {
	if m.performs == nil {
		return nil
	}
	g := candidate.guard
	err := m.performs(candidate.manifest, content, g.stepBounds())
	return cmp.Or(g.ended(), err)
}

// fits refuses rules that lack the kind of an effect under way, and rules with another tick or epoch of a real clock.
func (k *kernel) fits(next *rules) error {
	for _, kind := range slices.Sorted(maps.Keys(k.rules.effects)) {
		if next.effects[kind] != nil {
			continue
		}
		if e := k.ledger.unfinished(kind); e != nil {
			return refuse(ErrUnderWay, "effects", "%q: %.12s of %s is %s", kind, e.Intent.Key, e.Intent.Cell, e.State)
		}
	}
	return checkClock(k.rules.manifest.Clock, next.manifest.Clock, k.now)
}

// apply writes a manifest.applied. From here on next is in force, within its own limits alone, and its code takes over
// the states of the cells whose code changes.
func (k *kernel) apply(b journal.Applied, next *rules) (journal.Seq, Outcome, error) {
	p, err := k.proposals.Ready(b.Proposal, k.inForce())
	if err != nil {
		return 0, Outcome{}, fmt.Errorf("world: %w", err)
	}
	if b.Actor == "" {
		return 0, Outcome{}, refuse(ErrNoReason, "actor", "say who applies it")
	}
	if b.Kernel == "" {
		b.V, b.Kernel, b.Engines = journal.BodyVersion, KernelVersion, next.engines
	}
	if err := errors.Join(checkKernel(b.Kernel), checkEngines(b.Engines, next.engines)); err != nil {
		return 0, Outcome{}, err
	}
	if err := k.fits(next); err != nil {
		return 0, Outcome{}, err
	}
	all, err := k.migrate(next, k.otherCode(next))
	if err != nil {
		return 0, Outcome{}, err
	}
	b.Manifest, b.Base, b.Actor = p.Candidate, p.Base, journal.Text(b.Actor)
	id := k.writeRecord(journal.KindApplied, 0, &b)
	if err := k.proposals.End(b.Proposal, governance.Applied, uint64(id), b.Actor, ""); err != nil {
		return 0, Outcome{}, fmt.Errorf("world: %w", err)
	}
	next.release(k.rules.guard) // consequences of the record do not end with the caller's context
	k.govern(next, all, id)
	done := Outcome{len(all), k.judgeOpen(id)}
	k.since = k.last
	return id, done, nil
}

// govern puts rules in force; record is the record that does so.
func (k *kernel) govern(next *rules, all []migrated, record journal.Seq) {
	k.inTick = false
	k.rules = next
	if k.tree != nil {
		k.dropTree() // a cell's leaf holds its reducer's hash
	}
	k.takeOver(all, record)
	k.reckon()
	k.dismissVerifiers(record)
	k.since = k.last
}

// dismissVerifiers ends the wait for verifiers that the rules lack: a person decides about intents in doubt, and
// recorded results are told unconfirmed.
func (f *effects) dismissVerifiers(record journal.Seq) {
	verified := func(e *receipt.Entry) bool {
		rule := f.rules.effects[e.Intent.Kind]
		return rule != nil && rule.Verify != nil
	}
	for _, e := range f.ledger.In(receipt.StateInDoubt) {
		if e.Waiting && !verified(e) {
			e.Waiting = false
			f.ledger.Change(e)
		}
	}
	for i := range f.recalls {
		if r := &f.recalls[i]; r.Confirm && !verified(f.ledger.Entry(r.Key)) {
			r.Confirm, r.Record = false, record
		}
	}
}

// otherCode returns the cells whose reducer has other code under the given rules.
func (r *roster) otherCode(next *rules) []*cell {
	return r.cells.bring(func(c *cell) bool { // migrate sorts
		was, is := r.rules.reducers[c.id().Reducer], next.reducers[c.id().Reducer]
		return c.born && was != nil && is != nil && was.hash != is.hash
	})
}
