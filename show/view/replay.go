package view

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// Replay says what came of computing a world again from its inputs.
type Replay struct {
	OK              bool              `json:"ok"`
	Records         uint64            `json:"records"`          // that are equal
	StateRoot       *journal.Hash     `json:"state_root"`       // null where it diverged
	FirstDivergence *world.Divergence `json:"first_divergence"` // null where it did not
}

// Replay computes the records after one, 0 or that of a snapshot, up to another again, with so
// much memory; see local.World.ReplayFrom. The answer is nil where the records cannot be compared; where
// they differ, the error is the *world.Divergence.
func (j Journal) Replay(ctx context.Context, from, to journal.Seq, memory int, progress func(uint64)) (*Replay, error) {
	done, err := j.Local.ReplayFrom(ctx, from, to, memory, progress)
	var d *world.Divergence
	switch {
	case err == nil:
		return &Replay{OK: true, Records: uint64(done.Head.ID - from), StateRoot: &done.StateRoot}, nil
	case errors.As(err, &d):
		return &Replay{Records: uint64(d.Record - 1 - from), FirstDivergence: d}, err
	}
	return nil, err
}
