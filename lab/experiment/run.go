package experiment

import (
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/world"
)

// RunError says which run has failed, and when.
type RunError struct {
	Run     RunID
	Variant string
	Seed    uint64
	Tick    uint64 // of the world
	Err     error
}

func (e *RunError) Error() string {
	return fmt.Sprintf("run %d, variant %s, seed %d, tick %d: %v", e.Run, e.Variant, e.Seed, e.Tick, e.Err)
}

// Unwrap returns why.
func (e *RunError) Unwrap() error { return e.Err }

// course is one run while it is driven.
type course struct {
	spec   *Spec
	plan   Planned
	script *script // nil: there is none
	asked  uint64  // up to this tick the script was asked

	begin, last uint64 // ticks of the world
	next        uint64 // the first tick of which no row was made
	rows        []Row
	stopped     string
	row         []any // at the end

	sent    uint64       // events of the inputs
	skipped uint64       // events that were dropped because the step failed
	first   *StepFailure // nil: no step has failed
	doubts  doubts
}

// newCourse makes ready for a run of the plan.
func (s *Spec) newCourse(p Planned) (*course, error) {
	script, err := s.script(p)
	return &course{spec: s, plan: p, script: script}, err
}

// drive sends a world what the experiment has for it and runs it to where it stops. The
// error is a *RunError, or what ended ctx.
func (c *course) drive(ctx context.Context, w *world.World) error {
	c.begin = uint64(w.Time())
	c.last = c.begin + c.spec.Stop.Ticks
	if end := uint64(w.Manifest().Clock.Last()); c.last >= end || c.last < c.begin {
		err := fmt.Errorf("stop.ticks: %w: %d ticks from tick %d on, and the last is tick %d", world.ErrNoTick, c.spec.Stop.Ticks, c.begin, end)
		return &RunError{c.plan.ID, c.spec.Variants[c.plan.Variant], c.plan.Seed, c.begin, err}
	}
	c.next, c.asked = c.begin, c.begin
	w.TellBy(inOrder)
	w.TellFailures(c.hear)
	err := c.run(ctx, w)
	if err == nil || ctx.Err() != nil {
		return err
	}
	tick := w.Time()
	if of := (*measure.Error)(nil); errors.As(err, &of) { // it may be one in which nothing happened
		tick = of.Tick
	}
	return &RunError{c.plan.ID, c.spec.Variants[c.plan.Variant], c.plan.Seed, uint64(tick), err}
}

// inOrder has all effects answered in the tick, in the order of their permits, whichever was
// faster; and so what nobody can tell about, and what ends the run.
func inOrder(_ manifest.Tick, _ uint64, flight []*receipt.Entry) *receipt.Entry {
	if len(flight) == 0 {
		return nil
	}
	return flight[0]
}

