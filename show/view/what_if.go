package view

import (
	"math"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
)

// WhatIf is the result of a what-if.
type WhatIf struct {
	Forked      Forked            `json:"forked"`
	Patched     bool              `json:"patched"`
	Sent        uint64            `json:"sent"` // events that were asked about
	Again       Again             `json:"again"`
	Answered    uint64            `json:"answered"`     // effects, by what was recorded
	Stubbed     uint64            `json:"stubbed"`      // effects, by adapters that touch nothing outside
	Performed   uint64            `json:"performed"`    // attempts outside, of effects that nothing recorded answers
	Unanswered  uint64            `json:"unanswered"`   // effects that nothing recorded answers
	Otherwise   map[string]uint64 `json:"other_config"` // answers, by kind, that were recorded under another config, and answer nothing here
	Unknown     []UnknownCell     `json:"unknown"`      // cells, which are left out of what is compared
	UnknownMore int               `json:"unknown_more"` // of these, besides those that are told of
	Same        bool              `json:"same"`
	Difference  *Comparison       `json:"diff"` // a: the world; b: the fork

	Was, Is *Side `json:"-"` // what is compared: the world, and where the fork has come to
}

// Forked is the fork behind a what-if.
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
	Decided      uint64          `json:"decided"`       // intents, as a person decided about the same
	LeftOut      []local.LeftOut `json:"left_out"`      // what else persons decided
}

// Refused is an event of the world that the fork did not take.
type Refused struct {
	Record journal.Seq `json:"record"` // of the world
	Event  string      `json:"event"`
	Reason string      `json:"reason"`
}

// UnknownCell is a cell of the fork of which nobody can say what it would have come to.
type UnknownCell struct {
	Cell   string        `json:"cell"`
	Since  journal.Seq   `json:"since"` // a record of the fork: what it does afterwards is unknown
	Tick   manifest.Tick `json:"tick"`
	Why    local.Why     `json:"why"`    // asks, told, waits or room
	Of     string        `json:"of"`     // the unknown cell because of which it is so; empty: it asks itself
	Effect Missed        `json:"effect"` // that it all follows from
}

// Missed is an effect that nothing recorded answers.
type Missed struct {
	Cell       string       `json:"cell"`
	Kind       string       `json:"kind"`
	Params     journal.Data `json:"params"`
	Occurrence uint64       `json:"occurrence"`
	Nearest    string       `json:"nearest"` // what is recorded and most like it, in words
	Differs    string       `json:"differs"` // the first path at which that has other params, and both; empty: none
}

// unknownOf tells of unknown cells, as far as it may.
func unknownOf(all []local.UnknownCell, most Most) (told []UnknownCell, untold int) {
	told = []UnknownCell{}
	t := teller{Most: most}
	for i := range all {
		x, e := &all[i], all[i].Effect
		if most.Cells > 0 && uint64(i) == most.Cells || !t.room(len(e.Params)) {
			return told, len(all) - i
		}
		told = append(told, UnknownCell{
			Cell: x.Cell, Since: x.Since, Tick: x.Tick, Why: x.Why, Of: x.Of,
			Effect: Missed{Cell: e.Cell, Kind: e.Kind, Params: e.Params, Occurrence: e.Occurrence, Nearest: e.Nearest, Differs: e.Where()},
		})
	}
	return told, 0
}

func againOf(f *local.Followed) Again {
	a := Again{Events: f.Events, Refused: f.Refused, Decided: f.Decided, LeftOut: append([]local.LeftOut{}, f.LeftOut...)}
	if f.First != nil {
		a.FirstRefused = &Refused{Record: f.First.Record, Event: f.First.Event, Reason: f.First.Err.Error()}
	}
	return a
}

// WhatIfOf compares a world with the fork that was run for a what-if, but for what is unknown.
func WhatIfOf(x *local.Supposed, most Most) (*WhatIf, error) {
	return compareSupposed(x, x.World, nil, most)
}

// compareSupposed is WhatIfOf beside another world than the one that was forked, and without
// cells that are unknown there.
func compareSupposed(x *local.Supposed, beside *local.World, besides []local.UnknownCell, most Most) (*WhatIf, error) {
	a := &WhatIf{
		Forked:  Forked{At: x.Forked.At, Time: x.Began, WorldID: x.Forked.ID},
		Patched: x.Amend != nil, Sent: x.Sent, Answered: x.Answered, Stubbed: x.Stubbed, Performed: x.Performed, Unanswered: uint64(len(x.Unanswered)), Otherwise: x.Otherwise,
	}
	a.Again = againOf(&x.Followed)
	a.Unknown, a.UnknownMore = unknownOf(x.Unknown, most)
	var err error
	if a.Is, err = sideAfter(x.Fork, math.MaxUint64); err != nil {
		return nil, err
	}
	if a.Was, err = sideAfter(beside, x.Last); err != nil {
		return nil, err
	}
	if a.Difference, err = Compare(a.Was, a.Is, most, namesOf(x.Unknown, besides)...); err != nil {
		return nil, err
	}
	a.Same = a.Difference.Same && len(x.Unknown) == 0
	return a, nil
}

func namesOf(all ...[]local.UnknownCell) (names []string) {
	for _, c := range slices.Concat(all...) {
		names = append(names, c.Cell)
	}
	return names
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
