package world

import (
	"errors"
	"fmt"
	"time"

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
	When
	Horizon *Horizon   // bounds when it falls due; nil: nothing but the clock does
	Key     *SubmitKey // nil: each submission is another event; see Keyed
}

// When says when an event falls due: at most one of its fields is set. The zero value is
// at once.
type When struct {
	At   manifest.Tick // a tick
	Time *int64        // a time, in nanoseconds since 1970-01-01 UTC: the first tick from there on
	In   time.Duration // so long after now, in whole ticks
}

// tick returns the tick under a clock; 0: at once.
func (w *When) tick(clock manifest.Clock, now manifest.Tick) (at manifest.Tick, err error) {
	switch {
	case w.In > 0:
		at = now.Plus(clock.Ticks(w.In))
	case w.Time == nil:
		at = w.At
	default:
		if at, err = clock.From(*w.Time); err != nil {
			return 0, refuse(ErrBadTick, "at", "%v", err)
		}
		at = max(at, 1) // tick 0 has passed, as any other before now
	}
	return at, comes(clock, at, "at")
}

// comes refuses a tick after a clock's last one: nothing may fall due there.
func comes(clock manifest.Clock, at manifest.Tick, field string) error {
	if last := clock.Last(); at > last {
		return refuse(ErrNoTick, field, "it would be tick %d, and the last is tick %d", at, last)
	}
	return nil
}

// NotEventError says why data is no event as the doors of a world take it.
type NotEventError struct {
	Field string // that is wrong
	Err   error
}

func (e *NotEventError) Error() string { return e.Err.Error() }
func (e *NotEventError) Unwrap() error { return e.Err }

// Decode sets s from a canonical item, as command line and HTTP API read it from JSON: {"event": NAME, "data":
// ANY, "to": CELL, "at": TICK or TIME, "in": DURATION}. The field event is required. Other fields that are absent or
// null, and an empty to, leave s as it is; at or in replaces s.When. The data stays a part of the item. The
// error is a *NotEventError.
func (s *Submission) Decode(item journal.Data) error {
	r := canon.NewReader(item)
	s.Name = ""
	var when When
	for n := r.Map(); n > 0 && r.Err() == nil; n-- {
		field := r.TextBytes()
		if err := s.decode(field, r, &when); err != nil {
			return &NotEventError{string(field), err}
		}
		if r.Err() != nil {
			return &NotEventError{string(field), errors.New("it is not an event: event and to are texts, at is a tick or a time, in is a duration")}
		}
	}
	if r.Close() != nil || s.Name == "" {
		return &NotEventError{"event", errors.New("it is not an event: an object with the field event is")}
	}
	if when != (When{}) {
		s.When = when
	}
	return nil
}

func (s *Submission) decode(field []byte, r *canon.Reader, when *When) error {
	switch string(field) {
	case "data":
		s.Data = r.Raw()
	case "event":
		if !r.Null() {
			s.Name = r.Text()
		}
	case "at", "in":
		return when.decode(string(field), r)
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
		return fmt.Errorf("it has no use for %q: only event, data, at, in and to", field)
	}
	return nil
}

func (w *When) decode(field string, r *canon.Reader) (err error) {
	switch {
	case r.Null():
		return nil
	case *w != (When{}):
		return errors.New("it says when twice: at and in do not go together")
	case field == "in":
		text := r.Text()
		if r.Err() == nil {
			w.In, err = manifest.ParseDuration(text)
		}
	case r.Kind() == canon.KindText:
		var at int64
		at, err = manifest.ParseTime(r.Text())
		w.Time = &at
	default:
		w.At = manifest.Tick(r.Uint())
	}
	return err
}
