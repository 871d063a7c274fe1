package star

import "go.starlark.net/syntax"

// Hidden names of checks that are no operators. Operators go by their token
// and methods by their name after a dot.
const (
	opTuple  = "()"   // (tuple) -> tuple, within limits
	opKey    = "[]"   // (key) -> key, paid for
	opSlice  = "[:]"  // (fresh value) -> value, paid for
	opSpread = "f(*)" // (iterable) -> what may follow *
	opNamed  = "f(**)"
	opAttr   = "."   // (value, name) -> attribute, checked
	opEmpty  = "{}"  // (fresh empty dict) -> dict, paid for
	opFrame  = "f()" // (nodes) pays for the frame of a call

	opTarget        = "[]="     // (x, key) -> x, into which key may come
	opHold          = "[]=..."  // (x) -> x, whose key comes next
	opRelease       = "[...]="  // (key) -> key, that may come into what is held
	opDisplay       = "{...}"   // (list of keys and values) -> dict
	opComprehension = "{for}"   // (list of pairs) -> dict
	opKeep          = "[...]"   // (fresh list or dict) -> it, paid for
	opClosure       = "lambda:" // (fresh function) -> it, paid for
)

func call(pos syntax.Position, name string, args ...syntax.Expr) *syntax.CallExpr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: pos, Name: name}, Lparen: pos, Args: args, Rparen: pos}
}

// expr returns what replaces e.
func (w *rewriter) expr(e syntax.Expr) syntax.Expr {
	defer w.leave()
	if !w.enter(e) {
		return e
	}
	switch e := e.(type) {
	case *syntax.Literal:
		w.literal(e)
	case *syntax.ParenExpr:
		e.X = w.expr(e.X)
	case *syntax.BinaryExpr:
		return w.binary(e)
	case *syntax.UnaryExpr:
		if e.X != nil {
			e.X = w.expr(e.X)
		}
	case *syntax.CallExpr:
		w.call(e)
	case *syntax.DotExpr:
		e.X = w.expr(e.X)
		if checkedMethod(e.Name.Name) {
			name := &syntax.Literal{Token: syntax.STRING, TokenPos: e.NamePos, Value: e.Name.Name}
			return call(e.Dot, opAttr, e.X, name)
		}
	case *syntax.IndexExpr:
		e.X = w.expr(e.X)
		e.Y = w.key(e.Y)
	case *syntax.SliceExpr:
		e.X = w.expr(e.X)
		e.Lo, e.Hi, e.Step = w.optional(e.Lo), w.optional(e.Hi), w.optional(e.Step)
		return call(e.Lbrack, opSlice, e)
	case *syntax.CondExpr:
		e.Cond, e.True, e.False = w.expr(e.Cond), w.expr(e.True), w.expr(e.False)
	case *syntax.LambdaExpr:
		w.lambda(e)
		return call(e.Lambda, opClosure, e)
	default:
		return w.display(e)
	}
	return e
}

func (w *rewriter) optional(e syntax.Expr) syntax.Expr {
	if e == nil {
		return nil
	}
	return w.expr(e)
}

// display rewrites list, tuple and dict expressions and comprehensions.
func (w *rewriter) display(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.ListExpr:
		w.list(e.List)
		return call(e.Lbrack, opKeep, e)
	case *syntax.TupleExpr:
		flat := true
		for _, x := range e.List {
			flat = flat && notTuple(x)
		}
		w.list(e.List)
		if !flat {
			return call(syntax.Start(e), opTuple, e)
		}
	case *syntax.DictExpr:
		if len(e.List) == 0 {
			return call(e.Lbrace, opEmpty, e)
		}
		for _, x := range e.List {
			entry := x.(*syntax.DictEntry)
			entry.Key, entry.Value = w.key(entry.Key), w.expr(entry.Value)
		}
		return w.dict(e)
	case *syntax.Comprehension:
		w.comprehension(e)
		return w.collected(e)
	}
	return e
}

// chainFree is how many entries a dict has in which no key costs more than another.
const chainFree = 8

