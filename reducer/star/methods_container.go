package star

import (
	"fmt"

	"go.starlark.net/starlark"
)

func (m *meter) beforeList(name string, x *starlark.List, args starlark.Tuple) (starlark.Tuple, error) {
	switch name {
	case "extend":
		list, err := m.collectOnly(args)
		if list == nil || err != nil {
			return args, err
		}
		if n := x.Len() + len(list); uint64(n) > m.value/slotBytes {
			return nil, m.slots("list", n)
		}
		return starlark.Tuple{starlark.Tuple(list)}, nil
	case "insert", "pop":
		return args, m.scan(x.Len() * slotBytes)
	case "index", "remove":
		if len(args) > 0 {
			return args, m.search(args[0], x)
		}
	}
	return args, nil
}

// collectOnly returns the items of the only argument; nil where it is not the only
// one or has none.
func (m *meter) collectOnly(args starlark.Tuple) ([]starlark.Value, error) {
	if len(args) != 1 {
		return nil, nil
	}
	items, ok := args[0].(starlark.Iterable)
	if !ok {
		return nil, nil
	}
	return m.collect(items)
}

func (m *meter) beforeDict(name string, x *starlark.Dict, args starlark.Tuple, kwargs []starlark.Tuple) error {
	switch name {
	case "clear":
		return m.clearing(x)
	case "setdefault":
		if len(args) > 0 {
			return m.setIndex(x, args[0])
		}
	case "items":
		return m.beforeItems(x)
	case "keys", "values":
		return m.spend(uint64(x.Len()) * 2 * slotBytes / bytesMadePerStep)
	case "update":
		return m.beforeUpdateOf(x, args, kwargs)
	}
	if len(args) > 0 {
		return m.key(args[0])
	}
	return nil
}

// beforeItems charges for the pairs, which are tuples that no expression built.
func (m *meter) beforeItems(x *starlark.Dict) error {
	if err := m.slots("list", x.Len()); err != nil {
		return err
	}
	if err := m.spend(uint64(x.Len()) * 4 * slotBytes / bytesMadePerStep); err != nil {
		return err
	}
	pair := make(starlark.Tuple, 2)
	for pair[0], pair[1] = range x.Entries() {
		if err := m.tuple(pair); err != nil {
			return err
		}
	}
	return nil
}

// beforeUpdate charges for what dict puts into a dict.
func (m *meter) beforeUpdate(args starlark.Tuple, kwargs []starlark.Tuple) error {
	return m.beforeUpdateOf(nil, args, kwargs)
}

// beforeUpdateOf charges for what dict.update puts into a dict.
func (m *meter) beforeUpdateOf(d starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if err := m.entries("dict", len(kwargs)); err != nil {
		return err
	}
	if len(args) != 1 {
		return nil
	}
	if d, ok := args[0].(*starlark.Dict); ok {
		return m.pass(d, d.Len())
	}
	n := starlark.Len(args[0])
	pairs, ok := args[0].(starlark.Iterable)
	if !ok || n <= 0 {
		return nil // no pairs, and so refused at the first
	}
	if err := m.entries("dict", n); err != nil {
		return err
	}
	var keys []starlark.Value
	for pair := range starlark.Elements(pairs) {
		if p, ok := pair.(starlark.Indexable); ok && p.Len() == 2 {
			if err := m.key(p.Index(0)); err != nil {
				return err
			}
			keys = append(keys, p.Index(0))
		}
	}
	return m.rehearse(d, keys)
}

func (m *meter) beforeSet(name string, x *starlark.Set, args starlark.Tuple) (starlark.Tuple, error) {
	switch name {
	case "clear":
		return args, m.clearing(x)
	case "add":
		if len(args) > 0 {
			return args, m.setIndex(x, args[0])
		}
		fallthrough
	case "discard", "remove":
		if len(args) > 0 {
			return args, m.key(args[0])
		}
		return args, nil
	case "pop":
		return args, nil
	}
	if len(args) == 0 && name != "union" && name != "update" {
		return nil, fmt.Errorf("%s: got 0 arguments, want 1", name)
	}
	if err := m.pass(x, x.Len()); err != nil {
		return nil, err
	}
	out := make(starlark.Tuple, len(args))
	for i, arg := range args {
		out[i] = arg
		items, ok := arg.(starlark.Iterable)
		if !ok {
			continue
		}
		list, err := m.collect(items)
		if err != nil {
			return nil, err
		}
		out[i] = starlark.Tuple(list)
		if err := m.pass(starlark.Tuple(list), len(list)); err != nil {
			return nil, err
		}
		if name == "union" || name == "update" || name == "symmetric_difference" {
			if err := m.rehearse(x, list); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
