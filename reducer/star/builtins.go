package star

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// predeclared returns every name that a program can use besides the library's
// own, and the hidden ones that rewriting refers to.
func (m *meter) predeclared() starlark.StringDict {
	names := starlark.StringDict{"math": mathModule(), "json": m.jsonModule()}
	add := func(name string, fn builtin) { names[name] = starlark.NewBuiltin(name, fn) }
	for _, op := range []syntax.Token{
		syntax.PLUS, syntax.MINUS, syntax.STAR, syntax.PERCENT, syntax.AMP, syntax.PIPE, syntax.CIRCUMFLEX,
		syntax.LTLT, syntax.IN,
	} {
		add(op.String(), m.binary(op))
	}
	m.addCounted(add)
	add(syntax.PLUS_EQ.String(), m.addInPlace(m.binary(syntax.PLUS)))
	add(syntax.PIPE_EQ.String(), m.orInPlace(m.binary(syntax.PIPE)))
	for _, op := range []syntax.Token{syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE} {
		add(op.String(), m.comparison(op))
	}
	for _, p := range []price{reads, makes} {
		for _, name := range methods(p) {
			add("."+name, m.method(name, p))
		}
	}
	add(opTuple, check(func(v starlark.Value) { m.tuple(v.(starlark.Tuple)) }))
	add(opKey, check(m.key))
	add(opSlice, check(m.sliced))
	add(opEmpty, check(m.made))
	add(opFrame, check(m.frame))
	add(opNamed, check(m.named))
	add(opSpread, one(m.spread))
	add(opAttr, m.getAttr)
	m.addFunctions(add)
	return names
}

// addCounted adds what is charged for in proportion to its work.
func (m *meter) addCounted(add func(string, builtin)) {
	for _, op := range []syntax.Token{syntax.SLASH, syntax.SLASHSLASH, syntax.GTGT} {
		add(op.String(), m.binary(op))
	}
	for _, name := range growing() {
		add("."+name, m.method(name, reads))
	}
	add("hasattr", m.hasAttr)
	add("dir", m.library("dir", func(starlark.Tuple, []starlark.Tuple) { m.spend(dirSteps) }))
	add(opTarget, m.target)
	add(opHold, check(m.hold))
	add(opRelease, check(m.release))
	add(opDisplay, one(m.display))
	add(opComprehension, one(m.comprehension))
	add(opKeep, check(m.kept))
	add(opClosure, check(m.closure))
}

// addFunctions adds the checked forms of the library's functions. Those that it
// does not replace (abs, bool, chr, dir, hasattr, len, ord, type) cost nothing
// worth a charge.
func (m *meter) addFunctions(add func(string, builtin)) {
	add("all", one(m.allTrue))
	add("any", one(m.any))
	add("bytes", m.library("bytes", m.beforeBytes))
	add("dict", m.library("dict", m.beforeUpdate))
	add("enumerate", m.enumerate)
	add("fail", m.fail)
	add("float", m.library("float", m.beforeScan))
	add("getattr", m.getAttr)
	add("hash", m.library("hash", m.beforeScan))
	add("int", m.library("int", m.beforeInt))
	add("list", m.list)
	add("max", m.extreme(syntax.GT))
	add("min", m.extreme(syntax.LT))
	add("print", m.print)
	add("range", m.newRange)
	add("repr", one(func(v starlark.Value) (starlark.Value, error) { return m.text(v, true), nil }))
	add("reversed", one(m.reversed))
	add("set", m.set)
	add("sorted", m.sorted)
	add("str", one(func(v starlark.Value) (starlark.Value, error) { return m.text(v, false), nil }))
	add("tuple", m.newTuple)
	add("zip", m.zip)
}

// one makes a builtin of a function of exactly one value.
func one(fn func(starlark.Value) (starlark.Value, error)) builtin {
	return func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(args) != 1 || len(kwargs) > 0 {
			return nil, fmt.Errorf("%s: got %d arguments, want exactly 1", b.Name(), len(args)+len(kwargs))
		}
		return fn(args[0])
	}
}

