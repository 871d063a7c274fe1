package star

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Version is the last one, for new worlds. A version names the language and its
// implementation: the same program on the same input gives the same output and the
// same gas only under one of them. Which one runs a world is part of its rules.
const Version = "starlark/1+89a6a09411d5"

// Engine is the engine of Starlark: it implements reducer.Reader.
type Engine struct{}

// Versions implements reducer.Engine.
func (Engine) Versions() []string { return []string{Version} }

// MaxSourceBytes is the largest program, and the largest module, that [Compile] takes.
const MaxSourceBytes = 1 << 20

// entry is the function that every program defines.
const entry = "reduce"

// migration is the function that a program may define to take over the states
// of the code before it.
const migration = "migrate"

// Program is a compiled reducer. It is immutable and safe for concurrent use.
type Program struct {
	entry    string // the function that is called
	compiled *starlark.Program
	modules  map[string]*starlark.Program
}

// Compile implements reducer.Engine. What it returns is a *Program.
func (Engine) Compile(version string, code reducer.Code) (reducer.Program, error) {
	return compileCode(version, code, entry, checkEntry)
}

// Compile compiles a program of a single file, as [Engine.Compile] does.
func Compile(version, file string, source []byte) (*Program, error) {
	return compileCode(version, reducer.Code{File: file, Source: source}, entry, checkEntry)
}

func compileCode(version string, code reducer.Code, entry string, check func(string, *syntax.File) error) (program *Program, err error) {
	defer func() { // a program is data, and no data may end the process
		if r := recover(); r != nil {
			program, err = nil, &reducer.SyntaxError{File: code.File, Line: 1, Column: 1, Msg: fmt.Sprintf("%v: %v", errInterpreter, r)}
		}
	}()
	if !slices.Contains(Engine{}.Versions(), version) {
		return nil, fmt.Errorf("this program has no engine %q, only %s", version, strings.Join(Engine{}.Versions(), ", "))
	}
	l := linker{code: code, done: make(map[string]*starlark.Program)}
	compiled, err := l.compile(code.File, code.Source, check)
	if err != nil {
		return nil, err
	}
	return &Program{entry: entry, compiled: compiled, modules: l.done}, nil
}

// Reducer is Start without settings and bounds.
func (p *Program) Reducer() (reducer.Reducer, error) {
	r, _, err := p.Start(reducer.Setting{}, nil)
	return r, err
}

// Start implements reducer.Program.
func (p *Program) Start(s reducer.Setting, bounds *reducer.Bounds) (reducer.Reducer, reducer.Used, error) {
	e, used, err := p.start(s, bounds)
	switch {
	case err != nil:
		return nil, used, err
	case e.take != nil:
		return migrator{e}, used, nil
	}
	return e, used, nil
}

func (p *Program) start(s reducer.Setting, bounds *reducer.Bounds) (*engine, reducer.Used, error) {
	e := &engine{file: p.compiled.Filename()}
	e.ctx.init(e)
	given, err := e.load(p, s, bounds)
	used := reducer.Used{Gas: e.thread.Steps, Memory: given + e.filled}
	return e, used, err
}

func topLimits(step manifest.ReducerLimits) manifest.ReducerLimits {
	most := manifest.ReducerLimits{}.WithDefaults()
	most.Gas, most.Value, most.Memory = max(most.Gas, step.Gas), max(most.Value, step.Value), max(most.Memory, step.Memory)
	return most
}

// checkEntry reports a program that does not define reduce(ctx, state, event), or
// whose migrate takes something other than (state).
func checkEntry(file string, tree *syntax.File) error {
	if err := checkFunction(file, tree, entry, []string{"ctx", "state", "event"}); err != nil {
		return err
	}
	if def := defined(tree, migration); def != nil && !takes(def, 1) {
		return errorAt(file, def.Name.NamePos, "migrate takes the parameter (state)")
	}
	return nil
}

// defined returns the function of a name that a program defines, or nil.
func defined(tree *syntax.File, name string) *syntax.DefStmt {
	for _, s := range tree.Stmts {
		if def, ok := s.(*syntax.DefStmt); ok && def.Name.Name == name {
			return def
		}
	}
	return nil
}

// takes reports whether a function takes n parameters and nothing unusual.
func takes(def *syntax.DefStmt, n int) bool {
	for _, p := range def.Params {
		if _, ok := p.(*syntax.Ident); !ok {
			return false
		}
	}
	return len(def.Params) == n
}

func errorAt(file string, pos syntax.Position, msg string) *reducer.SyntaxError {
	return &reducer.SyntaxError{File: file, Line: max(int(pos.Line), 1), Column: max(int(pos.Col), 1), Msg: msg}
}

func syntaxError(file string, err error) error {
	if scan, ok := errors.AsType[syntax.Error](err); ok {
		return errorAt(file, scan.Pos, scan.Msg)
	}
	if list, ok := errors.AsType[resolve.ErrorList](err); ok && len(list) > 0 {
		return errorAt(file, list[0].Pos, list[0].Msg)
	}
	return &reducer.SyntaxError{File: file, Line: 1, Column: 1, Msg: err.Error()}
}
