package star

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// collect returns the items of v in a new slice, paid for as they come: some
// iterables do not tell how long they are.
func (m *meter) collect(v starlark.Value) ([]starlark.Value, error) {
	items, ok := v.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("%s value is not iterable", v.Type())
	}
	n := max(starlark.Len(v), 0)
	if err := m.slots("list", n); err != nil {
		return nil, err
	}
	if err := m.spend(uint64(n) / 2); err != nil {
		return nil, err
	}
	if v.Type() == "string.elems" { // each is a text that is made
		if err := m.takeMemory(uint64(n) * slotBytes); err != nil {
			return nil, err
		}
	}
	out := make([]starlark.Value, 0, n)
	for x := range starlark.Elements(items) {
		if len(out) >= n {
			if err := m.slots("list", len(out)+1); err != nil {
				return nil, err
			}
			n = 2*len(out) + 16 // pays for room as it is made
			// and for what is left free of it, and for items that are made
			if err := m.takeMemory(uint64(n) * slotBytes); err != nil {
				return nil, err
			}
			out = slices.Grow(out, n-len(out))
		}
		out = append(out, x)
	}
	return out, nil
}

func (m *meter) spread(v starlark.Value) (starlark.Value, error) {
	items, err := m.collect(v)
	return starlark.Tuple(items), err
}

func (m *meter) list(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	items, err := m.optional(b, args, kwargs)
	return starlark.NewList(items), err
}

func (m *meter) newTuple(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	items, err := m.optional(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	return starlark.Tuple(items), m.tuple(items)
}

func (m *meter) set(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	items, err := m.optional(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	if err := m.pass(starlark.Tuple(items), len(items)); err != nil {
		return nil, err
	}
	set := starlark.NewSet(len(items))
	for _, x := range items {
		if err := m.insert(set, x); err != nil {
			return nil, err
		}
		if err := set.Insert(x); err != nil {
			return nil, fmt.Errorf("set: %w", err)
		}
	}
	return set, nil
}

// optional collects the items of the one argument that there may be.
func (m *meter) optional(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) ([]starlark.Value, error) {
	var items starlark.Iterable
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 0, &items); err != nil || items == nil {
		return nil, err
	}
	return m.collect(items)
}

func (m *meter) allTrue(v starlark.Value) (starlark.Value, error) { return m.until(v, starlark.False) }

func (m *meter) any(v starlark.Value) (starlark.Value, error) { return m.until(v, starlark.True) }

// until returns stop if an item of v has that truth, else its opposite.
func (m *meter) until(v starlark.Value, stop starlark.Bool) (starlark.Value, error) {
	items, ok := v.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("%s value is not iterable", v.Type())
	}
	for x := range starlark.Elements(items) {
		if x.Truth() == stop {
			return stop, nil
		}
		if err := m.spend(1); err != nil {
			return nil, err
		}
	}
	return !stop, nil
}

func (m *meter) enumerate(
	_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var items starlark.Iterable
	var start int
	if err := starlark.UnpackPositionalArgs("enumerate", args, kwargs, 1, &items, &start); err != nil {
		return nil, err
	}
	out, err := m.collect(items)
	if err != nil {
		return nil, err
	}
	for i, x := range out {
		if out[i], err = m.row(starlark.MakeInt(start+i), x); err != nil {
			return nil, err
		}
	}
	return starlark.NewList(out), nil
}

// row makes a tuple that no tuple expression built.
func (m *meter) row(items ...starlark.Value) (starlark.Value, error) {
	if err := m.slots("tuple", len(items)+1); err != nil {
		return nil, err
	}
	return starlark.Tuple(items), m.tuple(items)
}

func (m *meter) zip(
	_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	if len(kwargs) > 0 {
		return nil, fmt.Errorf("zip does not accept keyword arguments")
	}
	columns := make([]starlark.Iterator, 0, len(args))
	defer func() {
		for _, c := range columns {
			c.Done()
		}
	}()
	for i, arg := range args {
		c := starlark.Iterate(arg)
		if c == nil {
			return nil, fmt.Errorf("zip: argument #%d is not iterable: %s", i+1, arg.Type())
		}
		columns = append(columns, c)
	}
	var out []starlark.Value
	for len(columns) > 0 {
		items := make([]starlark.Value, len(columns))
		for i, c := range columns {
			if !c.Next(&items[i]) {
				return starlark.NewList(out), nil
			}
		}
		row, err := m.row(items...)
		if err != nil {
			return nil, err
		}
		if out = append(out, row); uint64(len(out)) > m.value/slotBytes {
			return nil, m.slots("list", len(out))
		}
	}
	return starlark.NewList(out), nil
}

func (m *meter) reversed(v starlark.Value) (starlark.Value, error) {
	out, err := m.collect(v)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return starlark.NewList(out), err
}

// extreme returns max (op is >) or min (op is <).
func (m *meter) extreme(op syntax.Token) builtin {
	return func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var key starlark.Callable
		if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "key?", &key); err != nil {
			return nil, err
		}
		items := []starlark.Value(args)
		if len(args) == 1 {
			var err error
			if items, err = m.collect(args[0]); err != nil {
				return nil, fmt.Errorf("%s: %w", b.Name(), err)
			}
		}
		if len(items) == 0 {
			return nil, fmt.Errorf("%s: no items", b.Name())
		}
		keys, err := m.keysOf(thread, items, key)
		if err != nil {
			return nil, err
		}
		best := 0
		for i := 1; i < len(items); i++ {
			better, err := m.ordered(op, keys[i], keys[best])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.Name(), err)
			}
			if better {
				best = i
			}
		}
		return items[best], nil
	}
}

// keysOf returns what items are compared by.
func (m *meter) keysOf(thread *starlark.Thread, items []starlark.Value, key starlark.Callable) ([]starlark.Value, error) {
	if key == nil {
		return items, nil
	}
	if err := m.slots("list", len(items)); err != nil {
		return nil, err
	}
	keys := make([]starlark.Value, len(items))
	for i, x := range items {
		k, err := starlark.Call(thread, key, starlark.Tuple{x}, nil)
		if err != nil {
			return nil, err
		}
		keys[i] = k
	}
	return keys, nil
}

// ordered is compare for the many comparisons of one call: each is charged.
func (m *meter) ordered(op syntax.Token, x, y starlark.Value) (bool, error) {
	if err := m.spend(1); err != nil {
		return false, err
	}
	return m.compare(op, x, y)
}
