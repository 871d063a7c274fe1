package governance

import (
	"context"
	"math"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// variable is something that an expression may look at. Its name is qualified,
// so that the checker knows every field and no object has to be built to read
// one.
type variable struct {
	name  string
	typ   *cel.Type
	value func(a *activation) ref.Val
}

// ofPolicies returns all that policies may look at, sorted by name.
func ofPolicies() []variable {
	return []variable{
		{"budget.bytes", cel.IntType, func(a *activation) ref.Val { return a.integer(a.left(UnitBytes)) }},
		{"budget.calls", cel.IntType, func(a *activation) ref.Val { return a.integer(a.left(UnitCalls)) }},
		{"budget.micros", cel.IntType, func(a *activation) ref.Val { return a.integer(a.left(UnitMicros)) }},
		{"budget.tokens", cel.IntType, func(a *activation) ref.Val { return a.integer(a.left(UnitTokens)) }},
		{"cap.expires", cel.IntType, func(a *activation) ref.Val { return a.integer(uint64(a.grant.Expires)) }},
		{"cap.name", cel.StringType, func(a *activation) ref.Val { return types.String(a.grant.name) }},
		{"cap.type", cel.StringType, func(a *activation) ref.Val { return types.String(a.grant.Type) }},
		{"cell.id", cel.StringType, func(a *activation) ref.Val { return types.String(a.req.Cell.String()) }},
		{"cell.key", cel.StringType, func(a *activation) ref.Val { return types.String(a.req.Cell.Key) }},
		{"cell.reducer", cel.StringType, func(a *activation) ref.Val { return types.String(a.req.Cell.Reducer) }},
		{"effect.adapter", cel.StringType, func(a *activation) ref.Val { return types.String(a.gate.effect(a.req.Kind).Adapter) }},
		{"effect.idempotent", cel.BoolType, func(a *activation) ref.Val { return types.Bool(a.gate.effect(a.req.Kind).Idempotent) }},
		{"intent.cap", cel.StringType, func(a *activation) ref.Val { return types.String(a.req.Cap) }},
		{"intent.class", cel.StringType, func(a *activation) ref.Val { return types.String(a.gate.effect(a.req.Kind).Class) }},
		{"intent.kind", cel.StringType, func(a *activation) ref.Val { return types.String(a.req.Kind) }},
		{"intent.params", cel.DynType, func(a *activation) ref.Val { return a.decode(a.req.Params) }},
		{"intent.step", cel.IntType, func(a *activation) ref.Val { return a.integer(a.req.Step) }},
		{"intent.tag", cel.StringType, func(a *activation) ref.Val { return types.String(a.req.Tag) }},
		{"world.name", cel.StringType, func(a *activation) ref.Val { return types.String(a.req.World) }},
		{"world.time", cel.IntType, func(a *activation) ref.Val { return a.integer(uint64(a.req.Time)) }},
	}
}

// ofTransforms returns all that transforms may look at, sorted by name.
func ofTransforms() []variable {
	return []variable{
		{"intent.cell", cel.StringType, func(a *activation) ref.Val { return types.String(a.intent.Cell) }},
		{"intent.kind", cel.StringType, func(a *activation) ref.Val { return types.String(a.intent.Kind) }},
		{"intent.params", cel.DynType, func(a *activation) ref.Val { return a.decode(a.intent.Params) }},
		{"receipt.external_ref", cel.StringType, func(a *activation) ref.Val { return types.String(a.receipt.ExternalRef) }},
		{"receipt.payload", cel.DynType, func(a *activation) ref.Val { return a.decode(a.receipt.Payload) }},
		{"receipt.status", cel.StringType, func(a *activation) ref.Val { return types.String(a.receipt.Status) }},
	}
}

// fieldsBelow returns the fields of a root, such as intent, in order.
func fieldsBelow(root string, vars []variable) []string {
	var out []string
	for _, v := range vars {
		if field, ok := strings.CutPrefix(v.name, root+"."); ok {
			out = append(out, field)
		}
	}
	return out
}

// decode returns canonical data as a value.
func (a *activation) decode(data canon.Raw) ref.Val {
	if a.version == version2 {
		return decode(data)
	}
	return dataOf(data)
}

func (a *activation) integer(n uint64) ref.Val {
	if a.version != version2 {
		return unsigned(n)
	}
	if n > math.MaxInt64 {
		return types.NewErr("%d does not fit in a signed 64-bit integer", n)
	}
	return types.Int(n)
}

// activation is what expressions see of one request or receipt. A value is made
// when the first expression looks at it and kept for the others.
type activation struct {
	version string // of the programs that look
	vars    []variable
	values  []ref.Val // beside vars; nil: not made yet
	subject
}

// subject is what an activation is about: a request that a gate judges, or a
// receipt.
type subject struct {
	ctx context.Context // ends when nobody waits for the value of an expression; nil: somebody does

	gate   *Gate // judges
	req    *Request
	holder *holder
	grant  *grant

	receipt *receipt.Receipt
	intent  *receipt.Intent
}

func newActivation(version string, vars []variable) activation {
	return activation{version: version, vars: vars, values: make([]ref.Val, len(vars))}
}

func (a *activation) release() {
	clear(a.values)
	a.subject = subject{}
}

// ResolveName is for the CEL interpreter.
func (a *activation) ResolveName(name string) (any, bool) {
	i, ok := slices.BinarySearchFunc(a.vars, name, func(v variable, name string) int {
		return strings.Compare(v.name, name)
	})
	if !ok {
		return nil, false
	}
	return a.value(i), true
}

// value returns the variable at a place of vars.
func (a *activation) value(i int) ref.Val {
	if a.values[i] == nil {
		a.values[i] = a.vars[i].value(a)
	}
	return a.values[i]
}

// Parent is for the CEL interpreter: there is none.
func (a *activation) Parent() cel.Activation { return nil }
