package experiment

import (
	"errors"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/world/source"
)

// Type is the type of a column.
type Type string

// The types of columns.
const (
	Int   Type = "int"   // 64 bits, signed
	Uint  Type = "uint"  // 64 bits
	Float Type = "float" // 64 bits, finite
	Bool  Type = "bool"
	Text  Type = "string"
)

// Column is one of a table of results.
type Column struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	Doc  string `json:"description"`
	Null string `json:"null,omitempty"` // when there is no value; empty: there always is one
}

// measures are what runs are measured by.
type measures struct {
	set  *measure.Set
	at   measure.When
	when *measure.Condition // stops a run; nil: none does
	code map[string]any     // by the file that a measure names: what its program and modules say
}

// noValue is why a measure may have no value.
const noValue = "the measure is of no values, or the run has failed"

func (m *measures) columns() (out []Column) {
	for _, c := range m.set.Columns() {
		out = append(out, Column{Name: c.Name, Type: Type(c.Type), Doc: c.Doc, Null: noValue})
	}
	return out
}

// measures reads what is measured, when, and the condition that stops a run.
func (l *loader) measures() {
	n := l.at["measures"]
	if n == nil {
		l.Fault(l.Root(), "measures: want at least one: NAME: {cells: REDUCER}")
		return
	}
	specs := measure.Decode(l.Document, n)
	m := &l.spec.measures
	m.at = measure.When{End: true}
	if at := l.at["at"]; at != nil {
		if m.at = measure.DecodeWhen(l.Document, at); l.Err() == nil {
			l.reached(at)
		}
	}
	if l.Err() == nil {
		var err error
		m.set, err = measure.Compile(specs, measure.Env{
			Reducers: slices.Sorted(maps.Keys(l.base.manifest.Reducers)), Code: m.program(l.dir), Limits: l.spec.Limits.Measures,
		})
		var wrong *measure.DocumentError
		switch {
		case errors.As(err, &wrong):
			for _, f := range wrong.Faults {
				l.faultAt(n, f)
			}
		case err != nil:
			l.Fault(n, "%s", oneLine(err))
		}
	}
	if l.Err() == nil {
		l.condition()
		l.collisions(n)
	}
}

// reached refuses ticks that no run comes to.
func (l *loader) reached(n *yaml.Node) {
	var begin uint64
	if l.spec.from != nil {
		begin = l.spec.from.tick
	}
	last := begin + l.spec.Stop.Ticks
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		w := measure.DecodeWhen(l.Document, item)
		switch every := uint64(w.Every); {
		case every > 0 && begin-begin%every+every > last:
			l.Fault(item, "%s is never reached: a run has the ticks %d to %d, by stop.ticks or limits.ticks", item.Value, begin, last)
		case len(w.Ticks) > 0 && (uint64(w.Ticks[0]) > last || uint64(w.Ticks[0]) < begin):
			l.Fault(item, "tick %s is never reached: a run has the ticks %d to %d, by stop.ticks or limits.ticks", item.Value, begin, last)
		}
	}
}

// program returns what reads the programs of measures, and keeps what they say.
func (m *measures) program(dir string) func(string) (reducer.Code, error) {
	m.code = make(map[string]any)
	return func(file string) (reducer.Code, error) {
		code, err := source.ReadCode(dir, file)
		m.code[file] = hashesOf(&code)
		return code, err
	}
}

// hashesOf returns what a program and its modules say, in hashes.
func hashesOf(code *reducer.Code) map[string]any {
	modules := make(map[string]any, len(code.Modules))
	for name, text := range code.Modules {
		modules[name] = canon.Sum(text)
	}
	return map[string]any{"source": canon.Sum(code.Source), "modules": modules}
}

// faultAt records what is wrong with a measure.
func (l *loader) faultAt(n *yaml.Node, f measure.Fault) {
	at := *n
	if f.Line > 0 {
		at.Line, at.Column = f.Line, f.Column
	}
	text := oneLine(errors.New(f.Msg))
	if f.Measure != "" {
		text = "measure " + f.Measure + ": " + text
	}
	l.Fault(&at, "%s", text)
}

// condition reads stop.when.
func (l *loader) condition() {
	n, m := l.at["when"], &l.spec.measures
	if n == nil || l.spec.Stop.When == "" {
		return
	}
	if m.at.Every == 0 && len(m.at.Ticks) == 0 {
		l.Fault(n, "stop.when is asked at the ticks that are measured, and there are none: say at: every 1")
		return
	}
	var err error
	if m.when, err = m.set.Condition(l.spec.Stop.When); err != nil {
		l.Fault(n, "%s", oneLine(err))
	}
}

// collisions refuses measures that have the name of another column.
func (l *loader) collisions(n *yaml.Node) {
	taken := make(map[string]bool)
	for _, c := range slices.Concat(l.spec.Params, runHead(), runTail(), tickHead()) {
		taken[c.Name] = true
	}
	for _, c := range l.spec.measures.columns() {
		if taken[c.Name] {
			l.Fault(n, "the column %s of a measure has the name of another column of the results: call the measure otherwise", c.Name)
		}
	}
}
