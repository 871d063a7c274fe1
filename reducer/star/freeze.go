package star

import (
	"fmt"

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

func (f *freezer) visit(v starlark.Value, depth int) error {
	if f.left--; f.left < 0 || depth > maxFrozenDepth {
		return fmt.Errorf("too large, nested deeper than %d or a function that holds itself", maxFrozenDepth)
	}
	switch v := v.(type) {
	case *starlark.Dict:
		for k, x := range v.Entries() {
			if err := f.freezeAll(depth+1, k, x); err != nil {
				return err
			}
		}
	case *starlark.Function:
		return f.function(v, depth)
	case *starlark.Builtin:
		if recv := v.Receiver(); recv != nil {
			return f.visit(recv, depth+1)
		}
	case starlark.Tuple, *starlark.List, *starlark.Set:
		for x := range starlark.Elements(v.(starlark.Iterable)) {
			if err := f.visit(x, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *freezer) freezeAll(depth int, values ...starlark.Value) error {
	for _, v := range values {
		if err := f.visit(v, depth); err != nil {
			return err
		}
	}
	return nil
}

func (f *freezer) function(fn *starlark.Function, depth int) error {
	for i := range fn.NumParams() {
		if v := fn.ParamDefault(i); v != nil {
			if err := f.visit(v, depth+1); err != nil {
				return err
			}
		}
	}
	for i := range fn.NumFreeVars() {
		if _, v := fn.FreeVar(i); v != nil {
			if err := f.visit(v, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
