package governance

import (
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// value is something that a part of an expression can be. The zero value is anything.
type value struct {
	is      valueKind
	at      int64  // the part of the expression
	literal bool   // a text that is made of texts that stand there
	named   bool   // a text that is made of variables
	*names         // words of a text
	parts   []part // of a list or a map
	loose   bool   // a list has some of the parts, each as often as it likes
	shape   shape  // of params, or what is in them
	truth          // of a boolean
}

// values are what a part of an expression can be.
type values []value

// part is an item of a list, or an entry of a map.
type part struct{ key, item values }

// truth is whether something can be true, and whether it can be false.
type truth struct{ yes, no bool }

type valueKind uint8

const (
	isAny valueKind = iota
	isText
	isList
	isMap
	isBool
)

// maxMeanings bounds the words that are made of others.
const maxMeanings = 1000

// pair is two parts of an expression of which it matters whether both are true, or both
// are false.
type pair struct {
	e                 ast.Expr
	says              string
	is                bool
	left, right, both bool // are so for some values
}

// evaluation evaluates an expression for all values that its variables can have at once,
// both sides of each choice and each item of a list likewise. So each text that stands there
// meets, wherever it goes through lists, maps and local variables, each value that it is
// compared with. What is not known can be anything.
type evaluation struct {
	*nameChecker
	variables map[string]*names
	scope     map[string]values // local variables
	left      int               // parts that may still be looked at

	fit     map[int64]bool      // texts that something can be; nil: nobody asks
	issues  map[int64]nameIssue // texts that something cannot be
	pairs   map[int64]*pair
	negated map[int64]bool // || that only matter where they are false
	reach   *reach         // nil: of all kinds of effects
}

func (n *nameChecker) evaluation(variables map[string]*names) *evaluation {
	return &evaluation{
		nameChecker: n, variables: variables, scope: make(map[string]values), pairs: make(map[int64]*pair), negated: make(map[int64]bool),
	}
}

func boolean(t truth) values { return values{{is: isBool, truth: t}} }

func unknown(at ast.Expr) values { return values{{at: at.ID()}} }

// truth returns whether one of the values can be true, and whether one can be false.
func (all values) truth() (t truth) {
	for _, v := range all {
		t.yes = t.yes || v.yes || v.is != isBool
		t.no = t.no || v.no || v.is != isBool
	}
	return t
}

// items returns the items of lists and the keys of maps.
func (all values) items(at ast.Expr) (out values) {
	for _, v := range all {
		switch v.is { //nolint:exhaustive // the rest has none
		case isAny:
			out = append(out, value{at: at.ID(), shape: v.shape.item()})
		case isList, isMap:
			for _, p := range v.parts {
				if v.is == isMap {
					p.item = p.key
				}
				out = append(out, p.item...)
			}
		}
	}
	return out
}

// standing returns a text or bytes.
func standing(v ref.Val) (string, bool) {
	switch v := v.(type) {
	case types.String:
		return string(v), true
	case types.Bytes:
		return string(v), true
	}
	return "", false
}

// text returns a text that stands at a part of the expression.
func text(at ast.Expr, s string) values {
	return values{{is: isText, at: at.ID(), literal: true, names: newNames("", wordsOf(s))}}
}

// valuesOf returns the values of e, and notes the comparisons in it. Parts and values count: a choice doubles its values,
// and so would a sum of choices without end.
func (c *evaluation) valuesOf(e ast.Expr) values {
	if c.left--; c.left < 0 {
		return unknown(e)
	}
	if c.reach != nil {
		c.reach.notes = append(c.reach.notes, reachedPart{id: e.ID()})
	}
	all := c.ofKind(e)
	if c.left -= len(all); c.left < 0 {
		return unknown(e)
	}
	return all
}

func (c *evaluation) ofKind(e ast.Expr) values {
	switch e.Kind() { //nolint:exhaustive // of the rest nothing is known
	case ast.LiteralKind:
		if s, ok := standing(e.AsLiteral()); ok {
			return text(e, s)
		}
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return boolean(truth{bool(b), !bool(b)})
		}
	case ast.IdentKind, ast.SelectKind:
		return c.ofName(e)
	case ast.CallKind:
		return c.ofCall(e)
	case ast.ListKind:
		list := value{is: isList, at: e.ID()}
		for _, item := range e.AsList().Elements() {
			list.parts = append(list.parts, part{item: c.valuesOf(item)})
		}
		return values{list}
	case ast.MapKind:
		dict := value{is: isMap, at: e.ID()}
		for _, entry := range e.AsMap().Entries() {
			dict.parts = append(dict.parts, part{c.valuesOf(entry.AsMapEntry().Key()), c.valuesOf(entry.AsMapEntry().Value())})
		}
		return values{dict}
	case ast.ComprehensionKind:
		return c.ofComprehension(e)
	}
	return unknown(e)
}

