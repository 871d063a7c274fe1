package star

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

type builtin = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

// price tells how a method of a built-in type is paid for, besides what
// [meter.before] charges: whether its result is new memory.
type price bool

const (
	reads price = false
	makes price = true
)

// methods returns the methods that are called through a check, by their price.
// The others (append, clear, codepoints, elems and their kin) cost a few words
// at most.
func methods(p price) []string {
	if p == makes {
		return []string{
			"capitalize", "difference", "format", "intersection", "join", "keys", "lower", "popitem",
			"replace", "symmetric_difference", "title", "union", "upper", "values",
		}
	}
	return []string{
		"add", "count", "discard", "endswith", "extend", "find", "get", "index", "insert", "isalnum", "isalpha", "isdigit", "islower",
		"isspace", "issubset", "issuperset", "istitle", "isupper", "items", "lstrip", "partition", "pop", "remove", "removeprefix",
		"removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "setdefault", "split", "splitlines",
		"startswith", "strip", "update",
	}
}

func checkedMethod(name string) bool {
	return slices.Contains(methods(reads), name) || slices.Contains(methods(makes), name) || slices.Contains(growing(), name)
}

// growing returns the methods that neither read nor make a value of a size, and are checked all the same.
func growing() []string { return []string{"append", "clear"} }

// method returns the hidden function that x.name(args) becomes: its first
// argument is x.
func (m *meter) method(name string, p price) builtin {
	return func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return m.invoke(thread, name, p, args[0], args[1:], kwargs)
	}
}

// attr is x.name where name is that of a checked method: in x.name without a
// call, and in getattr.
func (m *meter) attr(x starlark.Value, name string) (starlark.Value, error) {
	holder, ok := x.(starlark.HasAttrs)
	if !ok {
		return nil, nil
	}
	v, err := holder.Attr(name)
	if bound, ok := v.(*starlark.Builtin); err != nil || !ok || !checkedMethod(name) || bound.Receiver() == nil {
		return v, err
	}
	p := price(slices.Contains(methods(makes), name))
	fn := func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return m.invoke(thread, name, p, b.Receiver(), args, kwargs)
	}
	return starlark.NewBuiltin(name, fn).BindReceiver(x), nil
}

func noAttr(x starlark.Value, name string) error {
	return fmt.Errorf("%s has no .%s field or method", x.Type(), name)
}

// invoke calls the method name of x and has it paid for.
func (m *meter) invoke(
	thread *starlark.Thread, name string, p price, x starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	holder, ok := x.(starlark.HasAttrs)
	if !ok {
		return nil, noAttr(x, name)
	}
	if d, ok := x.(*starlark.Dict); ok && name == "get" && len(args) > 0 && len(args) < 3 && len(kwargs) == 0 {
		return m.get(d, args) // the most frequent call of all
	}
	if l, ok := x.(*starlark.List); ok && name == "append" && len(args) == 1 && len(kwargs) == 0 {
		return m.appendTo(l, args)
	}
	v, err := holder.Attr(name)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, noAttr(x, name)
	}
	fn, ok := v.(*starlark.Builtin)
	if !ok || fn.Receiver() == nil {
		return starlark.Call(thread, v, args, kwargs)
	}
	if args, err = m.before(name, x, args, kwargs); err != nil {
		return nil, err
	}
	result, err := fn.CallInternal(thread, args, kwargs)
	if err != nil {
		return nil, err
	}
	if p == makes {
		m.made(result)
	}
	if m.survey(result); name == "update" {
		m.survey(x)
	}
	return result, nil
}

func (m *meter) get(d *starlark.Dict, args starlark.Tuple) (starlark.Value, error) {
	m.key(args[0])
	v, found, err := d.Get(args[0])
	switch {
	case err != nil:
		return nil, fmt.Errorf("get: %w", err)
	case found:
		return v, nil
	case len(args) == 2:
		return args[1], nil
	}
	return starlark.None, nil
}

// before charges for a call of a method, and returns its arguments, changed
// where the library would not take them safely.
func (m *meter) before(name string, x starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, error) {
	switch x := x.(type) {
	case starlark.String:
		return m.beforeString(name, string(x), args, kwargs), nil
	case *starlark.List:
		return m.beforeList(name, x, args), nil
	case *starlark.Dict:
		m.beforeDict(name, x, args, kwargs)
	case *starlark.Set:
		return m.beforeSet(name, x, args)
	}
	return args, nil
}
