package star

import (
	"iter"

	"go.starlark.net/starlark"
)

// freezer checks that values can be frozen: the library walks tuples and
// closures without remembering where it has been.
type freezer struct{ left int }

// bounds of what a module leaves.
const (
	maxFrozen      = 1 << 20 // values, counted as often as they are reached
	maxFrozenDepth = 64
)

// visit reports whether a value and all that it holds can be frozen.
func (f *freezer) visit(v starlark.Value, depth int) bool {
	if f.left--; f.left < 0 || depth > maxFrozenDepth {
		return false
	}
	for x := range held(v) {
		if x != nil && !f.visit(x, depth+1) {
			return false
		}
	}
	return true
}

// held goes through what a value holds.
func held(v starlark.Value) iter.Seq[starlark.Value] {
	return func(yield func(starlark.Value) bool) {
		switch v := v.(type) {
		case *starlark.Dict:
			for k, x := range v.Entries() {
				if !yield(k) || !yield(x) {
					return
				}
			}
		case *starlark.Function:
			for i := range v.NumParams() {
				if !yield(v.ParamDefault(i)) {
					return
				}
			}
			for i := range v.NumFreeVars() {
				if _, x := v.FreeVar(i); !yield(x) {
					return
				}
			}
		case *starlark.Builtin:
			yield(v.Receiver())
		case starlark.Tuple, *starlark.List, *starlark.Set:
			starlark.Elements(v.(starlark.Iterable))(yield)
		}
	}
}
