package governance

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// meaning is a value that an expression can have: a text that stands there, or names.
type meaning struct {
	at      int64 // the part of the expression
	literal bool  // it is made of texts that stand there
	named   bool  // it is made of variables
	*names
}

// maxMeanings bounds the values of an expression that are told apart, and the words that
// are made of others.
const maxMeanings = 1000

// meant is the values of a local variable of a comprehension, and those of its items
// where it is a list.
type meant struct{ values, items []meaning }

// meanings finds out which values the parts of an expression can have.
type meanings struct {
	variables map[string]*names
	scope     map[string]meant
	left      int // parts that may still be looked at
}

// of returns the values of e.
func (m *meanings) of(e ast.Expr) []meaning {
	if m.left--; m.left < 0 {
		return m.unknown(e)
	}
	switch e.Kind() { //nolint:exhaustive // of the rest nothing is known
	case ast.LiteralKind:
		if s, ok := e.AsLiteral().(types.String); ok {
			return []meaning{{at: e.ID(), literal: true, names: newNames("", wordsOf(string(s)))}}
		}
	case ast.IdentKind, ast.SelectKind:
		name := qualified(e)
		if local, ok := m.scope[name]; ok {
			return local.values
		}
		if n, ok := m.variables[name]; ok {
			return []meaning{{at: e.ID(), named: true, names: n}}
		}
		if e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
			return m.valuesOf(e, e.AsSelect().Operand())
		}
	case ast.CallKind:
		return m.ofCall(e)
	}
	return m.unknown(e)
}

func (m *meanings) unknown(e ast.Expr) []meaning { return []meaning{{at: e.ID(), names: noNames()}} }

func (m *meanings) ofCall(e ast.Expr) []meaning {
	c := e.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case "dyn", "string":
		if len(args) == 1 && !c.IsMemberFunction() {
			return m.of(args[0])
		}
	case operators.Conditional:
		return m.union(e, m.of(args[1]), m.of(args[2]))
	case operators.Add:
		return m.joined(e, m.of(args[0]), m.of(args[1]))
	case operators.Index:
		return m.valuesOf(e, args[0])
	}
	return m.unknown(e)
}

// union returns values that are those of either, or anything where they are too many.
func (m *meanings) union(e ast.Expr, all ...[]meaning) (out []meaning) {
	for _, values := range all {
		if out = append(out, values...); len(out) > maxMeanings {
			return m.unknown(e)
		}
	}
	return out
}

// joined returns the values of a before those of b.
func (m *meanings) joined(e ast.Expr, a, b []meaning) (out []meaning) {
	if len(a)*len(b) > maxMeanings {
		return m.unknown(e)
	}
	for _, x := range a {
		for _, y := range b {
			if len(x.words)*len(y.words) > maxMeanings {
				return m.unknown(e)
			}
			var words []word
			for _, v := range x.words {
				for _, w := range y.words {
					if v.open {
						w = word{"", true}
					}
					if m.left -= len(v.text) + len(w.text); m.left < 0 {
						return m.unknown(e)
					}
					words = append(words, word{v.text + w.text, w.open})
				}
			}
			out = append(out, meaning{e.ID(), x.literal || y.literal, x.named || y.named, newNames("", words)})
		}
	}
	return out
}

// valuesOf returns the values of e, which takes one of those that are in a map or a list.
func (m *meanings) valuesOf(e, in ast.Expr) []meaning {
	var out [][]meaning
	for _, x := range m.literals(in) {
		switch x.Kind() {
		case ast.MapKind:
			for _, entry := range x.AsMap().Entries() {
				out = append(out, m.of(entry.AsMapEntry().Value()))
			}
		case ast.ListKind:
			for _, item := range x.AsList().Elements() {
				out = append(out, m.of(item))
			}
		default:
			return m.unknown(e)
		}
	}
	return m.union(e, out...)
}

// literals returns the maps and lists that e is one of; what is neither is something else.
func (m *meanings) literals(e ast.Expr) []ast.Expr {
	if m.left--; m.left < 0 {
		return []ast.Expr{e}
	}
	switch e.Kind() { //nolint:exhaustive // the rest is no choice among others
	case ast.CallKind:
		c := e.AsCall()
		switch args := c.Args(); c.FunctionName() {
		case operators.Conditional:
			return append(m.literals(args[1]), m.literals(args[2])...)
		case operators.Index:
			return m.below(args[0], e)
		case "dyn":
			return m.literals(args[0])
		}
	case ast.SelectKind:
		if !e.AsSelect().IsTestOnly() {
			return m.below(e.AsSelect().Operand(), e)
		}
	}
	return []ast.Expr{e}
}

// below returns the maps and lists that are in the maps and lists that e is one of; where
// it is another, what it is taken for.
func (m *meanings) below(e, or ast.Expr) (out []ast.Expr) {
	for _, x := range m.literals(e) {
		switch x.Kind() {
		case ast.MapKind:
			for _, entry := range x.AsMap().Entries() {
				out = append(out, m.literals(entry.AsMapEntry().Value())...)
			}
		case ast.ListKind:
			for _, item := range x.AsList().Elements() {
				out = append(out, m.literals(item)...)
			}
		default:
			return []ast.Expr{or}
		}
	}
	return out
}

// items returns the values that are in e: those of a list, or the keys of a map.
func (m *meanings) items(e ast.Expr) []meaning {
	if m.left--; m.left < 0 {
		return m.unknown(e)
	}
	var out [][]meaning
	for _, x := range m.literals(e) {
		switch x.Kind() {
		case ast.ListKind:
			for _, item := range x.AsList().Elements() {
				out = append(out, m.of(item))
			}
		case ast.MapKind:
			for _, entry := range x.AsMap().Entries() {
				out = append(out, m.of(entry.AsMapEntry().Key()))
			}
		case ast.IdentKind:
			local, ok := m.scope[x.AsIdent()]
			if !ok {
				return m.unknown(e)
			}
			out = append(out, local.items)
		case ast.CallKind:
			if x.AsCall().FunctionName() != operators.Add {
				return m.unknown(e)
			}
			out = append(out, m.items(x.AsCall().Args()[0]), m.items(x.AsCall().Args()[1]))
		case ast.ComprehensionKind:
			var made []meaning
			m.within(x.AsComprehension(), func() { made = m.items(x.AsComprehension().LoopStep()) })
			out = append(out, made)
		default:
			return m.unknown(e)
		}
	}
	return m.union(e, out...)
}

// within calls f where the local variables of a comprehension are known.
func (m *meanings) within(c ast.ComprehensionExpr, f func()) {
	local := map[string]meant{
		c.IterVar(): {values: m.items(c.IterRange()), items: m.deeper(c.IterRange())},
		c.AccuVar(): {values: m.unknown(c.AccuInit()), items: m.items(c.AccuInit())},
	}
	before := make(map[string]meant)
	for name := range local { // order cannot show: each by itself
		if was, ok := m.scope[name]; ok {
			before[name] = was
		}
	}
	for name, x := range local { // order cannot show: each by itself
		m.scope[name] = x
	}
	f()
	for name := range local { // order cannot show: each by itself
		delete(m.scope, name)
	}
	for name, x := range before { // order cannot show: each by itself
		m.scope[name] = x
	}
}

// deeper returns the values in the lists that are in e.
func (m *meanings) deeper(e ast.Expr) []meaning {
	var out [][]meaning
	for _, x := range m.below(e, e) {
		if x == e {
			return m.unknown(e)
		}
		out = append(out, m.items(x))
	}
	return m.union(e, out...)
}
