package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// Propose asks for a change of the rules and returns its record and the proposal's
// number. What is refused here could never be applied: see world.World.Propose,
// and *AdaptersError. The world goes on while the candidate is looked at.
func (lw *World) Propose(ctx context.Context, p world.Proposal) (id journal.Seq, n uint64, err error) {
	lw.still.RLock()
	defer lw.still.RUnlock()
	if err := world.Check(ctx, lw.View, &p); err != nil {
		return 0, 0, err
	}
	err = lw.Update(func(w *world.World) error {
		id, n, err = w.Propose(ctx, p)
		return err
	})
	return id, n, err
}

// AdaptersError says which effects of a candidate cannot be performed.
type AdaptersError struct {
	Faults []manifest.Fault
	Lacks  error // *manifest.NoAdapterErrors, where this program lacks what they are about, and nothing is wrong with the candidate
}

// Unwrap returns Lacks.
func (e *AdaptersError) Unwrap() error { return e.Lacks }

func (e *AdaptersError) Error() string {
	return fmt.Sprintf("the candidate's effects cannot be performed: %s: %s", e.Faults[0].Path, e.Faults[0].Msg)
}

// canPerform returns an *AdaptersError where this program cannot perform the effects
// of a manifest: another program may have proposed it.
func (lw *World) canPerform(m *manifest.Manifest, content func(manifest.Hash) ([]byte, error), within *reducer.Bounds) error {
	if faults, lacks := adapterFaults(m, lw.dir, lw.opts, content, within); len(faults) > 0 {
		return &AdaptersError{Faults: faults, Lacks: lacks}
	}
	return nil
}

// adapterFaults says what keeps the effects of a manifest from being performed. lacks is
// not nil where that is nothing but adapters that the program lacks.
func adapterFaults(
	m *manifest.Manifest, dir string, opts Options, content func(manifest.Hash) ([]byte, error), within *reducer.Bounds,
) (faults []manifest.Fault, lacks error) {
	cfg := hostConfig(dir, opts)
	cfg.Manifest, cfg.Content, cfg.Within = m, content, within
	var missing []error
	for _, e := range host.Check(cfg) {
		if errors.As(e, new(*manifest.NoAdapterError)) {
			missing = append(missing, e)
		}
		part := "/config"
		if e.Verifier {
			part = "/verify"
		}
		faults = append(faults, manifest.Fault{Path: "/effects/" + e.Kind + part, Msg: e.Err.Error()})
	}
	if len(missing) == len(faults) {
		lacks = errors.Join(missing...)
	}
	return faults, lacks
}

// lackingError is what is wrong with a world file for this program only: a *source.Error
// and *manifest.NoAdapterErrors.
type lackingError struct{ file, lacks error }

func (e *lackingError) Error() string   { return e.file.Error() }
func (e *lackingError) Unwrap() []error { return []error{e.file, e.lacks} }

// Rehearse runs a manifest that nobody has proposed on the world's history; see
// world.Moment.Rehearse. The world goes on meanwhile; Close, and what moves records or
// copies the store, waits.
func (lw *World) Rehearse(ctx context.Context, m *manifest.Manifest, contents map[manifest.Hash][]byte, cfg world.ShadowConfig) (*governance.Report, error) {
	lw.still.RLock()
	defer lw.still.RUnlock()
	return lw.rehearse(ctx, m, contents, cfg)
}

// rehearse runs a manifest on the history that led to the last record, in a world made
// anew of it: that of the owner goes on.
func (lw *World) rehearse(ctx context.Context, m *manifest.Manifest, contents map[manifest.Hash][]byte, cfg world.ShadowConfig) (*governance.Report, error) {
	lw.mu.Lock()
	err := lw.w.Sync()
	last := lw.w.Status().Head.ID
	lw.mu.Unlock()
	if err != nil {
		return nil, err
	}
	then, err := lw.At(last)
	if err != nil {
		return nil, err
	}
	cfg.Bounds = cmp.Or(cfg.Bounds, lw.opts.Bounds.withDefaults().Bounds)
	return then.Rehearse(ctx, m, contents, cfg)
}