// ofName returns the values of a variable, or of a field.
func (c *evaluation) ofName(e ast.Expr) values {
	if e.Kind() == ast.IdentKind {
		if local, ok := c.scope[e.AsIdent()]; ok {
			return local
		}
	}
	name := qualified(e)
	root, _, _ := strings.Cut(name, ".")
	if n, ok := c.variables[name]; ok && c.scope[root] == nil {
		return values{{is: isText, at: e.ID(), named: true, names: n}}
	}
	if c.reach != nil && c.scope[root] == nil {
		if known := c.reach.variable(e, name); known != nil {
			return known
		}
	}
	if e.Kind() == ast.IdentKind {
		return unknown(e)
	}
	of, field := c.valuesOf(e.AsSelect().Operand()), e.AsSelect().FieldName()
	item := c.index(e, of, text(e, field), -1)
	switch {
	case !e.AsSelect().IsTestOnly():
		return item
	case of.lack(field):
		return boolean(truth{no: true})
	}
	return unknown(e)
}

// ofComprehension returns the values of a comprehension, of which one round stands for all.
func (c *evaluation) ofComprehension(e ast.Expr) values {
	x := e.AsComprehension()
	over, first := c.valuesOf(x.IterRange()), c.valuesOf(x.AccuInit())
	outer := c.scope
	defer func() { c.scope = outer }()
	c.scope = maps.Clone(outer)
	c.scope[x.IterVar()], c.scope[x.AccuVar()] = over.items(x.IterRange()), first
	c.valuesOf(x.LoopCondition())
	all := slices.Concat(first, c.valuesOf(x.LoopStep()))
	for i := range all {
		all[i].loose = true
	}
	c.scope[x.AccuVar()] = all
	return c.valuesOf(x.Result())
}

// index returns the values at keys of maps, or in lists: at a place, or where that is -1 at any.
func (c *evaluation) index(e ast.Expr, of, keys values, place int) (out values) {
	for _, v := range of {
		switch v.is { //nolint:exhaustive // the rest has no keys
		case isAny:
			c.free(keys)
			out = append(out, value{at: e.ID(), shape: c.field(e, v.shape, keys)})
		case isMap:
			for _, p := range v.parts {
				if c.compare(equalTo, keys, p.key).yes {
					out = append(out, p.item...)
				}
			}
		case isList:
			for i, p := range v.parts {
				if v.loose || place < 0 || i == place {
					out = append(out, p.item...)
				}
			}
		}
	}
	return out
}

