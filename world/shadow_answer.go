package world

import (
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/receipt"
)

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

// give answers an attempt in flight with a receipt of the history.
func (s *shadow) give(e *receipt.Entry, r *receipt.Receipt, data []byte) error {
	mine := *r
	mine.World, mine.Key, mine.Attempt, mine.Nonce = s.id, e.Intent.Key, e.Attempt, e.Nonce
	s.report.CostIs = plus(s.report.CostIs, r.Cost)
	_, err := s.finish(&mine, data)
	return err
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

// counterpart returns the shadow's intent that asks for what one of the history
// asks for, or nil.
func (s *shadow) counterpart(key receipt.Key) *receipt.Entry {
	if mine, ok := s.wants[key]; ok {
		key = mine
	}
	return s.ledger.Entry(key)
}

func plus(a, b receipt.Cost) receipt.Cost {
	return receipt.Cost{Calls: a.Calls + b.Calls, Tokens: a.Tokens + b.Tokens, Bytes: a.Bytes + b.Bytes, Micros: a.Micros + b.Micros}
}

// asks notes which intent of the history (zero: none) has the answer to one of the
// shadow's. One that none has takes no slot.
func (s *shadow) asks(mine, key receipt.Key) {
	e := s.ledger.Entry(mine)
	if e == nil || s.again {
		return
	}
	if key != mine && !key.IsZero() {
		s.wants[key] = mine
	}
	theirs := s.was.ledger.Entry(key)
	if theirs == nil || theirs.State == receipt.StateDenied {
		s.giveUp(e)
		return
	}
	if ended(theirs) && Seq(theirs.Finished) <= s.at {
		s.owed = append(s.owed, owed{mine: mine, theirs: key})
	}
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

// theirs returns the history's intent that asks for what one of the shadow's asks
// for, and that the shadow has not asked for yet; zero: there is none.
func (s *shadow) theirs(mine receipt.Key) receipt.Key {
	if s.was.ledger.Entry(mine) != nil {
		return mine
	}
	e := s.ledger.Entry(mine)
	if e == nil {
		return receipt.Key{}
	}
	if s.known == nil {
		s.known = make(map[request][]receipt.Key)
		for _, key := range s.was.ledger.Keys() { // in the order of their intents
			if s.ledger.Entry(key) == nil {
				what := requestOf(s.was.ledger.Entry(key))
				s.known[what] = append(s.known[what], key)
			}
		}
	}
	what := requestOf(e)
	rest := s.known[what]
	if len(rest) == 0 {
		return receipt.Key{}
	}
	s.known[what] = rest[1:]
	return rest[0]
}

// request is what two intents have in common that ask for the same.
type request struct {
	cell, kind string
	params     Hash
	occurrence uint64
}

func requestOf(e *receipt.Entry) request {
	return request{cell: e.Intent.Cell, kind: e.Intent.Kind, params: e.Params, occurrence: e.Intent.Occurrence}
}
