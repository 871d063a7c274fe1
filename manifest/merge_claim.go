package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// claim is one op of a patch, with the place that it takes hold of.
type claim struct {
	patch, order int
	op           Op
	place        []string // the op's path, or what stands for it: see placeOf
	value        any      // of a set, as canon.Decode gives it

	loose    bool // one of several that a list may take: place is not the path, or ends in "-"
	whole    bool // nothing is left of what its patch did before at place and below
	dead     bool // a later claim of its patch leaves nothing of it
	repeated bool // an earlier patch asks for the same
}

// claimsOf returns the claims of a patch, the i-th, of the manifest with the
// bytes base, sorted by place and then with the last op first.
func claimsOf(base []byte, p *Patch, i int) ([]claim, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if hash := canon.Sum(base); p.Base != hash {
		return nil, fmt.Errorf("%w: its base is %s, not %s", ErrOtherBase, p.Base, hash)
	}
	ops := slices.Clone(p.Ops)
	if p.NewVersion != nil {
		version, err := canon.Marshal(*p.NewVersion)
		if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		ops = append(ops, Op{Op: OpSet, Path: "/version", Value: version})
	}
	tree, err := canon.Decode(base)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	claims := make([]claim, len(ops))
	for k, op := range ops {
		c := claim{patch: i, order: k, op: op}
		if c.place, err = parsePointer(op.Path); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
		}
		if op.Op == OpSet {
			if c.value, err = canon.Decode(op.Value); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
			}
		}
		claims[k] = c
	}
	findPlaces(tree, claims)
	for k := range claims { // changes tree
		if tree, err = claims[k].op.apply(tree); err != nil {
			return nil, claims[k].wrap(err)
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(slices.Compare(a.place, b.place), cmp.Compare(b.order, a.order))
	})
	bury(claims)
	return claims, nil
}

// wrap says which op an error is about.
func (c *claim) wrap(err error) error {
	return fmt.Errorf("%w: /ops/%d: %s %q", err, c.order, c.op.Op, c.op.Path)
}

// findPlaces finds the places of a patch's claims, which are its paths before.
func findPlaces(base any, claims []claim) {
	moved := make(map[string]bool) // lists whose items move, by their pointers
	for i := range claims {
		path := claims[i].place
		if claims[i].op.Op != OpRemove {
			continue
		}
		above := path[:len(path)-1]
		if _, ok := lookUp(base, above).([]any); ok {
			moved[Pointer(above...)] = true
		}
	}
	for i := range claims {
		c := &claims[i]
		path := c.place
		c.place, c.whole = placeOf(base, path, moved)
		c.loose = !slices.Equal(c.place, path) || !c.whole && path[len(path)-1] == "-"
	}
}

// placeOf returns the place of a path: the path itself; in a list whose items
// move the list; in what the patch has appended to a list "-" below the list.
// whole says that it is the path, and certainly not one item more of a list.
func placeOf(base any, path []string, moved map[string]bool) (place []string, whole bool) {
	at := base
	for i, name := range path {
		switch t := at.(type) {
		case map[string]any:
			child, ok := t[name]
			if !ok {
				return path, i == len(path)-1
			}
			at = child
		case []any:
			if moved[Pointer(path[:i]...)] {
				return path[:i], false
			}
			k, ok := index(t, name)
			if !ok {
				return append(slices.Clone(path[:i]), "-"), false
			}
			at = t[k]
		default: // what the patch puts here has more below
			return path, false
		}
	}
	return path, true
}

// lookUp returns what is at path in a tree, nil where nothing is.
func lookUp(tree any, path []string) any {
	for _, name := range path {
		tree, _ = childOf(tree, name)
	}
	return tree
}

// bury marks the claims that are dead. They are sorted as claimsOf returns them.
func bury(claims []claim) {
	var above []*claim // whole claims at or above the place, each later than the one before
	for i := range claims {
		c := &claims[i]
		for len(above) > 0 && !isAt(above[len(above)-1].place, c.place) {
			above = above[:len(above)-1]
		}
		if n := len(above); n > 0 && above[n-1].order > c.order {
			c.dead = true
		} else if c.whole {
			above = append(above, c)
		}
	}
}

// standing returns the claims that are not dead, in their order.
func standing(claims []claim) []claim {
	var out []claim
	for _, c := range claims {
		if !c.dead {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, byOrder)
	return out
}

func byOrder(a, b claim) int { return cmp.Compare(a.order, b.order) }

// sameOp reports whether two claims ask for the same at the same path.
func sameOp(a, b claim) bool {
	return a.op.Op == b.op.Op && a.op.Path == b.op.Path && bytes.Equal(a.op.Value, b.op.Value)
}

// agrees reports whether upper, a set at a place above c's, leaves what c leaves.
func (c *claim) agrees(upper *claim) bool {
	path, err := parsePointer(c.op.Path)
	if err != nil || c.loose {
		return false
	}
	last := len(path) - 1
	value, there := childOf(lookUp(upper.value, path[len(upper.place):last]), path[last])
	return there == (c.op.Op == OpSet) && reflect.DeepEqual(value, c.value)
}

// isAt reports whether a place is root or below.
func isAt(root, place []string) bool {
	return len(root) <= len(place) && slices.Equal(root, place[:len(root)])
}
