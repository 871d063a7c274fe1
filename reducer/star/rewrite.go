package star

import (
	"fmt"
	"math/big"
	"strconv"

	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/reducer"
)

// maxTreeDepth bounds how deep statements and expressions nest, because every
// pass over the tree recurses.
const maxTreeDepth = 1000

// A call of a function takes memory for everything that the function could
// hold at once. Where that can be much, the call is charged.
const (
	maxParams     = 255
	freeFrameSize = 256 // nodes of the tree; a node holds at most one value
)

// rewriter replaces, in a syntax tree, every operation whose cost the library's
// step count does not bound by a call of a hidden, checked built-in function
// (see package comment). Hidden names are no identifiers, so no program can
// name or shadow them. Positions stay those of the operators.
type rewriter struct {
	file  string
	loads []*syntax.LoadStmt
	depth int
	nodes int // seen so far
	temps int
	err   *reducer.SyntaxError // the first
}

// rewrite changes tree in place, and returns what it loads.
func rewrite(file string, tree *syntax.File) ([]*syntax.LoadStmt, error) {
	w := rewriter{file: file}
	tree.Stmts = w.stmts(tree.Stmts)
	if w.err != nil {
		return nil, w.err
	}
	return w.loads, nil
}

func (w *rewriter) fail(pos syntax.Position, msg string) {
	if w.err == nil {
		w.err = errorAt(w.file, pos, msg)
	}
}

// enter reports whether the tree may nest one level deeper.
func (w *rewriter) enter(n syntax.Node) bool {
	if w.depth >= maxTreeDepth && w.err == nil {
		// The node's own position would recurse as deep as the tree.
		pos := syntax.MakePosition(&w.file, 1, 1)
		if op, ok := n.(*syntax.BinaryExpr); ok {
			pos = op.OpPos
		}
		w.fail(pos, fmt.Sprintf("the program nests deeper than %d", maxTreeDepth))
	}
	w.depth++
	w.nodes++
	return w.err == nil
}

func (w *rewriter) leave() { w.depth-- }

func (w *rewriter) stmts(in []syntax.Stmt) []syntax.Stmt {
	if in == nil { // an else branch that is not there
		return nil
	}
	out := make([]syntax.Stmt, 0, len(in))
	for _, s := range in {
		if w.enter(s) {
			out = w.stmt(out, s)
		}
		w.leave()
	}
	return out
}

// stmt appends what replaces s.
func (w *rewriter) stmt(out []syntax.Stmt, s syntax.Stmt) []syntax.Stmt {
	switch s := s.(type) {
	case *syntax.LoadStmt:
		w.load(s)
	case *syntax.AssignStmt:
		return w.assign(out, s)
	case *syntax.DefStmt:
		if w.def(s); w.depth > 1 {
			made := &syntax.Ident{NamePos: s.Def, Name: "None"}
			return append(out, s, &syntax.ExprStmt{X: call(s.Def, opClosure, made)})
		}
	case *syntax.ExprStmt:
		s.X = w.expr(s.X)
	case *syntax.ForStmt:
		w.target(s.Vars)
		s.X = w.expr(s.X)
		s.Body = w.stmts(s.Body)
	case *syntax.WhileStmt:
		s.Cond = w.expr(s.Cond)
		s.Body = w.stmts(s.Body)
	case *syntax.IfStmt:
		s.Cond = w.expr(s.Cond)
		s.True = w.stmts(s.True)
		s.False = w.stmts(s.False)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = w.expr(s.Result)
		}
	}
	return append(out, s)
}

func (w *rewriter) load(s *syntax.LoadStmt) {
	for _, id := range s.To {
		w.bind(id)
	}
	w.loads = append(w.loads, s)
}

func (w *rewriter) def(s *syntax.DefStmt) {
	start := w.nodes
	w.bind(s.Name)
	body := w.params(s.Params)
	s.Body = append(body, w.stmts(s.Body)...)
	if size := w.nodes - start; size > freeFrameSize {
		n := &syntax.Literal{Token: syntax.INT, TokenPos: s.Def, Value: int64(size)}
		s.Body = append([]syntax.Stmt{&syntax.ExprStmt{X: call(s.Def, opFrame, n)}}, s.Body...)
	}
}

// params rewrites default values and returns the check of a *args parameter,
// which is a tuple that no tuple expression built.
func (w *rewriter) params(params []syntax.Expr) []syntax.Stmt {
	var checks []syntax.Stmt
	if len(params) > maxParams {
		w.fail(syntax.Start(params[maxParams]), fmt.Sprintf("a function has at most %d parameters", maxParams))
	}
	for _, p := range params {
		switch p := p.(type) {
		case *syntax.Ident:
			w.bind(p)
		case *syntax.BinaryExpr:
			w.bind(p.X.(*syntax.Ident))
			p.Y = w.expr(p.Y)
		case *syntax.UnaryExpr:
			id, ok := p.X.(*syntax.Ident)
			if !ok {
				continue
			}
			w.bind(id)
			if p.Op == syntax.STAR {
				read := &syntax.Ident{NamePos: id.NamePos, Name: id.Name}
				checks = append(checks, &syntax.ExprStmt{X: call(id.NamePos, opTuple, read)})
			}
		}
	}
	return checks
}

