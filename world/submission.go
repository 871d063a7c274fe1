package world

import (
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Submission is an event from outside.
type Submission struct {
	Name string
	Data journal.Data  // canonical; empty is null
	To   *reducer.Cell // nil: where the manifest's routes send it
	At   manifest.Tick // the tick at which it falls due; 0: at once
}

// NotEventError says why data is no event as the doors of a world take it.
type NotEventError struct {
	Field string // which it is about
	Err   error
}

func (e *NotEventError) Error() string { return e.Err.Error() }
func (e *NotEventError) Unwrap() error { return e.Err }

// Decode takes an event from a canonical item, as both doors of a world read it from
// JSON: {"event": NAME, "data": ANY, "to": CELL, "at": TICK}. A field that is absent
// or null, and an empty to, leave s as it is, but for the name, which must be there.
// The data is part of the item. The error is a *NotEventError.
func (s *Submission) Decode(item journal.Data) error {
	r := canon.NewReader(item)
	s.Name = ""
	for n := r.Map(); n > 0 && r.Err() == nil; n-- {
		field := r.Text()
		if err := s.decode(field, r); err != nil {
			return &NotEventError{field, err}
		}
		if r.Err() != nil {
			return &NotEventError{field, errors.New("it is not an event: event and to are texts, at is a tick")}
		}
	}
	if r.Close() != nil || s.Name == "" {
		return &NotEventError{"event", errors.New("it is not an event: an object with the field event is")}
	}
	return nil
}

func (s *Submission) decode(field string, r *canon.Reader) error {
	switch field {
	case "data":
		s.Data = r.Raw()
	case "event":
		if !r.Null() {
			s.Name = r.Text()
		}
	case "at":
		if !r.Null() {
			s.At = manifest.Tick(r.Uint())
		}
	case "to":
		if r.Null() {
			return nil
		}
		name := r.Text()
		if r.Err() != nil || name == "" {
			return nil
		}
		cell, err := reducer.ParseCell(name)
		if err != nil {
			return err
		}
		s.To = &cell
	default:
		return fmt.Errorf("it has no use for %q: only event, data, at and to", field)
	}
	return nil
}
