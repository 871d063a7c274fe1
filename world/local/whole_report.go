package local

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

// ErrOtherReport says that a report cannot be made again as it was recorded: the snapshot
// that it began with is gone, or another version of the kernel has made it.
var ErrOtherReport = errors.New("the report cannot be made again as it was recorded")

// WholeReport makes the last report about a proposal again, and lists up to so many
// differences of a kind, where the record has the first governance.MaxListed: those are
// the same. The world goes on meanwhile. The error is governance.ErrNoProposal,
// governance.ErrNotShadowed, ErrOtherReport, or that of Rehearse.
func (lw *World) WholeReport(ctx context.Context, proposal uint64, most int) (*governance.Report, error) {
	lw.still.RLock()
	defer lw.still.RUnlock()
	var recorded *governance.Report
	var err error
	lw.View(func(m *world.Moment) { recorded, err = m.ReportOf(proposal) })
	if err != nil {
		return nil, err
	}
	if recorded == nil {
		return nil, fmt.Errorf("p%d: %w", proposal, governance.ErrNotShadowed)
	}
	encoded, err := lw.store.Blob(recorded.Candidate)
	if err != nil {
		return nil, err
	}
	next, err := manifest.Decode(encoded)
	if err != nil {
		return nil, err
	}
	then, err := lw.At(journal.Seq(recorded.To))
	if err != nil {
		return nil, err
	}
	whole, err := then.Rehearse(ctx, next, nil, world.ShadowConfig{
		From: recorded.Snapshot, At: beginOf(recorded), Listed: most, Bounds: lw.opts.Bounds.withDefaults().Bounds,
	})
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, snapshot.ErrNoSnapshot) { // the image is gone
		err = fmt.Errorf("%w: %w", ErrOtherReport, err)
	}
	if err != nil {
		return nil, err
	}
	was, err := recorded.Hash()
	if err != nil {
		return nil, err
	}
	if is, err := whole.Short().Hash(); err != nil || is != was {
		return nil, errors.Join(ErrOtherReport, err)
	}
	return whole, nil
}

// beginOf returns the record that leads a shadow to begin where a report without a
// snapshot did: 0 is where the manifest was applied that is in force.
func beginOf(r *governance.Report) journal.Seq {
	if r.From == 1 {
		return 1
	}
	return 0
}
