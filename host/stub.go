package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// newStub returns the factory of one Host's stub adapters, whose scripts are run by
// the engines of its manifest, at their top level within bounds.
func newStub(engines manifest.Engines, within *reducer.Bounds) Factory {
	tables, scripts := make(shared[*answers]), make(shared[*script])
	var rest *reducer.Bounds // of those that are not made yet
	if within != nil {
		b := *within
		rest = &b
	}
	return func(s Setup) (Adapter, error) {
		var config struct {
			Answers string `cbor:"answers"`
			Script  string `cbor:"script"`
		}
		if err := s.Decode(&config); err != nil {
			return nil, err
		}
		switch {
		case config.Answers != "" && config.Script == "":
			return tables.get(s, "answers", func(data []byte) (*answers, error) { return readAnswers(config.Answers, data) })
		case config.Script != "" && config.Answers == "":
			return scripts.get(s, "script", func(data []byte) (*script, error) { return compileScript(engines, config.Script, data, rest) })
		default:
			return nil, errors.New("config: want either answers or script")
		}
	}
}

// answers is a table from kind and params to payload; it does not change.
type answers struct {
	file  string
	exact map[ask]*line
	any   map[string]*line // by kind
}

func readAnswers(file string, data []byte) (*answers, error) {
	lines, err := readLines(file, data, schema{
		required: []string{"kind", "payload"}, optional: []string{"params", "status", "outcome"},
	})
	if err != nil {
		return nil, err
	}
	a := &answers{file: file, exact: make(map[ask]*line), any: make(map[string]*line)}
	for i := range lines {
		l := &lines[i]
		at := ask{kind: l.kind, params: canon.Sum(l.params)}
		before := a.any[l.kind]
		if l.params != nil {
			before = a.exact[at]
		}
		switch {
		case before != nil:
			return nil, lineError(file, l.number, fmt.Errorf("line %d answers the same already", before.number))
		case l.params != nil:
			a.exact[at] = l
		default:
			a.any[l.kind] = l
		}
	}
	return a, nil
}

func (a *answers) Deterministic() bool { return true }

func (a *answers) Perform(_ context.Context, call Call) (Result, error) {
	p := call.Permit
	if l := a.exact[ask{kind: p.Kind, params: canon.Sum(p.Params)}]; l != nil {
		return l.result, nil
	}
	if l := a.any[p.Kind]; l != nil {
		return l.result, nil
	}
	nearest, near := a.nearest(p.Kind)
	return Result{}, miss(a.file, p, nearest, near)
}

// nearest describes and returns the first line of a kind, nil where there is none.
func (a *answers) nearest(kind string) (string, *line) {
	var first *line
	for at, l := range a.exact {
		if at.kind == kind && (first == nil || l.number < first.number) {
			first = l
		}
	}
	if first == nil {
		return fmt.Sprintf("it has nothing of kind %s", kind), nil
	}
	return fmt.Sprintf("nearest is line %d: params %s", first.number, brief(first.params)), first
}
