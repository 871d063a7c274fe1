package star

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// What is charged in proportion to its work.

// maxFloatBits is how many bits a float has in front of its point.
const maxFloatBits = 1024

// Prices in steps.
const (
	mixedSteps      = 16  // comparing an integer with a float, as fractions
	wideMixedSteps  = 64  // likewise where the integer is wide
	wordsPerStep    = 64  // products of words of wide integers
	longNumberSteps = 64  // a text of a float that is long
	dirSteps        = 128 // the names of what a value has, sorted
	pieceSteps      = 2   // one part of a text that is split, formatted or joined
	closureBytes    = 640 // a function that was made, with what it holds
)

// put inserts into a dict, paid for.
func (m *meter) put(d *starlark.Dict, k, v starlark.Value) error {
	m.insert(d, k)
	return d.SetKey(k, v)
}

// setIndex charges for x[k] = v before it is done.
func (m *meter) setIndex(x, k starlark.Value) {
	if tableOf(x) != nil {
		m.insert(x, k)
		m.takeMemory(entryFilled / 4) // it may be there already
	}
}

// target is the hidden function of x in x[k] = v where k costs nothing to evaluate
// twice: it returns x.
func (m *meter) target(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	m.setIndex(args[0], args[1])
	return args[0], nil
}

// hold is the hidden function of x in x[k] = v otherwise; the key comes later.
func (m *meter) hold(x starlark.Value) {
	m.held = append(m.held, x)
}

// held is the hidden function of k in x[k] = v.
func (m *meter) release(k starlark.Value) {
	last := len(m.held) - 1
	x := m.held[last]
	m.held = m.held[:last]
	m.setIndex(x, k)
}

// display makes the dict of a display, of keys and values in turn. No key comes twice.
func (m *meter) display(v starlark.Value) (starlark.Value, error) {
	items := v.(*starlark.List)
	d := starlark.NewDict(items.Len() / 2)
	m.entries("dict", items.Len()/2)
	for i := 0; i < items.Len(); i += 2 {
		n := d.Len()
		if err := m.put(d, items.Index(i), items.Index(i+1)); err != nil {
			return nil, err
		}
		if d.Len() == n {
			return nil, fmt.Errorf("duplicate key: %v", items.Index(i))
		}
	}
	return d, nil
}