func (c *evaluation) ofCall(e ast.Expr) values {
	call := e.AsCall()
	exprs := call.Args()
	if call.IsMemberFunction() {
		exprs = append([]ast.Expr{call.Target()}, exprs...)
	}
	name := call.FunctionName()
	if decides, ok := deciding(name); ok && c.reach != nil {
		return c.decided(exprs, decides)
	}
	if name == operators.Conditional && c.reach != nil {
		return c.branch(exprs[0], exprs[1], exprs[2])
	}
	if name == operators.LogicalNot {
		c.negate(exprs[0])
	}
	args := make([]values, len(exprs))
	for i, arg := range exprs {
		args[i] = c.valuesOf(arg)
	}
	switch {
	case len(args) == 3 && name == operators.Conditional:
		return c.choice(e, args)
	case len(args) == 1:
		switch name {
		case "dyn", "string", "bytes":
			return args[0]
		case operators.LogicalNot:
			t := args[0].truth()
			return boolean(truth{t.no, t.yes})
		}
	case len(args) == 2:
		return c.binary(e, name, exprs, args)
	}
	return unknown(e)
}

func (c *evaluation) binary(e ast.Expr, name string, exprs []ast.Expr, args []values) values {
	switch a, b := args[0], args[1]; name {
	case operators.LogicalAnd:
		s, t := a.truth(), b.truth()
		c.both(e.ID(), pair{e: e, says: "&&", is: true, left: s.yes, right: t.yes})
		return boolean(truth{s.yes && t.yes, s.no || t.no})
	case operators.LogicalOr:
		s, t := a.truth(), b.truth()
		if c.negated[e.ID()] {
			c.both(e.ID(), pair{e: e, says: "||", is: false, left: s.no, right: t.no})
		}
		return boolean(truth{s.yes || t.yes, s.no && t.no})
	case operators.Equals:
		return boolean(c.compare(equalTo, a, b))
	case operators.NotEquals:
		t := c.compare(equalTo, a, b)
		return boolean(truth{t.no, t.yes})
	case operators.In:
		return boolean(c.in(e, a, b))
	case operators.Add:
		return c.joined(e, a, b)
	case operators.Index:
		place := -1
		if exprs[1].Kind() == ast.LiteralKind {
			if i, ok := exprs[1].AsLiteral().(types.Int); ok {
				place = int(i)
			}
		}
		return c.index(e, a, b, place)
	default:
		if c.relations[name] == nil {
			return unknown(e)
		}
		return boolean(c.compare(name, a, b))
	}
}

// in returns whether one of values is in one of lists or maps.
func (c *evaluation) in(e ast.Expr, a, of values) (t truth) {
	for _, v := range of {
		surely := false
		for _, p := range v.parts {
			if v.is == isMap {
				p.item = p.key
			}
			u := c.compare(equalTo, a, p.item)
			t.yes, surely = t.yes || u.yes, surely || u.yes && !u.no && !v.loose
		}
		if v.is == isAny {
			c.free(a)
			c.field(e, v.shape, a)
			name, known := a.onlyText()
			t.yes = t.yes || !known || !(values{v}).lack(name)
		}
		t.no = t.no || !surely
	}
	return t
}

// negate notes which parts have to be false for a negation of e to be true.
func (c *evaluation) negate(e ast.Expr) {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.LogicalOr {
		c.negated[e.ID()] = true
		for _, arg := range e.AsCall().Args() {
			c.negate(arg)
		}
	}
}

// choice returns the values of a condition's branches that can be.
func (c *evaluation) choice(e ast.Expr, args []values) (out values) {
	t := args[0].truth()
	for i, taken := range []bool{t.yes, t.no} {
		branch := args[1+i]
		c.both(e.ID()+int64(i)<<32, pair{e: e, says: "?", is: true, left: taken, right: branch.truth().yes})
		if taken {
			out = append(out, branch...)
		}
	}
	return out
}

// both notes whether the sides of a pair are both so.
func (c *evaluation) both(id int64, p pair) {
	known := c.pairs[id]
	if known == nil {
		known = &pair{e: p.e, says: p.says, is: p.is}
		c.pairs[id] = known
	}
	known.left, known.right = known.left || p.left, known.right || p.right
	known.both = known.both || p.left && p.right
}
