package experiment

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
	"github.com/worldkernel/worldkernel/world"
)

// maxInputBytes bounds a file of inputs.
const maxInputBytes = 64 << 20

// inputs are what all runs are sent: a list of events, or a program that makes them.
type inputs struct {
	file    string // as the document names it; empty: there are none
	hash    canon.Hash
	events  []world.Submission // sent at the beginning
	program *star.Program      // nil: there is none
}

// input reads what runs are sent.
func (l *loader) input() error {
	n := l.at["inputs"]
	if n == nil {
		return nil
	}
	var name string
	if l.Text(&name)(n); l.Refused(n) {
		return nil
	}
	path := l.path(name)
	data, err := os.ReadFile(path)
	switch {
	case err != nil:
		l.Fault(n, "there is no file %q", name)
		return nil
	case len(data) > maxInputBytes:
		l.Fault(n, "%q is larger than %d bytes", name, maxInputBytes)
		return nil
	}
	in := &l.spec.inputs
	in.file, in.hash = name, canon.Sum(data)
	switch filepath.Ext(name) {
	case ".jsonl":
		l.lines(in, data)
	case ".star":
		if err := in.compile(data); err != nil {
			l.Fault(n, "%s", oneLine(err))
		}
	default:
		l.Fault(n, "%q: want a file of JSON lines, FILE.jsonl, or a Starlark function inputs(run, tick), FILE.star", name)
	}
	return nil
}

// lines reads events as worldctl send - takes them.
func (l *loader) lines(in *inputs, data []byte) {
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, maxInputBytes+1)
	for line := 1; scanner.Scan(); line++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		var s world.Submission
		item, err := canon.FromJSON(scanner.Bytes())
		if err == nil {
			err = s.Decode(item)
		}
		if err == nil {
			err = l.routed(&s)
		}
		if err != nil {
			l.Fault(l.at["inputs"], "%s:%d: %s", in.file, line, oneLine(err))
			return
		}
		in.events = append(in.events, s)
	}
	if err := scanner.Err(); err != nil {
		l.Fault(l.at["inputs"], "%s: %s", in.file, err)
	}
}

// routed refuses events that the world does not declare.
func (l *loader) routed(s *world.Submission) error {
	if _, ok := l.base.manifest.Events[s.Name]; !ok {
		return fmt.Errorf("world.yaml declares no event %q", s.Name)
	}
	return nil
}

// inputsEpilogue makes a reducer of a program of inputs, so that one engine with one set of
// bounds runs both. It stands behind the program, whose lines keep their numbers.
const inputsEpilogue = `

def reduce(ctx, state, event):
    run = event.data["run"]
    run["random"] = ctx.random
    return {"events": inputs(run, event.data["tick"])}
`

func (in *inputs) compile(source []byte) error {
	tree, err := (&syntax.FileOptions{Set: true, While: true, Recursion: true}).Parse(in.file, source, 0)
	if err != nil {
		return err
	}
	found := false
	for _, s := range tree.Stmts {
		def, ok := s.(*syntax.DefStmt)
		found = found || ok && def.Name.Name == "inputs" && len(def.Params) == 2
	}
	if !found {
		return fmt.Errorf("%s: there is no function inputs(run, tick)", in.file)
	}
	in.program, err = star.Compile(star.Version, in.file, append(source[:len(source):len(source)], inputsEpilogue...))
	return err
}

// script makes the events of one run.
type script struct {
	file   string
	engine reducer.Reducer
	run    map[string]any
	seed   uint64
	out    reducer.Output
}

// script returns what makes the events of a run; nil: nothing does.
func (s *Spec) script(p Planned) (*script, error) {
	if s.inputs.program == nil {
		return nil, nil
	}
	engine, err := s.inputs.program.Reducer()
	if err != nil {
		return nil, err
	}
	params := make(map[string]any)
	for i, param := range s.Params {
		params[param.Name] = s.Values[p.Point].Values[i]
	}
	run := map[string]any{"number": uint64(p.ID), "seed": p.Seed, "variant": s.Variants[p.Variant], "params": params}
	return &script{file: s.inputs.file, engine: engine, run: run, seed: p.Seed}, nil
}

// inputsCell is whose randomness a program of inputs draws: no reducer can have its name.
var inputsCell = reducer.Cell{Reducer: "", Key: "inputs"} //nolint:gochecknoglobals // a constant

// events returns what falls due at a tick, which is one of the run, from 0.
func (x *script) events(tick uint64) ([]world.Submission, error) {
	data, err := canon.Marshal(map[string]any{"run": x.run, "tick": tick})
	if err != nil {
		return nil, err
	}
	x.out.Reset()
	in := reducer.Input{
		Step: 1, Event: reducer.Event{Name: "inputs", Data: data}, Limits: manifest.ReducerLimits{}.WithDefaults(),
		Seed: reducer.Seed{World: x.seed, Cell: inputsCell, Step: tick},
	}
	if err := x.engine.Reduce(&in, &x.out); err != nil {
		return nil, err
	}
	var answer struct {
		Events []canon.Raw `cbor:"events"`
	}
	if err := canon.UnmarshalTrusted(x.out.State, &answer); err != nil {
		return nil, fmt.Errorf("%s: inputs(run, %d) returns no list of events, each a dict with event and data", x.file, tick)
	}
	out := make([]world.Submission, len(answer.Events))
	for i, item := range answer.Events {
		if err := out[i].Decode(item); err != nil {
			return nil, fmt.Errorf("%s: inputs(run, %d), event %d: %w", x.file, tick, i, err)
		}
		if out[i].When != (world.When{}) {
			return nil, fmt.Errorf("%s: inputs(run, %d), event %d: %w", x.file, tick, i, errWhen)
		}
	}
	return out, nil
}

var errWhen = errors.New("its tick is when it falls due: at and in have no use")
