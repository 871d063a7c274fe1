package star

import (
	"errors"
	"fmt"
	"math"
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

	loading *loading // nil once the top level has run
}

// loading is what an engine needs while the top level of its program runs.
type loading struct {
	program *Program
	names   starlark.StringDict
	left    map[string]starlark.StringDict // globals of the modules that have run
}

// stepError is why a step failed, with its place in the program.
type stepError struct {
	place string // file:line:column
	msg   string
	err   error
}

func (e *stepError) Error() string { return e.place + ": " + e.msg }

func (e *stepError) Unwrap() error { return e.err }

// load decodes what a program is given and runs its top level. It returns how many
// bytes the first has filled.
func (e *engine) load(p *Program, s reducer.Setting, bounds *reducer.Bounds) (given uint64, err error) {
	defer e.recover(&err)
	e.thread.OnMaxSteps, e.thread.Load = e.reached, e.module
	e.dec.m, e.enc.m = &e.meter, &e.meter
	if err := e.settle(s, bounds); err != nil {
		return 0, e.failure(err)
	}
	given = e.filled
	e.resetMeter(topLimits(s.Limits), bounds)
	e.loading = &loading{p, e.predeclared(), make(map[string]starlark.StringDict)}
	globals, err := e.run(p.compiled)
	if err != nil {
		return 0, err
	}
	e.loading = nil
	e.loaded = e.heaviest
	e.reduce = globals[p.entry].(*starlark.Function)
	e.take, _ = globals[migration].(*starlark.Function)
	return given, nil
}

// settle decodes what the manifest gives. Its size is bounded there, and no step pays
// for it; only keys that collide cost each step.
func (e *engine) settle(s reducer.Setting, bounds *reducer.Bounds) error {
	e.resetMeter(manifest.ReducerLimits{Gas: math.MaxInt64, Value: math.MaxInt64, Memory: math.MaxInt64}, bounds)
	for _, given := range []struct {
		name string
		data reducer.Data
		to   *starlark.Value
	}{{"ctx.params", s.Params, &e.ctx.params}, {"ctx.schemas", s.Schemas, &e.ctx.schemas}} {
		if *given.to = starlark.NewDict(0); len(given.data) > 0 {
			var err error
			if *given.to, err = e.dec.decode(given.name, given.data); err != nil {
				return err
			}
		}
		(*given.to).Freeze()
	}
	e.loaded = e.heaviest
	return nil
}

// run runs the top level of a file and freezes what that leaves.
func (e *engine) run(compiled *starlark.Program) (starlark.StringDict, error) {
	globals, err := compiled.Init(&e.thread, e.loading.names)
	if err != nil {
		return nil, e.failure(err)
	}
	for _, name := range globals.Keys() {
		if f := (freezer{left: maxFrozen}); !f.visit(globals[name], 0) {
			err := fmt.Errorf("global %s: too large, nested deeper than %d or a function that holds itself", name, maxFrozenDepth)
			return nil, &stepError{place: compiled.Filename() + ":1:1", msg: err.Error(), err: err}
		}
	}
	globals.Freeze()
	return globals, nil
}

// module is the interpreter's call back for load statements. All there are have been
// compiled, and none is in a circle.
func (e *engine) module(_ *starlark.Thread, name string) (starlark.StringDict, error) {
	globals, ok := e.loading.left[name]
	if ok {
		return globals, nil
	}
	globals, err := e.run(e.loading.program.modules[name])
	if err == nil {
		e.loading.left[name] = globals
	}
	return globals, err
}

// migrator is an engine whose program defines migrate(state).
type migrator struct{ *engine }

// Migrate implements reducer.Migrator.
func (e migrator) Migrate(in *reducer.Input, out *reducer.Output) (err error) {
	defer e.recover(&err)
	limits := in.Limits.WithDefaults()
	e.resetMeter(limits, in.Bounds)
	defer func() { out.Gas = e.thread.Steps }()
	e.listen(in.OnPrint)
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
	e.spend(0)
	return nil
}

var errNoState = errors.New("migrate returned None: it returns the state to go on with")

// Reduce runs reduce(ctx, state, event); see the package comment.
func (e *engine) Reduce(in *reducer.Input, out *reducer.Output) (err error) {
	defer e.recover(&err)
	limits := in.Limits.WithDefaults()
	e.resetMeter(limits, in.Bounds)
	defer func() { out.Gas = e.thread.Steps }()
	e.listen(in.OnPrint)
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
	if next != starlark.None {
		if out.State, err = e.enc.encode(out.State, "state", next, limits.State, "limits.state"); err != nil {
			return e.failure(err)
		}
	}
	e.spend(0) // the interpreter notices only at its next instruction that the gas is used up
	return nil
}

// failure gives err its place: the innermost line of the program that was being
// executed, or else where reduce is defined.
func (e *engine) failure(err error) error {
	place := e.file + ":1:1"
	if e.reduce != nil {
		place = e.reduce.Position().String()
	}
	cause, stack := err, e.stack
	if eval, ok := errors.AsType[*starlark.EvalError](err); ok {
		cause, stack = eval.Unwrap(), eval.CallStack
	}
	place, chain := callers(stack, place)
	msg := indexed(cause.Error())
	if len(msg) > maxMessageBytes {
		msg = msg[:maxMessageBytes] + "…"
	}
	return &stepError{place: place, msg: strings.ToValidUTF8(msg, "\uFFFD") + chain, err: cause}
}

// indexed says of an object that has fields what to write, where a program looks in it for an item.
func indexed(msg string) string {
	for of, field := range map[string]string{"event": "data", "ctx": "params", "cell": "state"} { // order cannot show: one fits at most
		if strings.HasPrefix(msg, "unhandled index operation "+of+"[") {
			return fmt.Sprintf("%s has fields, and no items: write %s.%s, not %s[%q]", of, of, field, of, field)
		}
	}
	return msg
}

// maxCallers is how many callers of what failed are told.
const maxCallers = 16

// callers returns the innermost place of a call stack, and who called it, innermost
// first, where anyone did. A stack without places has the one that is given.
func callers(stack starlark.CallStack, given string) (place, chain string) {
	var frames []starlark.CallFrame // innermost first
	for i := len(stack) - 1; i >= 0; i-- {
		if stack[i].Pos.Filename() != builtinFile {
			frames = append(frames, stack[i])
		}
	}
	if len(frames) < 2 {
		if len(frames) == 1 {
			given = frames[0].Pos.String()
		}
		return given, ""
	}
	b := new(strings.Builder)
	fmt.Fprintf(b, " (in %s", frames[0].Name)
	for i, frame := range frames[1:] {
		if i == maxCallers || b.Len() > maxMessageBytes {
			fmt.Fprintf(b, ", and %d more", len(frames)-1-i)
			break
		}
		fmt.Fprintf(b, ", called by %s at %s:%d", frame.Name, frame.Pos.Filename(), frame.Pos.Line)
	}
	return frames[0].Pos.String(), b.String() + ")"
}

// builtinFile is where the library says that its own functions are.
const builtinFile = "<builtin>"

// recover makes a failed step of one that has ended before its time, and of a panic of the
// library: a reducer is data, and no data may end the process.
func (e *engine) recover(err *error) {
	switch r := recover(); r {
	case nil:
	case ended{}:
		*err = e.failure(e.over)
	default:
		*err = &stepError{place: e.file + ":1:1", msg: fmt.Sprintf("%v: %v", errInterpreter, r), err: errInterpreter}
	}
}

var errInterpreter = errors.New("the interpreter failed")
