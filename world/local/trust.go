package local

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// UntrustedError says which effects of a candidate this process would not perform, and that nobody who is trusted
// puts it in force.
type UntrustedError struct{ Faults []manifest.Fault }

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the candidate needs what this process does not do for the world: %s: %s. Its trust file has to name it, or whoever runs the process applies the candidate there",
		e.Faults[0].Path, e.Faults[0].Msg)
}

// beginTrust says what is performed for the world, whose manifest in force is m when it is opened.
func (lw *World) beginTrust(m *manifest.Manifest) error {
	if lw.opts.Trust == nil || lw.trust != nil {
		return nil
	}
	if err := lw.opts.Trust.CheckPrograms(lw.dir); err != nil {
		return fmt.Errorf("trust file: %w", err)
	}
	if lw.trust = lw.opts.Trust; lw.opts.TrustFound {
		lw.trust = lw.trust.And(m)
	}
	return nil
}

// tellWithheld tells of the effects that are not performed.
func (lw *World) tellWithheld(id string, m *manifest.Manifest) {
	if lw.opts.Withheld == nil {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Effects)) {
		if why := lw.host.Withheld(kind); why != nil {
			lw.opts.Withheld(id, kind, why)
		}
	}
}

// Withheld says why effects of a kind are not performed by this process, and wait; nil: they are. It never waits.
func (lw *World) Withheld(kind string) error {
	if e := lw.edition.Load(); e != nil && e.host != nil {
		return e.host.Withheld(kind)
	}
	return nil
}

// ApplyTrusted is Apply for who may not have this process do more than it does: an *UntrustedError where an effect of
// the candidate that the manifest in force does not have is not trusted.
func (lw *World) ApplyTrusted(ctx context.Context, proposal uint64, actor string) (id journal.Seq, done world.Outcome, err error) {
	return lw.apply(ctx, proposal, actor, lw.judge)
}

// AmendTrusted returns an amendment that fails with an *UntrustedError for an effect outside the
// trust file.
func (lw *World) AmendTrusted(amend world.Amendment) world.Amendment {
	if amend == nil || lw.trust == nil {
		return amend
	}
	return func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		next, contents, err := amend(base)
		if err == nil {
			err = lw.judge(next, base)
		}
		return next, contents, err
	}
}

// judge says which effects of a manifest are not trusted that another does not have.
func (lw *World) judge(next, now *manifest.Manifest) error {
	had := new(trust.Trust).And(now)
	var faults []manifest.Fault
	for _, kind := range slices.Sorted(maps.Keys(next.Effects)) {
		e := next.Effects[kind]
		for i, part := range trust.Parts(&e) {
			path := "/effects/" + kind + "/config"
			if i > 0 {
				path = "/effects/" + kind + "/verify"
			} else if lw.opts.Remote {
				continue // who performs it judges for itself
			}
			if had.Found(part) { // nobody is worse off for what is there already
				continue
			}
			if why := lw.trust.Refuses(kind, part); why != nil {
				faults = append(faults, manifest.Fault{Path: path, Msg: why.Error()})
			}
		}
	}
	if len(faults) > 0 {
		return &UntrustedError{faults}
	}
	return nil
}

// trusting judges a candidate by what is trusted, before it is put in force; nil: it trusts it.
type trusting func(next, now *manifest.Manifest) error

// trustCandidate has a candidate be judged, or trusted where who applies it is. undo is called where it is not applied.
func (lw *World) trustCandidate(w *world.World, proposal uint64, actor string, judge trusting) (undo func(), err error) {
	was := lw.trust
	undo = func() { lw.trust = was }
	if was == nil {
		return undo, nil
	}
	next, err := w.CandidateOf(proposal, actor)
	switch {
	case err != nil:
		return undo, err
	case judge != nil:
		return undo, judge(next, w.Manifest())
	case lw.opts.TrustFound:
		lw.trust = was.And(next)
	}
	return undo, nil
}