// dict returns what replaces a dict display.
func (w *rewriter) dict(e *syntax.DictExpr) syntax.Expr {
	if len(e.List) <= chainFree {
		return call(e.Lbrace, opKeep, e)
	}
	flat := &syntax.ListExpr{Lbrack: e.Lbrace, Rbrack: e.Rbrace}
	for _, x := range e.List {
		entry := x.(*syntax.DictEntry)
		flat.List = append(flat.List, entry.Key, entry.Value)
	}
	return call(e.Lbrace, opDisplay, flat)
}

// collected returns what replaces a comprehension.
func (w *rewriter) collected(e *syntax.Comprehension) syntax.Expr {
	if pair, ok := e.Body.(*syntax.DictEntry); ok {
		e.Curly, e.Body = false, &syntax.TupleExpr{List: []syntax.Expr{pair.Key, pair.Value}}
		return call(e.Lbrack, opComprehension, e)
	}
	return call(e.Lbrack, opKeep, e)
}

func (w *rewriter) list(list []syntax.Expr) {
	for i, x := range list {
		list[i] = w.expr(x)
	}
}

func (w *rewriter) comprehension(e *syntax.Comprehension) {
	for _, c := range e.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			w.target(c.Vars)
			c.X = w.expr(c.X)
		case *syntax.IfClause:
			c.Cond = w.expr(c.Cond)
		}
	}
	switch body := e.Body.(type) {
	case *syntax.DictEntry:
		body.Key, body.Value = w.key(body.Key), w.expr(body.Value)
	default:
		if e.Curly {
			e.Body = w.key(body)
		} else {
			e.Body = w.expr(body)
		}
	}
}

// key rewrites an index or a key, whose hash costs as much as it is long.
func (w *rewriter) key(e syntax.Expr) syntax.Expr {
	if kind(e) != notLiteral {
		return w.expr(e)
	}
	pos := syntax.Start(e)
	return call(pos, opKey, w.expr(e))
}

