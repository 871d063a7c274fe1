package local

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// arrival says when what came of an effect was told in a past.
type arrival struct {
	receipt.Request
	record journal.Seq   // that tells it
	after  journal.Seq   // the clock.advanced or event.submitted before it, which it follows; never: it has not come
	turns  uint64        // of cells, in its tick before it
	took   manifest.Tick // from its first permit to its answer
}

// never is after all records.
const never = journal.Seq(math.MaxUint64)

// arrivals has a world that lives through a past told what came of its effects where that
// was told there, and what the past has not asked for at once. What is performed takes as
// long as its kind did in the past.
type arrivals struct {
	live  func(*receipt.Intent) bool
	known map[receipt.Request]*arrival
	order []*arrival  // those that are still to come, as they came
	upTo  journal.Seq // the input of the past that is lived through

	seen    uint64                             // the last permit that was looked at
	waiting map[receipt.Request]*receipt.Entry // for their arrival
	fresh   []*receipt.Entry                   // for none

	turn   *receipt.Entry       // whose it was when somebody asked last
	passed map[receipt.Key]bool // nothing answers them, which was found out in their turn
	misses []*host.MissError    // of these, in that order

	took    map[string]manifest.Tick      // by kind: the median, of two the shorter
	told    map[receipt.Key]manifest.Tick // when what is performed is told
	outside []*receipt.Entry              // performed, in flight when it was looked at last
}

// readArrivals reads when the effects of a past were answered.
func readArrivals(past *World, live func(*receipt.Intent) bool) (*arrivals, error) {
	a := &arrivals{live: live, known: make(map[receipt.Request]*arrival), waiting: make(map[receipt.Request]*receipt.Entry), passed: make(map[receipt.Key]bool), told: make(map[receipt.Key]manifest.Tick)}
	answers := newAnswering(past.store, never)
	var at arrival
	var between []*arrival // told where the tick was over: see ends
	for s, err := range past.store.Scan(0) {
		if err = errors.Join(err, s.Err); err != nil {
			return nil, err
		}
		switch kind := s.Record.Kind; {
		case kind == journal.KindAdvanced:
			at = arrival{after: s.ID}
			settleAt(between, s.ID)
			between = nil
		case kind == journal.KindSubmitted:
			at.after = s.ID
		case kind == journal.KindStepped || kind == journal.KindFailed:
			at.turns++
		case ends(kind):
			at.after = never
		}
		answer, err := answers.in(s.Record)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			continue
		}
		x := a.arrivalOf(answer)
		x.record, x.after, x.turns = s.ID, at.after, at.turns
		x.took = s.Record.Time - answers.began[answer]
		if x.after == never {
			between = append(between, x)
		}
	}
	settleAt(between, never-1) // at the end
	a.took = medians(a.known)
	for _, r := range answers.order {
		if r.Unanswered {
			x := a.arrivalOf(r)
			x.record, x.after = never, never
		}
	}
	for _, x := range a.known { // order cannot show: sorted below
		a.order = append(a.order, x)
	}
	slices.SortFunc(a.order, func(x, y *arrival) int {
		return cmp.Or(cmp.Compare(x.record, y.record), cmp.Compare(x.Cell, y.Cell), cmp.Compare(x.Kind, y.Kind))
	})
	return a, nil
}

// medians returns how long the answers of each kind took.
func medians(all map[receipt.Request]*arrival) map[string]manifest.Tick {
	by := make(map[string][]manifest.Tick)
	for _, x := range all { // order cannot show: sorted below
		by[x.Kind] = append(by[x.Kind], x.took)
	}
	took := make(map[string]manifest.Tick, len(by))
	for kind, ticks := range by {
		slices.Sort(ticks)
		took[kind] = ticks[(len(ticks)-1)/2]
	}
	return took
}

