package world

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/journal"
)

// ReplayAt calls look with the world as it was after each of some records, ascending: with what At returns for
// each. It replays once, from the image before the first of them, and goes on from a later image if that saves
// many records. A moment is valid until look returns. Of cfg it takes Registry, Spilling and Bounds. When ctx
// ends, ReplayAt ends.
func ReplayAt(ctx context.Context, h journal.History, at []journal.Seq, cfg ReplayConfig, look func(at journal.Seq, m *Moment) error) error {
	cfg.guard = newGuard(ctx, cfg.Bounds)
	a := visitingReplay{h: h, left: at, look: look, cfg: cfg, far: farImage}
	return a.run()
}

// visitingReplay is one replay that looks at several records.
type visitingReplay struct {
	h      journal.History
	cfg    ReplayConfig
	left   []journal.Seq // to be looked at
	look   func(at journal.Seq, m *Moment) error
	far    journal.Seq // an image is read that saves more records than this
	failed error       // of look, which no other way there can mend
}

func (a *visitingReplay) run() error {
	for len(a.left) > 0 {
		if err := a.stretch(); err != nil {
			return err
		}
	}
	return nil
}

// farImage is how many records an image has to save for another to be read.
const farImage = 10_000

// stretch replays from one image as far as no other saves much.
func (a *visitingReplay) stretch() error {
	cfg := a.cfg
	cfg.To = a.left[a.until()-1]
	cfg.stops = a
	img, begun, err := cfg.Spilling.imageBefore(a.h, a.left[0])
	if isSpill(err) {
		return err
	}
	if cfg.begun = begun; err != nil {
		img = nil // what else is wrong the records tell
	}
	k, err := loadThrough(a.h, img, cfg)
	if err != nil && img != nil && a.failed == nil && !isMissing(err) && !isSpill(err) && cfg.guard.ended() == nil {
		cfg.begun = nil
		k, err = loadThrough(a.h, nil, cfg)
	}
	switch {
	case a.failed != nil:
		return a.failed
	case err != nil:
		return err
	}
	err = a.stop(k, cfg.To+1)
	return errors.Join(err, k.store.close())
}

// until returns how many of the records that are left one stretch looks at.
func (a *visitingReplay) until() int {
	images, ok := a.h.(journal.Versions)
	if !ok {
		return len(a.left)
	}
	for i, before := range a.left[:len(a.left)-1] {
		next := a.left[i+1]
		if next-before <= a.far {
			continue
		}
		img, err := images.Core(next)
		if err == nil && img != nil && img.Head.ID > before && img.Head.ID-before > a.far {
			return i + 1
		}
	}
	return len(a.left)
}

// stop looks at a kernel at all that is left before a record.
func (a *visitingReplay) stop(k *kernel, before journal.Seq) error {
	for len(a.left) > 0 && a.left[0] < before {
		if err := k.deliverRecalled(a.h); err != nil {
			return err
		}
		at := a.left[0]
		a.left = a.left[1:]
		if a.failed = a.look(at, &Moment{k: k, past: a.h, registry: a.cfg.Registry}); a.failed != nil {
			return a.failed
		}
	}
	return nil
}
