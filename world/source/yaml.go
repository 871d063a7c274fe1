package source

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

const tooLarge = "is larger than %d bytes"

// checkText reports whether a file is text as everything here reads it; else it says where it is not.
func (d *decoder) checkText(file string, data []byte) bool {
	var wrong *canon.SyntaxError
	if !errors.As(canon.CheckText(data), &wrong) {
		return true
	}
	line, column := position(data, wrong.Offset)
	d.addFault(file, line, column, wrong.Reason)
	return false
}

// parse returns the root of the one document in data, or nil after a fault.
func (d *decoder) parse(data []byte) *yaml.Node {
	if len(data) > MaxWorldBytes {
		d.here(1, 1, tooLarge, MaxWorldBytes)
		return nil
	}
	if !d.checkText(filepath.Base(d.path), data) {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	var document, second yaml.Node
	if err == nil {
		err = loader.Load(&document)
	}
	if err == nil {
		err = loader.Load(&second)
	}
	switch {
	case document.IsZero() && errors.Is(err, io.EOF):
		d.here(1, 1, "is empty: want %s", d.wants)
		return nil
	case err == nil:
		d.here(second.Line, second.Column, "a second document: want only one")
	case !errors.Is(err, io.EOF):
		d.syntax(data, err)
		return nil
	}
	return document.Content[0]
}

// syntax records the error of a YAML parser.
func (d *decoder) syntax(data []byte, err error) {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		d.here(1, 1, "is not YAML: %s", err)
		return
	}
	line, column := e.Mark.Line, e.Mark.Column
	if line == 0 {
		line, column = position(data, e.Mark.Index)
	}
	msg := e.Message
	if e.ContextMsg != "" {
		msg = e.ContextMsg + ": " + msg
	}
	d.here(line, column, "is not YAML: %s", Syntax(data, line, msg))
}

// Syntax returns what a YAML parser says of a line, or what a person has probably typed there.
func Syntax(data []byte, line int, msg string) string {
	lines := strings.Split(string(data), "\n")
	text := lines[min(max(line, 1), len(lines))-1]
	switch indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]; {
	case strings.Contains(indent, "\t"):
		return "a tab: YAML is indented with spaces"
	case strings.Contains(msg, "cannot start any token"):
		return "a text that begins with @, ` or % has to be in quotes"
	case strings.Contains(msg, "mapping values are not allowed"):
		return `a ":" where none can be: a text with ": " in it has to be in quotes, and a key before it its own ":"`
	}
	return msg
}

// place is where a node stands in the document; nil is the root.
type place struct {
	up   *place
	name string
}

// String returns the place as a JSON pointer.
func (p *place) String() string {
	if p == nil {
		return ""
	}
	return p.up.String() + manifest.Pointer(p.name)
}

// is reports whether p is the given place; "*" stands for any name.
func (p *place) is(names ...string) bool {
	for _, name := range slices.Backward(names) {
		if p == nil || name != "*" && name != p.name {
			return false
		}
		p = p.up
	}
	return p == nil
}

// zone tells whether a node lies in the config of an adapter.
type zone int

const (
	outsideConfig zone = iota
	insideConfig
)

// lint refuses what YAML allows and a world file does not, in n and below.
func (d *decoder) lint(n *yaml.Node, at *place, in zone) {
	if at.is("reducers", "*", "params") || at.is("effects", "*", "params") || at.is("effects", "*", "config") || at.is("effects", "*", "verify", "config") {
		in = insideConfig
	}
	d.lintSyntax(n)
	switch n.Kind {
	case yaml.SequenceNode:
		for i, item := range n.Content {
			d.lint(item, &place{at, strconv.Itoa(i)}, in)
		}
	case yaml.MappingNode:
		first := make(map[string]int)
		for i := 0; i+1 < len(n.Content); i += 2 {
			d.lintKey(n.Content[i], first)
			d.lint(n.Content[i+1], &place{at, n.Content[i].Value}, in)
		}
	default:
		if !d.refused[n] {
			d.lintScalar(n, at, in)
		}
	}
}

// lintSyntax refuses what is no value of its own.
func (d *decoder) lintSyntax(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.refuse(n, "aliases are not allowed: write it out")
	case n.Style&yaml.TaggedStyle != 0:
		d.refuse(n, "tags such as %s are not allowed", n.Tag)
	case n.Anchor != "":
		d.report(n, "anchors are not allowed")
	}
}

// lintKey checks a key of a mapping; first has the lines of the keys before.
func (d *decoder) lintKey(key *yaml.Node, first map[string]int) {
	if d.lintSyntax(key); d.refused[key] {
		return
	}
	line, taken := first[key.Value]
	switch {
	case key.Tag == "!!merge":
		d.refuse(key, "merge keys are not allowed: write the fields out")
	case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
		d.refuse(key, "want text for a key, not %s", describe(key))
	case taken:
		d.refuse(key, "duplicate key %q, first on line %d", key.Value, line)
	default:
		first[key.Value] = key.Line
	}
}

func (d *decoder) lintScalar(n *yaml.Node, at *place, in zone) {
	switch {
	case n.Tag == "!!timestamp" && !at.is("clock", "epoch") && !at.is("caps", "*", "expires"):
		d.refuse(n, "%s: a date is not allowed here: if it is text, put it in quotes", at)
	case n.Tag == "!!int" && !isDecimal(n.Value):
		d.refuse(n, "%s: want an integer in decimal, without _ and leading zeros, not %s", at, n.Value)
	case isFloat(n) && in == outsideConfig:
		d.refuse(n, "%s: a float is not allowed here: if it is text, put it in quotes", at)
	}
}

// isFloat also knows integers of more than 64 bits, which YAML calls floats.
func isFloat(n *yaml.Node) bool { return n.Tag == "!!float" && !isDecimal(n.Value) }

var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

func isDecimal(s string) bool { return decimal.MatchString(s) }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
