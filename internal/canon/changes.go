package canon

import (
	"bytes"
	"strconv"
	"strings"
)

// Change is one place in which two pieces of canonical data differ.
type Change struct {
	Path string // a JSON pointer (RFC 6901); empty: the whole
	A, B Raw    // nil: there is nothing at the path
}

// Changes returns where two pieces of canonical data differ, in the order of
// their keys, as deep as both are maps or both are lists. Empty data is absent.
func Changes(a, b Raw) []Change { return appendChanges(nil, "", a, b) }

func appendChanges(out []Change, path string, a, b Raw) []Change {
	if bytes.Equal(a, b) {
		return out
	}
	left, right := NewReader(a), NewReader(b)
	switch kind := left.Kind(); {
	case kind == KindMap && right.Kind() == kind:
		return appendMapChanges(out, path, left, right)
	case kind == KindArray && right.Kind() == kind:
		return appendListChanges(out, path, left, right)
	}
	c := Change{Path: path}
	if len(a) > 0 {
		c.A = a
	}
	if len(b) > 0 {
		c.B = b
	}
	return append(out, c)
}

// appendMapChanges merges two maps, whose keys are in canonical order: the
// shorter first.
func appendMapChanges(out []Change, path string, left, right *Reader) []Change {
	a, b := members(left), members(right)
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].before(&b[0]):
			out = appendChanges(out, path+a[0].step(), a[0].value, nil)
			a = a[1:]
		case len(a) == 0 || b[0].before(&a[0]):
			out = appendChanges(out, path+b[0].step(), nil, b[0].value)
			b = b[1:]
		default:
			out = appendChanges(out, path+a[0].step(), a[0].value, b[0].value)
			a, b = a[1:], b[1:]
		}
	}
	return out
}

func appendListChanges(out []Change, path string, left, right *Reader) []Change {
	a, b := items(left), items(right)
	for i := range max(len(a), len(b)) {
		var x, y Raw
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		out = appendChanges(out, path+"/"+strconv.Itoa(i), x, y)
	}
	return out
}

// member is one member of a map.
type member struct {
	key   string
	value Raw
}

func (f *member) before(g *member) bool {
	if len(f.key) != len(g.key) {
		return len(f.key) < len(g.key)
	}
	return f.key < g.key
}

// step is the member's part of a JSON pointer.
func (f *member) step() string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(f.key)
}

func members(r *Reader) []member {
	out := make([]member, r.Map())
	for i := range out {
		out[i].key = r.Text()
		out[i].value = r.Raw()
	}
	return out
}

func items(r *Reader) []Raw {
	out := make([]Raw, r.Array())
	for i := range out {
		out[i] = r.Raw()
	}
	return out
}
