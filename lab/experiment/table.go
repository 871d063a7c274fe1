package experiment

import (
	"slices"
)

// What a row begins and ends with.

func head() []Column {
	return []Column{
		{Name: "run", Type: Uint, Doc: "number of the run, from 1: worldctl sweep run N makes it again"},
		{Name: "variant", Type: Text, Doc: "name of the variant"},
	}
}

func seedColumn() Column {
	return Column{Name: "seed", Type: Uint, Doc: "where the run's randomness comes from: variants of equal seeds are paired"}
}

func runHead() []Column {
	return append(head(), seedColumn(),
		Column{Name: "ticks", Type: Uint, Doc: "the tick of the world in which the run has ended"},
		Column{Name: "stopped", Type: Text, Doc: "why it has ended: ticks, idle, when (the condition of stop), or failed"},
		Column{Name: "halted", Type: Uint, Doc: "cells that have stopped because a step of theirs failed"},
		Column{Name: "skipped", Type: Uint, Doc: "events that were dropped because the step failed (on_error: skip)"},
		Column{Name: "in_doubt", Type: Uint, Doc: "effects of which nobody can tell what came of them, whatever on_in_doubt told the cell"},
		Column{Name: "failed_effects", Type: Uint, Doc: "effects that have failed"})
}

func runTail() []Column {
	const failed = "the run has failed"
	return []Column{
		{Name: "execution_hash", Type: Text, Doc: "SHA-256 of what happened, in hex", Null: failed},
		{Name: "state_root", Type: Text, Doc: "SHA-256 of the cells as they are in the end, in hex", Null: failed},
		{Name: "first_failure", Type: Text, Doc: "the first step that failed: cell, tick and why", Null: "none has"},
		{Name: "error", Type: Text, Doc: "why the run has failed", Null: "it has not"},
	}
}

func tickHead() []Column {
	return append(head(), seedColumn(), Column{Name: "tick", Type: Uint, Doc: "tick of the world after which is measured"})
}

// table is one table of results: columns, and what a result has for it.
type table struct {
	name    string
	doc     string
	columns []Column
	rows    func(r *Result, visit func([]any) error) error
}

// withParams puts columns behind run and variant.
func withParams(columns, params []Column) []Column { return slices.Insert(columns, 2, params...) }

// tables returns the tables of a plan.
func (p *Plan) tables() []table {
	runs := table{
		name: "runs", doc: "one row a run, in the order of runs; the measures are those of its end",
		columns: slices.Concat(withParams(runHead(), p.Params), p.Columns, runTail()),
		rows: func(r *Result, visit func([]any) error) error {
			row := p.start(r)
			row = append(row, r.Tick, r.Stopped, r.Halted, r.Skipped, r.InDoubt, r.FailedEffects)
			if r.Error != "" {
				row = append(row, make([]any, len(p.Columns)+2)...)
				return visit(append(row, r.firstFailure(), r.Error))
			}
			row = append(row, r.Last...)
			return visit(append(row, r.ExecutionHash.String(), r.StateRoot.String(), r.firstFailure(), nil))
		},
	}
	ticks := table{
		name: "ticks", doc: "one row a run and tick that was measured, in the order of runs and ticks",
		columns: slices.Concat(withParams(tickHead(), p.Params), p.Columns),
		rows: func(r *Result, visit func([]any) error) error {
			for _, x := range r.Rows {
				if err := visit(append(append(p.start(r), x.Tick), x.Values...)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return []table{runs, ticks}
}

// start returns what each row of a result begins with.
func (p *Plan) start(r *Result) []any {
	row := []any{uint64(r.ID), p.Variants[r.Variant]}
	return append(append(row, p.Points[r.Point]...), r.Seed)
}
