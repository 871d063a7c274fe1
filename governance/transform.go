package governance

import (
	"context"
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
	version string
	program program
}

// CheckTransform reports, as a *PolicyError, why expr cannot be a transform: a
// CEL expression under the rules of CheckPolicy that gives any data and looks
// only at
//
//	receipt.status, .payload, .external_ref
//	intent.kind, .params, .cell (reducer/key)
func CheckTransform(expr string) error {
	_, err := NewTransform(Version, expr)
	return err
}

// NewTransform compiles a transform for a version of Versions. The error is a
// *PolicyError where expr is not one.
func NewTransform(version, expr string) (*Transform, error) {
	vars := ofTransforms()
	c, err := newCompiler(version, vars)
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
	return &Transform{vars: vars, version: version, program: program}, nil
}

// Eval returns canonical data, the same for the same receipt and intent. The
// error names what has no such form, or that it costs too much. When ctx ends, nobody
// waits for it, and it is of no use.
func (t *Transform) Eval(ctx context.Context, r *receipt.Receipt, in *receipt.Intent) (canon.Raw, error) {
	vars := newActivation(t.version, t.vars)
	vars.ctx, vars.receipt, vars.intent = ctx, r, in
	v, err := t.program.eval(&vars)
	if err != nil {
		return nil, fmt.Errorf("governance: transform: %w", err)
	}
	data, err := encode(nil, v, 0)
	if err == nil && t.version != version2 { // whose parts may be data that was nested already
		err = canon.Valid(data)
	}
	if err != nil {
		return nil, fmt.Errorf("governance: transform: %w", err)
	}
	return data, nil
}
