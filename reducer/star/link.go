package star

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Bounds of the modules of a program.
const (
	MaxModuleBytes = 4 << 20 // of all of them together
	maxModuleDepth = 16
)

// linker compiles a program and the modules that it loads, each once.
type linker struct {
	code  reducer.Code
	done  map[string]*starlark.Program
	under []string // the files that are being compiled, the program first
	bytes int      // of the modules
}

// compile compiles one file, for which check says what else is wrong with it, and what
// it loads.
func (l *linker) compile(file string, source []byte, check func(string, *syntax.File) error) (*starlark.Program, error) {
	tree, err := parse(file, source)
	if err != nil {
		return nil, err
	}
	if err := check(file, tree); err != nil {
		return nil, err
	}
	loads, err := rewrite(file, tree)
	if err != nil {
		return nil, err
	}
	names := (&meter{}).predeclared()
	compiled, err := starlark.FileProgram(tree, names.Has)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	l.under = append(l.under, file)
	defer func() { l.under = l.under[:len(l.under)-1] }()
	for _, s := range loads {
		if err := l.module(file, s); err != nil {
			return nil, err
		}
	}
	return compiled, nil
}

// module compiles what a load statement of a file names.
func (l *linker) module(file string, s *syntax.LoadStmt) error {
	refuse := func(format string, args ...any) error {
		return errorAt(file, s.Module.TokenPos, fmt.Sprintf(format, args...))
	}
	name := s.ModuleName()
	if slices.Contains(l.under, name) {
		return refuse("%q is loaded in a circle: %s", name, strings.Join(append(l.under, name), " loads "))
	}
	if l.done[name] != nil {
		return nil
	}
	source, ok := l.code.Modules[name]
	l.bytes += len(source)
	switch {
	case !ok:
		return refuse("there is no module %q", name)
	case len(l.under) > maxModuleDepth:
		return refuse("modules load each other more than %d deep", maxModuleDepth)
	case len(l.done) >= manifest.MaxModules:
		return refuse("a program loads at most %d modules", manifest.MaxModules)
	case l.bytes > MaxModuleBytes:
		return refuse("the modules of a program have at most %d bytes", MaxModuleBytes)
	}
	compiled, err := l.compile(name, source, func(string, *syntax.File) error { return nil })
	if err == nil {
		l.done[name] = compiled
	}
	return err
}

func parse(file string, source []byte) (*syntax.File, error) {
	if len(source) > MaxSourceBytes {
		msg := fmt.Sprintf("the program has %d bytes, at most %d are allowed", len(source), MaxSourceBytes)
		return nil, &reducer.SyntaxError{File: file, Line: 1, Column: 1, Msg: msg}
	}
	if wrong, ok := errors.AsType[*canon.SyntaxError](canon.CheckText(source)); ok {
		line := 1 + bytes.Count(source[:wrong.Offset], []byte("\n"))
		return nil, &reducer.SyntaxError{File: file, Line: line, Column: 1, Msg: wrong.Reason}
	}
	options := syntax.FileOptions{Set: true, While: true, Recursion: true}
	tree, err := options.Parse(file, source, 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	return tree, nil
}

// Loads implements reducer.Reader.
func (Engine) Loads(file string, source []byte) ([]reducer.Load, error) {
	tree, err := parse(file, source)
	if err != nil {
		return nil, err
	}
	var out []reducer.Load
	for _, s := range tree.Stmts { // one that is anywhere else is refused
		if load, ok := s.(*syntax.LoadStmt); ok {
			pos := load.Module.TokenPos
			out = append(out, reducer.Load{Module: load.ModuleName(), Line: int(pos.Line), Column: int(pos.Col)})
		}
	}
	return out, nil
}
