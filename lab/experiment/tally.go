package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/world"
)

// StepFailure is the first step of a run that failed.
type StepFailure struct {
	Cell  string `json:"cell"`
	Tick  uint64 `json:"tick"` // of the world
	Error string `json:"error"`
}

// String returns "CELL at tick N: why".
func (f *StepFailure) String() string {
	return fmt.Sprintf("%s at tick %d: %s", f.Cell, f.Tick, oneLine(errors.New(f.Error)))
}

// Tally counts faults within runs. They do not fail the run: its measures are
// those of what was left.
type Tally struct {
	Halted        Count    `json:"halted"`         // cells that have stopped because a step of theirs failed
	Skipped       Count    `json:"skipped"`        // events that were dropped because the step failed
	InDoubt       Count    `json:"in_doubt"`       // effects of which nobody can tell what came of them
	FailedEffects Count    `json:"failed_effects"` // effects that have failed
	First         *Example `json:"first_failure,omitempty"`
}

// Count is in how many runs there is something, and how much of it.
type Count struct {
	Runs uint64 `json:"runs"`
	All  uint64 `json:"all"`
}

// Example is the first failed step of the first run with a failure.
type Example struct {
	Run RunID `json:"run"`
	StepFailure
}

// Clean reports whether nothing went wrong that calls for a look: no step has failed, and
// no effect is in doubt.
func (t *Tally) Clean() bool { return t.Halted.Runs+t.Skipped.Runs+t.InDoubt.Runs == 0 }

// tally counts what went wrong within a run; nil: nothing.
func (r *Result) tally() *Tally {
	t := &Tally{Halted: countOf(r.Halted), Skipped: countOf(r.Skipped), InDoubt: countOf(r.InDoubt), FailedEffects: countOf(r.FailedEffects)}
	if r.First != nil {
		t.First = &Example{r.ID, *r.First}
	}
	if *t == (Tally{}) {
		return nil
	}
	return t
}

// firstFailure returns what a table says of the first step that failed; nil: none has.
func (r *Result) firstFailure() any {
	if r.First == nil {
		return nil
	}
	return r.First.String()
}

func countOf(n uint64) Count {
	if n == 0 {
		return Count{}
	}
	return Count{1, n}
}

// add adds the tally of a run that is behind all that were added; nil: nothing.
func (t *Tally) add(run *Tally) {
	if run == nil {
		return
	}
	for _, x := range []struct{ to, of *Count }{
		{&t.Halted, &run.Halted}, {&t.Skipped, &run.Skipped}, {&t.InDoubt, &run.InDoubt}, {&t.FailedEffects, &run.FailedEffects},
	} {
		x.to.Runs += x.of.Runs
		x.to.All += x.of.All
	}
	if t.First == nil {
		t.First = run.First
	}
}

// hear notes a step that failed.
func (c *course) hear(f world.Failure) {
	if !f.Halted {
		c.skipped++
	}
	if c.first == nil {
		c.first = &StepFailure{Cell: f.Cell, Tick: uint64(f.Tick), Error: f.Error}
	}
}

// reasonOf returns why a run has failed without what differs between runs that failed for
// the same reason: run, cell and tick.
func reasonOf(err error) string {
	if run, ok := errors.AsType[*RunError](err); ok {
		err = run.Err
	}
	var of *measure.Error
	var effect *EffectError
	switch {
	case errors.As(err, &of) && of.Expr != "":
		return oneLine(fmt.Errorf("measure %s: %s: %w", of.Measure, of.Expr, of.Err))
	case errors.As(err, &of):
		return oneLine(fmt.Errorf("measure %s: %w", of.Measure, of.Err))
	case errors.As(err, &effect):
		return "nothing answers " + effect.Kind + ": " + effect.next()
	}
	return oneLine(err)
}

// Reason is why runs have failed.
type Reason struct {
	Reason string `json:"reason"`
	Runs   uint64 `json:"runs"`
	Run    RunID  `json:"run"` // the first of them
}

// reasons gathers why runs have failed.
type reasons map[string]*Reason

// add adds a run that has failed, and is behind all that were added.
func (r reasons) add(failed *Result) {
	x := r[failed.Reason]
	if x == nil {
		x = &Reason{Reason: failed.Reason, Run: failed.ID}
		r[failed.Reason] = x
	}
	x.Runs++
}

// sorted returns them, the most frequent first.
func (r reasons) sorted() []Reason {
	out := []Reason{}
	for _, x := range r {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b Reason) int { return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Run, b.Run)) })
	return out
}
