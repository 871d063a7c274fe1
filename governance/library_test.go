package governance

import (
	"errors"
	"slices"
	"testing"

	"cel.dev/cel-go/cel"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// The library evaluates expressions by code of its own. What this package makes of them
// is compared with that, but for integers that do not fit in 64 bits, and for the cost.

// errCosts says that an expression costs the library too much: nobody knows its value.
var errCosts = errors.New("it costs too much")

// libraryRule is a policy that the library evaluates.
type libraryRule struct {
	decide  string
	program cel.Program
}

func libraryRuleOf(t testing.TB, p manifest.Policy) libraryRule {
	c, err := newCompiler(ofPolicies())
	require.NoError(t, err)
	tree, err := c.check(p.When)
	require.NoError(t, err)
	program, err := c.env.Program(tree, cel.CustomDecoratorV2(sortLiterals), cel.EvalOptions(cel.OptOptimize), cel.CostLimit(1_000_000))
	require.NoError(t, err)
	return libraryRule{p.Decide, program}
}

// eval reports whether the rule matches.
func (r libraryRule) eval(vars *activation) (bool, error) {
	out, _, err := r.program.Eval(libraryVars{vars})
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return false, errCosts
	}
	if err != nil {
		return false, err
	}
	matches, ok := out.(types.Bool)
	if !ok {
		return false, errors.New("no boolean")
	}
	return bool(matches), nil
}

// libraryVars are variables as the library knows values.
type libraryVars struct{ *activation }

// ResolveName is for the library.
func (a libraryVars) ResolveName(name string) (any, bool) {
	if name == "intent.params" {
		return decode(a.req.Params), true
	}
	i := slices.IndexFunc(a.vars, func(v variable) bool { return v.name == name })
	if i < 0 {
		return nil, false
	}
	return a.value(i), true
}

// Parent is for the library: there is none.
func (libraryVars) Parent() cel.Activation { return nil }

// decode returns canonical CBOR as a CEL value, or a CEL error for bytes that
// are not canonical or hold an integer that does not fit in 64 bits: CEL has
// no such integers, and one that compares as something else would let an
// effect through.
func decode(data canon.Raw) ref.Val {
	if len(data) == 0 {
		return types.NullValue
	}
	if err := canon.Valid(data); err != nil {
		return types.WrapErr(err)
	}
	return decodeItem(canon.NewReader(data))
}

// decodeItem decodes the next item, which is valid and so no deeper than
// canon.MaxDepth.
func decodeItem(r *canon.Reader) ref.Val {
	switch r.Kind() {
	case canon.KindBool:
		return types.Bool(r.Bool())
	case canon.KindInt:
		return decodeInt(r)
	case canon.KindFloat:
		return types.Double(r.Float())
	case canon.KindBytes:
		return types.Bytes(r.Bytes())
	case canon.KindText:
		return types.String(r.Text())
	case canon.KindArray:
		items := make([]ref.Val, r.Array())
		for i := range items {
			if items[i] = decodeItem(r); types.IsError(items[i]) {
				return items[i]
			}
		}
		return types.NewRefValList(types.DefaultTypeAdapter, items)
	case canon.KindMap:
		return decodeMap(r)
	default:
		r.Null()
		return types.NullValue
	}
}

func decodeInt(r *canon.Reader) ref.Val {
	n, great := r.Int()
	switch {
	case great == nil:
		return types.Int(n)
	case great.IsUint64():
		return types.Uint(great.Uint64())
	default:
		return types.NewErr("integer %s does not fit in 64 bits", shortened(great.String()))
	}
}

func decodeMap(r *canon.Reader) ref.Val {
	n := r.Map()
	items := make(map[string]ref.Val, n)
	for range n {
		name := r.Text()
		item := decodeItem(r)
		if types.IsError(item) {
			return item
		}
		items[name] = item
	}
	return &sortedMap{types.NewMap(types.DefaultTypeAdapter, items)}
}

// sortedMap is a CEL map that is iterated in the order of its keys: the
// library iterates in the order of Go maps, which is another one every time.
type sortedMap struct{ traits.Mapper }

// Iterator goes through the keys in their order.
func (m *sortedMap) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

// sortLiterals is a decorator of CEL programs that makes the maps that an
// expression writes down sorted ones.
func sortLiterals(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableConstructor); ok && c.Type() == types.MapType {
		return &mapLiteral{InterpretableV2: i}, nil
	}
	return i, nil
}

type mapLiteral struct{ interpreter.InterpretableV2 }

// Exec is for the CEL interpreter. Keys of other types than the language
// defines, which the library lets through, have no order (NaN) or are equal to
// no other (lists), and are an error.
func (l *mapLiteral) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := l.InterpretableV2.Exec(frame)
	m, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	for it := m.Iterator(); it.HasNext() == types.True; {
		switch it.Next().Type() {
		case types.BoolType, types.IntType, types.UintType, types.StringType:
		default:
			return types.NewErr("a map has a key that is not a boolean, an integer or a string")
		}
	}
	return &sortedMap{m}
}
