package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
)

// ShadowConfig says on how much of the history a shadow runs. The zero value begins where the manifest in
// force was applied or, if a rollback has led to before that record, with the last snapshot.
type ShadowConfig struct {
	From     string               // begin with this snapshot, whatever At and Last say
	At       journal.Seq          // begin with the last snapshot up to this record of the history, else before the first record; whatever Last says
	Last     journal.Seq          // begin with the last snapshot that is followed by so many records, else before the first record
	Listed   int                  // most differences of a kind that the report lists; 0: governance.MaxListed, as in every recorded report
	Bounds   Bounds               // of the candidate; zero: Config.Bounds
	Progress func(at journal.Seq) // is called now and then; may be nil
	Governed bool                 // the manifest has the rules of another one, see Manifest.GovernedBy: they may name what only the other declares
}

// ErrLeftPart says that a snapshot, or another moment, is in a part of the history that
// a rollback has left.
var ErrLeftPart = errors.New("a rollback has left the part of the history that it is in")

// Shadow runs the candidate of an open proposal on the history of the world, as Rehearse does, and records the
// report. It returns the record, durable; nothing else changes. A caller that must not hold the world
// meanwhile calls CandidateOf, Moment.Rehearse and Shadowed instead.
func (w *World) Shadow(ctx context.Context, proposal uint64, cfg ShadowConfig, actor string) (id journal.Seq, r *governance.Report, err error) {
	if err := w.Sync(); err != nil {
		return 0, nil, err
	}
	next, err := w.CandidateOf(proposal, actor)
	if err != nil {
		return 0, nil, err
	}
	if r, err = w.Rehearse(ctx, next, nil, cfg); err != nil {
		return 0, nil, err
	}
	id, err = w.Shadowed(ctx, proposal, r, actor)
	return id, r, err
}

// CandidateOf returns the candidate of an open proposal. actor wants it shadowed.
func (m *Moment) CandidateOf(proposal uint64, actor string) (*manifest.Manifest, error) {
	if actor == "" {
		return nil, refuse(ErrNoReason, "actor", "say who has it shadowed")
	}
	p, err := m.k.proposals.Current(proposal, m.k.inForce())
	if err != nil {
		return nil, fmt.Errorf("world: %w", err)
	}
	return manifestOf(p.Candidate, m.past)
}

// Shadowed records the report of a shadow of a proposal's candidate.
func (w *World) Shadowed(ctx context.Context, proposal uint64, r *governance.Report, actor string) (journal.Seq, error) {
	data, err := r.Encode()
	if err != nil {
		return 0, fmt.Errorf("world: %w", err)
	}
	return w.change(ctx, func() error {
		return w.k.shadowed(journal.ManifestShadowed{Proposal: proposal, Report: data, Actor: actor})
	})
}

// Rehearse runs a manifest on the recorded history that led to the moment, and reports the differences. It
// changes nothing and performs nothing. Inputs come when they came in the history. An effect is answered by
// the receipt of the recorded intent with the same cell, kind, params and occurrence; if there is none, the
// report says so. Parts that a rollback left are not in the history, but their receipts answer. contents are
// those that next names and the history may not hold.
//
// The errors are an *InputError of ErrMigration, ErrLeftPart, a *BoundError, those of package snapshot for a
// name, and those of reading: ErrRedacted if the payload of an input is gone.
func (m *Moment) Rehearse(ctx context.Context, next *manifest.Manifest, contents map[manifest.Hash][]byte, cfg ShadowConfig) (*governance.Report, error) {
	encoded, err := next.Encode()
	if err != nil {
		return nil, err
	}
	s := &shadow{was: m.k, h: m.past, registry: m.registry, cfg: cfg, borrowed: newBorrowed()}
	g := newGuard(ctx, cmp.Or(cfg.Bounds, m.bounds))
	g.spare(m.k)
	ready := compileCandidate
	if cfg.Governed {
		ready = compile
	}
	candidate, err := ready(next, canon.Sum(encoded), overlaid{contents, m.past}, m.registry, g)
	if err != nil {
		return nil, err
	}
	name, from, err := m.k.shadowFrom(cfg)
	if err != nil {
		return nil, err
	}
	stretches, err := m.k.stretches(from)
	if err != nil {
		return nil, err
	}
	if err := s.startAt(candidate, from); err != nil {
		return nil, err
	}
	s.report = newReporter(governance.Report{
		Kernel: KernelVersion, World: m.k.id, Base: m.k.rules.hash, Candidate: candidate.hash,
		Snapshot: name, From: uint64(max(from, 1)), To: uint64(m.k.last), Root: m.k.root(),
	}, cfg.Listed)
	for _, part := range stretches {
		if err := s.live(part); err != nil {
			return nil, err
		}
	}
	err = s.conclude()
	if s.over() {
		err = g.ended()
	}
	if err != nil {
		return nil, err
	}
	return s.report.done(), nil
}

// overlaid looks contents up in a map first.
type overlaid struct {
	contents map[manifest.Hash][]byte
	journal.Blobs
}

