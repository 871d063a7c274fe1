package star

import (
	"go.starlark.net/syntax"
)

// ReadsParam implements reducer.Reader.
func (Engine) ReadsParam(file string, source []byte, name string) bool {
	tree, err := (&syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}).Parse(file, source, 0)
	if err != nil {
		return true
	}
	r := paramReads{name: name, aliases: aliasesOf(tree), known: make(map[syntax.Expr]bool)}
	syntax.Walk(tree, func(n syntax.Node) bool {
		if n != nil {
			r.visit(n)
		}
		return !r.found
	})
	return r.found
}

// paramReads looks for what a file takes from ctx.params.
type paramReads struct {
	name    string
	aliases map[string]bool      // names that are given to it
	known   map[syntax.Expr]bool // what is taken from these is known
	found   bool
}

// aliasesOf returns the names that a file gives to the params of something.
func aliasesOf(tree *syntax.File) map[string]bool {
	out := make(map[string]bool)
	syntax.Walk(tree, func(n syntax.Node) bool {
		if a, ok := n.(*syntax.AssignStmt); ok && a.Op == syntax.EQ && isParams(a.RHS) {
			if id, ok := a.LHS.(*syntax.Ident); ok {
				out[id.Name] = true
			}
		}
		return true
	})
	return out
}

// visit looks at a node; its parents were looked at before.
func (r *paramReads) visit(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.AssignStmt:
		if id, ok := n.LHS.(*syntax.Ident); ok && r.aliases[id.Name] {
			r.known[id] = true
			r.known[n.RHS] = isParams(n.RHS)
		}
	case *syntax.IndexExpr:
		r.take(n.X, n.Y)
	case *syntax.CallExpr:
		if method, ok := n.Fn.(*syntax.DotExpr); ok && method.Name.Name == "get" && len(n.Args) > 0 {
			r.take(method.X, n.Args[0])
		}
	case *syntax.BinaryExpr:
		if n.Op == syntax.IN || n.Op == syntax.NOT_IN {
			r.take(n.Y, n.X)
		}
	case *syntax.DotExpr:
		r.found = r.found || isParams(n) && !r.known[n]
	case *syntax.Ident:
		r.found = r.found || r.aliases[n.Name] && !r.known[n]
	}
}

// take notes what is taken of params by its name.
func (r *paramReads) take(of, name syntax.Expr) {
	id, alias := of.(*syntax.Ident)
	if !isParams(of) && (!alias || !r.aliases[id.Name]) {
		return
	}
	taken, literal := name.(*syntax.Literal)
	r.known[of] = literal
	r.found = r.found || literal && taken.Value == r.name
}

// isParams reports whether an expression is the params of something.
func isParams(e syntax.Expr) bool {
	d, ok := e.(*syntax.DotExpr)
	return ok && d.Name.Name == "params"
}
