package world

import (
	"fmt"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// borrowed says which intents of the history answer which of the shadow.
type borrowed struct {
	wants      map[receipt.Key]receipt.Key       // the shadow's intent for an intent of the history, if the keys differ
	theirs     map[receipt.Key]receipt.Key       // the other way round
	known      map[receipt.Request][]receipt.Key // intents of the history that the shadow has not asked for; nil: not computed yet
	unanswered map[receipt.Key]dueAnswer         // answers that the history has and the shadow's intents do not have yet
	noted      uint64                            // number of answers ever noted
	ends       map[journal.Seq][]byte            // the shadow's own records that ended an intent, by their numbers: a cell may be told again
}

func newBorrowed() borrowed {
	return borrowed{
		wants: make(map[receipt.Key]receipt.Key), theirs: make(map[receipt.Key]receipt.Key),
		unanswered: make(map[receipt.Key]dueAnswer), ends: make(map[journal.Seq][]byte),
	}
}

// finished takes a receipt of the history.
func (s *shadow) finished(data []byte) error {
	r, err := receipt.Decode(data)
	if err != nil {
		return err
	}
	s.report.CostWas = governance.Sum(s.report.CostWas, r.Cost)
	e, theirs := s.counterpart(r.Key), s.was.ledger.Entry(r.Key)
	if e == nil { // it may still be asked for: see asks
		return nil
	}
	s.wake(e)
	late := e.State == receipt.StateInDoubt && e.Attempt == r.Attempt
	switch {
	case e.State != receipt.StateInFlight && !late:
		s.noteAnswer(e, r.Key, s.at)
		return nil
	case theirs != nil && theirs.Ended() && journal.Seq(theirs.Finished) == s.at:
		return s.giveLast(e, theirs, r, data)
	default:
		return s.give(e, r, data)
	}
}

// give answers an attempt, in flight or in doubt, with a receipt of the history.
func (s *shadow) give(e *receipt.Entry, r *receipt.Receipt, data []byte) error {
	mine := *r
	mine.World, mine.Key, mine.Attempt, mine.Nonce = s.id, e.Intent.Key, e.Attempt, e.Nonce
	s.report.CostIs = governance.Sum(s.report.CostIs, r.Cost)
	_, err := s.finish(&mine, data)
	return err
}

// giveLast is give for the last receipt of an intent of the history.
func (s *shadow) giveLast(e, theirs *receipt.Entry, r *receipt.Receipt, data []byte) error {
	e.Attempt, e.Unused = max(e.Attempt, theirs.Attempt), theirs.Unused
	return s.give(e, r, data)
}

// noteAnswer notes that the history has ended an intent, at the record upTo or before. The shadow's intent
// gets that end as soon as it is in flight.
func (s *shadow) noteAnswer(e *receipt.Entry, key receipt.Key, upTo journal.Seq) {
	theirs := s.was.ledger.Entry(key)
	if e == nil || e.Ended() || theirs == nil || !theirs.Ended() || journal.Seq(theirs.Finished) > upTo {
		return
	}
	s.wake(e)
	if _, ok := s.unanswered[e.Intent.Key]; !ok {
		s.unanswered[e.Intent.Key] = dueAnswer{to: key, n: s.noted}
		s.noted++
	}
}

// wake ends the backoff before an attempt. In the history it may have ended in a part that a rollback has
// left.
func (s *shadow) wake(e *receipt.Entry) {
	if e.State == receipt.StateOpen && e.Waiting {
		s.ledger.Due(e)
		s.freed = true
		s.grantAtBarrier()
	}
}

// dueAnswer is an answer that the history has and one of the shadow's intents has not.
type dueAnswer struct {
	to receipt.Key // the history's intent
	n  uint64      // its place among those that were noted
}

// giveAnswers gives, at a barrier, the answers that came before they were asked for,
// and those that were known when the shadow began.
func (s *shadow) giveAnswers() error {
	if s.scheduler.left > 0 {
		return nil
	}
	if err := s.deliverRecalled(renumbered{s.h, s}); err != nil {
		return err
	}
	if s.freed {
		s.freed = false
		s.grant()
	}
	for len(s.unanswered) > 0 {
		e := s.nextUnanswered()
		if e == nil {
			return nil
		}
		theirs := s.was.ledger.Entry(s.unanswered[e.Intent.Key].to)
		delete(s.unanswered, e.Intent.Key)
		if err := s.giveRecorded(e, theirs); err != nil { // it frees a slot
			return err
		}
	}
	return nil
}

// renumbered is the history under the numbers of the shadow's records.
type renumbered struct {
	journal.History
	s *shadow
}

// Record returns the history's record that equals a record of the shadow.
func (h renumbered) Record(id journal.Seq) ([]byte, error) {
	theirs, ok := h.s.origin(id)
	if !ok {
		if own := h.s.ends[id]; own != nil {
			return own, nil
		}
		return nil, fmt.Errorf("record #%d of the shadow equals none of the history: %w", id, journal.ErrNotFound)
	}
	return h.History.Record(theirs)
}

// nextUnanswered returns the intent in flight whose answer was noted first, or nil.
func (s *shadow) nextUnanswered() *receipt.Entry {
	var next *receipt.Entry
	for _, e := range s.ledger.InFlight() {
		d, ok := s.unanswered[e.Intent.Key]
		if ok && (next == nil || d.n < s.unanswered[next.Intent.Key].n) {
			next = e
		}
	}
	return next
}

// giveRecorded gives an attempt in flight the end that an intent of the history had.
func (s *shadow) giveRecorded(e, theirs *receipt.Entry) error {
	body, err := journal.ReadBody(s.h, journal.Seq(theirs.Finished))
	if err != nil {
		return err
	}
	before := s.last
	switch b := body.(type) {
	case *journal.Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return err
		}
		if err := s.giveLast(e, theirs, r, b.Receipt); err != nil {
			return err
		}
	case *journal.IntentEnded:
		if b.Status == receipt.StatusCancelled { // the candidate wants it, or no rollback left it behind
			s.giveUp(e)
			return nil
		}
		n := len(s.records)
		s.endIntent(e, journal.Seq(e.Started), b.Status, b.Outcome, b.Payload)
		s.records = s.records[:n] // the history has ended it elsewhere
	case *journal.IntentDenied: // the candidate has let it through: nobody knows
		s.giveUp(e)
		return nil
	default:
		return fmt.Errorf("world: record #%d does not end an intent", theirs.Finished)
	}
	s.equate(before+1, journal.Seq(theirs.Finished))
	return nil
}

