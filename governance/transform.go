package governance

import (
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// MaxTransformed is the greatest size of what a transform gives, in bytes. An
// expression can name the same value many times over.
const MaxTransformed = 1 << 20

// Transform makes the params of an effect out of the receipt of another one.
// It is safe for concurrent use.
type Transform struct {
	vars    []variable
	program *program
}

// CheckTransform reports, as a *PolicyError, why expr cannot be a transform: a
// CEL expression under the rules of CheckPolicy that gives any data and looks
// only at
//
//	receipt.status, .payload, .external_ref
//	intent.kind, .params, .cell (reducer/key)
func CheckTransform(expr string) error {
	_, err := NewTransform(expr)
	return err
}

// NewTransform compiles a transform. The error is a *PolicyError where expr is not
// one.
func NewTransform(expr string) (*Transform, error) {
	vars := ofTransforms()
	c, err := newCompiler(vars)
	if err != nil {
		return nil, err
	}
	tree, err := c.check(expr)
	if err != nil {
		return nil, err
	}
	program, err := c.program(tree)
	if err != nil {
		return nil, err
	}
	return &Transform{vars: vars, program: program}, nil
}

// Eval returns canonical data, the same for the same receipt and intent. The
// error names what has no such form, or that it costs too much.
func (t *Transform) Eval(r *receipt.Receipt, in *receipt.Intent) (canon.Raw, error) {
	vars := newActivation(t.vars)
	vars.receipt, vars.intent = r, in
	v, err := t.program.eval(&vars)
	if err != nil {
		return nil, fmt.Errorf("governance: transform: %w", err)
	}
	data, err := encode(nil, v, 0)
	if err == nil { // whose parts may be data that was nested already
		err = canon.Valid(data)
	}
	if err != nil {
		return nil, fmt.Errorf("governance: transform: %w", err)
	}
	return data, nil
}
