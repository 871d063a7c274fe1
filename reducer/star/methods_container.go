package star

import (
	"fmt"

	"go.starlark.net/starlark"
)

func (m *meter) beforeList(name string, x *starlark.List, args starlark.Tuple) starlark.Tuple {
	switch name {
	case "extend":
		list := m.collectOnly(args)
		if list == nil {
			return args
		}
		if n := x.Len() + len(list); uint64(n) > m.value/slotBytes {
			m.slots("list", n)
		}
		return starlark.Tuple{starlark.Tuple(list)}
	case "insert", "pop":
		m.scan(x.Len() * slotBytes)
	case "index", "remove":
		if len(args) > 0 {
			m.search(args[0], x)
		}
	}
	return args
}

// collectOnly returns the items of the only argument; nil where it is not the only
// one or has none.
func (m *meter) collectOnly(args starlark.Tuple) []starlark.Value {
	if len(args) == 1 {
		if items, ok := args[0].(starlark.Iterable); ok {
			return m.collect(items)
		}
	}
	return nil
}

func (m *meter) beforeDict(name string, x *starlark.Dict, args starlark.Tuple, kwargs []starlark.Tuple) {
	switch name {
	case "clear":
		m.clearing(x)
	case "setdefault":
		if len(args) > 0 {
			m.setIndex(x, args[0])
		}
	case "items":
		m.beforeItems(x)
	case "keys", "values":
		m.spend(uint64(x.Len()) * 2 * slotBytes / bytesMadePerStep)
	case "update":
		m.beforeUpdateOf(x, args, kwargs)
	default:
		if len(args) > 0 {
			m.key(args[0])
		}
	}
}

// beforeItems charges for the pairs, which are tuples that no expression built.
func (m *meter) beforeItems(x *starlark.Dict) {
	m.slots("list", x.Len())
	m.spend(uint64(x.Len()) * 4 * slotBytes / bytesMadePerStep)
	pair := make(starlark.Tuple, 2)
	for pair[0], pair[1] = range x.Entries() {
		m.tuple(pair)
	}
}

// beforeUpdate charges for what dict puts into a dict.
func (m *meter) beforeUpdate(args starlark.Tuple, kwargs []starlark.Tuple) {
	m.beforeUpdateOf(nil, args, kwargs)
}

// beforeUpdateOf charges for what dict.update puts into a dict.
func (m *meter) beforeUpdateOf(d starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) {
	m.entries("dict", len(kwargs))
	if len(args) != 1 {
		return
	}
	if d, ok := args[0].(*starlark.Dict); ok {
		m.pass(d, d.Len())
		return
	}
	n := starlark.Len(args[0])
	pairs, ok := args[0].(starlark.Iterable)
	if !ok || n <= 0 {
		return // no pairs, and so refused at the first
	}
	m.entries("dict", n)
	var keys []starlark.Value
	for pair := range starlark.Elements(pairs) {
		if p, ok := pair.(starlark.Indexable); ok && p.Len() == 2 {
			m.key(p.Index(0))
			keys = append(keys, p.Index(0))
		}
	}
	m.rehearse(d, keys)
}

func (m *meter) beforeSet(name string, x *starlark.Set, args starlark.Tuple) (starlark.Tuple, error) {
	switch name {
	case "clear":
		m.clearing(x)
		return args, nil
	case "add":
		if len(args) > 0 {
			m.setIndex(x, args[0])
		}
		return args, nil
	case "discard", "remove":
		if len(args) > 0 {
			m.key(args[0])
		}
		return args, nil
	case "pop":
		return args, nil
	}
	if len(args) == 0 && name != "union" && name != "update" {
		return nil, fmt.Errorf("%s: got 0 arguments, want 1", name)
	}
	m.pass(x, x.Len())
	out := make(starlark.Tuple, len(args))
	for i, arg := range args {
		out[i] = arg
		items, ok := arg.(starlark.Iterable)
		if !ok {
			continue
		}
		list := m.collect(items)
		out[i] = starlark.Tuple(list)
		m.pass(starlark.Tuple(list), len(list))
		if name == "union" || name == "update" || name == "symmetric_difference" {
			m.rehearse(x, list)
		}
	}
	return out, nil
}
