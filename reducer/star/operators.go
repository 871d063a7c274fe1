package star

import (
	"fmt"
	"math/bits"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// binary returns the checked form of an operator.
func (m *meter) binary(op syntax.Token) builtin {
	check := map[syntax.Token]func(x, y starlark.Value) error{
		syntax.PLUS:       m.beforeAdd,
		syntax.MINUS:      m.beforeSets,
		syntax.STAR:       m.beforeMultiply,
		syntax.PERCENT:    m.beforePercent,
		syntax.AMP:        m.beforeSets,
		syntax.PIPE:       m.beforeSets,
		syntax.CIRCUMFLEX: m.beforeSets,
		syntax.LTLT:       m.beforeShift,
		syntax.IN:         m.beforeIn,
	}[op]
	return func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		x, y := args[0], args[1]
		if small(x) && small(y) && op != syntax.PERCENT {
			return starlark.Binary(op, x, y)
		}
		if err := m.arithmetic(op, x, y); err != nil {
			return nil, err
		}
		if check != nil {
			if err := check(x, y); err != nil {
				return nil, err
			}
		}
		v, err := starlark.Binary(op, x, y)
		if err != nil {
			return nil, err
		}
		return v, m.result(v)
	}
}

// small reports whether v is a number that operators cannot make large.
func small(v starlark.Value) bool {
	switch v := v.(type) {
	case starlark.Int:
		_, ok := v.Int64()
		return ok
	case starlark.Float:
		return true
	}
	return false
}

// result checks what no operand tells.
func (m *meter) result(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.Int:
		return m.width(intBits(v))
	case starlark.String:
		return m.room("string", uint64(len(v)))
	case starlark.Bytes:
		return m.room("bytes value", uint64(len(v)))
	case starlark.Tuple:
		return m.tuple(v)
	case *starlark.Dict, *starlark.Set:
		return m.survey(v)
	}
	return nil
}

func intBits(v starlark.Int) int {
	if n, ok := v.Int64(); ok {
		return bits.Len64(uint64(max(n, -n)))
	}
	return v.BigInt().BitLen()
}

// width refuses an integer of so many bits.
func (m *meter) width(n int) error {
	if n > MaxIntBits {
		return m.exceed("an integer of %d bits; reducers compute with at most %d", n, MaxIntBits)
	}
	return nil
}

func (m *meter) beforeAdd(x, y starlark.Value) error {
	n, k := max(starlark.Len(x), 0), max(starlark.Len(y), 0)
	switch x.(type) {
	case starlark.String, starlark.Bytes:
		return m.fits(x.Type(), uint64(n+k)) // result charges for it
	case *starlark.List, starlark.Tuple:
		return m.slots(x.Type(), n+k)
	}
	return nil
}

func (m *meter) beforeSets(x, y starlark.Value) error {
	for _, v := range []starlark.Value{x, y} {
		switch v := v.(type) {
		case *starlark.Dict:
			if err := m.pass(v, v.Len()); err != nil {
				return err
			}
		case *starlark.Set:
			if err := m.pass(v, v.Len()); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass charges for copying the entries of a dict or set.
func (m *meter) pass(v starlark.Iterable, n int) error {
	if err := m.entries(v.Type(), n); err != nil {
		return err
	}
	return m.keys(v)
}

func (m *meter) beforeMultiply(x, y starlark.Value) error {
	a, ok := x.(starlark.Int)
	b, ok2 := y.(starlark.Int)
	switch {
	case ok && ok2:
		return m.width(intBits(a) + intBits(b) - 1)
	case ok2:
		return m.beforeRepeat(x, b)
	case ok:
		return m.beforeRepeat(y, a)
	}
	return nil
}

func (m *meter) beforeRepeat(v starlark.Value, times starlark.Int) error {
	n, ok := times.Int64()
	if !ok || n <= 0 {
		return nil // the library refuses the first and makes nothing of the second
	}
	length := max(starlark.Len(v), 0)
	over, items := bits.Mul64(uint64(length), uint64(n))
	if over != 0 || items > m.value {
		return m.exceed("a %s of %d times %d items, limits.value is %d bytes", v.Type(), n, length, m.value)
	}
	switch v.(type) {
	case *starlark.List, starlark.Tuple:
		return m.slots(v.Type(), int(items))
	}
	return nil
}

func (m *meter) beforeShift(x, y starlark.Value) error {
	a, ok := x.(starlark.Int)
	b, ok2 := y.(starlark.Int)
	if !ok || !ok2 {
		return nil
	}
	if n, ok := b.Int64(); ok && n > 0 && n < MaxIntBits {
		return m.width(intBits(a) + int(n))
	}
	return nil // the library refuses it
}

func (m *meter) beforePercent(x, y starlark.Value) error {
	if format, ok := x.(starlark.String); ok {
		return m.percentSize(string(format), y)
	}
	return nil
}

func (m *meter) beforeIn(x, y starlark.Value) error {
	switch y := y.(type) {
	case starlark.String:
		return m.walk(len(y))
	case starlark.Bytes:
		return m.walk(len(y))
	case *starlark.List:
		return m.search(x, y)
	case starlark.Tuple:
		return m.search(x, y)
	}
	return m.key(x)
}

// comparison returns the checked form of ==, < and their kin.
func (m *meter) comparison(op syntax.Token) builtin {
	return func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		ok, err := m.compare(op, args[0], args[1])
		return starlark.Bool(ok), err
	}
}

// compare charges for comparing x with y, and does it.
func (m *meter) compare(op syntax.Token, x, y starlark.Value) (bool, error) {
	if err := m.comparing(op, x, y); err != nil {
		return false, err
	}
	return starlark.Compare(op, x, y)
}

// addInPlace is x += y: it extends a list, and adds anything else.
func (m *meter) addInPlace(add builtin) builtin {
	return func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		list, ok := args[0].(*starlark.List)
		more, ok2 := args[1].(starlark.Iterable)
		if !ok || !ok2 {
			return add(thread, b, args, nil)
		}
		if err := m.extend(list, more); err != nil {
			return nil, fmt.Errorf("+=: %w", err)
		}
		return list, nil
	}
}

// orInPlace is x |= y: it updates a dict, and joins anything else.
func (m *meter) orInPlace(or builtin) builtin {
	return func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		x, ok := args[0].(*starlark.Dict)
		y, ok2 := args[1].(*starlark.Dict)
		if !ok || !ok2 {
			return or(thread, b, args, nil)
		}
		if err := m.pass(y, y.Len()); err != nil {
			return nil, err
		}
		for _, pair := range y.Items() {
			if err := m.put(x, pair[0], pair[1]); err != nil {
				return nil, fmt.Errorf("|=: %w", err)
			}
		}
		return x, nil
	}
}

// extend appends the items of more to list.
func (m *meter) extend(list *starlark.List, more starlark.Iterable) error {
	items, err := m.collect(more)
	if err != nil {
		return err
	}
	if uint64(list.Len()+len(items)) > m.value/slotBytes {
		return m.slots("list", list.Len()+len(items))
	}
	if err := m.takeMemory(uint64(2 * slotBytes * len(items))); err != nil {
		return err
	}
	for _, x := range items {
		if err := list.Append(x); err != nil {
			return err
		}
	}
	return nil
}
