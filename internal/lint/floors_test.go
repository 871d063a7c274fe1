package lint

import (
	"strconv"
	"strings"
)

func (h *house) checkFloors(r *room) {
	floor, known := h.floor(r.path)
	for _, file := range r.Syntax {
		if !known {
			r.fault(file.Package, "package %s has no floor: give it one in architecture.md and internal/lint", r.path)
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
			switch to, ok := h.floor(other); {
			case !ok: // reported where it stands
			case to == floor:
				r.fault(spec.Pos(), "%s imports %s sideways: move what both need a floor down, or pass it in from above", r.path, other)
			case to > floor:
				r.fault(spec.Pos(), "%s imports %s upward: declare an interface here and let the floor above implement it", r.path, other)
			}
		}
	}
}
