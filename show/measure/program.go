package measure

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// maxGiven bounds what a program gives, in bytes: its columns have no more.
const maxGiven = MaxCounts * 2 * MaxTextBytes

// call returns what a program gives, beside its columns.
func (p *pass) call(i int) ([]any, error) {
	spec, t := &p.specs[i], &p.samples[i]
	limits := p.limits.OfProgram()
	if t.called == nil {
		var err error
		if t.called, err = p.plans[i].function.Instance(limits); err != nil {
			return nil, err
		}
	}
	out, err := t.called.Call(limits, star.Most{Bytes: maxGiven, Name: "what a measure gives"}, star.OfCells(func() (star.NextCell, func()) { return p.next(spec.Cells) }),
		star.OfData("tick", canon.AppendUint(nil, uint64(p.tick))))
	if err != nil {
		return nil, err
	}
	columns := p.columns[p.first[i]:]
	if len(spec.Gives) == 0 {
		v, err := given(out, columns[0].Type)
		return []any{v}, err
	}
	return fields(out, spec, columns)
}

// next goes through the cells of some reducers, by name.
func (p *pass) next(of []string) (star.NextCell, func()) {
	cells := p.cells
	next, stop := iter.Pull2(cells.SortedStates())
	return func() (string, reducer.Data, bool, error) {
		for {
			name, state, ok := next()
			if !ok {
				return "", nil, false, cells.Unread()
			}
			reducer, _, _ := strings.Cut(name, "/")
			if len(of) == 0 || slices.Contains(of, reducer) {
				return name, state, true, nil
			}
		}
	}, stop
}

// given returns what a program gave as a column has it.
func given(data canon.Raw, as Type) (any, error) {
	r := canon.NewReader(data)
	v := governance.Value{}
	switch r.Kind() {
	case canon.KindNull:
	case canon.KindBool:
		v = governance.Value{Type: governance.TypeBool, Bool: r.Bool()}
	case canon.KindInt:
		n, wide := r.Int()
		if wide != nil {
			return nil, errors.New("it gives an integer that does not fit in 64 bits with a sign")
		}
		v = governance.Value{Type: governance.TypeInt, Int: n}
	case canon.KindFloat:
		v = governance.Value{Type: governance.TypeFloat, Float: r.Float()}
	case canon.KindText:
		v = governance.Value{Type: governance.TypeText, Text: r.Text()}
	default:
		return nil, errors.New("it gives no number, boolean or text: say what it gives: gives: {FIELD: float}")
	}
	return inColumn(v, as)
}

// fields returns the fields of what a program gave. One that is not there is null; of None all are.
func fields(data canon.Raw, spec *Spec, columns []Column) ([]any, error) {
	r := canon.NewReader(data)
	out := make([]any, len(spec.Gives))
	switch r.Kind() {
	case canon.KindNull:
		return out, nil
	case canon.KindMap:
	default:
		return nil, errors.New("it gives no dict of the fields that gives names, nor None")
	}
	for range r.Map() {
		name, value := r.Text(), r.Raw()
		i := slices.IndexFunc(spec.Gives, func(f Field) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("it gives %q, which is not among gives", name)
		}
		var err error
		if out[i], err = given(value, columns[i].Type); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}
