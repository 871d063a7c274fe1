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
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
)

// ShadowConfig says how much of the history a shadow runs on. The zero value
// begins where the manifest in force was applied; where a rollback has led to before
// that, with the last snapshot there is.
type ShadowConfig struct {
	From     string               // begin with this snapshot, whatever At and Last say
	At       journal.Seq          // begin with the last snapshot up to this record, which is of the history, or before the first record; whatever Last says
	Last     journal.Seq          // begin with the last snapshot that so many records follow, or before the first record
	Listed   int                  // differences of a kind that the report lists; 0: governance.MaxListed, and another number is not for a record
	Bounds   Bounds               // of the candidate; zero: Config.Bounds
	Progress func(at journal.Seq) // now and then; nil: nobody looks
	Governed bool                 // the rules are another manifest's, see Manifest.GovernedBy, and may name what only that declares
}

// ErrLeftPart says that a snapshot, or another moment, is in a part of the history that
// a rollback has left.
var ErrLeftPart = errors.New("a rollback has left the part of the history that it is in")

// Shadow runs the candidate of an open proposal on the history of the world, as
// Rehearse does, and records the report, in the record that it returns: nothing else
// changes. It is durable on return. Who must not hold the world meanwhile has a moment
// of it rehearse CandidateOf, and calls Shadowed.
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

// CandidateOf returns the candidate of an open proposal, which somebody wants shadowed.
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

// Rehearse runs a manifest on the recorded history that led to the moment and
// reports what would have been otherwise. It changes nothing and
// performs nothing: inputs come when they came, and effects are answered by the
// receipts of the intents that ask for the same: by cell, kind, params and
// occurrence. Where the history has no answer, that is what the report says. Parts
// that a rollback left are no part of the history, but their receipts answer.
// contents are those that next names and the history may not hold.
//
// The errors are an *InputError of ErrMigration, ErrLeftPart, a *BoundError, those of
// package snapshot for a name, and those of reading: ErrRedacted where an input is gone.
func (m *Moment) Rehearse(ctx context.Context, next *manifest.Manifest, contents map[manifest.Hash][]byte, cfg ShadowConfig) (*governance.Report, error) {
	encoded, err := next.Encode()
	if err != nil {
		return nil, err
	}
	s := &shadow{was: m.k, h: m.past, registry: m.registry, cfg: cfg, wants: make(map[receipt.Key]receipt.Key), unanswered: make(map[receipt.Key]dueAnswer)}
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

// overlaid are contents in front of others.
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

// shadowFrom returns the name and the record of the snapshot that a shadow begins
// with. Where that has no name it is the image of when the manifest in force was
// applied, or 0: before the first record.
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

// stretch is a part of the history without a rollback but, perhaps, its first
// record, which leads to the end of the stretch before.
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

// shadow is a kernel that lives by a candidate's rules through the history of
// another. As long as all that it writes is what the history holds, byte for
// byte, it numbers and chains its records alike.
type shadow struct {
	*kernel

	was      *kernel // what the history came to
	h        journal.History
	registry reducer.Registry
	cfg      ShadowConfig
	report   *reporter

	from                    journal.Seq // the record that it began behind
	at                      journal.Seq // the record of the history that is lived through
	derivedThen, derivedNow []derived   // of the history and the shadow in this unit; memory that is used again

	unit     []journal.Scanned // of the history: what followed from one input, or one turn
	mine     int               // the first of the shadow's records that are its counterpart
	again    bool              // the unit decides about intents that were asked for before
	together bool              // nothing has been other than in the history, numbers included
	freed    bool              // a slot, since grants were made
	unlived  bool              // what follows from the last input is not the shadow's
	aligned  journal.Seq       // up to here the shadow's records have the history's numbers
	runs     []run             // of those after

	wants      map[receipt.Key]receipt.Key       // of an intent of the history: the shadow's, where it is another
	known      map[receipt.Request][]receipt.Key // intents of the history that the shadow has not asked for; nil: nobody has looked
	unanswered map[receipt.Key]dueAnswer         // answers that the history has and the shadow's intents have not
	noted      uint64                            // that were ever noted
	ends       map[journal.Seq][]byte            // the shadow's own records that ended an intent, by their numbers: a cell may be told again
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

// live lives through a part of the history.
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
