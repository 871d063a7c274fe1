package lint

import (
	"strconv"
	"strings"
)

// checkFloors sees that imports stay within a top folder or go down, and that what is pure imports
// only what is.
func (h *house) checkFloors(r *room) {
	floor, known := h.floorOf(r.path)
	top, _, _ := strings.Cut(r.path, "/")
	for _, file := range r.Syntax {
		if !known {
			r.fault(file.Package, "package %s has no floor: give its folder one in architecture.md and internal/lint", r.path)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			other, ours := strings.CutPrefix(path, r.Module.Path+"/")
			if !ours || !known {
				continue
			}
			to, ok := h.floorOf(other)
			theirs, _, _ := strings.Cut(other, "/")
			switch {
			case !ok: // reported where it stands
			case h.isPure(r.path) && !h.isPure(other):
				r.fault(spec.Pos(), "%s is pure and imports %s, which is not: declare an interface here and let the floor above implement it", r.path, other)
			case top == theirs && to == floor:
			case to == floor:
				r.fault(spec.Pos(), "%s imports %s sideways: move what both need a floor down, or pass it in from above", r.path, other)
			case to > floor:
				r.fault(spec.Pos(), "%s imports %s upward: declare an interface here and let the floor above implement it", r.path, other)
			}
		}
	}
}