// bind refuses the names that rewriting takes for constants.
func (w *rewriter) bind(id *syntax.Ident) {
	if constant(id) {
		w.fail(id.NamePos, id.Name+" is a constant")
	}
}

// target rewrites what is assigned to.
func (w *rewriter) target(e syntax.Expr) {
	if !w.enter(e) {
		w.leave()
		return
	}
	defer w.leave()
	switch e := e.(type) {
	case *syntax.Ident:
		w.bind(e)
	case *syntax.IndexExpr:
		w.place(e)
	case *syntax.DotExpr:
		e.X = w.expr(e.X)
	case *syntax.ParenExpr:
		w.target(e.X)
	case *syntax.TupleExpr:
		for _, x := range e.List {
			w.target(x)
		}
	case *syntax.ListExpr:
		for _, x := range e.List {
			w.target(x)
		}
	}
}

// place rewrites x[y] that is assigned to: the insertion is charged for.
func (w *rewriter) place(e *syntax.IndexExpr) {
	e.X = w.expr(e.X)
	var again syntax.Expr
	switch y := unparen(e.Y).(type) {
	case *syntax.Ident:
		again = &syntax.Ident{NamePos: y.NamePos, Name: y.Name}
	case *syntax.Literal:
		again = y
	}
	if again != nil {
		e.X = call(e.Lbrack, opTarget, e.X, again)
		return
	}
	e.X = call(e.Lbrack, opHold, e.X)
	e.Y = call(e.Lbrack, opRelease, w.expr(e.Y))
}

func (w *rewriter) assign(out []syntax.Stmt, s *syntax.AssignStmt) []syntax.Stmt {
	if s.Op != syntax.EQ {
		return w.augment(out, s)
	}
	w.target(s.LHS)
	if pair, ok := unparen(s.RHS).(*syntax.TupleExpr); ok && unpacks(s.LHS) {
		for i, x := range pair.List { // this tuple is taken apart at once
			pair.List[i] = w.expr(x)
		}
		return append(out, s)
	}
	s.RHS = w.expr(s.RHS)
	return append(out, s)
}

func unpacks(lhs syntax.Expr) bool {
	switch unparen(lhs).(type) {
	case *syntax.TupleExpr, *syntax.ListExpr:
		return true
	}
	return false
}

// augment turns x op= y into x = x op y with the checked operator. Where x is
// a[i], a and i are evaluated once, first, into hidden variables.
func (w *rewriter) augment(out []syntax.Stmt, s *syntax.AssignStmt) []syntax.Stmt {
	op := s.Op - syntax.PLUS_EQ + syntax.PLUS
	lhs := unparen(s.LHS)
	if _, ok := lhs.(*syntax.DotExpr); ok || free(op, lhs, s.RHS) && cheap(op, lhs, s.RHS) {
		w.target(s.LHS)
		s.RHS = w.expr(s.RHS)
		return append(out, s)
	}
	var read, write syntax.Expr
	switch lhs := lhs.(type) {
	case *syntax.Ident:
		w.bind(lhs)
		read, write = &syntax.Ident{NamePos: lhs.NamePos, Name: lhs.Name}, lhs
	case *syntax.IndexExpr:
		var x, y func() syntax.Expr
		out, x = w.temp(out, lhs.Lbrack, w.expr(lhs.X))
		out, y = w.temp(out, lhs.Lbrack, w.key(lhs.Y))
		read = &syntax.IndexExpr{X: x(), Lbrack: lhs.Lbrack, Y: y(), Rbrack: lhs.Rbrack}
		write = &syntax.IndexExpr{X: call(lhs.Lbrack, opTarget, x(), y()), Lbrack: lhs.Lbrack, Y: y(), Rbrack: lhs.Rbrack}
	default: // no assignment; the resolver says so
		return append(out, s)
	}
	name := op.String()
	if op == syntax.PLUS || op == syntax.PIPE { // lists and dicts change in place
		name = s.Op.String()
	}
	value := call(s.OpPos, name, read, w.expr(s.RHS))
	return append(out, &syntax.AssignStmt{OpPos: s.OpPos, Op: syntax.EQ, LHS: write, RHS: value})
}

// temp appends the assignment of e to a new hidden variable, and returns how
// to refer to it.
func (w *rewriter) temp(out []syntax.Stmt, pos syntax.Position, e syntax.Expr) ([]syntax.Stmt, func() syntax.Expr) {
	w.temps++
	name := "." + strconv.Itoa(w.temps)
	id := func() syntax.Expr { return &syntax.Ident{NamePos: pos, Name: name} }
	return append(out, &syntax.AssignStmt{OpPos: pos, Op: syntax.EQ, LHS: id(), RHS: e}), id
}

// literal refuses an integer that no computation could have made.
func (w *rewriter) literal(e *syntax.Literal) {
	if n, ok := e.Value.(*big.Int); ok && n.BitLen() > MaxIntBits {
		w.fail(e.TokenPos, fmt.Sprintf("an integer of %d bits; reducers compute with at most %d", n.BitLen(), MaxIntBits))
	}
}