// counterpart returns the shadow's intent that asks for the same as an intent of the history, or nil.
func (s *shadow) counterpart(key receipt.Key) *receipt.Entry {
	if other, ok := s.wants[key]; ok {
		key = other
	}
	e := s.ledger.Entry(key)
	if e != nil && s.declaredOtherwise(e) {
		s.giveUp(e)
		return nil
	}
	return e
}

// declaredOtherwise reports whether the history's answer does not fit an intent of the shadow, because the
// candidate declares the effect differently: see manifest.Effect.Means. It fits intents that were asked for
// before the shadow began.
func (s *shadow) declaredOtherwise(e *receipt.Entry) bool {
	then, was := s.was.rules.effects[e.Intent.Kind]
	now, is := s.rules.effects[e.Intent.Kind]
	return was && is && journal.Seq(e.Emitted) > s.from && then.Means() != now.Means()
}

// asks notes which intent of the history (zero: none) has the answer to an intent of the shadow. An intent
// without an answer takes no slot.
func (s *shadow) asks(mine, key receipt.Key) {
	e := s.ledger.Entry(mine)
	if e == nil || s.again {
		return
	}
	if key != mine && !key.IsZero() {
		delete(s.theirs, s.wants[key]) // each has one
		s.wants[key], s.theirs[mine] = mine, key
	}
	theirs := s.was.ledger.Entry(key)
	if theirs == nil || s.declaredOtherwise(e) || theirs.State == receipt.StateDenied && theirs.Attempt == 0 { // else a cell cancelled it under way
		s.giveUp(e)
		return
	}
	s.noteAnswer(e, key, s.at)
}

// giveUp takes the slot from an intent that nobody will answer.
func (s *shadow) giveUp(e *receipt.Entry) {
	if e.State == receipt.StateOpen {
		s.ledger.Stop(e)
	}
	if e.State == receipt.StateInFlight {
		s.ledger.Doubt(e, false)
		s.freed = true
	}
}

// answerer returns the history's intent whose answer an intent of the shadow gets, or nil.
func (s *shadow) answerer(e *receipt.Entry) *receipt.Entry {
	key, ok := s.theirs[e.Intent.Key]
	if !ok {
		key = e.Intent.Key
	}
	return s.was.ledger.Entry(key)
}

// unasked returns an intent of the history that asks for the same as an intent of the shadow, and that the
// shadow has not asked for yet; zero: there is none.
func (s *shadow) unasked(mine receipt.Key) receipt.Key {
	if s.was.ledger.Entry(mine) != nil {
		return mine
	}
	e := s.ledger.Entry(mine)
	if e == nil {
		return receipt.Key{}
	}
	if s.known == nil {
		s.known = make(map[receipt.Request][]receipt.Key)
		unasked := func(e *receipt.Entry) bool { return s.ledger.Entry(e.Intent.Key) == nil }
		for _, e := range s.was.ledger.Select(unasked) { // in the order of their intents
			what := e.Request()
			s.known[what] = append(s.known[what], e.Intent.Key)
		}
	}
	what := e.Request()
	rest := s.known[what]
	if len(rest) == 0 {
		return receipt.Key{}
	}
	s.known[what] = rest[1:]
	return rest[0]
}
