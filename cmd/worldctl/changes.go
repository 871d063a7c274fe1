package main

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/world"
)

// change is one place in which two pieces of data differ.
type change struct {
	Path string      `json:"path"`        // a JSON pointer; empty: the whole
	A    *world.Data `json:"a,omitempty"` // absent: there is nothing at the path
	B    *world.Data `json:"b,omitempty"` // likewise
}

// changes returns where two pieces of canonical data differ, in the order of
// their keys, as deep as both are maps or both are lists. Empty data is absent.
func changes(a, b world.Data) []change { return appendChanges([]change{}, "", a, b) }

func appendChanges(out []change, path string, a, b world.Data) []change {
	if bytes.Equal(a, b) {
		return out
	}
	left, right := canon.NewReader(a), canon.NewReader(b)
	switch kind := left.Kind(); {
	case kind == canon.KindMap && right.Kind() == kind:
		return appendMapChanges(out, path, left, right)
	case kind == canon.KindArray && right.Kind() == kind:
		return appendListChanges(out, path, left, right)
	}
	c := change{Path: path}
	if len(a) > 0 {
		c.A = &a
	}
	if len(b) > 0 {
		c.B = &b
	}
	return append(out, c)
}

// appendMapChanges merges two maps, whose keys are in canonical order: the
// shorter first.
func appendMapChanges(out []change, path string, left, right *canon.Reader) []change {
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

func appendListChanges(out []change, path string, left, right *canon.Reader) []change {
	a, b := items(left), items(right)
	for i := range max(len(a), len(b)) {
		var x, y world.Data
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
	value world.Data
}

func (f *member) before(g *member) bool {
	if len(f.key) != len(g.key) {
		return len(f.key) < len(g.key)
	}
	return f.key < g.key
}

// step is the member's part of a JSON pointer (RFC 6901).
func (f *member) step() string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(f.key)
}

func members(r *canon.Reader) []member {
	out := make([]member, r.Map())
	for i := range out {
		out[i].key = r.Text()
		out[i].value = r.Raw()
	}
	return out
}

func items(r *canon.Reader) []world.Data {
	out := make([]world.Data, r.Array())
	for i := range out {
		out[i] = r.Raw()
	}
	return out
}
