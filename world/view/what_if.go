package view

import (
	"math"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
)

// WhatIf says what came of a what-if.
type WhatIf struct {
	Forked     Forked      `json:"forked"`
	Patched    bool        `json:"patched"`
	Sent       uint64      `json:"sent"` // events that were asked about
	Again      Again       `json:"again"`
	Answered   uint64      `json:"answered"`   // effects, by what was recorded
	Stubbed    uint64      `json:"stubbed"`    // effects, by adapters that touch nothing outside
	Performed  uint64      `json:"performed"`  // attempts outside, of effects that nothing recorded answers
	Unanswered uint64      `json:"unanswered"` // effects that nothing recorded answers
	Unknown    *Unknown    `json:"unknown"`    // null: all was answered
	Same       bool        `json:"same"`
	Difference *Comparison `json:"diff"` // a: the world; b: the fork

	Was, Is *Side `json:"-"` // what is compared: the world, and where the fork has come to
}

// Forked is the fork that answers a what-if.
type Forked struct {
	At      journal.Seq   `json:"at"` // the last record that both have
	Time    manifest.Tick `json:"time"`
	WorldID string        `json:"world_id"`
	Dir     string        `json:"dir"` // empty: it is gone
}

// Again says what became of the world's inputs after the moment.
type Again struct {
	Events       uint64          `json:"events"`        // that were sent again
	Refused      uint64          `json:"refused"`       // that the fork's manifest does not take
	FirstRefused *Refused        `json:"first_refused"` // null: none
	LeftOut      []local.LeftOut `json:"left_out"`      // what persons decided
}

// Refused is an event of the world that the fork did not take.
type Refused struct {
	Record journal.Seq `json:"record"` // of the world
	Event  string      `json:"event"`
	Reason string      `json:"reason"`
}

// Unknown is the first effect that nothing recorded answers.
type Unknown struct {
	Tick       manifest.Tick `json:"tick"` // in which it was asked for
	Cell       string        `json:"cell"`
	Kind       string        `json:"kind"`
	Params     journal.Data  `json:"params"`
	Occurrence uint64        `json:"occurrence"`
	Nearest    string        `json:"nearest"` // what is recorded and most like it, in words
	Differs    string        `json:"differs"` // the first path at which that has other params, and both; empty: none
}

func againOf(f *local.Followed) Again {
	a := Again{Events: f.Events, Refused: f.Refused, LeftOut: append([]local.LeftOut{}, f.LeftOut...)}
	if f.First != nil {
		a.FirstRefused = &Refused{Record: f.First.Record, Event: f.First.Event, Reason: f.First.Err.Error()}
	}
	return a
}

// WhatIfOf compares a world with the fork that was run for a what-if: where that has come
// to, or the end of the tick before what is unknown.
func WhatIfOf(x *local.Supposed, most Most) (*WhatIf, error) {
	return compareSupposed(x, x.World, math.MaxUint64, most)
}

// lastKnown returns the last tick in which all of what a fork asked for was answered.
func lastKnown(x *local.Supposed) manifest.Tick {
	if len(x.Unanswered) > 0 {
		return x.Fork.Status().Time - 1
	}
	return math.MaxUint64
}

// compareSupposed is WhatIfOf beside another world than the one that was forked, of which
// the ticks up to one are known.
func compareSupposed(x *local.Supposed, beside *local.World, known manifest.Tick, most Most) (*WhatIf, error) {
	a := &WhatIf{
		Forked:  Forked{At: x.Forked.At, Time: x.Began, WorldID: x.Forked.ID},
		Patched: x.Amend != nil, Sent: x.Sent, Answered: x.Answered, Stubbed: x.Stubbed, Performed: x.Performed, Unanswered: uint64(len(x.Unanswered)),
	}
	a.Again = againOf(&x.Followed)
	end := lastKnown(x)
	known = min(known, end)
	if !x.OrLive { // else it goes on for real
		end = known
	}
	if len(x.Unanswered) > 0 {
		first := x.Unanswered[0]
		a.Unknown = &Unknown{
			Tick: x.Fork.Status().Time, Cell: first.Cell, Kind: first.Kind, Params: first.Params, Occurrence: first.Occurrence,
			Nearest: first.Nearest, Differs: first.Where(),
		}
	}
	var err error
	if a.Is, err = sideAfter(x.Fork, end); err != nil {
		return nil, err
	}
	if a.Was, err = sideAfter(beside, min(x.Last, known)); err != nil {
		return nil, err
	}
	if a.Difference, err = Compare(a.Was, a.Is, most); err != nil {
		return nil, err
	}
	a.Same = a.Difference.Same && a.Unknown == nil
	return a, nil
}

// sideAfter returns a world as it was before the first tick after one.
func sideAfter(lw *local.World, tick manifest.Tick) (*Side, error) {
	j := Journal{Local: lw}
	at, err := j.EndOf(tick, lw.Head().ID)
	if err != nil {
		return nil, err
	}
	m, err := lw.At(at)
	return &Side{Journal: j, Moment: m}, err
}
