package world

import (
	"cmp"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// turnBack takes a rollback. The shadow stands at the snapshot already. So only the tick changes, and cells
// are told the ends that their intents have had since.
func (s *shadow) turnBack(rec journal.Scanned) error {
	if err := s.toBoundary(); err != nil {
		return err
	}
	s.at = rec.ID
	later := rec.Record.Time - s.now
	for _, h := range []alarms{s.scheduled, s.timers} {
		for i := range h {
			h[i].at = h[i].at.Plus(later)
		}
	}
	s.touchLists()
	s.now = rec.Record.Time
	s.inTick, s.handled, s.together, s.unlived = false, 0, false, true
	if err := s.answerLeft(); err != nil {
		return err
	}
	return s.compare()
}

// answerLeft gives the shadow's intents the ends that came in parts which rollbacks have left, in the order of
// the history.
func (s *shadow) answerLeft() error {
	type pair struct{ mine, then *receipt.Entry }
	var all []pair
	for _, e := range s.ledger.Unfinished() {
		if then := s.answerer(e); then != nil {
			all = append(all, pair{e, then})
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return cmp.Compare(a.then.Finished, b.then.Finished) })
	for _, x := range all {
		s.freed = true // it may have to be in flight first
		if err := s.decideLeft(x.mine, x.then); err != nil {
			return err
		}
		s.noteAnswer(x.mine, x.then.Intent.Key, s.at)
	}
	if err := s.giveAnswers(); err != nil {
		return err
	}
	s.records = s.records[:0] // the history tells of them where nobody lives
	return nil
}

// decideLeft applies to an intent what was decided about the history's intent in parts that rollbacks have
// left: a person's decision about an approval, or the end of an attempt in doubt.
func (s *shadow) decideLeft(e, then *receipt.Entry) error {
	if e.State == receipt.StateInDoubt && e.Attempt == then.Attempt && then.Ended() && journal.Seq(then.Finished) <= s.at {
		s.ledger.Reopen(e, false) // to be in flight for the answer
		return nil
	}
	by := journal.Seq(then.Emitted) // the record that approved it
	if then.State == receipt.StateDenied {
		by = journal.Seq(then.Finished)
	}
	if e.State != receipt.StateAwaitingApproval || e.Deadline == receipt.NoDeadline || then.State.AwaitsPerson() || by > s.at {
		return nil
	}
	rec, err := journal.Read(s.h, by)
	if err != nil {
		return err
	}
	if rec, err = journal.Read(s.h, rec.CausedBy); err != nil || rec.Kind != journal.KindResolved {
		return err
	}
	body, err := rec.LoadBody(s.h)
	if err != nil {
		return err
	}
	if err := s.giveAnswers(); err != nil { // those whose ends came before
		return err
	}
	s.decided(body)
	return nil
}
