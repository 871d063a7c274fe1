// Package governance says who may do what.
//
// The [Gate] judges every effect under one manifest, in this order:
//
//  1. Capability. The reducer's grants are tried in their order. A capability
//     fits when its kinds cover the effect's kind and it has not expired; an
//     absent or empty list of kinds covers nothing.
//  2. Policy. Every rule is a CEL expression (see [CheckPolicy] for what it
//     sees). A matching deny wins over any allow, a rule that cannot be
//     evaluated counts as deny, and where no rule matches the answer is deny.
//
// A decision is a function of manifest and request alone: the same two give the
// same decision, letter for letter, on every machine. [Version] names what that
// depends on and belongs in the journal.
package governance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Request is an effect to be judged.
type Request struct {
	World  string // the world's name
	Cell   reducer.Cell
	Step   uint64 // the number of the cell's step that asks
	Time   manifest.Tick
	Kind   string
	Params reducer.Data // canonical; empty: none
	Tag    string
	Cap    string // the capability asked for; empty: the first grant of the reducer that fits
}

// Decision is the gate's answer to one Request, and why. The caller owns it.
type Decision struct {
	Verdict Verdict
	Code    Code     // empty where the verdict is Allow
	Cap     string   // the capability that fits or that failed; empty where none of several covers the kind
	Rules   []string // the deciding rules, in manifest order: those that deny if any, else those that allow
	Reason  string   // one sentence with the failed value; empty where the verdict is Allow
}

// Gate judges effects under one manifest. It keeps scratch memory: use it from
// one goroutine at a time.
type Gate struct {
	grants map[string][]grant // by reducer
	rules  []rule
	vars   activation

	// Scratch memory of one decision.
	allows, denies []string
}

// NewGate returns the gate of a manifest, which it keeps and does not change.
// The error wraps a *PolicyError where a policy is not valid CEL.
func NewGate(m *manifest.Manifest) (*Gate, error) {
	g := &Gate{grants: make(map[string][]grant, len(m.Reducers)), vars: newActivation()}
	for name, r := range m.Reducers { // order cannot show: a map is built from a map
		g.grants[name] = grantsOf(m, r.Grants)
	}
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	for _, p := range m.Policies {
		r, err := c.rule(p)
		if err != nil {
			return nil, fmt.Errorf("governance: policy %q: %w", p.Name, err)
		}
		g.rules = append(g.rules, r)
	}
	return g, nil
}

// Decide judges one effect. It keeps nothing of req.
func (g *Gate) Decide(req *Request) Decision {
	grant, denied := g.capability(req)
	if denied.Code != "" {
		return denied
	}
	g.vars.bind(req, grant)
	defer g.vars.release()
	return g.policy(req.Kind, grant.name)
}

// policy evaluates every rule, also after a deny: the decision names them all.
func (g *Gate) policy(kind, capability string) Decision {
	g.allows, g.denies = g.allows[:0], g.denies[:0]
	code, failure := CodePolicyError, ""
	for i := range g.rules {
		r := &g.rules[i]
		matches, err := r.eval(&g.vars)
		switch {
		case err != nil:
			g.denies = append(g.denies, r.name)
			if failure == "" {
				failure = fmt.Sprintf("policy %q cannot be evaluated for effect %q: %s", r.name, kind, err)
			}
		case matches && r.verdict == Deny:
			g.denies = append(g.denies, r.name)
			code = CodePolicyDenied
		case matches:
			g.allows = append(g.allows, r.name)
		}
	}
	d := Decision{Code: code, Cap: capability, Reason: failure}
	switch {
	case len(g.denies) > 0:
		d.Rules = slices.Clone(g.denies)
		if code == CodePolicyDenied {
			d.Reason = fmt.Sprintf("effect %q is denied by policy %s", kind, quoted(g.denies))
		}
	case len(g.allows) > 0:
		d.Verdict, d.Code, d.Rules = Allow, "", slices.Clone(g.allows)
	default:
		d.Code = CodeNoPolicy
		d.Reason = fmt.Sprintf("no policy allows effect %q", kind)
	}
	return d
}

// quoted lists names for a sentence.
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}
