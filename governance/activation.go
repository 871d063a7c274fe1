package governance

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// variable is something that an expression may look at. Its name is qualified,
// so that the checker knows every field and no object has to be built to read
// one.
type variable struct {
	name  string
	typ   *cel.Type
	value func(a *activation) ref.Val
	text  func(a *activation) string // in the place of value

	words func(m *manifest.Manifest) []word // that it can be; nil: any
}

func ofValue(name string, typ *cel.Type, value func(a *activation) ref.Val) variable {
	return variable{name: name, typ: typ, value: value}
}

func ofText(name string, text func(a *activation) string) variable {
	return variable{name: name, typ: cel.StringType, text: text}
}

func ofName(name string, words func(*manifest.Manifest) []word, text func(a *activation) string) variable {
	return variable{name: name, typ: cel.StringType, text: text, words: words}
}

// ofPolicies returns all that policies may look at, sorted by name.
func ofPolicies() []variable {
	return []variable{
		ofValue("budget.bytes", cel.IntType, func(a *activation) ref.Val { return unsigned(a.left(UnitBytes)) }),
		ofValue("budget.calls", cel.IntType, func(a *activation) ref.Val { return unsigned(a.left(UnitCalls)) }),
		ofValue("budget.micros", cel.IntType, func(a *activation) ref.Val { return unsigned(a.left(UnitMicros)) }),
		ofValue("budget.tokens", cel.IntType, func(a *activation) ref.Val { return unsigned(a.left(UnitTokens)) }),
		ofValue("cap.expires", cel.IntType, func(a *activation) ref.Val { return unsigned(uint64(a.grant.Expires)) }),
		ofName("cap.name", capWords, func(a *activation) string { return a.grant.name }),
		ofName("cap.type", capTypeWords, func(a *activation) string { return a.grant.Type }),
		ofName("cell.id", cellWords, func(a *activation) string { return a.req.Cell.String() }),
		ofText("cell.key", func(a *activation) string { return a.req.Cell.Key }),
		ofName("cell.reducer", reducerWords, func(a *activation) string { return a.req.Cell.Reducer }),
		ofName("effect.adapter", adapterWords, func(a *activation) string { return a.gate.effect(a.req.Kind).Adapter }),
		ofValue("effect.idempotent", cel.BoolType, func(a *activation) ref.Val { return types.Bool(a.gate.effect(a.req.Kind).Idempotent) }),
		ofName("intent.cap", askedCapWords, func(a *activation) string { return a.req.Cap }),
		ofName("intent.class", classWords, func(a *activation) string { return a.gate.effect(a.req.Kind).Class }),
		ofName("intent.kind", kindWords, func(a *activation) string { return a.req.Kind }),
		ofValue("intent.params", cel.DynType, func(a *activation) ref.Val { return dataOf(a.req.Params) }),
		ofValue("intent.step", cel.IntType, func(a *activation) ref.Val { return unsigned(a.req.Step) }),
		ofText("intent.tag", func(a *activation) string { return a.req.Tag }),
		ofName("world.name", worldWords, func(a *activation) string { return a.req.World }),
		ofValue("world.time", cel.IntType, func(a *activation) ref.Val { return unsigned(uint64(a.req.Time)) }),
	}
}

// ofTransforms returns all that transforms may look at, sorted by name.
func ofTransforms() []variable {
	return []variable{
		ofName("intent.cell", cellWords, func(a *activation) string { return a.intent.Cell }),
		ofName("intent.kind", kindWords, func(a *activation) string { return a.intent.Kind }),
		ofValue("intent.params", cel.DynType, func(a *activation) ref.Val { return dataOf(a.intent.Params) }),
		ofText("receipt.external_ref", func(a *activation) string { return a.receipt.ExternalRef }),
		ofValue("receipt.payload", cel.DynType, func(a *activation) ref.Val { return dataOf(a.receipt.Payload) }),
		ofName("receipt.status", statusWords, func(a *activation) string { return string(a.receipt.Status) }),
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

// activation is what expressions see of one request or receipt. A value is made
// when the first expression looks at it and kept for the others.
type activation struct {
	vars   []variable
	values []ref.Val // beside vars; nil: not made yet
	texts  []ref.Val // likewise, of the subjects before: most name what these named
	frame  frame     // of the expression that is evaluated
	subject
}

// subject is what an activation is about: a request that a gate judges, or a
// receipt.
type subject struct {
	gate  *Gate // judges
	req   *Request
	grant *grant

	receipt *receipt.Receipt
	intent  *receipt.Intent
}

func newActivation(vars []variable) activation {
	return activation{vars: vars, values: make([]ref.Val, len(vars)), texts: make([]ref.Val, len(vars))}
}

func (a *activation) release() {
	clear(a.values)
	a.subject = subject{}
}

// value returns the variable at a place of vars.
func (a *activation) value(i int) ref.Val {
	if a.values[i] == nil {
		if v := &a.vars[i]; v.text != nil {
			a.values[i] = a.text(i, v.text(a))
		} else {
			a.values[i] = v.value(a)
		}
	}
	return a.values[i]
}

// text returns a text as the value of a variable: the one before where that is the same.
func (a *activation) text(i int, s string) ref.Val {
	if before, ok := a.texts[i].(types.String); !ok || string(before) != s {
		a.texts[i] = types.String(s)
	}
	return a.texts[i]
}
