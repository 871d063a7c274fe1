package governance

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/traits"
)

// Widens compares two expressions of policies: 1 if is holds wherever was
// did, -1 if is holds only where was did, 0 if that is unknown. It knows numbers that something is compared with, lists of
// literals, and conditions that were added.
func Widens(was, is string) int {
	env, err := cel.NewEnv(cel.EnableMacroCallTracking(), cel.ParserExpressionSizeLimit(MaxPolicyLen))
	if err != nil {
		return 0
	}
	a, failed := env.Parse(was)
	b, wrong := env.Parse(is)
	if failed.Err() != nil || wrong.Err() != nil {
		return 0
	}
	return (&widening{a.NativeRep(), b.NativeRep()}).compareParts(a.NativeRep().Expr(), b.NativeRep().Expr())
}

// widening compares parts of two expressions.
type widening struct{ was, is *ast.AST }

// compareParts is Widens of parts that differ.
func (w *widening) compareParts(a, b ast.Expr) int {
	if n := w.terms(operators.LogicalAnd, a, b); n != 0 {
		return n
	}
	if n := w.terms(operators.LogicalOr, a, b); n != 0 {
		return n
	}
	if a.Kind() != ast.CallKind || b.Kind() != ast.CallKind || a.AsCall().FunctionName() != b.AsCall().FunctionName() {
		return 0
	}
	x, y := a.AsCall().Args(), b.AsCall().Args()
	switch op := a.AsCall().FunctionName(); op {
	case operators.LogicalNot:
		return -w.compareParts(x[0], y[0])
	case operators.Less, operators.LessEquals:
		return w.compared(x, y)
	case operators.Greater, operators.GreaterEquals:
		return -w.compared(x, y)
	case operators.In:
		if w.same(x[0], y[0]) {
			return listed(x[1], y[1])
		}
	}
	return 0
}

// terms compares what is joined by and, or by or. One term may have changed, or some may be new:
// what went may have failed, which denies.
func (w *widening) terms(op string, a, b ast.Expr) int {
	left, right := termsOf(op, a), termsOf(op, b)
	for _, term := range slices.Clone(left) {
		if k := slices.IndexFunc(right, func(e ast.Expr) bool { return w.same(term, e) }); k >= 0 {
			right = slices.Delete(right, k, k+1)
			left = slices.DeleteFunc(left, func(e ast.Expr) bool { return e == term })
		}
	}
	switch {
	case len(left) == 1 && len(right) == 1 && left[0] != a: // else it would be asked for ever
		return w.compareParts(left[0], right[0])
	case len(left) > 0 || len(right) == 0:
		return 0
	case op == operators.LogicalAnd:
		return -1
	}
	return 1
}

// termsOf returns what an operator joins, in order.
func termsOf(op string, e ast.Expr) []ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != op {
		return []ast.Expr{e}
	}
	var out []ast.Expr
	for _, arg := range e.AsCall().Args() {
		out = append(out, termsOf(op, arg)...)
	}
	return out
}

// compared says whether more is less than a bound than was: x < n where n has grown, n < x where
// it has shrunk.
func (w *widening) compared(x, y []ast.Expr) int {
	if w.same(x[0], y[0]) {
		return grown(x[1], y[1])
	}
	if w.same(x[1], y[1]) {
		return -grown(x[0], y[0])
	}
	return 0
}

// grown compares two numbers.
func grown(a, b ast.Expr) int {
	if a.Kind() != ast.LiteralKind || b.Kind() != ast.LiteralKind {
		return 0
	}
	was, ok := a.AsLiteral().(traits.Comparer)
	if !ok {
		return 0
	}
	n, ok := was.Compare(b.AsLiteral()).(types.Int)
	if !ok {
		return 0 // one is no number
	}
	return -int(n)
}

// listed compares two lists of literals.
func listed(a, b ast.Expr) int {
	if a.Kind() != ast.ListKind || b.Kind() != ast.ListKind {
		return 0
	}
	has := func(list ast.Expr, item ast.Expr) bool {
		return item.Kind() == ast.LiteralKind && slices.ContainsFunc(list.AsList().Elements(), func(e ast.Expr) bool {
			return e.Kind() == ast.LiteralKind && e.AsLiteral().Equal(item.AsLiteral()) == types.True
		})
	}
	all := func(list, in ast.Expr) bool {
		return !slices.ContainsFunc(list.AsList().Elements(), func(e ast.Expr) bool { return !has(in, e) })
	}
	switch more, less := all(a, b), all(b, a); {
	case more && !less:
		return 1
	case less && !more:
		return -1
	}
	return 0
}

// same reports whether two parts read the same.
func (w *widening) same(a, b ast.Expr) bool {
	was, err := cel.ExprToString(a, w.was.SourceInfo())
	if err != nil {
		return false
	}
	is, err := cel.ExprToString(b, w.is.SourceInfo())
	return err == nil && was == is
}
