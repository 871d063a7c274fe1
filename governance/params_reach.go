package governance

import (
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// reach finds out which parts of an expression matter for intents of a kind: not the
// other side of an && that is false for them, say.
type reach struct {
	*evaluation
	kind    *paramsKind
	tree    *ast.AST
	reached map[int64]bool
	faults  map[int64]*paramsIssue // fields that there cannot be
}

func newReach(n *nameChecker, k *paramsKind, tree *ast.AST) *reach {
	r := &reach{evaluation: n.evaluation(k.known), kind: k, tree: tree, reached: make(map[int64]bool), faults: make(map[int64]*paramsIssue)}
	r.flags, r.absent = k.flags, r.lacks
	return r
}

// visit notes what matters of e.
func (r *reach) visit(e ast.Expr) {
	r.reached[e.ID()], r.left = true, costsMost
	switch e.Kind() { //nolint:exhaustive // the rest has no parts
	case ast.CallKind:
		r.visitCall(e.AsCall())
	case ast.SelectKind:
		r.visit(e.AsSelect().Operand())
	case ast.ListKind:
		r.reachAll(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.reachAll(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		r.reachAll(c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	}
	if at, name, ok := r.asked(e); ok {
		if _, possible := at.property(name); !possible {
			place := r.tree.SourceInfo().GetStartLocation(e.ID())
			r.faults[e.ID()] = &paramsIssue{at: place, msg: at.lacks(r.kind.kind, name)}
		}
	}
}

func (r *reach) reachAll(parts ...ast.Expr) {
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
	r.reachAll(args...)
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
	all := r.valuesOf(e)
	if len(all) != 1 || r.left < 0 {
		return nil, false
	}
	switch is := all[0]; {
	case is.is == isBool:
		return is.yes, is.yes != is.no
	case is.is == isText && len(is.words) == 1 && !is.open:
		return is.words[0].text, true
	}
	return nil, false
}

// lacks reports that e asks whether there is a field that there cannot be.
func (r *reach) lacks(e ast.Expr) bool {
	at, name, ok := r.asked(e)
	if !ok {
		return false
	}
	_, possible := at.property(name)
	return !possible
}
