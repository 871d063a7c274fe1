package star

import (
	"fmt"
	"math/bits"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// binary returns the checked form of an operator.
func (m *meter) binary(op syntax.Token) builtin {
	check := map[syntax.Token]func(x, y starlark.Value){
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
		m.arithmetic(op, x, y)
		if check != nil {
			check(x, y)
		}
		v, err := starlark.Binary(op, x, y)
		if err == nil {
			m.result(v)
		}
		return v, err
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
func (m *meter) result(v starlark.Value) {
	switch v := v.(type) {
	case starlark.Int:
		m.width(intBits(v))
	case starlark.String:
		m.room("string", uint64(len(v)))
	case starlark.Bytes:
		m.room("bytes value", uint64(len(v)))
	case starlark.Tuple:
		m.tuple(v)
	case *starlark.Dict, *starlark.Set:
		m.survey(v)
	}
}

func intBits(v starlark.Int) int {
	if n, ok := v.Int64(); ok {
		return bits.Len64(uint64(max(n, -n)))
	}
	return v.BigInt().BitLen()
}

// width refuses an integer of so many bits.
func (m *meter) width(n int) {
	if n > MaxIntBits {
		m.exceed("an integer of %d bits; reducers compute with at most %d", n, MaxIntBits)
	}
}

func (m *meter) beforeAdd(x, y starlark.Value) {
	n, k := max(starlark.Len(x), 0), max(starlark.Len(y), 0)
	switch x.(type) {
	case starlark.String, starlark.Bytes:
		m.fits(x.Type(), uint64(n+k)) // result charges for it
	case *starlark.List, starlark.Tuple:
		m.slots(x.Type(), n+k)
	}
}

func (m *meter) beforeSets(x, y starlark.Value) {
	for _, v := range []starlark.Value{x, y} {
		if tableOf(v) != nil {
			m.pass(v.(starlark.Iterable), starlark.Len(v))
		}
	}
}

// pass charges for copying the entries of a dict or set.
func (m *meter) pass(v starlark.Iterable, n int) {
	m.entries(v.Type(), n)
	m.keys(v)
}

func (m *meter) beforeMultiply(x, y starlark.Value) {
	a, ok := x.(starlark.Int)
	b, ok2 := y.(starlark.Int)
	switch {
	case ok && ok2:
		m.width(intBits(a) + intBits(b) - 1)
	case ok2:
		m.beforeRepeat(x, b)
	case ok:
		m.beforeRepeat(y, a)
	}
}

func (m *meter) beforeRepeat(v starlark.Value, times starlark.Int) {
	n, ok := times.Int64()
	if !ok || n <= 0 {
		return // the library refuses the first and makes nothing of the second
	}
	length := max(starlark.Len(v), 0)
	over, items := bits.Mul64(uint64(length), uint64(n))
	if over != 0 || items > m.value {
		m.exceed("a %s of %d times %d items, limits.value is %d bytes", v.Type(), n, length, m.value)
	}
	switch v.(type) {
	case *starlark.List, starlark.Tuple:
		m.slots(v.Type(), int(items))
	}
}

func (m *meter) beforeShift(x, y starlark.Value) {
	a, ok := x.(starlark.Int)
	b, ok2 := y.(starlark.Int)
	if n, small := b.Int64(); ok && ok2 && small && n > 0 && n < MaxIntBits { // the library refuses the rest
		m.width(intBits(a) + int(n))
	}
}

func (m *meter) beforePercent(x, y starlark.Value) {
	if format, ok := x.(starlark.String); ok {
		m.percentSize(string(format), y)
	}
}

func (m *meter) beforeIn(x, y starlark.Value) {
	switch y := y.(type) {
	case starlark.String, starlark.Bytes:
		m.walk(starlark.Len(y))
	case *starlark.List, starlark.Tuple:
		m.search(x, y.(starlark.Indexable))
	default:
		m.key(x)
	}
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
	m.comparing(op, x, y)
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
		m.pass(y, y.Len())
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
	items := m.collect(more)
	if uint64(list.Len()+len(items)) > m.value/slotBytes {
		m.slots("list", list.Len()+len(items))
	}
	m.takeMemory(uint64(2 * slotBytes * len(items)))
	for _, x := range items {
		if err := list.Append(x); err != nil {
			return err
		}
	}
	return nil
}
