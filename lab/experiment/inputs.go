package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
)

// inputs are what all runs are sent: a list of events, or a program that makes them.
type inputs struct {
	file    string             // as the document names it; empty: there are none
	says    any                // what all of it says, in hashes
	events  []world.Submission // sent at the beginning
	program *star.Function     // nil: there is none
}

// Inputs returns the file of what runs are sent, as the document names it; empty: there is
// none.
func (s *Spec) Inputs() string { return s.inputs.file }

// input reads what runs are sent.
func (l *loader) input() {
	n := l.at["inputs"]
	if n == nil {
		return
	}
	in := &l.spec.inputs
	if l.Text(&in.file)(n); l.Refused(n) {
		return
	}
	switch filepath.Ext(in.file) {
	case ".jsonl":
		most := l.spec.Limits.Input
		data := l.content(n, most, "limits.inputs raises that")
		in.says = canon.Sum(data)
		l.lines(in, data)
	case ".star":
		if err := l.compile(in); err != nil {
			l.Fault(n, "%s", oneLine(err))
		}
	default:
		l.Fault(n, "%q: want a file of JSON lines, FILE.jsonl, or a Starlark function inputs(run, tick), FILE.star", in.file)
	}
}

// content reads a regular file that a node names, of at most so many bytes; raise says what
// to do about more.
func (l *loader) content(n *yaml.Node, most uint64, raise string) []byte {
	data, err := file.ReadRegular(l.path(n.Value), int64(min(most, math.MaxInt64-1)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.Fault(n, "there is no file %q", n.Value)
	case errors.Is(err, file.ErrIrregular):
		l.Fault(n, "%q is not a regular file", n.Value)
	case errors.Is(err, file.ErrSize):
		l.Fault(n, "%q is larger than %d bytes: %s", n.Value, most, raise)
	case err != nil:
		l.Fault(n, "%s", err)
	}
	return data
}

// lines reads events as worldctl send - takes them.
func (l *loader) lines(in *inputs, data []byte) {
	line := 0
	for text := range bytes.Lines(data) {
		if line++; len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var s world.Submission
		item, err := canon.FromJSON(text)
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
}

// routed refuses events that the world does not declare.
func (l *loader) routed(s *world.Submission) error {
	if _, ok := l.base.manifest.Events[s.Name]; !ok {
		return fmt.Errorf("world.yaml declares no event %q", s.Name)
	}
	return nil
}

// compile reads the program, and all that it loads.
func (l *loader) compile(in *inputs) error {
	code, err := source.ReadCode(l.dir, in.file)
	if err != nil {
		return err
	}
	if in.program, err = star.CompileFunction(star.Version, code, "inputs", "run", "tick"); err != nil {
		return err
	}
	in.says = hashesOf(&code)
	_, err = in.program.Instance(l.spec.Limits.ofInputs()) // whose top level may fail
	return err
}

// script makes the events of one run.
type script struct {
	spec   *Spec
	called *star.Instance
	run    canon.Raw
	seed   uint64
}

// script returns what makes the events of a run; nil: nothing does.
func (s *Spec) script(p Planned) (*script, error) {
	if s.inputs.program == nil {
		return nil, nil
	}
	called, err := s.inputs.program.Instance(s.Limits.ofInputs())
	if err != nil {
		return nil, err
	}
	params := make(map[string]any)
	for i, param := range s.Params {
		params[param.Name] = s.Values[p.Point].Values[i]
	}
	run, err := canon.Marshal(map[string]any{"number": uint64(p.ID), "seed": p.Seed, "variant": s.Variants[p.Variant], "params": params})
	return &script{spec: s, called: called, run: run, seed: p.Seed}, err
}

// inputsCell is whose randomness a program of inputs draws: no reducer can have its name.
var inputsCell = reducer.Cell{Reducer: "", Key: "inputs"} //nolint:gochecknoglobals // a constant

// ofInputs returns the limits of a program of inputs, which may make one value of all its memory.
func (l Limits) ofInputs() manifest.ReducerLimits {
	limits := l.Measures.OfProgram()
	limits.Value = limits.Memory
	return limits
}

// events returns what falls due at a tick, which is one of the run, from 0.
func (x *script) events(tick uint64) ([]world.Submission, error) {
	seed := reducer.Seed{World: x.seed, Cell: inputsCell, Step: tick}
	l, name := x.spec.Limits, x.spec.inputs.file
	data, err := x.called.Call(l.ofInputs(), star.Most{Bytes: l.Input, Name: "limits.inputs"}, star.OfDrawing("run", x.run, seed.New()), star.OfData("tick", canon.AppendUint(nil, tick)))
	if err != nil {
		return nil, err
	}
	var items []canon.Raw
	if err := canon.UnmarshalTrusted(data, &items); err != nil {
		return nil, fmt.Errorf("%s: inputs(run, %d) returns no list of events, each a dict with event and data", name, tick)
	}
	out := make([]world.Submission, len(items))
	for i, item := range items {
		if err := out[i].Decode(item); err != nil {
			return nil, fmt.Errorf("%s: inputs(run, %d), event %d: %w", name, tick, i, err)
		}
		if out[i].When != (world.When{}) {
			return nil, fmt.Errorf("%s: inputs(run, %d), event %d: %w", name, tick, i, errWhen)
		}
	}
	return out, nil
}

var errWhen = errors.New("its tick is when it falls due: at and in have no use")
