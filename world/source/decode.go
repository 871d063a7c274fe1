package source

import (
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
)

// decoder turns nodes into values and gathers faults. After a fault it goes on
// with the zero value.
type decoder struct {
	path        string // of the world file, as given
	fsys        fs.FS  // its directory
	instead     []byte // see WithText; nil: none
	lines       []string
	measured    int                            // the line that columns are of, from 1; 0: none
	columns     []int                          // where its characters begin
	adapters    map[string][]string            // see builtIn
	anyAdapter  bool                           // see WithAnyAdapter
	check       func(*Loaded) []manifest.Fault // see WithCheck; nil: none
	withoutCode bool                           // see WithoutCode
	opened      func(name string)              // see WithOpened
	wants       string                         // what a file that is empty lacks
	clock       manifest.Clock                 // of the world
	contents    map[manifest.Hash][]byte
	faults      []Fault
	refused     map[*yaml.Node]bool
}

func newDecoder(fsys fs.FS, path string, data []byte) *decoder {
	return &decoder{
		path: path, fsys: fsys,
		lines:    strings.Split(string(data), "\n"),
		adapters: builtIn(),
		contents: make(map[manifest.Hash][]byte),
		refused:  make(map[*yaml.Node]bool),
		wants:    "a mapping with at least world and reducers",
	}
}

// fields says how to decode each field of a mapping.
type fields map[string]func(*yaml.Node)

// mapping decodes a mapping with known keys.
func (d *decoder) mapping(n *yaml.Node, known fields) {
	d.entries(n, func(key, value *yaml.Node) {
		if decode, ok := known[key.Value]; ok {
			decode(value)
			return
		}
		names := slices.Sorted(maps.Keys(known))
		if like := manifest.Nearest(key.Value, names); like != "" {
			d.refuse(key, "unknown key %q: did you mean %q?", key.Value, like)
		} else {
			d.refuse(key, "unknown key %q: want one of %s", key.Value, strings.Join(names, ", "))
		}
	})
}

// fieldsOf returns the fields that a struct of the manifest has, by their names there: texts, booleans,
// ticks, numbers from 1, or sizes in bytes, and lists.
func (d *decoder) fieldsOf(to any, sizes ...string) fields {
	known := make(fields)
	v := reflect.ValueOf(to).Elem()
	for f, at := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		switch to := at.Addr().Interface().(type) {
		case *string:
			known[name] = d.text(to)
		case *bool:
			known[name] = d.boolean(to)
		case *manifest.Tick:
			known[name] = d.ticks(to)
		case *[]string:
			known[name] = d.texts(to)
		case *[]uint64:
			known[name] = listOf(d, to, d.number)
		case *uint64:
			if known[name] = d.count(to); slices.Contains(sizes, name) {
				known[name] = d.size(to)
			}
		}
	}
	return known
}

// object returns what decodes a mapping of known fields.
func (d *decoder) object(known fields) func(*yaml.Node) {
	return func(n *yaml.Node) { d.mapping(n, known) }
}

// named decodes a mapping from names to values of one shape.
func named[T any](d *decoder, n *yaml.Node, decode func(key, value *yaml.Node) T) map[string]T {
	out := make(map[string]T)
	d.entries(n, func(key, value *yaml.Node) { out[key.Value] = decode(key, value) })
	return out
}

// listed decodes a list of values of one shape.
func listed[T any](d *decoder, n *yaml.Node, decode func(item *yaml.Node) T) []T {
	if d.refused[n] || isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.refuse(n, "want a list, not %s", describe(n))
		return nil
	}
	var out []T
	for _, item := range n.Content {
		out = append(out, decode(item))
	}
	return out
}

// entries calls f for every key of a mapping that was not refused.
func (d *decoder) entries(n *yaml.Node, f func(key, value *yaml.Node)) {
	if d.refused[n] || isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.refuse(n, "want a mapping, not %s", describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !d.refused[n.Content[i]] {
			f(n.Content[i], n.Content[i+1])
		}
	}
}

// describe names the type of a node, for messages.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!bool":
		return "the boolean " + n.Value
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "the number " + n.Value
	case n.Tag == "!!timestamp":
		return "the date " + n.Value
	default:
		return "the text " + strconv.Quote(n.Value)
	}
}