// comprehension makes the dict of a comprehension, of its pairs.
func (m *meter) comprehension(v starlark.Value) (starlark.Value, error) {
	pairs := v.(*starlark.List)
	m.entries("dict", pairs.Len())
	d := starlark.NewDict(0)
	for i := range pairs.Len() {
		pair := pairs.Index(i).(starlark.Tuple)
		if err := m.put(d, pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// closure charges for a function that was made.
func (m *meter) closure(starlark.Value) { m.takeMemory(closureBytes) }

// retain charges for what a place in a list holds that was made by an operator.
func (m *meter) retain(items ...starlark.Value) {
	n := uint64(0)
	for _, x := range items {
		if x, ok := x.(starlark.Int); ok {
			if wide := intBits(x); wide > 63 {
				n += uint64(wide) / 8
			}
		}
	}
	if n > 0 {
		m.takeMemory(n)
	}
}

// kept charges for a list or dict that a display or a comprehension made.
func (m *meter) kept(v starlark.Value) {
	m.made(v)
	if list, ok := v.(*starlark.List); ok {
		for x := range list.Elements() {
			m.retain(x)
		}
	}
}

// rehearse charges for the keys that the library is about to insert: into a table of
// their own, so that their chains are seen, and into where they go.
func (m *meter) rehearse(into starlark.Value, keys []starlark.Value) {
	alone := starlark.NewSet(0)
	for _, k := range keys {
		m.insert(into, k)
		m.insert(alone, k)
		if alone.Insert(k) != nil {
			return // the library says so
		}
	}
}

// arithmetic charges for an operator of numbers.
func (m *meter) arithmetic(op syntax.Token, x, y starlark.Value) {
	a, ok := x.(starlark.Int)
	b, ok2 := y.(starlark.Int)
	if f, ok := y.(starlark.Float); ok && op == syntax.PERCENT {
		m.remainder(x, f)
		return
	}
	switch {
	case ok != ok2: // a float and an integer, or a repetition
		m.spend(pieceSteps)
		return
	case !ok, small(x) && small(y):
		return
	}
	wide := uint64(max(intBits(a), intBits(b)))/64 + 1
	switch op { //nolint:exhaustive // the rest costs what its words do
	case syntax.STAR, syntax.SLASH, syntax.SLASHSLASH, syntax.PERCENT:
		m.spend((uint64(intBits(a))/64+1)*(uint64(intBits(b))/64+1)/wordsPerStep + wide/4)
		return
	case syntax.LTLT:
		wide = MaxIntBits / 64
	}
	m.takeMemory(wide * 8)
}

// remainder charges for the remainder of a number by a float, which is found bit by
// bit.
func (m *meter) remainder(x starlark.Value, y starlark.Float) {
	exponent := func(f starlark.Float) int { return int(math.Float64bits(float64(f)) >> 52 & 0x7ff) }
	bits := 2 * maxFloatBits
	if f, ok := x.(starlark.Float); ok {
		bits = exponent(f)
	}
	m.spend(pieceSteps + uint64(max(bits-exponent(y), 0))/16)
}

// sliced charges for a slice, whose step nobody knows here: it may have been put
// together byte by byte.
func (m *meter) sliced(v starlark.Value) {
	m.made(v)
	switch v.(type) {
	case starlark.String, starlark.Bytes:
		m.walk(starlark.Len(v))
	}
}

// number charges for comparing a number with something.
func (m *meter) number(x, y starlark.Value) {
	n, ok := x.(starlark.Int)
	_, mixed := y.(starlark.Float)
	if !ok {
		n, mixed = y.(starlark.Int)
	}
	switch {
	case !mixed:
	case intBits(n) > 63:
		m.spend(wideMixedSteps)
	default:
		m.spend(mixedSteps)
	}
}

// comparing charges for comparing x with y.
func (m *meter) comparing(op syntax.Token, x, y starlark.Value) {
	switch x := x.(type) {
	case starlark.Int, starlark.Float:
		m.number(x, y)
	case starlark.String:
		m.scan(min(len(x), max(starlark.Len(y), 0)))
	case starlark.Bytes:
		m.scan(min(len(x), max(starlark.Len(y), 0)))
	case *starlark.List, starlark.Tuple, *starlark.Dict, *starlark.Set:
		if reflect.TypeOf(x) != reflect.TypeOf(y) {
			return
		}
		if equality := op == syntax.EQL || op == syntax.NEQ; equality && starlark.Len(x) != starlark.Len(y) {
			return
		}
		m.deep(x)
		m.deep(y)
		m.found(starlark.Len(x))
	}
}

// found charges for looking up n keys.
func (m *meter) found(n int) {
	if m.heaviest > 0 {
		m.spend(uint64(n) * (m.heaviest/weightPerStep + 1))
	}
}

// search charges for comparing v with all of items.
func (m *meter) search(v starlark.Value, items starlark.Indexable) {
	n := items.Len()
	m.spend(uint64(n) / 4)
	switch v.(type) {
	case starlark.NoneType, starlark.Bool:
		return
	}
	for i := range n {
		m.comparing(syntax.EQL, v, items.Index(i))
	}
}

// appendTo is list.append.
func (m *meter) appendTo(x *starlark.List, args starlark.Tuple) (starlark.Value, error) {
	m.takeMemory(2 * slotBytes)
	m.retain(args[0])
	if err := x.Append(args[0]); err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	return starlark.None, nil
}

// hasAttr is the library's hasattr, paid for.
func (m *meter) hasAttr(
	_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var x starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs("hasattr", args, kwargs, 2, &x, &name); err != nil {
		return nil, err
	}
	m.takeMemory(closureBytes / 4) // a method is bound
	m.scan(len(name))
	holder, ok := x.(starlark.HasAttrs)
	if !ok {
		return starlark.False, nil
	}
	v, err := holder.Attr(name)
	return starlark.Bool(err == nil && v != nil || err != nil && slices.Contains(holder.AttrNames(), name)), nil
}

// clearing charges for emptying a table, which stays as large as it was.
func (m *meter) clearing(v starlark.Value) {
	if t := tableOf(v); t != nil {
		m.spend(uint64(len(t.buckets)) / 2)
	}
}

// sizeOf is what a number weighs where values are walked: floats are compared with
// integers as fractions, and both have many digits.
func sizeOf(v starlark.Value) int {
	switch v := v.(type) {
	case starlark.Float:
		return wideMixedSteps * slotBytes / 2
	case starlark.Int:
		if n := intBits(v); n > 63 {
			return n
		}
	}
	return 0
}

// joined charges for the parts of texts.
func (m *meter) joined(n int) { m.spend(uint64(n) * pieceSteps) }

// squares charges for the conversion of n digits, which costs their square.
func (m *meter) squares(n int) {
	_, words := bits.Mul64(uint64(n)/16, uint64(n)/16)
	m.spend(uint64(n)/8 + words/16)
}
