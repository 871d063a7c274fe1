package governance

import (
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// reach finds out which parts of an expression matter for intents of a kind: not the
// other side of an && that is false for them, say.
type reach struct {
	kind    *paramsKind
	tree    *ast.AST
	reached map[int64]bool
	issues  map[int64]*paramsIssue // fields that there cannot be
}

func newReach(k *paramsKind, tree *ast.AST) *reach {
	return &reach{kind: k, tree: tree, reached: make(map[int64]bool), issues: make(map[int64]*paramsIssue)}
}

// visit notes what matters of e.
func (r *reach) visit(e ast.Expr) {
	r.reached[e.ID()] = true
	switch e.Kind() { //nolint:exhaustive // the rest has no parts
	case ast.CallKind:
		r.visitCall(e.AsCall())
	case ast.SelectKind:
		r.visit(e.AsSelect().Operand())
	case ast.ListKind:
		r.all(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.all(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		r.all(c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	}
	if at, name, ok := r.asked(e); ok {
		if _, possible := at.property(name); !possible {
			place := r.tree.SourceInfo().GetStartLocation(e.ID())
			r.issues[e.ID()] = &paramsIssue{at: place, msg: at.lacks(r.kind.kind, name)}
		}
	}
}

func (r *reach) all(parts ...ast.Expr) {
	for _, e := range parts {
		r.visit(e)
	}
}

func (r *reach) visitCall(c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		decides := c.FunctionName() == operators.LogicalOr
		for _, arg := range args {
			if v, ok := r.value(arg); ok && v == decides {
				r.visit(arg)
				return
			}
		}
	case operators.Conditional:
		if v, ok := r.value(args[0]); ok && v == true {
			args = args[:2]
		} else if ok && v == false {
			args = []ast.Expr{args[0], args[2]}
		}
	}
	if c.IsMemberFunction() {
		r.visit(c.Target())
	}
	r.all(args...)
}

// asked returns the object in params that e asks for a field, and the field.
func (r *reach) asked(e ast.Expr) (at shape, name string, ok bool) {
	var of ast.Expr
	switch e.Kind() {
	case ast.SelectKind:
		of, name = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		c := e.AsCall()
		if len(c.Args()) != 2 || c.IsMemberFunction() {
			return shape{}, "", false
		}
		of, e = c.Args()[0], c.Args()[1]
		switch c.FunctionName() {
		case operators.Index:
		case operators.In:
			of, e = e, of
		default:
			return shape{}, "", false
		}
		v, known := r.value(e)
		if name, ok = v.(string); !known || !ok {
			return shape{}, "", false
		}
	default:
		return shape{}, "", false
	}
	at = r.place(of)
	return at, name, at.node != nil
}

// place returns what e stands for in the params of the kind; the zero value: something
// else, or anything.
func (r *reach) place(e ast.Expr) shape {
	if r.kind.schema == nil {
		return shape{}
	}
	if qualified(e) == paramsName {
		return r.kind.schema.root()
	}
	if at, name, ok := r.asked(e); ok {
		field, _ := at.property(name)
		return field
	}
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index {
		return r.place(e.AsCall().Args()[0]).item()
	}
	return shape{}
}

// qualified returns the name that e is, with what it is a field of; "": it is none.
func qualified(e ast.Expr) string {
	switch e.Kind() { //nolint:exhaustive // the rest is no name
	case ast.IdentKind:
		return strings.TrimPrefix(e.AsIdent(), ".") // which says that it is no local variable
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			if of := qualified(s.Operand()); of != "" {
				return of + "." + s.FieldName()
			}
		}
	}
	return ""
}

// value returns what e is for all intents of the kind, a string or a bool, where that
// is known.
func (r *reach) value(e ast.Expr) (v any, known bool) {
	switch e.Kind() { //nolint:exhaustive // of the rest nothing is known
	case ast.LiteralKind:
		switch x := e.AsLiteral().(type) {
		case types.String:
			return string(x), true
		case types.Bool:
			return bool(x), true
		}
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return r.absent(e)
		}
		v, known = r.kind.known[qualified(e)]
		return v, known
	case ast.CallKind:
		return r.valueOfCall(e)
	}
	return nil, false
}

// absent returns false where e asks whether there is a field that there cannot be.
func (r *reach) absent(e ast.Expr) (v any, known bool) {
	if at, name, ok := r.asked(e); ok {
		if _, possible := at.property(name); !possible {
			return false, true
		}
	}
	return nil, false
}

func (r *reach) valueOfCall(e ast.Expr) (v any, known bool) {
	c := e.AsCall()
	var args []any
	all := true
	parts := c.Args()
	if c.IsMemberFunction() {
		parts = append([]ast.Expr{c.Target()}, parts...)
	}
	for _, part := range parts {
		v, known := r.value(part)
		args, all = append(args, v), all && known
	}
	switch name := c.FunctionName(); name {
	case operators.LogicalAnd, operators.LogicalOr:
		decides := name == operators.LogicalOr
		if args[0] == decides || args[1] == decides {
			return decides, true
		}
		return !decides, all
	case operators.In:
		if v, known = r.absent(e); known || args[0] == nil || parts[1].Kind() != ast.ListKind {
			return v, known
		}
		return r.among(args[0], parts[1].AsList().Elements())
	}
	if !all {
		return nil, false
	}
	return valueOfKnown(c.FunctionName(), args)
}

// among reports whether a value is one of a list's, where all of these are known.
func (r *reach) among(v any, list []ast.Expr) (is any, known bool) {
	found := false
	for _, e := range list {
		x, ok := r.value(e)
		if !ok {
			return nil, false
		}
		found = found || x == v
	}
	return found, true
}

func valueOfKnown(function string, args []any) (v any, known bool) {
	switch function {
	case operators.LogicalNot:
		b, ok := args[0].(bool)
		return !b, ok
	case operators.Equals:
		return args[0] == args[1], true
	case operators.NotEquals:
		return args[0] != args[1], true
	}
	compare := map[string]func(s, with string) bool{
		"startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix, "contains": strings.Contains,
	}[function]
	if compare == nil || len(args) != 2 {
		return nil, false
	}
	s, ok := args[0].(string)
	with, ok2 := args[1].(string)
	if !ok || !ok2 {
		return nil, false
	}
	return compare(s, with), true
}