// check makes a builtin that returns its argument, paid for.
func check(pay func(starlark.Value)) builtin {
	return func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		pay(args[0])
		return args[0], nil
	}
}

// library makes a builtin of the library's function of that name, paid for.
func (m *meter) library(name string, before func(starlark.Tuple, []starlark.Tuple)) builtin {
	fn := starlark.Universe[name].(*starlark.Builtin)
	return func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		before(args, kwargs)
		v, err := fn.CallInternal(thread, args, kwargs)
		if err == nil {
			m.made(v)
		}
		return v, err
	}
}

func (m *meter) beforeScan(args starlark.Tuple, _ []starlark.Tuple) {
	if len(args) == 0 {
		return
	}
	n := starlark.Len(args[0])
	if n > 20 {
		m.spend(longNumberSteps)
	}
	if n > 0 {
		m.walk(n)
	}
}

func (m *meter) beforeBytes(args starlark.Tuple, _ []starlark.Tuple) {
	if len(args) == 0 {
		return
	}
	n := max(starlark.Len(args[0]), 0)
	m.spend(uint64(n) / 2)
	m.fits("bytes value", uint64(n))
}

// beforeInt refuses texts of integers that are too wide: base 2 has the
// longest, with a sign and a prefix.
func (m *meter) beforeInt(args starlark.Tuple, kwargs []starlark.Tuple) {
	for _, pair := range kwargs {
		args = append(args[:len(args):len(args)], pair[1])
	}
	for _, arg := range args {
		if n := starlark.Len(arg); n > MaxIntBits+8 {
			m.exceed("the text of an integer has %d digits; reducers compute with at most %d bits", n, MaxIntBits)
		} else if n > 0 {
			m.squares(n)
		}
	}
}

// newRange is the library's range with arguments for which its arithmetic, slices of ranges
// included, cannot overflow in a few steps.
func (m *meter) newRange(
	thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	for _, arg := range args {
		if n, ok := arg.(starlark.Int); ok {
			if i, ok := n.Int64(); !ok || i > math.MaxInt32 || i < math.MinInt32 {
				return nil, errors.New("range: arguments are integers of 32 bits")
			}
		}
	}
	return starlark.Universe["range"].(*starlark.Builtin).CallInternal(thread, args, kwargs)
}

// frame charges for a call of a function of so many nodes.
func (m *meter) frame(nodes starlark.Value) {
	n, _ := nodes.(starlark.Int).Uint64()
	m.takeMemory(n * slotBytes)
}

// named charges for passing on the entries of a dict.
func (m *meter) named(v starlark.Value) {
	d, ok := v.(*starlark.Dict)
	if !ok {
		return // refused by the library
	}
	// Each name is looked for among the parameters.
	m.spend(uint64(d.Len()) * maxParams / 32)
	m.pass(d, d.Len())
}

func (m *meter) getAttr(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var x, fallback starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs("getattr", args, kwargs, 2, &x, &name, &fallback); err != nil {
		return nil, err
	}
	m.scan(len(name))
	v, err := m.attr(x, name)
	switch {
	case v != nil && err == nil:
		return v, nil
	case fallback != nil:
		return fallback, nil
	case err != nil:
		return nil, err
	case b.Name() == opAttr:
		return nil, noAttr(x, name)
	}
	return nil, fmt.Errorf("getattr: %w", noAttr(x, name))
}

// fail fails the step with the text of its arguments.
func (m *meter) fail(
	_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	sep := " "
	if err := starlark.UnpackArgs("fail", nil, kwargs, "sep?", &sep); err != nil {
		return nil, err
	}
	var msg strings.Builder
	for i, arg := range args {
		if i > 0 {
			msg.WriteString(sep)
		}
		if msg.WriteString(string(m.text(arg, false))); msg.Len() > maxMessageBytes {
			break
		}
	}
	return nil, errors.New(msg.String())
}
