package view

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// DryRun is the comparison of a world made anew under unproposed rules with the same world under the
// rules in force.
type DryRun struct {
	Round   uint64   `json:"round"`
	Changed []string `json:"changed"` // files, since the round before
	*WhatIf
	UnknownInForce int          `json:"unknown_in_force"` // cells that are unknown under the rules in force, and left out of what is compared, too
	Apart          Apart        `json:"apart"`            // how it differs from the world even under the rules in force
	Failed         []FailedStep `json:"failed"`           // steps that fail in it, and not so under the rules in force

	Printed []world.Printed `json:"printed"` // by its steps: the last lastPrinted
	Before  uint64          `json:"before"`  // how often steps printed before these
}

// Apart counts in how many cells and intents a world that was made anew differs from the
// one that there is; 0 and 0: in none.
type Apart struct {
	Cells   int `json:"cells"`
	Intents int `json:"intents"`
}

// lastPrinted is how much of what the steps of a world print is told of.
const lastPrinted = 100

// FailedStep is a step that failed, and why, with how functions called each other.
type FailedStep struct {
	Record journal.Seq `json:"record"`
	Cell   string      `json:"cell"`
	Error  string      `json:"error"`
}

// AnewOf compares what was made of a world under other rules with what was made of it under
// those in force, but for what is unknown of either. limit bounds the cells that are told of;
// 0: none.
func AnewOf(ctx context.Context, m *local.DryRunResult, limit uint64) (*DryRun, error) {
	compared, err := compareSupposed(m.Is, m.Was.Fork, m.Was.Unknown, Most{Cells: limit})
	if err != nil {
		return nil, err
	}
	was, err := failedSteps(m.Was.Fork, m.Was.Forked.At)
	if err != nil {
		return nil, err
	}
	is, err := failedSteps(m.Is.Fork, m.Is.Forked.At)
	if err != nil {
		return nil, err
	}
	a := &DryRun{WhatIf: compared, UnknownInForce: len(m.Was.Unknown), Failed: []FailedStep{}, Printed: []world.Printed{}}
	for _, f := range is {
		same := func(o FailedStep) bool { return o.Cell == f.Cell && o.Error == f.Error }
		if i := slices.IndexFunc(was, same); i >= 0 {
			was = slices.Delete(was, i, i+1)
			continue
		}
		a.Failed = append(a.Failed, f)
	}
	if a.Apart, err = apart(m); err != nil {
		return nil, err
	}
	return a, m.Is.Fork.Prints(ctx, a.hear)
}

// apart compares the world with what it was made anew under the rules in force, but for what
// is unknown of that.
func apart(m *local.DryRunResult) (Apart, error) {
	is, err := sideAfter(m.Is.World, m.Was.Last)
	if err != nil {
		return Apart{}, err
	}
	made, err := sideAfter(m.Was.Fork, math.MaxUint64)
	if err != nil {
		return Apart{}, err
	}
	d := world.Compare(is.Moment, made.Moment, namesOf(m.Was.Unknown)...)
	return Apart{
		Cells:   len(d.CellsAdded) + len(d.CellsGone) + len(d.CellsChanged) + d.Histories,
		Intents: len(d.IntentsAdded) + len(d.IntentsGone) + len(d.IntentsChanged),
	}, nil
}

func (a *DryRun) hear(p world.Printed) {
	if len(a.Printed) == lastPrinted {
		a.Printed = slices.Delete(a.Printed, 0, 1)
		a.Before++
	}
	a.Printed = append(a.Printed, p)
}

// failedSteps returns the steps that failed after a record.
func failedSteps(lw *local.World, after journal.Seq) (all []FailedStep, err error) {
	for s, err := range lw.Scan(after) {
		if err = errors.Join(err, s.Err); err != nil {
			return nil, err
		}
		if s.Record.Kind != journal.KindFailed {
			continue
		}
		body, err := s.Record.LoadBody(lw)
		if err != nil {
			return nil, err
		}
		if b, ok := body.(*journal.Failed); ok {
			all = append(all, FailedStep{s.Record.ID, b.Cell, b.Error})
		}
	}
	return all, nil
}
