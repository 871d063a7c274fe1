package measure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// Env is what measures are compiled for. The zero value knows no reducers, and bounds
// nothing but by its defaults.
type Env struct {
	Reducers []string // that the worlds have; nil: nobody knows
	// Code returns the program of a file that a measure names; nil: there are none.
	Code   func(file string) (reducer.Code, error)
	Limits Limits
}

// Limits bound an evaluation. A zero is the default.
type Limits struct {
	Values uint64 // of cells that are in memory for percentiles and Gini coefficients, of all measures
	Gas    uint64 // steps of one call of a program
	Memory uint64 // bytes that one call of a program makes
}

// OfProgram returns the limits of a program: of one call, and of its top level.
func (l Limits) OfProgram() manifest.ReducerLimits {
	return manifest.ReducerLimits{Gas: cmp.Or(l.Gas, DefaultGas), Memory: cmp.Or(l.Memory, DefaultMemory)}
}

// The defaults of Limits.
const (
	DefaultValues = 1 << 24 // of 8 bytes each
	DefaultGas    = 1 << 32
	DefaultMemory = 4 << 30
)

// Set are measures that are compiled. It is immutable and safe for concurrent use.
type Set struct {
	specs   []Spec
	limits  Limits
	columns []Column
	first   []int // of the columns of each spec
	plans   []plan
	cell    *governance.Formulas // over one cell
	of      []*governance.Formula
	texts   []string // of these
	row     *governance.Formulas
	free    sync.Pool // of *pass
}

// plan is what a spec has come to.
type plan struct {
	where, value int // in Set.of; -1: none
	expr         *governance.Formula
	function     *star.Function
	edges        []float64
}

// The variables of formulas over one cell, by their places.
const (
	varState = iota
	varKey
	varReducer
	varID
	varTick
)

func cellVariables() []governance.Variable {
	return []governance.Variable{
		{Name: "state", Type: governance.TypeAny},
		{Name: "cell.key", Type: governance.TypeText},
		{Name: "cell.reducer", Type: governance.TypeText},
		{Name: "cell.id", Type: governance.TypeText},
		{Name: "tick", Type: governance.TypeInt},
	}
}

// DocumentError is all that is wrong with measures: at least one fault.
type DocumentError struct{ Faults []Fault }

