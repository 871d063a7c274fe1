package source

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
)

// Fault is a mistake in a file, with its place.
type Fault struct {
	File   string `json:"file"`    // as the world file was given, or beside it
	Line   int    `json:"line"`    // from 1
	Column int    `json:"column"`  // in characters, from 1
	Msg    string `json:"message"` // one line
}

// String returns "file:line:column: msg".
func (f Fault) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Msg)
}

// Error is everything that is wrong with a world file and the files it names:
// at least one fault, those of the world file first, in order of position.
type Error struct{ Faults []Fault }

// Error returns the faults, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// err returns the faults found so far, each once, or nil.
func (d *decoder) err() error {
	if len(d.faults) == 0 {
		return nil
	}
	slices.SortFunc(d.faults, func(a, b Fault) int {
		if a.File != b.File && (a.File == d.path || b.File == d.path) {
			if a.File == d.path {
				return -1
			}
			return 1
		}
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Msg, b.Msg),
		)
	})
	return &Error{Faults: slices.Compact(d.faults)}
}

// addFault records a fault at a place of a file, named relative to the world file.
func (d *decoder) addFault(file string, line, column int, msg string) {
	d.faults = append(d.faults, Fault{
		File: filepath.Join(filepath.Dir(d.path), file),
		Line: max(line, 1), Column: max(column, 1),
		Msg: strings.Join(strings.Fields(msg), " "),
	})
}

// here records a fault at a place of the world file.
func (d *decoder) here(line, column int, format string, args ...any) {
	d.addFault("", line, column, fmt.Sprintf(format, args...))
	d.faults[len(d.faults)-1].File = d.path
}

// report records a fault at a node.
func (d *decoder) report(n *yaml.Node, format string, args ...any) {
	d.here(n.Line, n.Column, format, args...)
}

// refuse records a fault at a node whose value is then looked at no more.
func (d *decoder) refuse(n *yaml.Node, format string, args ...any) {
	d.report(n, format, args...)
	d.refused[n] = true
}

// invalid records a fault of the manifest at the node it stems from, unless
// what is there, or around it, has been refused already.
func (d *decoder) invalid(root *yaml.Node, f manifest.Fault) {
	if d.refused[root] {
		return
	}
	place, n := root, root
	for part := range strings.SplitSeq(strings.TrimPrefix(f.Path, "/"), "/") {
		name := unescape(part)
		key, value := child(n, name)
		if value == nil && d.slipped(n, name) {
			return
		}
		if value == nil {
			f.Msg = name + ": " + f.Msg // the field that is missing
			break
		}
		if d.refused[key] || d.refused[value] {
			return
		}
		// A name or a missing field is a fault of the key, a value of the value.
		place, n = key, value
		if value.Kind == yaml.ScalarNode && !isNull(value) {
			place = value
		}
	}
	d.report(place, "%s", f.Msg)
}

// slipped reports whether a mapping has a key that is refused, and probably is a slip of one that
// is missing: then that is the fault, and no other.
func (d *decoder) slipped(n *yaml.Node, missing string) bool {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if key := n.Content[i]; d.refused[key] && manifest.Nearest(key.Value, []string{missing}) != "" {
			return true
		}
	}
	return false
}

// unescape returns the name that a part of a JSON pointer is.
func unescape(part string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(part) }

// child returns the key and value of a field of a mapping, or an item of a
// list, as both; nil where there is none.
func child(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i], n.Content[i+1]
			}
		}
	}
	if n.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

// position returns the line and column of an offset, both from 1.
func position(data []byte, offset int) (line, column int) {
	before := data[:min(max(offset, 0), len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}
