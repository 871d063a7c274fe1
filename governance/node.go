package governance

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

type constant struct{ value ref.Val }

func (n constant) eval(f *frame) ref.Val {
	f.spend(1)
	return n.value
}

// local is a variable of a comprehension, by its place.
type local int

func (n local) eval(f *frame) ref.Val {
	f.spend(1)
	return f.locals[n]
}

// global is a variable of the activation, by its place.
type global int

func (n global) eval(f *frame) ref.Val {
	f.spend(1)
	return f.vars.value(int(n))
}

// field reads a field of a map, or asks whether there is one.
type field struct {
	of   node
	name types.String
	test bool
}

func (n *field) eval(f *frame) ref.Val {
	of := n.of.eval(f)
	f.spend(1)
	m, ok := of.(mapper)
	_, isList := of.(lister)
	switch {
	case types.IsError(of):
		return of
	case !ok && n.test && !isList: // as the library has it
		return types.False
	case !ok:
		return noOverload()
	}
	v, found := m.find(&f.meter, n.name)
	switch {
	case n.test:
		return types.Bool(found)
	case !found:
		return noSuchKey(n.name)
	}
	return v
}

// noSuchKey says which, where that costs nothing to say.
func noSuchKey(key ref.Val) ref.Val {
	switch k := key.(type) {
	case types.String:
		return types.NewErr("no such key: %s", shortened(string(k[:min(len(k), 2*maxErrorBytes)])))
	case types.Int, types.Uint, types.Bool, types.Double:
		return types.NewErr("no such key: %v", k.Value())
	}
	return types.NewErr("no such key")
}

// logic is && or ||: one operand that decides is enough, whatever the others are.
type logic struct {
	of      []node
	decides types.Bool
}

func (n *logic) eval(f *frame) ref.Val {
	var fault ref.Val
	for _, of := range n.of {
		v := of.eval(f)
		f.spend(1)
		switch b, ok := v.(types.Bool); {
		case ok && b == n.decides:
			return b
		case !ok && fault == nil:
			if fault = v; !types.IsError(v) {
				fault = noOverload()
			}
		}
	}
	if fault != nil {
		return fault
	}
	return !n.decides
}

type conditional struct{ when, then, otherwise node }

func (n *conditional) eval(f *frame) ref.Val {
	v := n.when.eval(f)
	f.spend(1)
	switch b, ok := v.(types.Bool); {
	case types.IsError(v):
		return v
	case !ok:
		return noOverload()
	case bool(b):
		return n.then.eval(f)
	}
	return n.otherwise.eval(f)
}

type notStrictlyFalse struct{ of node }

func (n *notStrictlyFalse) eval(f *frame) ref.Val {
	v, ok := n.of.eval(f).(types.Bool)
	f.spend(1)
	return types.Bool(!ok || bool(v))
}

// evalAll returns the values of nodes, or the first error.
func (f *frame) evalAll(of []node) (items []ref.Val, failed ref.Val) {
	items = make([]ref.Val, len(of))
	for i, n := range of {
		items[i] = n.eval(f)
		f.spend(1)
		if types.IsError(items[i]) {
			return nil, items[i]
		}
	}
	return items, nil
}

type listLiteral struct{ of []node }

func (n *listLiteral) eval(f *frame) ref.Val {
	items, failed := f.evalAll(n.of)
	if failed != nil {
		return failed
	}
	return newList(items)
}

type dictLiteral struct{ of []node } // key, value, key, value

func (n *dictLiteral) eval(f *frame) ref.Val {
	items, failed := f.evalAll(n.of)
	if failed != nil {
		return failed
	}
	return newDict(&f.meter, items)
}

// fold is a comprehension: what the macros all, exists, exists_one, map and filter
// are made of. The second local after accu is the item.
type fold struct {
	accu                            int
	over, init, while, step, result node
}

func (n *fold) eval(f *frame) ref.Val {
	over := n.over.eval(f)
	if types.IsError(over) {
		return over
	}
	size, item := iterate(&f.meter, over)
	if item == nil {
		return noOverload()
	}
	f.locals[n.accu] = n.init.eval(f)
	for i := range size {
		f.spend(2)
		f.locals[n.accu+1] = item(i)
		if n.while.eval(f) == types.False {
			break
		}
		f.locals[n.accu] = n.step.eval(f)
	}
	return n.result.eval(f)
}

// iterate returns how many items there are in a list, or keys in a map, and how to get
// at them; nil: there are none to be had.
func iterate(m *meter, over ref.Val) (int, func(int) ref.Val) {
	switch v := over.(type) {
	case lister:
		return v.size(), func(i int) ref.Val { return v.at(m, i) }
	case mapper:
		keys := v.keys(m)
		return len(keys), func(i int) ref.Val { return keys[i] }
	case types.String, types.Bytes:
		if s, ok := v.(traits.Sizer); ok && s.Size() == types.IntZero { // as the library has it
			return 0, func(int) ref.Val { return v }
		}
	}
	return 0, nil
}