// Blob implements Blobs.
func (o overlaid) Blob(h journal.Hash) ([]byte, error) {
	if b, ok := o.contents[h]; ok {
		return b, nil
	}
	return o.Blobs.Blob(h)
}

// shadowFrom returns name and record of the snapshot that a shadow begins with. The name is empty for the
// image of the moment when the manifest in force was applied. The record is 0 if the shadow begins before the
// first record.
func (k *kernel) shadowFrom(cfg ShadowConfig) (string, journal.Seq, error) {
	if cfg.From != "" {
		s, err := k.catalog.Find(cfg.From)
		if err != nil {
			return "", 0, refuse(err, "from", "want the name of a snapshot, or the beginning of its hash")
		}
		return s.Name, journal.Seq(s.Record), nil
	}
	if cfg.At != 0 && !k.inHistory(cfg.At, k.last) {
		return "", 0, leftPart(cfg.At)
	}
	var last snapshot.Snapshot
	for _, s := range k.catalog.All() {
		at := journal.Seq(s.Record)
		if before := cfg.At == 0 && at+cfg.Last <= k.last || at <= cfg.At; before && k.inHistory(at, k.last) {
			last = s
		}
	}
	switch {
	case cfg.At != 0, cfg.Last != 0:
		return last.Name, journal.Seq(last.Record), nil
	case k.since == 1:
		return "", 0, nil
	case k.inHistory(k.since, k.last):
		return "", k.since, nil
	default: // a rollback went to before it was applied
		return last.Name, journal.Seq(last.Record), nil
	}
}

// stretch is a part of the history without a rollback inside. If it is turned, its first record is a rollback,
// which led back to the end of the stretch before.
type stretch struct {
	first, last journal.Seq
	turned      bool
}

func leftPart(from journal.Seq) error { return refuse(ErrLeftPart, "from", "it ends with #%d", from) }

// stretches returns the parts of the history since a record, without those that
// rollbacks left.
func (k *kernel) stretches(from journal.Seq) ([]stretch, error) {
	var out []stretch // the last one first
	of := k.last
	for i := len(k.rollbacks) - 1; i >= 0; i-- {
		t := k.rollbacks[i]
		if t.Record > of {
			continue
		}
		if from >= t.Record {
			break
		}
		out = append(out, stretch{first: t.Record, last: of, turned: true})
		of = t.To
	}
	if from > of {
		return nil, leftPart(from)
	}
	out = append(out, stretch{first: from + 1, last: of})
	slices.Reverse(out)
	return out, nil
}

// shadow is a kernel that runs through the history of another kernel under a candidate's rules. While every
// record that it writes equals the history's, byte for byte, its records have the same numbers and the same
// chain.
type shadow struct {
	*kernel

	was      *kernel // the kernel at the end of the history
	h        journal.History
	registry reducer.Registry
	cfg      ShadowConfig
	report   *reporter
	from     journal.Seq // the shadow began after this record
	at       journal.Seq // the present record of the history
	freed    bool        // a slot was freed since the last grant

	unit
	numbers
	borrowed
}

// unit is what followed from one input, or one turn, in the history and in the shadow.
type unit struct {
	then    []journal.Scanned // records of the history
	mine    int               // index of the shadow's first record
	again   bool              // it decides about intents that were asked for before
	unlived bool              // the last input, and what follows from it, means nothing to the shadow

	derivedThen, derivedNow []derived // memory is reused
}

// startAt makes the kernel what the world was at a snapshot (0: before its first
// record), under the candidate's rules.
func (s *shadow) startAt(candidate *rules, from journal.Seq) error {
	k := newKernel(nil, false)
	k.replaying = true
	s.kernel, s.together, s.from, s.at = k, true, from, from
	k.rules = candidate
	if from == 0 {
		return nil
	}
	img, err := s.h.Image(from)
	if err != nil {
		return err
	}
	if img == nil || img.Head.ID != from {
		return fmt.Errorf("world: image at #%d: %w", from, journal.ErrNotFound)
	}
	inForce, err := k.restore(img)
	if err != nil {
		return err
	}
	if k.rules, err = rulesOf(inForce, s.h, s.registry, candidate.guard); err != nil {
		return err
	}
	all, err := k.migrate(candidate, k.otherCode(candidate))
	if err != nil {
		return err
	}
	for _, m := range all {
		m.cell.state = m.state
	}
	k.rules, k.volume = candidate, 0
	k.reckon()
	k.dismissVerifiers(from)
	return nil
}

// live runs through a part of the history.
func (s *shadow) live(part stretch) error {
	for rec, err := range s.h.Scan(part.first - 1) {
		if err == nil {
			err = rec.Err
		}
		if err == nil && rec.ID%1024 == 0 && s.cfg.Progress != nil {
			s.cfg.Progress(rec.ID)
		}
		if err != nil {
			return err
		}
		if rec.ID > part.last {
			break
		}
		if rec.ID == part.first && part.turned {
			err = s.turnBack(rec)
		} else {
			err = s.follow(rec)
		}
		if s.over() {
			err = s.rules.guard.ended()
		}
		if err != nil {
			return err
		}
	}
	return s.compare()
}