func (c *course) run(ctx context.Context, w *world.World) error {
	for _, s := range c.spec.inputs.events {
		if _, err := w.Accept(ctx, s); err != nil {
			return fmt.Errorf("%s: event %s: %w", c.spec.inputs.file, s.Name, err)
		}
		c.sent++
	}
	for c.stopped == "" {
		next, ok, err := c.feed(ctx, w)
		if err != nil {
			return err
		}
		if ok && next > c.last {
			return c.writeLastRows(&w.Moment, c.last, StoppedTicks)
		}
		if ok { // until then all stays as it is
			if err := c.measure(&w.Moment, next-1); err != nil || c.stopped != "" {
				return err
			}
		}
		if err := c.advance(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// advance does what comes next.
func (c *course) advance(ctx context.Context, w *world.World) error {
	p, err := w.Next(ctx)
	switch {
	case err != nil:
		return err
	case p == world.Waiting:
		return w.Wait(ctx)
	case p == world.Idle && c.spec.Stop.Idle:
		return c.writeLastRows(&w.Moment, uint64(w.Time()), StoppedIdle)
	case p == world.Idle:
		return c.writeLastRows(&w.Moment, c.last, StoppedTicks)
	}
	if p == world.Ticked {
		return c.measure(&w.Moment, uint64(w.Time()))
	}
	return nil
}

// feed sends what falls due before or in the next tick, and returns that tick; false: none
// comes by itself.
func (c *course) feed(ctx context.Context, w *world.World) (next uint64, ok bool, err error) {
	for {
		at, ok := w.NextTick()
		if c.script == nil || c.asked >= c.last || ok && c.asked >= uint64(at) {
			return uint64(at), ok, nil
		}
		c.asked++
		events, err := c.script.events(c.asked)
		if err != nil {
			return 0, false, err
		}
		for _, s := range events {
			s.At = manifest.Tick(c.asked)
			if _, err := w.Accept(ctx, s); err != nil {
				return 0, false, fmt.Errorf("%s: inputs(run, %d): event %s: %w", c.spec.inputs.file, c.asked, s.Name, err)
			}
			c.sent++
		}
	}
}

// measure makes the rows of the ticks up to one, in which the world is as it is now.
func (c *course) measure(m *world.Moment, upTo uint64) error {
	of := &c.spec.measures
	for {
		at, ok := of.at.Next(manifest.Tick(c.next))
		if tick := uint64(at); !ok || tick > min(upTo, c.last) {
			c.next = max(c.next, min(upTo, c.last)+1)
			return nil
		}
		c.next = uint64(at) + 1
		row, err := c.add(m, at)
		if err != nil || of.when == nil {
			if err != nil {
				return err
			}
			continue
		}
		stop, err := of.when.Holds(row, uint64(at))
		if err != nil {
			return fmt.Errorf("stop.when: %w", err)
		}
		if stop {
			c.stopped, c.last, c.row = StoppedWhen, uint64(at), row
			return nil
		}
	}
}

// add makes one row.
func (c *course) add(m *world.Moment, at manifest.Tick) ([]any, error) {
	if uint64(len(c.rows)) >= c.spec.Limits.Rows {
		return nil, fmt.Errorf("%w: it is measured at more than %d ticks: limits.rows raises that, or measure at fewer", reducer.ErrLimit, c.spec.Limits.Rows)
	}
	row, err := c.spec.measures.set.Eval(m, at)
	if err == nil {
		c.rows = append(c.rows, Row{uint64(at), row})
	}
	return row, err
}

// writeLastRows makes the rows that are left, and the last one.
func (c *course) writeLastRows(m *world.Moment, at uint64, why string) error {
	c.last = at
	if err := c.measure(m, at); err != nil || c.stopped != "" {
		return err
	}
	c.stopped = why
	var err error
	switch n := len(c.rows); {
	case n > 0 && c.rows[n-1].Tick == at:
		c.row = c.rows[n-1].Values
	case c.spec.measures.at.End:
		c.row, err = c.add(m, manifest.Tick(at))
	default:
		c.row, err = c.spec.measures.set.Eval(m, manifest.Tick(at))
	}
	return err
}

// result returns what is kept of a run that has ended, or failed with err.
func (c *course) result(m *world.Moment, err error) (*Result, error) {
	status := m.Status()
	r := &Result{
		Planned: c.plan, Tick: uint64(m.Time()), Stopped: c.stopped, Rows: c.rows, Last: c.row,
		Sent: c.sent, Halted: uint64(status.Halted), Skipped: c.skipped, InDoubt: c.doubts.count(m),
		FailedEffects: uint64(status.Intents[receipt.StateFailed]), First: c.first,
	}
	if err != nil {
		r.Stopped, r.Error, r.Reason, r.Again, r.Last = StoppedFailed, err.Error(), reasonOf(err), passing(err), nil
		return r, nil
	}
	r.Tick = c.last
	r.ExecutionHash, err = m.ExecutionHash()
	r.StateRoot = m.StateRoot()
	return r, err
}

// passing reports whether a run has failed for what does not decide about results: a limit of
// the experiment, or what nobody has recorded yet.
func passing(err error) bool {
	var effect *EffectError
	return errors.Is(err, reducer.ErrLimit) || errors.As(err, &effect) && effect.Mode == EffectsRecorded
}
