package worldctl

import (
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// change is one place in which two pieces of data differ.
type change struct {
	Path string        `json:"path"`        // a JSON pointer; empty: the whole
	A    *journal.Data `json:"a,omitempty"` // absent: there is nothing at the path
	B    *journal.Data `json:"b,omitempty"` // likewise
}

// changes returns where two pieces of canonical data differ; see canon.Changes.
func changes(a, b journal.Data) []change {
	out := []change{}
	for _, c := range canon.Changes(a, b) {
		x := change{Path: c.Path}
		if c.A != nil {
			x.A = &c.A
		}
		if c.B != nil {
			x.B = &c.B
		}
		out = append(out, x)
	}
	return out
}
