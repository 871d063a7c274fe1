package host

import (
	"context"
	"errors"
	"fmt"
)

// Performers perform live effects of a manifest for who keeps what came of them: there is
// no effect store, and each call is an attempt. They are safe for concurrent use.
type Performers struct {
	effects map[string]*effect
	secrets *secrets
}

// NewPerformers makes the adapters of a manifest. Of cfg it needs Manifest, Content and Dir,
// Secrets, and the Adapters and Verifiers of the program. The error is an *EffectError for
// each effect that cannot be performed.
func NewPerformers(cfg Config) (*Performers, error) {
	p := &Performers{secrets: cfg.secrets()}
	effects, faults := cfg.build(p.secrets)
	p.effects = effects
	if err := joined(faults); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Perform makes an attempt, within the timeout of its effect. The error says that nobody
// can tell what came of the attempt. Secrets are in neither.
func (p *Performers) Perform(ctx context.Context, call Call) (Result, error) {
	e := p.effects[call.Permit.Kind]
	if e == nil {
		return Result{}, fmt.Errorf("host: the manifest has no effect %s", call.Permit.Kind)
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	result, err := perform(ctx, e.adapterFor(&call.Permit), call)
	if err != nil {
		return Result{}, p.secrets.hide(err)
	}
	result = p.secrets.redact(result)
	result.Cost.Calls = result.calls()
	return result, nil
}

// Close ends the adapters that have to be ended.
func (p *Performers) Close() error { return closeAll(p.effects) }
