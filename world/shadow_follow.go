package world

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// follow takes the next record of the history: an input comes to the shadow too,
// and for every turn in the history one is taken.
func (s *shadow) follow(rec Scanned) error {
	kind := rec.Record.Kind
	switch {
	case kind.Input():
		if err := s.compare(); err != nil {
			return err
		}
		s.at, s.unlived = rec.ID, false
		return s.input(rec)
	case kind == KindStepped || kind == KindFailed:
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
	s.unit = append(s.unit, rec)
	return nil
}

// turnOnce takes one turn, if one is left in the tick.
func (s *shadow) turnOnce() error {
	if err := s.answer(); err != nil {
		return err
	}
	s.next()
	return nil
}

// toBarrier takes the turns that are left in the round.
func (s *shadow) toBarrier() error {
	for s.scheduler.left > 0 {
		s.next()
	}
	return s.answer()
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

// input lets an input of the history come to the shadow.
func (s *shadow) input(rec Scanned) error {
	whole := &rec.Record
	switch whole.Kind {
	case KindFinished, KindExpired, KindDue, KindConfirmed, KindLate: // they come at barriers
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
		s.inTick = s.inTick && whole.Kind == KindLate // the others come between ticks
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
func (s *shadow) lives(kind Kind) bool {
	switch kind {
	case KindCreated, KindSubmitted, KindAdvanced, KindFinished, KindExpired, KindDue, KindConfirmed,
		KindResumed, KindOperator, KindResolved, KindForked:
		return true
	default:
		return false
	}
}

// pass writes a record as the history holds it, so that those after it have the
// same numbers and the same chain.
func (s *shadow) pass(rec Scanned) {
	if !s.together {
		return
	}
	s.last = rec.ID
	s.chain.Add(uint64(rec.ID), string(rec.Record.Kind), rec.Bytes)
}

// came notes which record an input of the history is in the shadow.
func (s *shadow) came(rec Scanned, before Seq) {
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
func (s *shadow) accept(rec *Record) error {
	r := canon.NewReader(rec.Payload)
	switch rec.Kind {
	case KindSubmitted:
		return s.refused(rec, s.applySubmitted(r))
	case KindFinished:
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
	case *Created:
		s.create(*b)
	case *Advanced:
		return s.advanceTo(b.To)
	case *OperatorEffect:
		_, err := s.submitEffect(*b)
		return s.refused(rec, err)
	case *Forked:
		return s.refused(rec, s.fork(*b, s.rules))
	default:
		s.decided(body)
	}
	return nil
}

// refused notes that the candidate does not take an input.
func (s *shadow) refused(rec *Record, err error) error {
	if err != nil {
		s.report.refused(rec.ID, err)
	}
	return nil
}

// advanceTo begins a tick of the history, after those that only the shadow has
// something to do in.
func (s *shadow) advanceTo(to manifest.Tick) error {
	for {
		now := Moment{k: s.kernel}
		at, ok := now.NextTick()
		if !ok || at >= to {
			s.again = true // it denies what nobody has approved in time
			return s.advance(to)
		}
		s.together = false
		if err := s.advance(at); err != nil {
			return err
		}
		if err := s.toBoundary(); err != nil {
			return err
		}
	}
}

// decided applies what a person, a verifier or the passing of time has decided. It
// is left out where the shadow has nothing to decide.
func (s *shadow) decided(body Body) {
	err := errNotInFlight
	switch b := body.(type) {
	case *Expired:
		if e := s.counterpart(b.Key); e != nil {
			err = s.expire(e.Intent.Key, e.Attempt, b.Reason)
		}
	case *Due:
		if e := s.counterpart(b.Key); e != nil {
			err = s.due(e.Intent.Key, e.Attempt)
		}
	case *Resumed:
		var cell reducer.Cell
		if cell, err = reducer.ParseCell(b.Cell); err == nil {
			err = s.resume(cell, b.Skip)
		}
	case *Resolved:
		s.again = true
		if e := s.counterpart(b.Key); e != nil {
			mine := *b
			mine.Key, mine.Params = e.Intent.Key, e.Params
			err = s.resolve(mine)
		}
	case *Confirmed:
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
func byPerson(body Body) bool {
	switch b := body.(type) {
	case *Resumed:
		return true
	case *Resolved:
		return !b.verifier()
	case *Confirmed:
		return b.Mode == modePerson
	default:
		return false
	}
}

// counterpart returns the shadow's intent that asks for what one of the history
// asks for, or nil.
func (s *shadow) counterpart(key receipt.Key) *receipt.Entry {
	if mine, ok := s.wants[key]; ok {
		key = mine
	}
	return s.ledger.Entry(key)
}

// finished takes a receipt of the history.
func (s *shadow) finished(data []byte) error {
	r, err := receipt.Decode(data)
	if err != nil {
		return err
	}
	s.report.CostWas = plus(s.report.CostWas, r.Cost)
	e, theirs := s.counterpart(r.Key), s.was.ledger.Entry(r.Key)
	switch {
	case e == nil: // it may still be asked for: see asks
		return nil
	case e.State == receipt.StateInFlight && theirs != nil && ended(theirs) && Seq(theirs.Finished) == s.at:
		return s.giveLast(e, theirs, r, data)
	case e.State == receipt.StateInFlight:
		return s.give(e, r, data)
	default:
		s.owe(r.Key, s.at)
	}
	return nil
}

// giveLast is give of the receipt that ended an intent of the history, after which
// there is no other.
func (s *shadow) giveLast(e, theirs *receipt.Entry, r *receipt.Receipt, data []byte) error {
	e.Attempt, e.Unused = max(e.Attempt, theirs.Attempt), theirs.Unused
	return s.give(e, r, data)
}

// owe notes that a record of the history has ended an intent, and that the shadow's
// is not in flight yet.
func (s *shadow) owe(key receipt.Key, end Seq) {
	e, theirs := s.counterpart(key), s.was.ledger.Entry(key)
	if e != nil && !ended(e) && theirs != nil && ended(theirs) && Seq(theirs.Finished) == end {
		s.owed = append(s.owed, owed{mine: e.Intent.Key, theirs: key})
	}
}

// give answers an attempt in flight with a receipt of the history.
func (s *shadow) give(e *receipt.Entry, r *receipt.Receipt, data []byte) error {
	mine := *r
	mine.World, mine.Key, mine.Attempt, mine.Nonce = s.id, e.Intent.Key, e.Attempt, e.Nonce
	s.report.CostIs = plus(s.report.CostIs, r.Cost)
	_, err := s.finish(&mine, data)
	return err
}

// owed is an intent of the shadow that one of the history has the answer to, which
// came before the shadow's was in flight.
type owed struct{ mine, theirs receipt.Key }

// answer gives, at a barrier, the answers that came before they were asked for,
// and those that were known when the shadow began.
func (s *shadow) answer() error {
	if s.scheduler.left > 0 {
		return nil
	}
	if err := s.tellRecalled(s.h); err != nil {
		return err
	}
	if s.freed {
		s.freed = false
		s.grant()
	}
	for {
		i := slices.IndexFunc(s.owed, func(x owed) bool { return s.ledger.Entry(x.mine).State == receipt.StateInFlight })
		if i < 0 {
			return nil
		}
		x := s.owed[i]
		s.owed = slices.Delete(s.owed, i, i+1)
		if err := s.repay(s.ledger.Entry(x.mine), s.was.ledger.Entry(x.theirs)); err != nil { // it frees a slot
			return err
		}
	}
}

// repay gives an attempt in flight the end that an intent of the history had.
func (s *shadow) repay(e, theirs *receipt.Entry) error {
	body, err := readBody(s.h, Seq(theirs.Finished))
	if err != nil {
		return err
	}
	before := s.last
	switch b := body.(type) {
	case *Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return err
		}
		if err := s.giveLast(e, theirs, r, b.Receipt); err != nil {
			return err
		}
	case *IntentEnded:
		s.end(e, Seq(e.Started), b.Status, b.Outcome, b.Payload)
	default:
		return fmt.Errorf("world: record #%d does not end an intent", theirs.Finished)
	}
	s.equate(before+1, Seq(theirs.Finished))
	return nil
}

// turnBack makes of the shadow, which is where the history was at a snapshot, what
// a rollback to that makes of the history: nothing changes but the tick.
func (s *shadow) turnBack(now manifest.Tick) error {
	if err := s.toBoundary(); err != nil {
		return err
	}
	later := now - s.now
	for _, h := range []alarms{s.scheduled, s.timers} {
		for i := range h {
			h[i].at += later
		}
	}
	s.now = now
	s.inTick, s.handled, s.together, s.unlived = false, 0, false, true
	return nil
}

// conclude lives to the end of the last tick, if that has come, and compares what
// both have come to.
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
	s.compareCells()
	return nil
}

func plus(a, b receipt.Cost) receipt.Cost {
	return receipt.Cost{Calls: a.Calls + b.Calls, Tokens: a.Tokens + b.Tokens, Bytes: a.Bytes + b.Bytes, Micros: a.Micros + b.Micros}
}
