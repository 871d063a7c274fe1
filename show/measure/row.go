package measure

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/reducer"
)

// bin returns the place of a value in a histogram: 0 is below its first edge.
func bin(edges []float64, x float64) int {
	return sort.Search(len(edges), func(i int) bool { return edges[i] > x })
}

// makeRow makes the row.
func (p *pass) makeRow() (Row, error) {
	row := make(Row, 0, len(p.columns))
	for i := range p.specs {
		before := len(row)
		var err error
		if row, err = p.appendSpec(row, i); err != nil {
			return nil, err
		}
		for k := before; k < len(row); k++ {
			p.row.Set(1+k, asVariable(row[k]))
		}
	}
	return row, nil
}

// asVariable returns what expressions see of a column: numbers are floats.
func asVariable(v any) governance.Value {
	switch v := v.(type) {
	case int64:
		return governance.Value{Type: governance.TypeFloat, Float: float64(v)}
	case float64:
		return governance.Value{Type: governance.TypeFloat, Float: v}
	case bool:
		return governance.Value{Type: governance.TypeBool, Bool: v}
	case string:
		return governance.Value{Type: governance.TypeText, Text: v}
	}
	return governance.Value{}
}

func (p *pass) appendSpec(row Row, i int) (Row, error) {
	spec, t := &p.specs[i], &p.samples[i]
	switch {
	case t.failed != nil:
		return nil, t.failed
	case t.ranked && t.n > 0 && p.held > p.limits.Values:
		return nil, &Error{Measure: spec.Name, Expr: spec.Value, Tick: p.tick, Err: p.tooMany()}
	case spec.Expr != "":
		v, err := p.evalExpr(i, row)
		if err != nil {
			return nil, &Error{Measure: spec.Name, Expr: spec.Expr, Tick: p.tick, Err: err}
		}
		return append(row, v), nil
	case spec.Star != "":
		values, err := p.call(i)
		if err != nil {
			return nil, &Error{Measure: spec.Name, Tick: p.tick, Err: err}
		}
		return append(row, values...), nil
	case spec.Cell != "":
		v, err := inColumn(t.one, p.columns[p.first[i]].Type)
		if err != nil {
			return nil, &Error{Measure: spec.Name, Expr: spec.Value, Cell: spec.Cell, Tick: p.tick, Err: err}
		}
		return append(row, v), nil
	case spec.Value == "":
		return append(row, t.n), nil
	}
	for _, word := range spec.Take {
		v, err := t.statistic(word)
		if err != nil {
			return nil, &Error{Measure: spec.Name, Expr: spec.Value, Tick: p.tick, Err: fmt.Errorf("%s: %w", word, err)}
		}
		row = append(row, v)
	}
	for _, v := range spec.Count {
		row = append(row, t.counts[v])
	}
	for _, n := range t.bins {
		row = append(row, n)
	}
	return row, nil
}

// tooMany says that the measures of a row have more values than they may.
func (p *pass) tooMany() error {
	return fmt.Errorf("%w: percentiles and Gini coefficients have more than %d values in memory: raise limits.values", reducer.ErrLimit, p.limits.Values)
}

// evalExpr evaluates an expression over the measures before it. It is null where one of
// those is that it names.
func (p *pass) evalExpr(i int, row Row) (any, error) {
	f := p.plans[i].expr
	for k, v := range row {
		if v == nil && f.Uses(1+k) {
			return nil, nil
		}
	}
	v, err := f.Eval(p.row)
	if err != nil {
		return nil, err
	}
	return inColumn(v, p.columns[p.first[i]].Type)
}

// inColumn returns a value as a column of a type has it; null is nil.
func inColumn(v governance.Value, as Type) (any, error) {
	switch {
	case v.Type == governance.TypeNull:
		return nil, nil
	case v.Type == governance.TypeFloat && (math.IsInf(v.Float, 0) || math.IsNaN(v.Float)):
		return nil, errNotFinite
	case as == Float && v.Type == governance.TypeFloat:
		return v.Float, nil
	case as == Float && v.Type == governance.TypeInt:
		return float64(v.Int), nil
	case as == Int && v.Type == governance.TypeInt:
		return v.Int, nil
	case as == Bool && v.Type == governance.TypeBool:
		return v.Bool, nil
	case as == String && v.Type == governance.TypeText:
		if len(v.Text) > MaxTextBytes {
			return nil, fmt.Errorf("it gives a text of %d bytes, at most %d are allowed", len(v.Text), MaxTextBytes)
		}
		return v.Text, nil
	}
	return nil, fmt.Errorf("it gives %s, and the column is of type %s: say type: %s", typeOf(v.Type, ""), as, typeOf(v.Type, ""))
}

// Text returns a value as CSV has it: of a float the shortest text that reads as the same float; of nil none.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// Condition is a CEL expression over a row and its tick.
type Condition struct {
	set  *Set
	text string
	of   *governance.Formula
}

// Condition compiles a condition over all measures, such as when to stop. The error has
// its place in the text.
func (s *Set) Condition(text string) (*Condition, error) {
	f, err := s.row.Compile(text)
	if err != nil {
		return nil, err
	}
	if !oneOf(f.Type(), governance.TypeBool, governance.TypeAny) {
		return nil, fmt.Errorf("%s is no condition", text)
	}
	return &Condition{s, text, f}, nil
}

// Holds reports whether the condition holds of a row. It does not where a column that it
// names is null.
func (c *Condition) Holds(row Row, tick uint64) (bool, error) {
	vars := c.set.row.Values()
	vars.Set(0, governance.Value{Type: governance.TypeInt, Int: int64(min(tick, math.MaxInt64))})
	for k, v := range row {
		if v == nil && c.of.Uses(1+k) {
			return false, nil
		}
		vars.Set(1+k, asVariable(v))
	}
	v, err := c.of.Eval(vars)
	if err == nil && v.Type != governance.TypeBool {
		err = errNoCondition
	}
	if err != nil {
		return false, fmt.Errorf("condition %s, at tick %d: %w", c.text, tick, err)
	}
	return v.Bool, nil
}
