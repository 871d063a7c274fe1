package local

import (
	"cmp"
	"errors"
	"slices"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// arrivals has a world that lives through a past told what came of its effects where that
// was told there, and what the past has not asked for at once. What is performed takes as
// long as its kind did in the past.
type arrivals struct {
	live  func(*receipt.Intent) bool
	known map[receipt.Request]*told
	order []*told     // those that are still to come, as they came
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

// newArrivals has a world live through what came of the effects of a past; nil: nothing did.
func newArrivals(p *pastAnswers, live func(*receipt.Intent) bool) *arrivals {
	a := &arrivals{live: live, known: make(map[receipt.Request]*told), waiting: make(map[receipt.Request]*receipt.Entry), passed: make(map[receipt.Key]bool), told: make(map[receipt.Key]manifest.Tick)}
	if p != nil {
		a.order = p.told
	}
	for _, x := range a.order {
		a.known[x.request] = x
	}
	a.took = medians(a.order)
	return a
}

// medians returns how long the answers of each kind took.
func medians(all []*told) map[string]manifest.Tick {
	by := make(map[string][]manifest.Tick)
	for _, x := range all {
		if !x.Unanswered {
			by[x.Kind] = append(by[x.Kind], x.took)
		}
	}
	took := make(map[string]manifest.Tick, len(by))
	for kind, ticks := range by {
		slices.Sort(ticks)
		took[kind] = ticks[(len(ticks)-1)/2]
	}
	return took
}

// come reports whether an answer was there after so many turns.
func (a *arrivals) come(x *told, turns uint64) bool {
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
		if e := a.waiting[x.request]; a.waits(e) {
			return e
		}
		a.order = a.order[1:]
		delete(a.known, x.request) // whoever asks for it later is told at once
		delete(a.waiting, x.request)
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
