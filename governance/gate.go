// Package governance says who may do what. It is a part of worldctl, and not an API.
//
// The [Gate] judges every effect under one manifest, in this order:
//
//  1. Capability. The reducer's grants are tried in their order, and the first
//     that fits and has not expired is used. One of type any fits the kinds that
//     it lists. One of another type fits the effects whose adapter has its name,
//     and then what the effect is about to touch must be within its params. An
//     absent or empty list allows nothing.
//  2. Policy. Every rule is a CEL expression (see [CheckPolicy] for what it
//     sees). A matching deny wins over all others, a rule that cannot be
//     evaluated counts as deny; then one that requires approval wins over any
//     allow, unless a person has approved the effect; and where no rule matches
//     the answer is deny.
//  3. Budget. What the effect may cost at most must be left in the budgets of
//     the capability, of the cell and of the world: see [Accounts]. What is only
//     set aside for others counts as left: [Gate.Room] says when it can start.
//
// A decision is a function of manifest and request alone: the same two give the
// same decision, letter for letter, on every machine. [Version] names what that
// depends on and belongs in the journal.
package governance

import (
	"context"
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

	Context context.Context // ends when nobody waits for the decision, and what it is does not matter; nil: somebody does

	Approved bool                // a person approved this intent
	Waits    bool                // it does not start now, and is judged again then: what its budgets have left does not matter
	Caps     map[string]*Account // by capability, in the place of Accounts.Cap: which one is drawn on is the gate's to say
	Accounts Accounts            // what is used of the budgets; the gate only reads them
}

// Decision is the gate's answer to one Request, and why.
type Decision struct {
	Verdict Verdict
	Code    Code     // empty where the verdict is not Deny
	Cap     string   // the capability that fits or that failed; empty where none of several covers the kind
	Rules   []string // not to be changed: the deciding rules, in manifest order: those that deny if any, else those that require approval, else those that allow; none where a capability or budget decided
	Asks    bool     // the Rules require approval, be it given or not
	Reason  string   // one sentence with the failed value; empty where the verdict is Allow
}

// Gate judges effects under one manifest. It keeps scratch memory: use it from
// one goroutine at a time.
type Gate struct {
	manifest   *manifest.Manifest
	bounded    bool // there is a budget
	ofCells    bool // there is one of each cell of a reducer
	effects    map[string]*manifest.Effect
	undeclared manifest.Effect    // of a kind that is not
	grants     map[string][]grant // of reducers, and of the operator
	rules      []rule
	vars       activation

	// Scratch memory of one decision: the names of the rules that match.
	matching [RequireApproval + 1][]string
	decided  [RequireApproval + 1][]string // what decisions were given of them last
}

// NewGate returns the gate of a manifest, which it keeps and does not change. It calls ended
// before it compiles each policy, of which there may be thousands, and gives up with
// reducer.ErrBound if ended says so; nil never does. The error wraps a *PolicyError if a
// policy is not valid CEL.
func NewGate(m *manifest.Manifest, ended func() bool) (*Gate, error) {
	if _, err := m.Engines.Version(manifest.EngineCEL, Versions()); err != nil {
		return nil, fmt.Errorf("governance: %w", err)
	}
	if _, err := m.Engines.Version(manifest.EngineBudget, BudgetVersions()); err != nil {
		return nil, fmt.Errorf("governance: %w", err)
	}
	vars := ofPolicies()
	g := &Gate{manifest: m, effects: make(map[string]*manifest.Effect), grants: grantsByReducer(m), vars: newActivation(vars)}
	g.bounded, g.ofCells = hasBudget(m), hasCellBudget(m)
	for kind, e := range m.Effects { // order cannot show: a map is built from a map
		g.effects[kind] = &e
	}
	c, err := newCompiler(vars)
	if err != nil {
		return nil, err
	}
	for _, p := range m.Policies {
		if ended != nil && ended() {
			return nil, fmt.Errorf("governance: %w: nobody waits for the policies any more", reducer.ErrBound)
		}
		r, err := c.rule(p)
		if err != nil {
			return nil, fmt.Errorf("governance: policy %q: %w", p.Name, err)
		}
		g.rules = append(g.rules, r)
	}
	return g, nil
}

// hasBudget reports whether a manifest has a budget.
func hasBudget(m *manifest.Manifest) bool {
	var none manifest.Budget
	found := m.Budget != none
	for _, c := range m.Caps { // order cannot show: one is enough
		found = found || c.Budget != none
	}
	return found || hasCellBudget(m)
}

// hasCellBudget reports whether the cells of a reducer have budgets.
func hasCellBudget(m *manifest.Manifest) bool {
	found := false
	for _, r := range m.Reducers { // order cannot show: one is enough
		found = found || r.Budget != (manifest.Budget{})
	}
	return found
}

// Decide judges an effect. It keeps nothing of req and sets nothing aside.
func (g *Gate) Decide(req *Request) Decision {
	grant, denied := g.capability(req)
	if denied.Code != "" {
		return denied
	}
	g.vars.subject = subject{gate: g, req: req, grant: grant}
	defer g.vars.release()
	d := g.policy(req, grant.name)
	if d.Verdict == Allow && g.bounded && !req.Waits {
		d = g.vars.budget(d)
	}
	return d
}

// effect returns what the manifest says about a kind of effect; nothing where it
// does not declare it.
func (g *Gate) effect(kind string) *manifest.Effect {
	if e, ok := g.effects[kind]; ok {
		return e
	}
	return &g.undeclared
}

// policy evaluates every rule, also after a deny: the decision names them all.
func (g *Gate) policy(req *Request, capability string) Decision {
	for v := range g.matching {
		g.matching[v] = g.matching[v][:0]
	}
	code, failure := CodePolicyError, ""
	for i := range g.rules {
		if req.Context != nil && req.Context.Err() != nil {
			return Decision{}
		}
		r := &g.rules[i]
		matches, err := r.eval(&g.vars)
		switch {
		case err != nil:
			g.matching[Deny] = append(g.matching[Deny], r.name)
			if failure == "" {
				failure = fmt.Sprintf("policy %q cannot be evaluated for effect %q: %s", r.name, req.Kind, err)
			}
		case matches:
			g.matching[r.verdict] = append(g.matching[r.verdict], r.name)
			if r.verdict == Deny {
				code = CodePolicyDenied
			}
		}
	}
	d := Decision{Cap: capability}
	switch {
	case len(g.matching[Deny]) > 0:
		d.Code, d.Reason, d.Rules = code, failure, g.names(Deny)
		if code == CodePolicyDenied {
			d.Reason = fmt.Sprintf("effect %q is denied by policy %s", req.Kind, quoted(d.Rules))
		}
	case len(g.matching[RequireApproval]) > 0:
		d.Verdict, d.Rules, d.Asks = Allow, g.names(RequireApproval), true
		if !req.Approved {
			d.Verdict = RequireApproval
			d.Reason = fmt.Sprintf("effect %q needs approval by policy %s", req.Kind, quoted(d.Rules))
		}
	case len(g.matching[Allow]) > 0:
		d.Verdict, d.Rules = Allow, g.names(Allow)
	default:
		d.Code, d.Reason = CodeNoPolicy, fmt.Sprintf("no policy allows effect %q", req.Kind)
	}
	return d
}

// names returns those of the rules that match, for a decision. Most decisions are like the
// one before.
func (g *Gate) names(v Verdict) []string {
	if !slices.Equal(g.matching[v], g.decided[v]) {
		g.decided[v] = slices.Clip(slices.Clone(g.matching[v]))
	}
	return g.decided[v]
}

// quoted lists names for a sentence.
func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}
