package view

import (
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// Rollback is the result of a rollback, or its preview.
type Rollback struct {
	Record       *journal.Seq         `json:"record"` // null: nothing has changed
	Snapshot     string               `json:"snapshot"`
	SnapshotHash journal.Hash         `json:"snapshot_hash"`
	PriorLen     journal.Seq          `json:"prior_journal_len"`
	Abandoned    []journal.SideEffect `json:"abandoned"`
	Reads        []journal.SideEffect `json:"reads"`    // what is left behind likewise and only read: it changed nothing outside
	Events       int                  `json:"events"`   // that the world accepted since the snapshot: no cell has them any more
	Proposal     *string              `json:"proposal"` // of the manifest that was in force at the snapshot; null: none was asked for, or it is in force

	Done   *journal.RolledBack `json:"-"` // nil: nothing has changed
	Former *Edition            `json:"-"` // the manifest to propose; nil: none was asked for, or it is in force
}

// Leaves returns what a rollback to a snapshot would leave behind, and, where it is to be
// proposed after that, the manifest that was in force then.
func (j Journal) Leaves(s *snapshot.Snapshot, b journal.RolledBack, withManifest bool) (*Rollback, error) {
	a, err := j.rollbackTo(s, withManifest)
	if err != nil {
		return nil, err
	}
	a.PriorLen = j.Local.Head().ID
	var left []journal.SideEffect
	j.Local.View(func(w *world.Moment) { left, err = w.Leaves(b) })
	if err != nil {
		return nil, err
	}
	a.Abandoned, a.Reads, err = j.apart(left)
	return a, err
}

// RollBack returns the world to a snapshot and then, where it is wanted, proposes the
// manifest that was in force then. The error is a *world.SideEffectsError where nothing
// has changed for what would be left behind, of which the answer tells all the same; any
// other with an answer says that the rollback is done, and its manifest not proposed.
func (j Journal) RollBack(ctx context.Context, s *snapshot.Snapshot, b journal.RolledBack, withManifest bool) (*Rollback, error) {
	a, err := j.rollbackTo(s, withManifest)
	if err != nil {
		return nil, err
	}
	var record journal.Seq
	err = j.Local.Update(func(w *world.World) (err error) {
		record, a.Done, err = w.Rollback(ctx, b)
		return err
	})
	var left *world.SideEffectsError
	switch {
	case errors.As(err, &left):
		var unread error
		left.Effects, left.Reads, unread = j.apart(left.Effects)
		a.Abandoned, a.Reads, a.PriorLen = left.Effects, left.Reads, j.Local.Head().ID
		return a, errors.Join(err, unread)
	case err != nil:
		return nil, err
	}
	a.Record, a.PriorLen = &record, a.Done.PriorLen
	if a.Abandoned, a.Reads, err = j.apart(a.Done.Abandoned); err != nil {
		return a, fmt.Errorf("the rollback is done, but what it left cannot be told: %w", err)
	}
	if a.Former == nil {
		return a, nil
	}
	_, n, err := j.Local.Propose(ctx, world.Proposal{
		Candidate: a.Former.Manifest, Base: j.Local.Status().Manifest, Actor: b.Actor,
		Reason: fmt.Sprintf("with the rollback to %s: %s", b.Snapshot, b.Reason),
	})
	if same := (*governance.SameError)(nil); errors.As(err, &same) {
		n, err = same.N, nil // it is proposed already
	}
	if err != nil {
		return a, fmt.Errorf("the rollback is done, but its manifest is not proposed: %w", err)
	}
	a.Proposal = new(ProposalName(n))
	return a, nil
}

// acceptedSince counts the events of the history that were accepted since a snapshot.
func (j Journal) acceptedSince(s *snapshot.Snapshot) (n int, err error) {
	for e, err := range j.Scan(journal.Seq(s.Record), journal.KindSubmitted) {
		if err != nil {
			return 0, err
		}
		j.Local.View(func(w *world.Moment) {
			if w.InHistory(e.ID) {
				n++
			}
		})
	}
	return n, nil
}

// rollbackTo returns what is known of a rollback before it: with the manifest that was in force at the snapshot, if it is
// to be proposed and another one is in force now.
func (j Journal) rollbackTo(s *snapshot.Snapshot, withManifest bool) (a *Rollback, err error) {
	a = &Rollback{Snapshot: s.Name, SnapshotHash: s.Hash}
	if a.Events, err = j.acceptedSince(s); err != nil || !withManifest {
		return a, err
	}
	m, err := j.Local.At(journal.Seq(s.Record))
	if err != nil {
		return nil, err
	}
	e, err := EditionOf(s.Name, m.Manifest(), j.Local.Blob)
	if err == nil && e.Hash != j.Local.Status().Manifest {
		a.Former = e
	}
	return a, err
}

// apart tells side effects from what only read.
func (j Journal) apart(left []journal.SideEffect) (effects, reads []journal.SideEffect, err error) {
	effects, reads = []journal.SideEffect{}, []journal.SideEffect{}
	if len(left) == 0 {
		return effects, reads, nil
	}
	rules, err := j.inForceOverTime()
	if err != nil {
		return nil, nil, err
	}
	for _, x := range left {
		only, err := j.onlyRead(&x, rules)
		switch {
		case err != nil:
			return nil, nil, err
		case only:
			reads = append(reads, x)
		default:
			effects = append(effects, x)
		}
	}
	return effects, reads, nil
}

// inForce is a manifest that came into force.
type inForce struct {
	*manifest.Manifest
	since journal.Seq
}

// inForceOverTime returns the manifests that were in force, in their order.
func (j Journal) inForceOverTime() ([]inForce, error) {
	var out []inForce
	for e, err := range j.Scan(0, journal.KindCreated, journal.KindForked, journal.KindApplied) {
		if err != nil {
			return nil, err
		}
		h, _ := journal.ManifestOf(e.Body)
		m, err := j.Manifest(h)
		if err != nil {
			return nil, err
		}
		out = append(out, inForce{m, e.ID})
	}
	return out, nil
}

// onlyRead reports whether what is left behind only read, under every manifest that was
// in force from when it was asked for to its end.
func (j Journal) onlyRead(x *journal.SideEffect, rules []inForce) (bool, error) {
	known, _ := j.LedgerEntry(x.Key)
	asked, err := j.Entry(journal.Seq(known.Emitted))
	if err != nil {
		return false, err
	}
	d, told := asked.Decision()
	for i := range rules {
		over := i+1 < len(rules) && rules[i+1].since <= asked.ID
		if over || rules[i].since > x.Record {
			continue
		}
		kind, declared := rules[i].Effects[x.Kind]
		if !told || !declared || !governance.Reads(&kind, d.Params) {
			return false, nil
		}
	}
	return true, nil
}
