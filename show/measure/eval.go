package measure

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// Cells are the cells of a world at a moment, of which a *world.Moment is one, and so is
// a *world.World.
type Cells interface {
	// States yields the names, reducer/key, and the canonical states of the cells that have
	// one, in no order.
	States() iter.Seq2[string, journal.Data]
	// SortedStates is States by name, which only programs go through.
	SortedStates() iter.Seq2[string, journal.Data]
	// Unread returns the error that ended one of them, if one did.
	Unread() error
}

// Row is what is measured at a tick, beside Columns: int64, float64, bool, string, or nil
// where there is no such value.
type Row []any

// Error says where a measure failed.
type Error struct {
	Measure string
	Expr    string // that was evaluated; empty: none
	Cell    string // empty: it is of no cell
	Tick    manifest.Tick
	Err     error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "measure %s", e.Measure)
	if e.Expr != "" {
		fmt.Fprintf(&b, ": %s", e.Expr)
	}
	if e.Cell != "" {
		fmt.Fprintf(&b, ", of cell %s", e.Cell)
	}
	fmt.Fprintf(&b, ", at tick %d: %v", e.Tick, e.Err)
	return b.String()
}

// Unwrap returns why.
func (e *Error) Unwrap() error { return e.Err }

// Eval measures. It goes through the cells once. The error is an *Error of the first
// measure that failed and, where several cells failed it, of the first of them by name; or
// that of reading the cells.
func (s *Set) Eval(cells Cells, tick manifest.Tick) (Row, error) {
	p, ok := s.free.Get().(*pass)
	if !ok {
		p = s.newPass()
	}
	defer s.free.Put(p)
	p.beginTick(cells, tick)
	defer func() { p.cells = nil }()
	for name, state := range cells.States() {
		p.takeCell(name, state)
	}
	if err := cells.Unread(); err != nil {
		return nil, fmt.Errorf("measure: the cells at tick %d: %w", tick, err)
	}
	return p.makeRow()
}

// pass is one time through the cells.
type pass struct {
	*Set
	cells   Cells
	tick    manifest.Tick
	vars    *governance.Values
	results []result         // beside Set.of, for the cell that is looked at
	samples []tally          // beside specs
	of      map[string][]int // specs, by the reducers of their cells
	ones    map[string][]int // likewise, by the cell
	held    uint64           // values in memory
	row     *governance.Values
}

// result is what a formula gave.
type result struct {
	known bool
	value governance.Value
	err   error
}

// tally is what a spec has come to in a pass.
type tally struct {
	sample
	counts map[any]int64 // of Count, and of no other values
	bins   []int64       // below, those of Hist, above
	one    governance.Value
	failed *Error
	called *star.Instance // of the program; nil: it was not called yet
}

func (s *Set) newPass() *pass {
	p := &pass{
		Set: s, vars: s.cell.Values(), row: s.row.Values(), results: make([]result, len(s.of)), samples: make([]tally, len(s.specs)),
		of: make(map[string][]int), ones: make(map[string][]int),
	}
	for i := range s.specs {
		spec, t := &s.specs[i], &p.samples[i]
		for _, word := range spec.Take {
			t.spread = t.spread || word == "sd" || word == "variance"
			t.ranked = t.ranked || ranks(word)
		}
		if len(spec.Count) > 0 {
			t.counts = make(map[any]int64, len(spec.Count))
		}
		if spec.Hist != nil {
			t.bins = make([]int64, spec.Hist.Bins+2)
		}
		if spec.Cell != "" {
			p.ones[spec.Cell] = append(p.ones[spec.Cell], i)
		}
	}
	return p
}

func (p *pass) beginTick(cells Cells, tick manifest.Tick) {
	p.cells, p.tick, p.held = cells, tick, 0
	now := governance.Value{Type: governance.TypeInt, Int: int64(min(tick, math.MaxInt64))}
	p.vars.Set(varTick, now)
	p.row.Set(0, now)
	for i := range p.samples {
		t := &p.samples[i]
		t.reset()
		t.one, t.failed = governance.Value{}, nil
		for _, v := range p.specs[i].Count {
			t.counts[v] = 0
		}
		clear(t.bins)
	}
}

