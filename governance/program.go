package governance

import (
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// node is a part of an expression. Its value may be an error, which is a value that
// operators pass on.
type node interface {
	eval(f *frame) ref.Val
}

// frame is one evaluation.
type frame struct {
	meter
	vars   *activation
	locals []ref.Val // of the comprehensions around a node
}

// newFrame returns the frame for an expression with so many locals, in the memory of the one
// before.
func (a *activation) newFrame(depth int) *frame {
	locals := slices.Grow(a.frame.locals[:0], depth)[:depth]
	clear(locals)
	a.frame = frame{meter: meter{StepLimit, a.frame.number + 1}, vars: a, locals: locals}
	return &a.frame
}

// program is a compiled expression: the checked one, evaluated by steps.
type program struct {
	root  node
	depth int // of locals
}

func (t *program) eval(vars *activation) (v ref.Val, err error) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case overspent{}:
			v, err = nil, fmt.Errorf("it takes more than %d steps", StepLimit)
		default: // the library's functions are not ours: what they cannot do is an error of the rule
			v, err = nil, errors.New("internal error: "+shortened(fmt.Sprint(r)))
		}
	}()
	v = t.root.eval(vars.newFrame(t.depth))
	if fault, ok := v.(*types.Err); ok {
		return nil, errors.New(shortened(fault.String()))
	}
	return v, nil
}

// planner makes nodes of a checked expression.
type planner struct {
	refs      map[int64]*ast.ReferenceInfo
	types     types.Provider
	functions map[string]*functions.Overload
	vars      []variable
	mixed     bool
	scope     []string // names of locals
	depth     int
}

// plan makes a program.
func (c *compiler) plan(checked *cel.Ast) (*program, error) {
	p := &planner{
		refs: checked.NativeRep().ReferenceMap(), types: c.env.CELTypeProvider(), functions: c.functions, vars: c.vars, mixed: c.mixed,
	}
	root, err := p.node(checked.NativeRep().Expr())
	if err != nil {
		return nil, err
	}
	return &program{root: root, depth: p.depth}, nil
}

func (p *planner) node(e ast.Expr) (node, error) {
	switch e.Kind() {
	case ast.LiteralKind:
		return constant{e.AsLiteral()}, nil
	case ast.IdentKind:
		if slot := lastIndex(p.scope, e.AsIdent()); slot >= 0 {
			return local(slot), nil
		}
		return p.reference(e)
	case ast.SelectKind:
		if p.refs[e.ID()] != nil {
			return p.reference(e)
		}
		operand, err := p.node(e.AsSelect().Operand())
		return &field{operand, types.String(e.AsSelect().FieldName()), e.AsSelect().IsTestOnly()}, err
	case ast.CallKind:
		return p.call(e.AsCall())
	case ast.ListKind:
		items, err := p.nodes(e.AsList().Elements())
		return folded(&listLiteral{items}, items), err
	case ast.MapKind:
		return p.mapLiteral(e.AsMap())
	case ast.ComprehensionKind:
		return p.fold(e.AsComprehension())
	default:
		return nil, fmt.Errorf("governance: an expression of kind %d", e.Kind())
	}
}

func (p *planner) nodes(all []ast.Expr) ([]node, error) {
	out := make([]node, len(all))
	for i, e := range all {
		var err error
		if out[i], err = p.node(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func lastIndex(names []string, name string) int {
	for i, n := range slices.Backward(names) {
		if n == name {
			return i
		}
	}
	return -1
}

// reference is a variable, a constant of the language, or the name of a type.
func (p *planner) reference(e ast.Expr) (node, error) {
	r := p.refs[e.ID()]
	if r == nil {
		return nil, fmt.Errorf("governance: the checker knows no %q", e.AsIdent())
	}
	if r.Value != nil {
		return constant{r.Value}, nil
	}
	if i := slices.IndexFunc(p.vars, func(v variable) bool { return v.name == r.Name }); i >= 0 {
		return global(i), nil
	}
	if t, ok := p.types.FindIdent(r.Name); ok {
		return constant{t}, nil
	}
	return nil, fmt.Errorf("governance: the checker knows %q, and nobody else", r.Name)
}

func (p *planner) call(e ast.CallExpr) (node, error) {
	exprs := e.Args()
	if e.IsMemberFunction() {
		exprs = append([]ast.Expr{e.Target()}, exprs...)
	}
	args, err := p.nodes(exprs)
	if err != nil {
		return nil, err
	}
	switch e.FunctionName() {
	case operators.LogicalAnd:
		return &logic{args, types.False}, nil
	case operators.LogicalOr:
		return &logic{args, types.True}, nil
	case operators.Conditional:
		return &conditional{args[0], args[1], args[2]}, nil
	case operators.NotStrictlyFalse, operators.OldNotStrictlyFalse: //nolint:staticcheck // as cel-go does
		return &notStrictlyFalse{args[0]}, nil
	}
	c := &call{name: e.FunctionName(), args: args, function: p.functions[e.FunctionName()]}
	c.mixed = p.mixed && slices.Contains(arithmetic(), c.name)
	if k, ok := args[len(args)-1].(constant); ok && c.name == matchesFunction {
		if text, ok := k.value.(types.String); ok {
			if c.pattern, err = compilePattern(string(text)); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (p *planner) mapLiteral(e ast.MapExpr) (node, error) {
	var all []node
	for _, entry := range e.Entries() {
		pair, err := p.nodes([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()})
		if err != nil {
			return nil, err
		}
		all = append(all, pair...)
	}
	return folded(&dictLiteral{all}, all), nil
}

func (p *planner) fold(e ast.ComprehensionExpr) (node, error) {
	outer := len(p.scope)
	around, err := p.nodes([]ast.Expr{e.IterRange(), e.AccuInit()})
	if err != nil {
		return nil, err
	}
	p.scope = append(p.scope, e.AccuVar(), e.IterVar())
	p.depth = max(p.depth, len(p.scope))
	each, err := p.nodes([]ast.Expr{e.LoopCondition(), e.LoopStep()})
	if err != nil {
		return nil, err
	}
	p.scope = p.scope[:outer+1]
	result, err := p.node(e.Result())
	p.scope = p.scope[:outer]
	return &fold{accu: outer, over: around[0], init: around[1], while: each[0], step: each[1], result: result}, err
}

// folded evaluates a literal of constants once and for all.
func folded(literal node, of []node) node {
	for _, n := range of {
		if _, ok := n.(constant); !ok {
			return literal
		}
	}
	v, err := (&program{root: literal}).eval(new(activation))
	if err != nil {
		return literal
	}
	return constant{v}
}
