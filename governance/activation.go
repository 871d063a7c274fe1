package governance

import (
	"math"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// variable is something that a rule may look at. Its name is qualified, so
// that the checker knows every field and no object has to be built to read one.
type variable struct {
	name  string
	typ   *cel.Type
	value func(req *Request, g *grant) ref.Val
}

// variables returns all there are, sorted by name.
func variables() []variable {
	return []variable{
		{"cap.expires", cel.IntType, func(_ *Request, g *grant) ref.Val { return integer(uint64(g.Expires)) }},
		{"cap.name", cel.StringType, func(_ *Request, g *grant) ref.Val { return types.String(g.name) }},
		{"cap.type", cel.StringType, func(_ *Request, g *grant) ref.Val { return types.String(g.Type) }},
		{"cell.id", cel.StringType, func(r *Request, _ *grant) ref.Val { return types.String(r.Cell.String()) }},
		{"cell.key", cel.StringType, func(r *Request, _ *grant) ref.Val { return types.String(r.Cell.Key) }},
		{"cell.reducer", cel.StringType, func(r *Request, _ *grant) ref.Val { return types.String(r.Cell.Reducer) }},
		{"intent.cap", cel.StringType, func(r *Request, _ *grant) ref.Val { return types.String(r.Cap) }},
		{"intent.kind", cel.StringType, func(r *Request, _ *grant) ref.Val { return types.String(r.Kind) }},
		{"intent.params", cel.DynType, func(r *Request, _ *grant) ref.Val { return decode(r.Params) }},
		{"intent.step", cel.IntType, func(r *Request, _ *grant) ref.Val { return integer(r.Step) }},
		{"intent.tag", cel.StringType, func(r *Request, _ *grant) ref.Val { return types.String(r.Tag) }},
		{"world.name", cel.StringType, func(r *Request, _ *grant) ref.Val { return types.String(r.World) }},
		{"world.time", cel.IntType, func(r *Request, _ *grant) ref.Val { return integer(uint64(r.Time)) }},
	}
}

// fieldsOf returns the fields of a root, such as intent, in order.
func fieldsOf(root string) []string {
	var out []string
	for _, v := range variables() {
		if field, ok := strings.CutPrefix(v.name, root+"."); ok {
			out = append(out, field)
		}
	}
	return out
}

func integer(n uint64) ref.Val {
	if n > math.MaxInt64 {
		return types.NewErr("%d does not fit in a signed 64-bit integer", n)
	}
	return types.Int(n)
}

// activation is what the rules see of one request. A value is made when the
// first rule looks at it and kept for the others.
type activation struct {
	vars   []variable
	values []ref.Val // beside vars; nil: not made yet
	req    *Request
	grant  *grant
}

func newActivation() activation {
	vars := variables()
	return activation{vars: vars, values: make([]ref.Val, len(vars))}
}

func (a *activation) bind(req *Request, g *grant) { a.req, a.grant = req, g }

func (a *activation) release() {
	clear(a.values)
	a.req, a.grant = nil, nil
}

// ResolveName is for the CEL interpreter.
func (a *activation) ResolveName(name string) (any, bool) {
	i, ok := slices.BinarySearchFunc(a.vars, name, func(v variable, name string) int {
		return strings.Compare(v.name, name)
	})
	if !ok {
		return nil, false
	}
	if a.values[i] == nil {
		a.values[i] = a.vars[i].value(a.req, a.grant)
	}
	return a.values[i], true
}

// Parent is for the CEL interpreter: there is none.
func (a *activation) Parent() cel.Activation { return nil }
