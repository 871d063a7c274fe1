package world

import (
	"context"

	"github.com/worldkernel/worldkernel/journal"
)

// AlongJumping is ReplayAt that reads any image that saves more than so many records.
func AlongJumping(ctx context.Context, h journal.History, at []journal.Seq, far journal.Seq, cfg ReplayConfig, look func(journal.Seq, *Moment) error) error {
	cfg.guard = newGuard(ctx, cfg.Bounds)
	a := visitingReplay{h: h, left: at, look: look, cfg: cfg, far: far}
	return a.run()
}
