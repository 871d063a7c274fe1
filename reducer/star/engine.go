package star

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// maxMessageBytes bounds the text of an error, which a journal keeps.
const maxMessageBytes = 2048

// engine is one instance of a program, with the scratch memory of a step.
type engine struct {
	meter
	file   string
	reduce *starlark.Function
	take   *starlark.Function // migrate(state); nil where the program has none
	ctx    stepContext
	dec    decoder
	enc    encoder
	args   [3]starlark.Value
}

// stepError is why a step failed, with its place in the program.
type stepError struct {
	place string // file:line:column
	msg   string
	err   error
}

func (e *stepError) Error() string { return e.place + ": " + e.msg }

func (e *stepError) Unwrap() error { return e.err }

// load runs the top level of a program.
func (e *engine) load(program *starlark.Program, limits manifest.ReducerLimits, bounds *reducer.Bounds) (err error) {
	defer e.recover(&err)
	e.thread.OnMaxSteps = e.reached
	e.dec.m, e.enc.m = &e.meter, &e.meter
	e.resetMeter(limits, bounds)
	globals, err := program.Init(&e.thread, e.predeclared())
	if err != nil {
		return e.failure(err)
	}
	for _, name := range globals.Keys() {
		f := freezer{left: maxFrozen}
		if err := f.visit(globals[name], 0); err != nil {
			return &stepError{place: e.file + ":1:1", msg: fmt.Sprintf("global %s: %v", name, err), err: err}
		}
	}
	globals.Freeze()
	e.loaded = e.heaviest
	e.reduce = globals[entry].(*starlark.Function)
	e.take, _ = globals[migration].(*starlark.Function)
	return nil
}

// migrator is an engine whose program defines migrate(state).
type migrator struct{ *engine }

// Migrate implements reducer.Migrator.
func (e migrator) Migrate(in *reducer.Input, out *reducer.Output) (err error) {
	defer e.recover(&err)
	limits := in.Limits.WithDefaults()
	e.resetMeter(limits, in.Bounds)
	defer func() { out.Gas = e.thread.Steps }()
	state, err := e.dec.decode("state", in.State)
	if err != nil {
		return e.failure(err)
	}
	next, err := starlark.Call(&e.thread, e.take, starlark.Tuple{state}, nil)
	if err != nil {
		return e.failure(err)
	}
	if next == starlark.None {
		return e.failure(errNoState)
	}
	if out.State, err = e.enc.encode(out.State[:0], "state", next, limits.State, "limits.state"); err != nil {
		return e.failure(err)
	}
	return e.checkGas()
}

var errNoState = errors.New("migrate returned None: it returns the state to go on with")

// Reduce runs reduce(ctx, state, event); see the package comment.
func (e *engine) Reduce(in *reducer.Input, out *reducer.Output) (err error) {
	defer e.recover(&err)
	limits := in.Limits.WithDefaults()
	e.resetMeter(limits, in.Bounds)
	defer func() { out.Gas = e.thread.Steps }()
	e.ctx.bind(in, out, limits)
	defer e.ctx.unbind()
	state, err := e.dec.decode("state", in.State)
	if err != nil {
		return e.failure(err)
	}
	e.args = [3]starlark.Value{&e.ctx, state, &e.ctx.event}
	next, err := starlark.Call(&e.thread, e.reduce, e.args[:], nil)
	e.args = [3]starlark.Value{}
	if err != nil {
		return e.failure(err)
	}
	out.State = out.State[:0]
	if next == starlark.None {
		return e.checkGas()
	}
	out.State, err = e.enc.encode(out.State, "state", next, limits.State, "limits.state")
	if err != nil {
		return e.failure(err)
	}
	return e.checkGas()
}

// checkGas fails a step that ended over its gas, which the interpreter notices
// only at its next instruction.
func (e *engine) checkGas() error {
	if e.over == nil && e.thread.Steps <= e.gas {
		return nil
	}
	err := e.spend(0)
	if e.over != nil {
		err = e.over
	}
	return e.failure(err)
}

// failure gives err its place: the innermost line of the program that was being
// executed, or else where reduce is defined.
func (e *engine) failure(err error) error {
	place := e.file + ":1:1"
	if e.reduce != nil {
		place = e.reduce.Position().String()
	}
	cause := err
	var eval *starlark.EvalError
	if errors.As(err, &eval) {
		for _, frame := range eval.CallStack { // outermost first
			if frame.Pos.Filename() == e.file {
				place = frame.Pos.String()
			}
		}
		cause = eval.Unwrap()
	}
	msg := cause.Error()
	if e.over != nil && !errors.Is(cause, reducer.ErrLimit) && !errors.Is(cause, reducer.ErrBound) {
		cause, msg = e.over, e.over.Error() // the interpreter keeps only its text
	}
	if len(msg) > maxMessageBytes {
		msg = msg[:maxMessageBytes] + "…"
	}
	return &stepError{place: place, msg: strings.ToValidUTF8(msg, "\uFFFD"), err: cause}
}

// recover turns a panic of the library into a failed step: a reducer is data,
// and no data may end the process.
func (e *engine) recover(err *error) {
	if r := recover(); r != nil {
		*err = &stepError{place: e.file + ":1:1", msg: fmt.Sprintf("%v: %v", errInterpreter, r), err: errInterpreter}
	}
}

var errInterpreter = errors.New("the interpreter failed")
