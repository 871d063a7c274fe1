package star

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Function is a program that defines one function, which is called from outside of any world. Its
// language, its bounds and what it pays are those of a reducer. It is immutable and safe
// for concurrent use.
type Function struct{ program *Program }

// CompileFunction parses and checks a program that defines a function of a name with such
// parameters. The error is a *SyntaxError.
func CompileFunction(version string, code reducer.Code, name string, params ...string) (*Function, error) {
	check := func(file string, tree *syntax.File) error { return checkFunction(file, tree, name, params) }
	p, err := compileCode(version, code, name, check)
	if err != nil {
		return nil, err
	}
	return &Function{p}, nil
}

// checkFunction reports a program that does not define a function.
func checkFunction(file string, tree *syntax.File, name string, params []string) error {
	list := strings.Join(params, ", ")
	def := defined(tree, name)
	switch {
	case def == nil:
		return &reducer.SyntaxError{File: file, Line: 1, Column: 1, Msg: fmt.Sprintf("the program does not define %s(%s)", name, list)}
	case !takes(def, len(params)):
		return errorAt(file, def.Name.NamePos, fmt.Sprintf("%s takes the parameters (%s)", name, list))
	}
	return nil
}

// Instance is a function that can be called. It is not safe for concurrent use.
type Instance struct{ *engine }

// Instance runs the top level of the program, as [Program.Reducer] does for a reducer with such limits.
func (f *Function) Instance(limits manifest.ReducerLimits) (*Instance, error) {
	e, _, err := f.program.start(reducer.Setting{Limits: limits}, nil)
	if err != nil {
		return nil, err
	}
	return &Instance{e}, nil
}

// Arg is an argument of a call.
type Arg interface {
	value(e *engine) (starlark.Value, error)
}

// ofData is canonical data as an argument.
type ofData struct {
	name string
	data reducer.Data
}

// OfData returns canonical data as an argument; errors call it by its name.
func OfData(name string, data reducer.Data) Arg { return ofData{name, data} }

func (a ofData) value(e *engine) (starlark.Value, error) { return e.dec.decode(a.name, a.data) }

// drawing is a dict as an argument that the program can draw from.
type drawing struct {
	ofData
	rand *reducer.Rand
}

// OfDrawing returns canonical data, a map, as an argument that has under "random" what ctx.random
// of a reducer is: a function of n, whose numbers are those of rand.
func OfDrawing(name string, data reducer.Data, rand *reducer.Rand) Arg {
	return drawing{ofData{name, data}, rand}
}

func (a drawing) value(e *engine) (starlark.Value, error) {
	v, err := a.ofData.value(e)
	if err != nil {
		return nil, err
	}
	e.ctx.rand = a.rand
	return v, v.(*starlark.Dict).SetKey(starlark.String("random"), e.ctx.random)
}

// Most bounds what a call returns, by the name that the limit has for whoever sets it.
type Most struct {
	Bytes uint64
	Name  string
}

// Call calls the function and returns what it gives, as canonical data. The error has its
// place in the program.
func (i *Instance) Call(limits manifest.ReducerLimits, most Most, args ...Arg) (out reducer.Data, err error) {
	defer i.recover(&err)
	defer i.ctx.unbind()
	limits = limits.WithDefaults()
	i.resetMeter(limits, nil)
	given := make(starlark.Tuple, len(args))
	for k, a := range args {
		if given[k], err = a.value(i.engine); err != nil {
			return nil, i.failure(err)
		}
	}
	v, err := starlark.Call(&i.thread, i.reduce, given, nil)
	if err != nil {
		return nil, i.failure(err)
	}
	if out, err = i.enc.encode(nil, "what it returns", v, most.Bytes, most.Name); err != nil {
		return nil, i.failure(err)
	}
	i.spend(0)
	return out, nil
}
