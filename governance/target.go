package governance

import (
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// target is what an effect is about to touch, worked out of the effect's config
// and the intent's params.
type target interface {
	// Allowed returns the first bound that the target exceeds, or nil.
	Allowed(p *manifest.CapParams) *CapError
}

// parser works out a target. Its error is a *CapError that names what no
// capability can allow.
type parser func(config, params canon.Raw) (target, error)

// touched is the target of one request, worked out for the first grant that
// asks: none of type any does.
type touched struct {
	target target
	denied *CapError // no capability allows it
}

// exceeds returns the bound of a grant that an effect exceeds, or nil.
func (t *touched) exceeds(c *grant, effect *manifest.Effect, params canon.Raw) *CapError {
	if c.parse == nil {
		return nil
	}
	if t.target == nil && t.denied == nil {
		t.target, t.denied = adapterOf(effect.Adapter).parse.target(effect, params)
	}
	if t.denied != nil {
		return t.denied
	}
	return t.target.Allowed(&c.Params)
}

func (p parser) target(effect *manifest.Effect, params canon.Raw) (target, *CapError) {
	t, err := p(effect.Config, params)
	if err == nil {
		return t, nil
	}
	var e *CapError
	if !errors.As(err, &e) {
		e = capErrorf(CodeBadParams, "%s", shortened(err.Error()))
	}
	return nil, e
}
