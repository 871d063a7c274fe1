package host

import (
	"context"
	"fmt"
	"sync"

	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// epilogue makes a reducer of a script, so that one engine with one set of
// bounds runs both. It stands behind the script, whose lines keep their
// numbers. error returns a function because no payload is one.
const epilogue = `

def error(payload, outcome=""):
    return lambda: (payload, outcome)

def reduce(ctx, state, event):
    answered = answer(event.data["kind"], event.data["params"], event.data["n"])
    if type(answered) == "function":
        payload, outcome = answered()
        return {"status": "error", "payload": payload, "outcome": outcome}
    return {"status": "ok", "payload": answered, "outcome": ""}
`

// ScriptError says why a script makes no answer. No receipt can be made, and the effect
// stays in flight.
type ScriptError struct {
	File string // as the manifest's config has it
	Err  error
}

func (e *ScriptError) Error() string { return e.File + " makes no answer: " + e.Err.Error() }

// Unwrap returns Err.
func (e *ScriptError) Unwrap() error { return e.Err }

// script answers with what a Starlark function returns.
type script struct {
	file    string
	program *star.Program
	limits  manifest.ReducerLimits
	idle    sync.Pool // of reducer.Reducer, each of which one call uses at a time
}

// compileScript makes a script, whose top level takes of what rest allows; nil: nothing
// but the engine's limits bounds it.
func compileScript(engines manifest.Engines, file string, source []byte, rest *reducer.Bounds) (*script, error) {
	if err := checkAnswer(file, source); err != nil {
		return nil, err
	}
	version, err := engines.Version(manifest.EngineStarlark, star.Engine{}.Versions())
	if err != nil {
		return nil, err
	}
	program, err := star.Compile(version, file, append(source[:len(source):len(source)], epilogue...))
	if err != nil {
		return nil, err
	}
	s := &script{file: file, program: program, limits: manifest.ReducerLimits{State: manifest.DefaultReceipt}.WithDefaults()}
	first, used, err := program.Start(reducer.Setting{}, rest) // runs the top level: better now than at the first call
	if rest != nil {
		rest.Gas -= min(rest.Gas, used.Gas)
	}
	if err != nil {
		return nil, err
	}
	s.idle.Put(first)
	return s, nil
}

// checkAnswer reports a script without answer(kind, params, n). Whatever else
// is wrong with it the compiler reports.
func checkAnswer(file string, source []byte) error {
	tree, err := (&syntax.FileOptions{Set: true, While: true, Recursion: true}).Parse(file, source, 0)
	if err != nil {
		return err
	}
	for _, s := range tree.Stmts {
		if def, ok := s.(*syntax.DefStmt); ok && def.Name.Name == "answer" && len(def.Params) == 3 {
			return nil
		}
	}
	return fmt.Errorf("%s: there is no function answer(kind, params, n)", file)
}

func (s *script) Deterministic() bool { return true }

func (s *script) Perform(_ context.Context, call Call) (Result, error) {
	p := call.Permit
	engine, _ := s.idle.Get().(reducer.Reducer)
	if engine == nil {
		var err error
		if engine, err = s.program.Reducer(); err != nil {
			return Result{}, err
		}
	}
	defer s.idle.Put(engine)

	question := canon.AppendMap(nil, 3)
	question = canon.AppendUint(canon.AppendText(question, "n"), p.Occurrence)
	question = canon.AppendText(canon.AppendText(question, "kind"), p.Kind)
	question = canon.AppendRaw(canon.AppendText(question, "params"), p.Params)
	in := reducer.Input{Event: reducer.Event{Name: "answer", Data: question}, Limits: s.limits}
	var out reducer.Output
	if err := engine.Reduce(&in, &out); err != nil {
		return Result{}, &ScriptError{s.file, err}
	}
	if err := out.CheckLimits(s.limits); err != nil {
		return Result{}, &ScriptError{s.file, err}
	}
	var answer struct {
		Status  receipt.Status  `cbor:"status"`
		Outcome receipt.Outcome `cbor:"outcome"`
		Payload receipt.Data    `cbor:"payload"`
	}
	if err := canon.UnmarshalTrusted(out.State, &answer); err != nil {
		return Result{}, err
	}
	if answer.Outcome != "" {
		if err := checkOutcome(answer.Outcome); err != nil {
			return Result{}, &ScriptError{s.file, err}
		}
	}
	return Result{Status: answer.Status, Class: answer.Outcome, Payload: answer.Payload}, nil
}
