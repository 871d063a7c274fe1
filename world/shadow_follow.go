package world

import (
	"bytes"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// follow takes the next record of the history. The shadow gets the same inputs, and takes a turn for each turn
// in the history.
func (s *shadow) follow(rec journal.Scanned) error {
	kind := rec.Record.Kind
	switch {
	case kind.Input():
		if err := s.compare(); err != nil {
			return err
		}
		s.at, s.unlived = rec.ID, false
		return s.input(rec)
	case kind == journal.KindStepped || kind == journal.KindFailed:
		if err := s.compare(); err != nil {
			return err
		}
		s.unlived = false
		s.report.Events++
		if err := s.turnOnce(); err != nil {
			return err
		}
	case s.unlived:
		s.pass(rec)
		return nil
	}
	s.then = append(s.then, rec)
	return nil
}

// turnOnce takes one turn, if one is left in the tick.
func (s *shadow) turnOnce() error {
	if err := s.giveAnswers(); err != nil {
		return err
	}
	s.next()
	return nil
}

// toBarrier takes the turns that are left in the round.
func (s *shadow) toBarrier() error {
	for s.scheduler.left > 0 && s.next() { //nolint:revive // a turn is all there is to do
	}
	return s.giveAnswers()
}

// toBoundary takes the turns that are left in the tick.
func (s *shadow) toBoundary() error {
	for {
		if err := s.toBarrier(); err != nil {
			return err
		}
		if !s.next() {
			return s.compare()
		}
	}
}

// input gives an input of the history to the shadow.
func (s *shadow) input(rec journal.Scanned) error {
	whole := &rec.Record
	switch whole.Kind {
	case journal.KindFinished, journal.KindExpired, journal.KindDue, journal.KindConfirmed, journal.KindLate: // they come at barriers
		if err := s.toBarrier(); err != nil {
			return err
		}
	default:
		if err := s.toBoundary(); err != nil {
			return err
		}
	}
	if err := s.compare(); err != nil { // what has come since has no counterpart
		return err
	}
	if !s.lives(whole.Kind) {
		s.pass(rec)
		s.unlived = true
		s.inTick = s.inTick && whole.Kind == journal.KindLate // the others come between ticks
		return nil
	}
	if err := whole.Load(s.h); err != nil {
		return err
	}
	before := s.last
	if err := s.accept(whole); err != nil {
		return err
	}
	s.came(rec, before)
	return nil
}

// lives reports whether inputs of a kind mean something to a shadow. The others
// are about the journal, or about another manifest.
func (s *shadow) lives(kind journal.Kind) bool {
	switch kind {
	case journal.KindCreated, journal.KindSubmitted, journal.KindAdvanced, journal.KindFinished, journal.KindExpired, journal.KindDue, journal.KindConfirmed,
		journal.KindResumed, journal.KindOperator, journal.KindResolved, journal.KindForked:
		return true
	default:
		return false
	}
}

// pass writes a record as the history holds it, so that those after it have the
// same numbers and the same chain.
func (s *shadow) pass(rec journal.Scanned) {
	if !s.together {
		return
	}
	s.last = rec.ID
	s.chain.Add(uint64(rec.ID), string(rec.Record.Kind), rec.Bytes)
}

// came notes which record an input of the history is in the shadow.
func (s *shadow) came(rec journal.Scanned, before journal.Seq) {
	if s.last == before {
		s.together = false
		return
	}
	input := &s.records[0]
	s.together = s.together && bytes.Equal(input.Bytes, rec.Bytes)
	s.equate(input.ID, rec.ID)
	s.mine = 1
}

// accept applies an input. What cannot be applied is noted, and the history goes on.
func (s *shadow) accept(rec *journal.Record) error {
	r := canon.NewReader(rec.Payload)
	if rec.Kind == journal.KindSubmitted {
		s.refused(rec, s.applySubmitted(r, false))
		return nil
	}
	if rec.Kind == journal.KindFinished {
		r.ArrayOf(2)
		r.Uint() // the version
		data := r.Raw()
		if err := r.Close(); err != nil {
			return err
		}
		return s.finished(data)
	}
	body, err := rec.Body()
	if err != nil {
		return err
	}
	switch b := body.(type) {
	case *journal.Created:
		s.create(*b)
	case *journal.Advanced:
		return s.advanceTo(b)
	case *journal.OperatorEffect:
		_, err := s.submitEffect(*b)
		s.refused(rec, err)
	case *journal.Forked:
		s.refused(rec, s.fork(*b, s.rules))
	default:
		s.decided(body)
	}
	return nil
}

// refused notes that the candidate does not take an input.
func (s *shadow) refused(rec *journal.Record, err error) {
	if err != nil {
		s.report.refused(rec.ID, err)
	}
}

// advanceTo begins a tick of the history. Before it come the ticks in which only the shadow has something to
// do.
func (s *shadow) advanceTo(b *journal.Advanced) error {
	for to := b.To; ; {
		at, ok := s.ownTick()
		if !ok || at <= s.now || at >= to {
			s.again = true // it denies what nobody has approved in time
			if to > s.now || s.tickOpen() {
				return s.advance(to, b.Still)
			}
			s.beginTick(to, b.Still) // of a real clock, whatever the candidate's is
			return nil
		}
		s.together = false
		if err := s.advance(at, false); err != nil {
			return err
		}
		if err := s.toBoundary(); err != nil {
			return err
		}
	}
}

// ownTick returns the next tick that the shadow needs by itself; false: there is none. Under a real clock that
// is a tick in which something falls due. Everything else waits for the next input, and inputs come from the
// history.
func (s *shadow) ownTick() (manifest.Tick, bool) {
	now := Moment{k: s.kernel}
	if s.was.rules.manifest.Clock.Real() {
		return now.NextDue()
	}
	return now.NextTick()
}

// decided applies a decision of a person, of a verifier, or of the passing of time, unless the shadow has
// nothing to decide.
func (s *shadow) decided(body journal.Body) {
	err := errNotInFlight
	switch b := body.(type) {
	case *journal.Expired:
		if e := s.counterpart(b.Key); e != nil {
			s.wake(e)
			if e.State == receipt.StateInFlight {
				e.Attempt = max(e.Attempt, b.Attempt) // some were made in parts that rollbacks have left
			}
			err = s.expire(e.Intent.Key, e.Attempt, b.Reason)
		}
	case *journal.Due:
		if e := s.counterpart(b.Key); e != nil {
			err = s.due(e.Intent.Key, e.Attempt)
		}
	case *journal.Resumed:
		var cell reducer.Cell
		if cell, err = reducer.ParseCell(b.Cell); err == nil {
			err = s.resume(cell, *b)
		}
	case *journal.Resolved:
		s.again = true
		if e := s.counterpart(b.Key); e != nil {
			mine := *b
			mine.Key, mine.Params = e.Intent.Key, e.Params
			err = s.resolve(mine)
		}
	case *journal.Confirmed:
		if e := s.counterpart(b.Key); e != nil {
			mine := *b
			mine.Key = e.Intent.Key
			err = s.confirm(mine)
		}
	}
	if err != nil && byPerson(body) {
		s.report.Counts.LeftOut++
	}
}

// byPerson reports whether an input is a person's.
func byPerson(body journal.Body) bool {
	switch b := body.(type) {
	case *journal.Resumed:
		return true
	case *journal.Resolved:
		return !ByVerifier(b.Actor)
	case *journal.Confirmed:
		return b.Mode == modePerson
	default:
		return false
	}
}

// conclude runs to the end of the last tick, if the history has reached it, and compares the cells of both.
func (s *shadow) conclude() error {
	if err := s.compare(); err != nil {
		return err
	}
	if !s.was.tickOpen() {
		if err := s.toBoundary(); err != nil {
			return err
		}
	}
	s.report.leftOver()
	if err := s.placeFailures(); err != nil {
		return err
	}
	s.compareCells()
	return nil
}
