package shared

import (
	"context"
	"errors"
	"time"

	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world/local"
)

const (
	// handoverPatience is how long a node gets to give up a world that it is asked for: longer than effects
	// under way do.
	handoverPatience = 20 * time.Second
	// handoverLook is how often it is looked whether it has.
	handoverLook = 50 * time.Millisecond
)

// withHandover does what needs a world to be this process'. A node that has it is asked to give it up, which it does when effects
// under way have ended.
func (s *Store) withHandover(ctx context.Context, id string, do func() (*local.Moved, error)) (*local.Moved, error) {
	bounded, cancel := context.WithTimeout(ctx, handoverPatience)
	defer cancel()
	for asked := false; ; {
		done, err := do()
		var refused *pglog.RefusedError
		owned := errors.As(err, &refused) && refused.State == pglog.Owned
		var locked *store.LockedError // by an owner with the same copies
		if !owned && !errors.As(err, &locked) {
			return done, err
		}
		o, failed := s.Owner(bounded, id)
		switch {
		case failed == nil && o.Live && o.Gives && !o.Here:
			asked, failed = true, s.askForWorld(bounded, id, o.Node)
		case failed == nil && !o.Live && (owned || asked): // who had it is just closing its copy
			failed = pause(bounded)
		default:
			return done, err
		}
		if failed != nil {
			return done, err
		}
	}
}

// askForWorld asks a node for a world, and waits until nobody has it.
func (s *Store) askForWorld(ctx context.Context, id, owner string) error {
	if err := s.Ask(ctx, id); err != nil {
		return err
	}
	if s.asks != nil {
		s.asks(owner)
	}
	for {
		if err := pause(ctx); err != nil {
			return err
		}
		if o, err := s.Owner(ctx, id); err != nil || !o.Live {
			return err
		}
	}
}

func pause(ctx context.Context) error {
	t := time.NewTimer(handoverLook)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
