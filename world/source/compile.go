package source

import (
	"encoding/json"
	"errors"
	"strings"

	"go.starlark.net/syntax"
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/schema"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/engines"
	"github.com/worldkernel/worldkernel/world"
)

// checkReducer gathers the modules of a reducer, whose source n names, and reports why
// they are no reducer of its engine together. Where there is no such engine, others report it.
func (d *decoder) checkReducer(n *yaml.Node, r *manifest.Reducer, source []byte) {
	engine, ok := engines.All()[r.Engine]
	if !ok {
		return
	}
	code := reducer.Code{File: r.File, Source: source, Modules: make(map[string][]byte)}
	faults := len(d.faults)
	if reader, ok := engine.(reducer.Reader); ok {
		d.modules(reader, r, &code, r.File, source)
	}
	if d.withoutCode || len(d.faults) > faults {
		return
	}
	versions := engine.Versions()
	_, err := engine.Compile(versions[len(versions)-1], code)
	d.codeFault(n, err)
}

// codeFault reports what is wrong with code that n names.
func (d *decoder) codeFault(n *yaml.Node, err error) {
	if e, ok := errors.AsType[*reducer.SyntaxError](err); ok {
		d.addFault(e.File, e.Line, e.Column, e.Msg)
	} else if err != nil {
		d.report(n, "%s", err)
	}
}

// checkScript reports why a source, named by n, is not Starlark; what it has to
// define is the adapter's to say.
func (d *decoder) checkScript(n *yaml.Node, file string, source []byte) {
	if len(source) > MaxCodeBytes {
		d.refuse(n, "the file %q is larger than %d bytes", file, MaxCodeBytes)
		return
	}
	if d.withoutCode {
		return
	}
	_, err := new(syntax.FileOptions).Parse(file, source, 0)
	if e, ok := errors.AsType[syntax.Error](err); ok {
		d.addFault(file, int(e.Pos.Line), int(e.Pos.Col), e.Msg)
	} else if err != nil {
		d.report(n, "%s", err)
	}
}

// checkCEL reports why the expression at n is not what check asks for.
func (d *decoder) checkCEL(n *yaml.Node, expr string, check func(string) error) {
	if d.withoutCode || d.refused[n] || strings.TrimSpace(expr) == "" {
		return // reported already, or by Validate
	}
	err := check(expr)
	if e, ok := errors.AsType[*governance.PolicyError](err); ok {
		line, column := d.within(n, e.Line, e.Column)
		d.here(line, column, "%s", e.Msg)
	} else if err != nil {
		d.report(n, "%s", err)
	}
}

// checkNames reports names that nothing has, and expressions that look for what no params
// can have.
func (d *decoder) checkNames(root *yaml.Node, m *manifest.Manifest) error {
	if d.withoutCode {
		return nil
	}
	found, err := world.CheckNames(m, func(h manifest.Hash) ([]byte, error) { return d.contents[h], nil }, nil)
	for _, f := range found {
		switch {
		case f.Path == "":
			d.addFault(f.File, f.Line, f.Column, f.Msg)
		case f.Line == 0:
			d.invalid(root, manifest.Fault{Path: f.Path, Msg: f.Msg})
		default:
			line, column := d.within(nodeAt(root, f.Path), f.Line, f.Column)
			d.here(line, column, "%s", f.Msg)
		}
	}
	return err
}

// nodeAt returns the node that a JSON pointer leads to.
func nodeAt(n *yaml.Node, path string) *yaml.Node {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		_, n = child(n, unescape(part))
	}
	return n
}

// rest returns a line of the world file from a column on. A file can be one line of some
// megabytes, and each of its rules wrong: where characters begin is found out once a line.
func (d *decoder) rest(line, column int) (string, bool) {
	text := d.lines[line-1]
	if d.measured != line {
		d.measured, d.columns = line, d.columns[:0]
		for at := range text {
			d.columns = append(d.columns, at)
		}
	}
	if column < 1 || column > len(d.columns) {
		return "", false
	}
	return text[d.columns[column-1]:], true
}

// checkSchema reports why data is no JSON Schema (draft 2020-12 where it names
// no other).
func (d *decoder) checkSchema(file string, data []byte) {
	if d.withoutCode || !d.checkText(file, data) {
		return
	}
	var err error
	if !json.Valid(data) {
		err = json.Unmarshal(data, new(any))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, column := position(data, int(e.Offset)-1)
		d.addFault(file, line, column, "is not JSON from here on")
		return
	}
	if err == nil {
		_, err = canon.FromJSON(data) // which finds duplicate keys
	}
	if err != nil {
		d.addFault(file, 1, 1, "is not JSON: "+err.Error())
		return
	}
	if _, err := schema.Compile(data); err != nil {
		d.addFault(file, 1, 1, err.Error())
	}
}