func (e *DocumentError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Compile compiles specs. The error is a *DocumentError where something is wrong with them.
func Compile(specs []Spec, env Env) (*Set, error) {
	s := &Set{specs: specs, limits: Limits{
		Values: cmp.Or(env.Limits.Values, DefaultValues), Gas: cmp.Or(env.Limits.Gas, DefaultGas), Memory: cmp.Or(env.Limits.Memory, DefaultMemory),
	}}
	var err error
	if s.cell, err = governance.NewFormulas(cellVariables()...); err != nil {
		return nil, err
	}
	var faults []Fault
	for i := range specs {
		spec := &specs[i]
		if fault := s.add(spec, &env); fault != nil {
			at := spec.At
			if spec.Star != "" && s.plans[i].function == nil {
				at = spec.StarAt
			}
			faults = append(faults, Fault{at, spec.Name, fault.Error()})
		}
	}
	if len(s.columns) > MaxColumns {
		faults = append(faults, Fault{Msg: fmt.Sprintf("a row has %d columns, at most %d are allowed", len(s.columns), MaxColumns)})
	}
	if len(faults) > 0 {
		return nil, &DocumentError{faults}
	}
	s.row, err = governance.NewFormulas(s.rowVariables(len(specs))...)
	return s, err
}

// add compiles one more spec, and returns what is wrong with it.
func (s *Set) add(spec *Spec, env *Env) error {
	p := plan{where: -1, value: -1}
	of := governance.TypeAny
	err := knownReducers(spec, env.Reducers)
	if spec.Where != "" {
		var fault error
		p.where, fault = s.formula("where", spec.Where)
		err = errors.Join(err, fault)
		if fault == nil && !oneOf(s.of[p.where].Type(), governance.TypeBool, governance.TypeAny) {
			err = errors.Join(err, fmt.Errorf("where: %s is no condition", spec.Where))
		}
	}
	if spec.Value != "" {
		var fault error
		p.value, fault = s.formula("value", spec.Value)
		err = errors.Join(err, fault)
		if fault == nil && spec.numeric() && oneOf(s.of[p.value].Type(), governance.TypeText, governance.TypeNull) {
			err = errors.Join(err, fmt.Errorf("value: %s is no number", spec.Value))
		}
	}
	if spec.Expr != "" {
		var fault error
		if p.expr, fault = s.expr(spec); fault == nil {
			of = p.expr.Type()
		}
		err = errors.Join(err, fault)
	}
	if spec.Star != "" {
		var fault error
		p.function, fault = env.function(spec.Star)
		err = errors.Join(err, fault)
	}
	if spec.Hist != nil {
		p.edges = spec.Hist.edges()
	}
	s.first = append(s.first, len(s.columns))
	s.plans = append(s.plans, p)
	for _, c := range spec.columns(of) {
		if slices.ContainsFunc(s.columns[s.first[len(s.first)-1]:], func(before Column) bool { return before.Name == c.Name }) {
			err = errors.Join(err, fmt.Errorf("the column %s is there twice", c.Name))
		}
		s.columns = append(s.columns, c)
	}
	return err
}

var errNoCode = errors.New("there are no programs here: write the measures in CEL")

// function returns the program of a file.
func (env *Env) function(file string) (*star.Function, error) {
	if env.Code == nil {
		return nil, errNoCode
	}
	code, err := env.Code(file)
	if err != nil {
		return nil, err
	}
	f, err := star.CompileFunction(star.Version, code, "measure", "cells", "tick")
	if err == nil {
		_, err = f.Instance(env.Limits.OfProgram()) // whose top level may fail
	}
	return f, err
}

// numeric reports whether the values of the measure have to be numbers.
func (s *Spec) numeric() bool { return len(s.Take) > 0 || s.Hist != nil }

func knownReducers(spec *Spec, known []string) error {
	if known == nil {
		return nil
	}
	of := spec.Cells
	if spec.Cell != "" {
		id, err := reducer.ParseCell(spec.Cell)
		if err != nil {
			return err
		}
		of = []string{id.Reducer}
	}
	for _, name := range of {
		if slices.Contains(known, name) {
			continue
		}
		return fmt.Errorf("the world has no reducer %q%s", name, manifest.Instead(name, known))
	}
	return nil
}

// formula returns the place of a formula over one cell. Equal ones are one.
func (s *Set) formula(key, text string) (int, error) {
	if i := slices.Index(s.texts, text); i >= 0 {
		return i, nil
	}
	f, err := s.cell.Compile(text)
	if err != nil {
		return -1, inText(key, text, err)
	}
	s.of, s.texts = append(s.of, f), append(s.texts, text)
	return len(s.of) - 1, nil
}

func inText(key, text string, err error) error {
	return fmt.Errorf("%s: %s, at %w", key, text, err)
}

// expr compiles an expression over the measures before it.
func (s *Set) expr(spec *Spec) (*governance.Formula, error) {
	row, err := governance.NewFormulas(s.rowVariables(len(s.plans))...)
	if err != nil {
		return nil, err
	}
	f, err := row.Compile(spec.Expr)
	if err != nil {
		return nil, inText("expr", spec.Expr, err)
	}
	return f, nil
}

// rowVariables returns the variables of expressions over the first so many measures: the
// tick, and each column that expressions can name, beside their places in a row.
func (s *Set) rowVariables(measures int) []governance.Variable {
	end := len(s.columns)
	if measures < len(s.first) {
		end = s.first[measures]
	}
	out := []governance.Variable{{Name: "tick", Type: governance.TypeInt}}
	for _, c := range s.columns[:end] {
		v := governance.Variable{Name: c.Name, Type: governance.TypeFloat}
		switch c.Type {
		case Bool:
			v.Type = governance.TypeBool
		case String:
			v.Type = governance.TypeText
		default:
		}
		if !nameable(c.Name) {
			v.Name = fmt.Sprintf("_column.c%d", len(out))
		}
		out = append(out, v)
	}
	return out
}

// nameable reports whether expressions can name a column.
func nameable(column string) bool {
	for part := range strings.SplitSeq(column, ".") {
		if !identifier.MatchString(part) || slices.Contains(reserved(), part) {
			return false
		}
	}
	return true
}

// Columns returns those of each row.
func (s *Set) Columns() []Column { return slices.Clone(s.columns) }

func oneOf(t governance.Type, of ...governance.Type) bool { return slices.Contains(of, t) }
