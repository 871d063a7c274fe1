package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.starlark.net/syntax"
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// checkReducer gathers the modules of a reducer, whose source n names, and reports why
// they are no Starlark reducer together.
func (d *decoder) checkReducer(n *yaml.Node, r *manifest.Reducer, source []byte) {
	code := star.Code{File: r.File, Source: source, Modules: make(map[string][]byte)}
	faults := len(d.faults)
	d.modules(r, &code, r.File, source)
	if d.withoutCode || len(d.faults) > faults {
		return
	}
	_, err := star.CompileCode(star.Version, code)
	d.codeFault(n, err)
}

// codeFault reports what is wrong with code that n names.
func (d *decoder) codeFault(n *yaml.Node, err error) {
	var e *star.SyntaxError
	if errors.As(err, &e) {
		d.at(e.File, e.Line, e.Column, e.Msg)
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
	var e syntax.Error
	if errors.As(err, &e) {
		d.at(file, int(e.Pos.Line), int(e.Pos.Col), e.Msg)
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
	var e *governance.PolicyError
	if errors.As(err, &e) {
		line, column := d.within(n, e.Line, e.Column)
		d.here(line, column, "%s", e.Msg)
	} else if err != nil {
		d.report(n, "%s", err)
	}
}

// checkParams reports expressions that look for what no params can have.
func (d *decoder) checkParams(root *yaml.Node, m *manifest.Manifest) error {
	if d.withoutCode {
		return nil
	}
	faults, err := governance.CheckParams(m, func(h manifest.Hash) ([]byte, error) { return d.contents[h], nil }, nil)
	for _, f := range faults {
		n := root
		for part := range strings.SplitSeq(strings.TrimPrefix(f.Path, "/"), "/") {
			_, n = child(n, unescape(part))
		}
		line, column := d.within(n, f.Line, f.Column)
		d.here(line, column, "%s", f.Msg)
	}
	return err
}

// within returns the place in the world file of a place in a scalar, where the
// scalar stands on one line as it is; else where the scalar begins.
func (d *decoder) within(n *yaml.Node, line, column int) (int, int) {
	start := n.Column
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		start++
	}
	text := []rune(d.lines[min(n.Line, len(d.lines))-1])
	if line != 1 || start > len(text) || !strings.HasPrefix(string(text[start-1:]), n.Value) {
		return n.Line, n.Column
	}
	return n.Line, start + min(max(column, 1)-1, utf8.RuneCountInString(n.Value))
}

// errRemote refuses references that leave a schema.
var errRemote = errors.New("a schema refers to nothing outside itself")

// noLoader loads nothing, so that a schema stands alone.
type noLoader struct{}

// Load returns errRemote.
func (noLoader) Load(string) (any, error) { return nil, errRemote }

// checkSchema reports why data is no JSON Schema (draft 2020-12 where it names
// no other).
func (d *decoder) checkSchema(file string, data []byte) {
	if d.withoutCode {
		return
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	var e *json.SyntaxError
	if errors.As(err, &e) {
		line, column := position(data, int(e.Offset)-1)
		d.at(file, line, column, "is not JSON from here on")
		return
	}
	if err == nil {
		_, err = canon.FromJSON(data) // which finds duplicate keys
	}
	if err != nil {
		d.at(file, 1, 1, "is not JSON: "+err.Error())
		return
	}
	if err := compileSchema(file, doc); err != nil {
		d.at(file, 1, 1, err.Error())
	}
}

func compileSchema(file string, doc any) error {
	url := "world:///" + file
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(url, doc); err != nil {
		return err
	}
	_, err := c.Compile(url)
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return fmt.Errorf("%w: %s", load.Err, strings.TrimPrefix(load.URL, "world:///"))
	}
	var schema *jsonschema.SchemaValidationError // which wraps without Unwrap
	var invalid *jsonschema.ValidationError
	if errors.As(err, &schema) && errors.As(schema.Err, &invalid) {
		reasons := leaves(nil, invalid)
		slices.Sort(reasons) // the library's order is that of its maps
		return fmt.Errorf("is not a JSON Schema: %s", strings.Join(slices.Compact(reasons), "; "))
	}
	return err
}

// leaves appends the messages of the innermost errors.
func leaves(to []string, e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		return append(to, e.Error())
	}
	for _, cause := range e.Causes {
		to = leaves(to, cause)
	}
	return to
}
