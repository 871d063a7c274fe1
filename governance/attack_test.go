package governance

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// ruleBook draws conditions of policies.
type ruleBook struct {
	*attack.Attempt
	vars []string // of the macros around
}

// condition draws an expression that may give a boolean.
func (b *ruleBook) condition(depth int) string {
	if depth <= 0 {
		return attack.Pick(b.Attempt, "true", "false", "intent.params.on", "has(intent.params.a)", "intent.kind == \"tool.x\"", "effect.idempotent", "1 / 0 > 0", "intent.params.none.x")
	}
	x, y := b.value(depth-1), b.value(depth-1)
	switch b.IntN(14) {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", b.condition(depth-1), attack.Pick(b.Attempt, "&&", "||", "==", "!="), b.condition(depth-1))
	case 2:
		return "!" + "(" + b.condition(depth-1) + ")"
	case 3, 4, 5:
		return fmt.Sprintf("(%s %s %s)", x, attack.Pick(b.Attempt, "==", "!=", "<", "<=", ">", ">=", "in"), y)
	case 6, 7, 8, 9:
		v := fmt.Sprintf("v%d", len(b.vars))
		b.vars = append(b.vars, v)
		defer func() { b.vars = b.vars[:len(b.vars)-1] }()
		return fmt.Sprintf("%s.%s(%s, %s)", x, attack.Pick(b.Attempt, "all", "exists", "exists_one"), v, b.condition(depth-1))
	case 10:
		return fmt.Sprintf("%s.%s(%s)", x, attack.Pick(b.Attempt, "contains", "startsWith", "endsWith", "matches"), y)
	case 11:
		return fmt.Sprintf("(%s ? %s : %s)", b.condition(depth-1), b.condition(depth-1), b.condition(depth-1))
	case 12:
		return fmt.Sprintf("has(intent.params.%s)", attack.Pick(b.Attempt, "a", "b.c", "s", "zz"))
	default:
		return fmt.Sprintf("%s.matches(%q)", x, attack.Pick(b.Attempt, "(a*)*b", "^(a|aa)+$", "(x+x+)+y", "(?i)\\pL+é", ".*.*.*x", "(a?){50}a{50}", "^.$", ""))
	}
}

// value draws an expression that gives anything.
func (b *ruleBook) value(depth int) string {
	if n := len(b.vars); n > 0 && b.Chance(3) {
		return b.vars[b.IntN(n)]
	}
	if depth <= 0 {
		return attack.Pick(b.Attempt, "intent.params.a", "intent.params.a", "intent.params.b", "intent.params.b", "intent.params.s", "intent.params", "intent.step", "intent.tag",
			"1", "-1", "0", "2u", "1.5", "9223372036854775807", "\"a\"", "\"é\"", "b\"a\"", "null", "[]", "{}", "[1, 2, 3]", "{\"a\": 1, 2: [3]}", "cell.id", "world.time", "type(1)")
	}
	x, y := b.value(depth-1), b.value(depth-1)
	switch b.IntN(14) {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", x, attack.Pick(b.Attempt, "+", "+", "-", "*", "/", "%"), y)
	case 2:
		return fmt.Sprintf("%s[%s]", x, y)
	case 3:
		return fmt.Sprintf("[%s, %s]", x, y)
	case 4:
		return fmt.Sprintf("{%s: %s}", x, y)
	case 5, 6, 7:
		v := fmt.Sprintf("v%d", len(b.vars))
		b.vars = append(b.vars, v)
		defer func() { b.vars = b.vars[:len(b.vars)-1] }()
		if b.Chance(2) {
			return fmt.Sprintf("%s.filter(%s, %s)", x, v, b.condition(depth-1))
		}
		return fmt.Sprintf("%s.map(%s, %s)", x, v, b.value(depth-1))
	case 8:
		return fmt.Sprintf("size(%s)", x)
	case 9:
		return fmt.Sprintf("%s(%s)", attack.Pick(b.Attempt, "int", "uint", "double", "string", "bytes", "dyn", "type", "bool"), x)
	case 10:
		return fmt.Sprintf("(%s ? %s : %s)", b.condition(depth-1), x, y)
	case 11:
		return fmt.Sprintf("%s.%s", x, attack.Pick(b.Attempt, "a", "b", "k", "size()"))
	case 12:
		return "-" + x
	default:
		return x
	}
}

// policies draws rules that compile.
func (b *ruleBook) policies(n, depth int) (all []manifest.Policy) {
	for len(all) < n {
		p := manifest.Policy{
			Name: fmt.Sprintf("p%d", len(all)), When: b.condition(depth),
			Decide: attack.Pick(b.Attempt, manifest.DecideAllow, manifest.DecideAllow, manifest.DecideDeny, manifest.DecideRequireApproval),
		}
		if CheckPolicy(p.When) == nil {
			all = append(all, p)
		}
	}
	return all
}