func (w *rewriter) call(e *syntax.CallExpr) {
	if dot, ok := unparen(e.Fn).(*syntax.DotExpr); ok && checkedMethod(dot.Name.Name) {
		e.Args = append([]syntax.Expr{dot.X}, e.Args...)
		e.Fn = &syntax.Ident{NamePos: dot.NamePos, Name: "." + dot.Name.Name}
	} else {
		e.Fn = w.expr(e.Fn)
	}
	for i, arg := range e.Args {
		switch arg := arg.(type) {
		case *syntax.BinaryExpr:
			if arg.Op == syntax.EQ {
				arg.Y = w.expr(arg.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if arg.Op == syntax.STAR {
				arg.X = call(arg.OpPos, opSpread, w.expr(arg.X))
				continue
			}
			if arg.Op == syntax.STARSTAR {
				arg.X = call(arg.OpPos, opNamed, w.expr(arg.X))
				continue
			}
		}
		e.Args[i] = w.expr(arg)
	}
}

func (w *rewriter) lambda(e *syntax.LambdaExpr) {
	start := w.nodes
	checks := w.params(e.Params)
	e.Body = w.expr(e.Body)
	if w.nodes-start > freeFrameSize {
		w.fail(e.Lambda, "a lambda this large; use def")
	}
	for _, c := range checks { // an expression cannot hold a statement: body if check else check
		check := c.(*syntax.ExprStmt).X
		pos := syntax.Start(check)
		e.Body = &syntax.CondExpr{
			If: pos, ElsePos: pos, True: e.Body, False: &syntax.Ident{NamePos: pos, Name: "None"},
			Cond: &syntax.BinaryExpr{
				X: check, OpPos: pos, Op: syntax.NEQ, Y: &syntax.Ident{NamePos: pos, Name: "None"},
			},
		}
	}
}

func (w *rewriter) binary(e *syntax.BinaryExpr) syntax.Expr {
	unchecked := free(e.Op, e.X, e.Y) && cheap(e.Op, e.X, e.Y)
	e.X, e.Y = w.expr(e.X), w.expr(e.Y)
	switch {
	case unchecked:
		return e
	case e.Op == syntax.NOT_IN:
		return &syntax.UnaryExpr{OpPos: e.OpPos, Op: syntax.NOT, X: call(e.OpPos, syntax.IN.String(), e.X, e.Y)}
	}
	return call(e.OpPos, e.Op.String(), e.X, e.Y)
}

// literals, as far as they tell what an operator can do.
const (
	notLiteral = iota
	intLiteral
	floatLiteral
	textLiteral // string or bytes
	constLiteral
)

func kind(e syntax.Expr) int {
	switch e := unparen(e).(type) {
	case *syntax.Literal:
		switch e.Value.(type) {
		case int64:
			return intLiteral
		case float64:
			return floatLiteral
		case string:
			return textLiteral
		}
	case *syntax.UnaryExpr: // a signed number
		if n, ok := e.X.(*syntax.Literal); ok && (e.Op == syntax.MINUS || e.Op == syntax.PLUS) {
			if k := kind(n); k == intLiteral || k == floatLiteral {
				return k
			}
		}
	case *syntax.Ident:
		if constant(e) {
			return constLiteral
		}
	}
	return notLiteral
}

// maxCheapText is the length of a literal that is compared or looked through at no
// cost worth a charge.
const maxCheapText = 64

// cheap reports whether an operator that is free costs little enough
// whatever its other operand is.
func cheap(op syntax.Token, x, y syntax.Expr) bool {
	switch op {
	case syntax.AND, syntax.OR:
		return true
	case syntax.SLASH, syntax.SLASHSLASH, syntax.GTGT:
		return kind(y) == intLiteral || kind(x) == intLiteral && op != syntax.SLASH
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		return kind(x) != floatLiteral && kind(y) != floatLiteral && short(x) && short(y)
	case syntax.IN, syntax.NOT_IN:
		return kind(y) == textLiteral && short(y)
	default:
		return short(x) && short(y)
	}
}

// short reports whether e is no long text.
func short(e syntax.Expr) bool {
	text, ok := unparen(e).(*syntax.Literal)
	return !ok || len(text.Raw) <= maxCheapText
}

func constant(id *syntax.Ident) bool {
	return id.Name == "None" || id.Name == "True" || id.Name == "False"
}

// free reports whether an operator needs no check, because a literal operand
// leaves it nothing expensive to do. Integers are small (MaxIntBits).
func free(op syntax.Token, x, y syntax.Expr) bool {
	kx, ky := kind(x), kind(y)
	number := func(k int) bool { return k == intLiteral || k == floatLiteral }
	switch op {
	case syntax.AND, syntax.OR, syntax.SLASH, syntax.SLASHSLASH, syntax.GTGT:
		return true
	case syntax.PLUS, syntax.MINUS, syntax.AMP, syntax.PIPE, syntax.CIRCUMFLEX:
		return number(kx) || number(ky) || kx != notLiteral && ky != notLiteral
	case syntax.STAR:
		return kx == floatLiteral || ky == floatLiteral
	case syntax.PERCENT:
		return number(kx)
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		return kx != notLiteral || ky != notLiteral
	case syntax.IN, syntax.NOT_IN:
		return ky == textLiteral || literals(y)
	default:
		return false
	}
}

// literals reports whether e is a list or tuple of literals.
func literals(e syntax.Expr) bool {
	var list []syntax.Expr
	switch e := unparen(e).(type) {
	case *syntax.ListExpr:
		list = e.List
	case *syntax.TupleExpr:
		list = e.List
	default:
		return false
	}
	for _, x := range list {
		if kind(x) == notLiteral {
			return false
		}
	}
	return true
}

// notTuple reports whether e is known to be small and no tuple.
func notTuple(e syntax.Expr) bool {
	switch unparen(e).(type) {
	case *syntax.ListExpr, *syntax.DictExpr, *syntax.LambdaExpr, *syntax.Comprehension:
		return true
	}
	return kind(e) != notLiteral
}

func unparen(e syntax.Expr) syntax.Expr {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}
