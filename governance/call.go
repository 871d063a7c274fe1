package governance

import (
	"slices"

	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const matchesFunction = overloads.Matches

// call is a call of a function or operator all of whose operands have to be there.
type call struct {
	name     string
	args     []node
	function *functions.Overload // of the library
	pattern  *pattern            // of matches, where the expression holds it
	mixed    bool                // integers and floats are computed with together
}

func (n *call) eval(f *frame) ref.Val {
	var space [3]ref.Val
	args := space[:0]
	for _, of := range n.args {
		args = append(args, of.eval(f))
	}
	for _, v := range args {
		if types.IsError(v) {
			f.spend(1)
			return v
		}
	}
	f.spend(1 + textSteps(args))
	if n.mixed {
		mix(args)
	}
	if n.name == matchesFunction {
		return n.matches(f, args)
	}
	if len(args) == 2 {
		if v := binary(f, n.name, args[0], args[1]); v != nil {
			return v
		}
	} else if len(args) == 1 {
		if v := unary(f, n.name, args[0]); v != nil {
			return v
		}
	}
	return n.library(args)
}

// textSteps is what it costs to look at all texts, and great integers, among args once.
func textSteps(args []ref.Val) uint64 {
	n := 0
	for _, v := range args {
		switch v := v.(type) {
		case types.String:
			n += len(v)
		case types.Bytes:
			n += len(v)
		case *great:
			n += v.BitLen() / 8
		}
	}
	return uint64(n) / bytesPerStep
}

// library calls the library's function, whose work is that of looking at its operands
// once: those whose is not are above.
func (n *call) library(args []ref.Val) ref.Val {
	o := n.function
	if o == nil || o.OperandTrait != 0 && !args[0].Type().HasTrait(o.OperandTrait) {
		return noOverload()
	}
	for _, v := range args {
		switch v.(type) {
		case lister, mapper, *great: // which it does not know
			return noOverload()
		}
	}
	switch {
	case o.Unary != nil && len(args) == 1:
		return o.Unary(args[0])
	case o.Binary != nil && len(args) == 2:
		return o.Binary(args[0], args[1])
	case o.Function != nil:
		return o.Function(slices.Clone(args)...) // which may keep them
	}
	return noOverload()
}

// unary evaluates what the library does not know how to; nil: it knows.
func unary(f *frame, name string, v ref.Val) ref.Val {
	n, isGreat := v.(*great)
	switch name {
	case overloads.TypeConvertDyn:
		return v
	case overloads.TypeConvertType:
		t, ok := v.Type().(ref.Val)
		if !ok {
			return noOverload()
		}
		return t
	case overloads.Size:
		if l, ok := v.(lister); ok {
			return types.Int(l.size())
		}
		if m, ok := v.(mapper); ok {
			return types.Int(m.size())
		}
	}
	if isGreat {
		f.spend(uint64(n.BitLen()) / 8) // digits cost more than they are long
		return n.convert(name)
	}
	return nil
}

// binary is unary for two operands.
func binary(f *frame, name string, a, b ref.Val) ref.Val {
	switch name {
	case operators.Equals:
		return types.Bool(equal(&f.meter, a, b))
	case operators.NotEquals:
		return types.Bool(!equal(&f.meter, a, b))
	case operators.In, operators.OldIn:
		return in(&f.meter, a, b)
	case operators.Index:
		return index(&f.meter, a, b)
	case operators.Add:
		if x, ok := a.(lister); ok {
			return join(&f.meter, x, b)
		}
	}
	if !isGreat(a) && !isGreat(b) {
		return nil
	}
	switch name {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return ordered(name, a, b)
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		if isInteger(a) && isInteger(b) {
			return types.NewErr("integer overflow")
		}
	}
	return noOverload()
}

// in reports whether a list holds a value, or a map a key.
func in(m *meter, v, of ref.Val) ref.Val {
	switch of := of.(type) {
	case lister:
		for i := range of.size() {
			m.spend(1)
			if equal(m, v, of.at(m, i)) {
				return types.True
			}
		}
		return types.False
	case mapper:
		_, found := of.find(m, v)
		return types.Bool(found)
	}
	return noOverload()
}

// index returns an item of a list or the value of a key.
func index(m *meter, of, at ref.Val) ref.Val {
	switch of := of.(type) {
	case lister:
		key, ok := indexKey(at)
		if !ok {
			return types.NewErr("invalid index of a list")
		}
		i, ok := key.(uint64)
		if !ok || i >= uint64(of.size()) {
			return types.NewErr("index out of bounds")
		}
		return of.at(m, int(i))
	case mapper:
		if v, found := of.find(m, at); found {
			return v
		}
		return noSuchKey(at)
	}
	return noOverload()
}

// ordered compares two numbers, one of which is great.
func ordered(name string, a, b ref.Val) ref.Val {
	c, ok := compareNumbers(a, b)
	if !ok {
		return noOverload()
	}
	switch name {
	case operators.Less:
		return types.Bool(c < 0)
	case operators.LessEquals:
		return types.Bool(c <= 0)
	case operators.Greater:
		return types.Bool(c > 0)
	default:
		return types.Bool(c >= 0)
	}
}

// equal reports whether two values are the same; numbers are, whatever their types,
// where they stand for the same.
func equal(m *meter, a, b ref.Val) bool {
	m.spend(1)
	if isGreat(a) || isGreat(b) {
		m.spend(textSteps([]ref.Val{a, b}))
	}
	switch a := a.(type) {
	case types.String:
		b, ok := b.(types.String)
		return ok && equalTexts(m, string(a), string(b))
	case types.Bytes:
		b, ok := b.(types.Bytes)
		return ok && equalTexts(m, string(a), string(b))
	case lister:
		b, ok := b.(lister)
		return ok && equalLists(m, a, b)
	case mapper:
		b, ok := b.(mapper)
		return ok && equalMaps(m, a, b)
	case *great:
		c, ok := compareNumbers(a, b)
		return ok && c == 0
	}
	switch b := b.(type) {
	case *great:
		c, ok := compareNumbers(a, b)
		return ok && c == 0
	case lister, mapper:
		return false
	}
	return a.Equal(b) == types.True
}

func equalTexts(m *meter, a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	m.spendBytes(len(a))
	return a == b
}

func equalLists(m *meter, a, b lister) bool {
	if a.size() != b.size() {
		return false
	}
	for i := range a.size() {
		if !equal(m, a.at(m, i), b.at(m, i)) {
			return false
		}
	}
	return true
}

func equalMaps(m *meter, a, b mapper) bool {
	if a.size() != b.size() {
		return false
	}
	for i := range a.size() {
		k, v := a.entry(m, i)
		other, found := b.find(m, k)
		if !found || !equal(m, v, other) {
			return false
		}
	}
	return true
}