// PreviewApply says what an apply of a manifest would come to now; see world.PreviewApply. The
// world goes on meanwhile; Close, and what moves records or copies the store, waits.
func (lw *World) PreviewApply(ctx context.Context, m *manifest.Manifest, contents map[manifest.Hash][]byte) (*world.Preview, error) {
	lw.still.RLock()
	defer lw.still.RUnlock()
	return world.PreviewApply(ctx, lw.View, m, contents)
}

// Shadow runs the candidate of a proposal on the world's history, as Rehearse does, and
// records the report; see world.World.Shadow.
func (lw *World) Shadow(
	ctx context.Context, proposal uint64, cfg world.ShadowConfig, actor string,
) (id journal.Seq, r *governance.Report, err error) {
	lw.still.RLock()
	defer lw.still.RUnlock()
	var next *manifest.Manifest
	lw.View(func(m *world.Moment) { next, err = m.CandidateOf(proposal, actor) })
	if err != nil {
		return 0, nil, err
	}
	if r, err = lw.rehearse(ctx, next, nil, cfg); err != nil {
		return 0, nil, err
	}
	err = lw.Update(func(w *world.World) error {
		id, err = w.Shadowed(ctx, proposal, r, actor)
		return err
	})
	return id, r, err
}

// Apply puts the candidate of a proposal in force, once no effect is in flight; see
// world.World.Apply, and *AdaptersError; world.Moment.WouldApply says beforehand. What is permitted
// and not begun is taken back, and nothing is permitted meanwhile; other calls go on. When ctx ends before its
// record is written, no other rules are in force. The world can be run on at once.
func (lw *World) Apply(ctx context.Context, proposal uint64, actor string) (id journal.Seq, done world.Outcome, err error) {
	return lw.apply(ctx, proposal, actor, nil)
}

func (lw *World) apply(ctx context.Context, proposal uint64, actor string, judge trusting) (id journal.Seq, done world.Outcome, err error) {
	release, err := lw.hold(ctx, func(w *world.World) error {
		if _, err := w.WouldApply(ctx, proposal); err != nil {
			return err
		}
		undo, err := lw.trustCandidate(w, proposal, actor, judge)
		undo()
		return err
	})
	if err != nil {
		return 0, done, err
	}
	defer release()
	if err := lw.land(ctx); err != nil {
		return 0, done, err
	}
	err = lw.Update(func(w *world.World) error {
		undo, err := lw.trustCandidate(w, proposal, actor, judge)
		if err == nil {
			id, done, err = w.Apply(ctx, proposal, actor)
		}
		if err != nil {
			undo()
		}
		return err
	})
	return id, done, err
}

// land waits until no effect is in flight.
func (lw *World) land(ctx context.Context) error {
	for !lw.opts.Still { // nothing is under way there, and what is permitted does not end
		var at journal.Seq
		landed, err := Change(lw, func(w *world.World) (landed bool, err error) {
			landed, err = w.Landed(ctx)
			at = w.Status().Head.ID
			return landed, err
		})
		if err != nil || landed {
			return err
		}
		if err := lw.awaitNews(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// Hold has the world permit nothing until release is called, and takes back what its host has not begun; see
// world.World.Hold. Other calls go on.
func (lw *World) Hold(ctx context.Context) (release func(), err error) {
	return lw.hold(ctx, func(*world.World) error { return nil })
}

// hold is Hold, unless first fails.
func (lw *World) hold(ctx context.Context, first func(*world.World) error) (release func(), err error) {
	err = lw.Update(func(w *world.World) error {
		if err := first(w); err != nil {
			return err
		}
		held, err := w.Hold(ctx)
		release = func() {
			lw.mu.Lock()
			defer lw.mu.Unlock()
			held()
		}
		return err
	})
	return release, err
}
