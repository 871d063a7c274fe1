package star

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// itemsOf returns the items of a value that has some.
func itemsOf(v starlark.Value) (starlark.Iterable, error) {
	items, ok := v.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("%s value is not iterable", v.Type())
	}
	return items, nil
}

// collect returns items in a new slice, paid for as they come: some iterables do not tell
// how long they are.
func (m *meter) collect(items starlark.Iterable) []starlark.Value {
	n := max(starlark.Len(items), 0)
	m.slots("list", n)
	m.spend(uint64(n) / 2)
	if items.Type() == "string.elems" { // each is a text that is made
		m.takeMemory(uint64(n) * slotBytes)
	}
	out := make([]starlark.Value, 0, n)
	for x := range starlark.Elements(items) {
		if len(out) >= n {
			m.slots("list", len(out)+1)
			n = 2*len(out) + 16 // pays for room as it is made
			// and for what is left free of it, and for items that are made
			m.takeMemory(uint64(n) * slotBytes)
			out = slices.Grow(out, n-len(out))
		}
		out = append(out, x)
	}
	return out
}

func (m *meter) spread(v starlark.Value) (starlark.Value, error) {
	items, err := itemsOf(v)
	if err != nil {
		return nil, err
	}
	return starlark.Tuple(m.collect(items)), nil
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
	m.tuple(items)
	return starlark.Tuple(items), nil
}

func (m *meter) set(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	items, err := m.optional(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	m.pass(starlark.Tuple(items), len(items))
	set := starlark.NewSet(len(items))
	for _, x := range items {
		m.insert(set, x)
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
	return m.collect(items), nil
}

func (m *meter) allTrue(v starlark.Value) (starlark.Value, error) { return m.until(v, starlark.False) }

func (m *meter) any(v starlark.Value) (starlark.Value, error) { return m.until(v, starlark.True) }

// until returns stop if an item of v has that truth, else its opposite.
func (m *meter) until(v starlark.Value, stop starlark.Bool) (starlark.Value, error) {
	items, err := itemsOf(v)
	if err != nil {
		return nil, err
	}
	for x := range starlark.Elements(items) {
		if x.Truth() == stop {
			return stop, nil
		}
		m.spend(1)
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
	out := m.collect(items)
	for i, x := range out {
		out[i] = m.row(starlark.MakeInt(start+i), x)
	}
	return starlark.NewList(out), nil
}

// row makes a tuple that no tuple expression built.
func (m *meter) row(items ...starlark.Value) starlark.Tuple {
	m.slots("tuple", len(items)+1)
	m.tuple(items)
	return items
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
		if out = append(out, m.row(items...)); uint64(len(out)) > m.value/slotBytes {
			m.slots("list", len(out))
		}
	}
	return starlark.NewList(out), nil
}

func (m *meter) reversed(v starlark.Value) (starlark.Value, error) {
	items, err := itemsOf(v)
	if err != nil {
		return nil, err
	}
	out := m.collect(items)
	slices.Reverse(out)
	return starlark.NewList(out), nil
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
			of, err := itemsOf(args[0])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.Name(), err)
			}
			items = m.collect(of)
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
	m.slots("list", len(items))
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
	m.spend(1)
	return m.compare(op, x, y)
}