// settleAt says when those answers came that were told between two ticks.
func settleAt(between []*arrival, after journal.Seq) {
	for _, x := range between {
		if x.after == never { // else another one came since
			x.after, x.turns = after, 0
		}
	}
}

// ends reports whether a kind of input ends the tick, and is not repeated: what is told
// after it waits there for the next one.
func ends(kind journal.Kind) bool {
	switch kind {
	case journal.KindFinished, journal.KindExpired, journal.KindDue, journal.KindConfirmed, journal.KindLate, journal.KindCreated:
		return false
	default:
		return kind.Input()
	}
}

// arrivalOf returns the arrival of the last answer to what was asked for.
func (a *arrivals) arrivalOf(r *host.Recorded) *arrival {
	asked := r.Request()
	x := a.known[asked]
	if x == nil {
		x = &arrival{Request: asked}
		a.known[asked] = x
	}
	return x
}

// come reports whether an answer was there after so many turns.
func (a *arrivals) come(x *arrival, turns uint64) bool {
	return x.after < a.upTo || x.after == a.upTo && x.turns <= turns
}

// next is a world.AnswerOrder.
func (a *arrivals) next(now manifest.Tick, turns uint64, flight []*receipt.Entry) *receipt.Entry {
	a.noteStarted(now, flight)
	a.turn = a.first(now, turns)
	return a.turn
}

// pass leaves the effect open whose turn it was, where an error says that nothing answers it.
func (a *arrivals) pass(err error) bool {
	var miss *host.MissError
	if !errors.As(err, &miss) || a.turn == nil || a.turn.Intent.Step != miss.Step {
		return false
	}
	a.passed[a.turn.Intent.Key] = true
	a.misses = append(a.misses, miss)
	return true
}

// waits reports whether an effect is still to be told what came of it.
func (a *arrivals) waits(e *receipt.Entry) bool {
	return e != nil && e.State == receipt.StateInFlight && !a.passed[e.Intent.Key]
}

// first returns the effect that is told next, or nil.
func (a *arrivals) first(now manifest.Tick, turns uint64) *receipt.Entry {
	for len(a.order) > 0 && a.come(a.order[0], turns) {
		x := a.order[0]
		if e := a.waiting[x.Request]; a.waits(e) {
			return e
		}
		a.order = a.order[1:]
		delete(a.known, x.Request) // whoever asks for it later is told at once
		delete(a.waiting, x.Request)
	}
	for len(a.fresh) > 0 {
		if e := a.fresh[0]; a.waits(e) {
			return e
		}
		a.fresh = a.fresh[1:]
	}
	if e := a.nextOutside(); e != nil && a.told[e.Intent.Key] <= now {
		return e
	}
	return nil
}

// nextOutside returns the performed effect in flight that is told first, or nil.
func (a *arrivals) nextOutside() *receipt.Entry {
	a.outside = slices.DeleteFunc(a.outside, func(e *receipt.Entry) bool { return e.State != receipt.StateInFlight })
	if len(a.outside) == 0 {
		return nil
	}
	return slices.MinFunc(a.outside, func(x, y *receipt.Entry) int { return cmp.Compare(a.told[x.Intent.Key], a.told[y.Intent.Key]) })
}

// noteStarted takes up the attempts that were permitted since its last call.
func (a *arrivals) noteStarted(now manifest.Tick, flight []*receipt.Entry) {
	first := len(flight)
	for first > 0 && flight[first-1].Started > a.seen {
		first--
	}
	for _, e := range flight[first:] {
		a.seen = e.Started
		if a.live(&e.Intent) {
			if _, again := a.told[e.Intent.Key]; !again { // else another attempt of it, which takes no time of its own
				a.told[e.Intent.Key] = now.Plus(a.took[e.Intent.Kind])
			}
			a.outside = append(a.outside, e)
			continue
		}
		asked := e.Request()
		if a.known[asked] != nil {
			a.waiting[asked] = e
		} else {
			a.fresh = append(a.fresh, e)
		}
	}
}
