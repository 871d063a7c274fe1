package logtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
)

// refuses reports whether a log has nothing to do with the world. The mutex is held.
func (s *Server) refuses(l *memory) bool {
	return s.state == journal.Moved || s.state == journal.Made && !l.makes
}

// Stands implements journal.Movable. A world without records may as well be none.
func (l *memory) Stands(context.Context) (journal.Standing, error) {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == "" && s.head.ID == 0 {
		return journal.Standing{}, nil
	}
	is := journal.Standing{State: cmp.Or(s.state, journal.Live), Head: s.head, Copies: s.copies}
	if was := s.remembered(); was != nil {
		is.Left = journal.Left{Head: was.head, To: was.to}
	}
	return is, nil
}

// remembered is what was moved away; nil: nothing. The mutex is held.
func (s *Server) remembered() *contents {
	if s.state == journal.Moved {
		return &s.contents
	}
	return s.left
}

// Make implements journal.Movable.
func (l *memory) Make(_ context.Context, m journal.Making) error {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == "" && s.head.ID > 0 || s.state == journal.Live {
		return errors.New("the world is live")
	}
	made := contents{epoch: s.epoch, state: journal.Made, copies: m.Copies}
	if was := s.remembered(); was != nil {
		if m.Over != (journal.Left{Head: was.head, To: was.to}) {
			s.contents, s.epoch = *was, max(was.epoch, s.epoch)
			return fmt.Errorf("the world is %s", s.state)
		}
		kept := *was
		made.left = &kept
	}
	s.contents = made
	l.makes = true
	return nil
}

// Sibling returns another world of the store.
func (l *memory) Sibling(id string, _ []byte) journal.Movable {
	if l.server.Beside == nil {
		return &memory{server: &Server{}}
	}
	return l.server.Beside(id)
}

// Inherit implements journal.Movable. All worlds in memory lie in one store.
func (l *memory) Inherit(_ context.Context, from journal.Log, to journal.Head) error {
	parent, ok := from.(*memory)
	if !ok {
		return journal.ErrElsewhere
	}
	parent.server.mu.Lock()
	has := parent.server.clone()
	parent.server.mu.Unlock()
	if to.ID > has.head.ID || to.ID > 0 && has.records[to.ID-1].Link != [journal.LinkBytes]byte(to.Root[:]) {
		return fmt.Errorf("it has no record #%d as it is asked for", to.ID)
	}
	return l.own(func(c *contents) error {
		if c.state != journal.Made || c.head.ID > 0 && c.head != to {
			return errors.New("it has records of its own")
		}
		c.records, c.blobs, c.head, l.tail = has.records[:to.ID:to.ID], has.blobs, to, to
		return nil
	})
}

// Publish implements journal.Movable.
func (l *memory) Publish(context.Context) error { return l.turn(journal.Live, "") }

// MoveAway implements journal.Movable.
func (l *memory) MoveAway(_ context.Context, to string) error { return l.turn(journal.Moved, to) }

func (l *memory) turn(state journal.State, to string) error {
	return l.own(func(c *contents) error {
		if c.state == journal.Moved && state != journal.Moved {
			return errors.New("the world is moved")
		}
		c.state, c.to, c.left = state, to, nil
		return nil
	})
}
