package logtest

import (
	"cmp"
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/journal"
)

// refuses reports whether a log has nothing to do with the world. The mutex is held.
func (s *Server) refuses(l *memory) bool {
	return s.state == journal.Moved || s.state == journal.Made && !l.makes
}

// State implements journal.Movable. A world without records may as well be none.
func (l *memory) State(context.Context) (journal.State, error) {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == "" && s.head.ID == 0 {
		return journal.Absent, nil
	}
	return cmp.Or(s.state, journal.Live), nil
}

// Make implements journal.Movable.
func (l *memory) Make(ctx context.Context) error {
	state, _ := l.State(ctx)
	if state == journal.Live {
		return errors.New("the world is live")
	}
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents = contents{epoch: s.epoch, state: journal.Made}
	l.makes = true
	return nil
}

// Publish implements journal.Movable.
func (l *memory) Publish(context.Context) error { return l.turn(journal.Live) }

// MoveAway implements journal.Movable.
func (l *memory) MoveAway(context.Context) error { return l.turn(journal.Moved) }

func (l *memory) turn(to journal.State) error {
	return l.own(func(c *contents) error {
		c.state = to
		return nil
	})
}