// heavy draws a condition that goes on: around one that is known for its work, and
// whatever that comes to.
func (b *ruleBook) heavy(known []string) string {
	when := known[b.IntN(len(known))]
	for i := range b.IntN(4) {
		v := fmt.Sprintf("w%d", i)
		over := attack.Pick(b.Attempt, "intent.params.a", "intent.params.a", "intent.params.b", "[1, 2, 3, 4, 5, 6, 7, 8, 9]", "[intent.params.a, intent.params.b]")
		when = fmt.Sprintf(attack.Pick(b.Attempt,
			"%[1]s.all(%[2]s, (%[3]s) || true)", "!%[1]s.exists(%[2]s, (%[3]s) && false)", "%[1]s.map(%[2]s, %[3]s).size() >= 0", "%[1]s.filter(%[2]s, (%[3]s) || true).size() >= 0",
			"%[1]s.all(%[2]s, %[2]s == %[2]s && ((%[3]s) || true))",
		), over, v, when)
	}
	return when
}

// json draws small params.
func (b *ruleBook) json(depth int) string {
	if depth > 0 && b.Chance(2) {
		n := b.IntN(4)
		items := make([]string, n)
		list := b.Chance(2)
		for i := range items {
			items[i] = b.json(depth - 1)
			if !list {
				items[i] = fmt.Sprintf("%q: %s", string(rune('a'+i)), items[i])
			}
		}
		if list {
			return "[" + strings.Join(items, ", ") + "]"
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return attack.Pick(b.Attempt, "null", "true", "false", "0", "1", "-3", "9007199254740993", "1.0", "1.5", "1e300", `""`, `"a"`, `"é"`, `"12"`, `"aaaaaaaaaaaaaaaaaaaaaaaa"`)
}

// expected is what a gate is to decide, by what the library makes of each rule. unknown:
// one of them costs too much there.
func expected(t *testing.T, all []manifest.Policy, req *Request) (want Verdict, unknown bool) {
	vars := newActivation(ofPolicies())
	vars.subject = subject{gate: gateOf(t), req: req}
	found := map[string]bool{}
	for _, p := range all {
		switch matches, err := libraryRuleOf(t, p).eval(&vars); {
		case err != nil:
			found["error"] = true
			unknown = unknown || errors.Is(err, errCosts)
		case matches:
			found[p.Decide] = true
		}
	}
	switch {
	case found["error"] || found[manifest.DecideDeny]:
		want = Deny
	case found[manifest.DecideRequireApproval]:
		want = RequireApproval
	case found[manifest.DecideAllow]:
		want = Allow
	default:
		want = Deny
	}
	return want, unknown
}

// TestAttackPolicies looks for params and rules with which the gate lets through what
// the library, which evaluates the same by code of its own, does not.
func TestAttackPolicies(t *testing.T) {
	attack.Run(t, "policies", func(a *attack.Attempt) {
		b := &ruleBook{Attempt: a}
		all := b.policies(1+a.IntN(3), 1+a.IntN(3))
		req := request(t, "tool.x", fmt.Sprintf(`{"a": %s, "b": %s, "s": %s, "on": %s}`, b.json(3), b.json(3), b.json(0), b.json(0)))
		want, unknown := expected(t, all, req)
		d := gateOf(t, all...).Decide(req)
		steps := strings.Contains(d.Reason, "it takes more than")
		permits := map[Verdict]int{Deny: 0, RequireApproval: 1, Allow: 2}
		if permits[d.Verdict] > permits[want] && !unknown || steps && d.Verdict != Deny {
			a.Through("%s (%s), and the library says %s, of %q with %s", d.Verdict, d.Reason, want, all, req.Params)
		}
	})
}

// Bounds of one rule on params of a mebibyte, twice what docs/security.md says, since
// others have the machine as well.
const (
	maxRuleTime  = 100 * time.Millisecond
	maxRuleBytes = 128 << 20
)

// TestAttackPolicySteps looks for rules that work more than their steps, on params
// that are made for it.
func TestAttackPolicySteps(t *testing.T) {
	all := hostileParams(t, 1<<20)
	names, known := slices.Sorted(maps.Keys(all)), hostileRules()
	attack.Run(t, "policy steps", func(a *attack.Attempt) {
		b := &ruleBook{Attempt: a}
		p := allow("heavy", b.heavy(known))
		if a.Chance(3) || CheckPolicy(p.When) != nil {
			p = b.policies(1, 2+a.IntN(4))[0]
		}
		name := attack.Pick(a, names...)
		g := gateOf(t, p)
		cpu, bytes := costOf(t, g, all[name])
		for i := 0; i < 3 && cpu > maxRuleTime; i++ { // or somebody else's garbage was collected
			again, _ := costOf(t, g, all[name])
			cpu = min(cpu, again)
		}
		if cpu > maxRuleTime || bytes > maxRuleBytes {
			a.Through("%s of the processor and %d bytes for %q on %q", cpu, bytes, p.When, name)
		}
	})
}

// costOf decides once, and returns what that took.
func costOf(t *testing.T, g *Gate, params reducer.Data) (cpu time.Duration, bytes uint64) {
	req := request(t, "tool.x", "null")
	req.Params = params
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu = processor()
	g.Decide(req)
	cpu = processor() - cpu
	runtime.ReadMemStats(&after)
	return cpu, after.TotalAlloc - before.TotalAlloc
}