// takeCell looks at one cell.
func (p *pass) takeCell(name string, state journal.Data) {
	reducer, key, _ := strings.Cut(name, "/")
	of, known := p.of[reducer]
	if !known {
		of = p.about(reducer)
		p.of[strings.Clone(reducer)] = of
	}
	var ones []int
	if len(p.ones) > 0 {
		ones = p.ones[name]
	}
	if len(of)+len(ones) == 0 {
		return
	}
	if len(p.results) > 0 {
		clear(p.results)
		p.vars.SetData(varState, state)
		p.vars.SetText(varKey, key)
		p.vars.SetText(varReducer, reducer)
		p.vars.SetText(varID, name)
	}
	for _, i := range of {
		p.cell(i, name)
	}
	for _, i := range ones {
		v, err := p.eval(p.plans[i].value)
		if p.samples[i].one = v; err != nil {
			p.fail(i, p.specs[i].Value, name, err)
		}
	}
}

// about returns the specs that the cells of a reducer concern.
func (p *pass) about(reducer string) (out []int) {
	for i := range p.specs {
		s := &p.specs[i]
		if s.Cell != "" || s.Expr != "" || s.Star != "" {
			continue
		}
		if len(s.Cells) == 0 || slices.Contains(s.Cells, reducer) {
			out = append(out, i)
		}
	}
	return out
}

// eval returns what a formula gives of the cell that is looked at.
func (p *pass) eval(formula int) (governance.Value, error) {
	r := &p.results[formula]
	if !r.known {
		r.known = true
		r.value, r.err = p.Set.of[formula].Eval(p.vars)
	}
	return r.value, r.err
}

// fail notes what failed of a spec: of its cells, the first by name.
func (p *pass) fail(i int, expr, cell string, err error) {
	if t := &p.samples[i]; t.failed == nil || cell < t.failed.Cell {
		t.failed = &Error{p.specs[i].Name, expr, strings.Clone(cell), p.tick, err}
	}
}

var (
	errNoCondition = errors.New("it gives no boolean")
	errNoNumber    = errors.New("it gives no number")
	errNotFinite   = errors.New("it gives no finite number")
)

// cell has a spec take the cell that is looked at.
func (p *pass) cell(i int, name string) {
	spec, plan, t := &p.specs[i], &p.plans[i], &p.samples[i]
	if plan.where >= 0 {
		v, err := p.eval(plan.where)
		switch {
		case err == nil && v.Type != governance.TypeBool:
			err = errNoCondition
			fallthrough
		case err != nil:
			p.fail(i, spec.Where, name, err)
			return
		case !v.Bool:
			return
		}
	}
	if plan.value < 0 {
		t.n++
		return
	}
	v, err := p.eval(plan.value)
	if err == nil && v.Type != governance.TypeNull {
		err = p.add(t, spec, plan, v)
	}
	if err != nil {
		p.fail(i, spec.Value, name, err)
	}
}

// counted returns a value as count names it: of a float the integer that it stands for.
func counted(v governance.Value) any {
	switch v.Type {
	case governance.TypeText:
		return v.Text
	case governance.TypeInt:
		return v.Int
	case governance.TypeBool:
		return v.Bool
	case governance.TypeFloat:
		if math.Trunc(v.Float) == v.Float && math.Abs(v.Float) < 1<<63 {
			return int64(v.Float)
		}
	default:
	}
	return nil
}

// add has a spec take a value.
func (p *pass) add(t *tally, spec *Spec, plan *plan, v governance.Value) error {
	if t.counts != nil {
		of := counted(v)
		if n, ok := t.counts[of]; ok {
			t.counts[of] = n + 1
		}
	}
	if !spec.numeric() {
		return nil
	}
	var n number
	var about float64
	switch v.Type {
	case governance.TypeInt:
		n, about = ofInt(v.Int), float64(v.Int)
	case governance.TypeFloat:
		if math.IsInf(v.Float, 0) || math.IsNaN(v.Float) {
			return errNotFinite
		}
		n, about = ofFloat(v.Float), v.Float
	case governance.TypeBool:
		if v.Bool {
			n, about = ofInt(1), 1
		}
	default:
		return errNoNumber
	}
	if t.ranked { // what is too much is counted, so that the error is the same in whatever order cells come
		p.held++
		t.full = p.held > p.limits.Values
	}
	if t.bins != nil {
		t.bins[bin(plan.edges, about)]++
	}
	t.add(n, about)
	return nil
}
