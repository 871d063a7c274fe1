package world_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// absurd is an answer that says that all there is was used.
func absurd() worldtest.Reply {
	r := worldtest.OK(nil)
	r.Cost = receipt.Cost{Tokens: math.MaxUint64, Bytes: math.MaxUint64, Micros: math.MaxUint64}
	return r
}

// shared bounds capability, cell and world in units that an attempt of tool.a uses 40 of at most.
func shared(m *manifest.Manifest) {
	tool(func(e *manifest.Effect) {
		e.MaxCost.Tokens, e.MaxCost.Bytes, e.MaxCost.Micros = new(uint64(40)), new(uint64(40)), new(uint64(40))
	})(m)
	b := manifest.Budget{Tokens: 1000, Bytes: 1000, Micros: 1000}
	m.Budget = b
	c := m.Caps["tools"]
	c.Budget = b
	m.Caps["tools"] = c
	r := m.Reducers["bot"]
	r.Budget = b
	m.Reducers["bot"] = r
}

// One answer that says that it used everything takes max_cost of each budget, and its
// capability rests until a person approves what was asked for since.
func TestOneAnswerUsesUpNoOthersBudget(t *testing.T) {
	p := live(t, shared)
	key := p.ask()
	p.reply(absurd())
	for _, b := range p.Budgets() {
		require.Equal(t, receipt.Cost{Tokens: 40, Bytes: 40, Micros: 40}, b.Spent, b.Scope)
	}
	rests := worldtest.Bodies[*journal.Rests](t, p.Journal)
	require.Len(t, rests, 1)
	require.Equal(t, key, rests[0].Key)
	require.Equal(t, absurd().Cost, rests[0].Said)
	require.Equal(t, receipt.Cost{Tokens: 40, Bytes: 40, Micros: 40}, rests[0].Charged)
	require.Contains(t, p.Status().Resting, "tools")

	require.False(t, p.another(), "what is asked for now waits for a person")
	waits := p.newest()
	require.Equal(t, receipt.StateAwaitingApproval, waits.State)
	why := worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)
	require.Contains(t, why[len(why)-1].Reason, "capability tools rests")
	p.crash() // it is computed again
	require.Contains(t, p.Status().Resting, "tools")

	require.NoError(t, p.resolve(waits.Intent.Key, journal.Approve))
	p.Drive()
	require.Empty(t, p.Status().Resting, "somebody has looked")
	p.reply(worldtest.OK(nil))
	require.True(t, p.another())
	p.crash()
	require.Empty(t, p.Status().Resting)
}

// What was let through before, and is not begun, waits as well; and an approval that was given
// before, or of what awaited it before, is none for it.
func TestWhatIsNotBegunUnderACapabilityThatRestsWaits(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*manifest.Manifest)
		reply  worldtest.Reply
		last   func(*play) // makes the newest intent, which is not begun
		until  func(*play) // it could start
	}{
		"waits for a slot": {
			func(m *manifest.Manifest) { m.Limits.InFlight = 1 }, absurd(),
			func(p *play) { p.another() }, func(*play) {},
		},
		"waits for another attempt": {
			tool(func(e *manifest.Effect) { e.Retry.Attempts = 3 }),
			worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Cost: receipt.Cost{Tokens: math.MaxUint64}},
			func(*play) {}, (*play).due,
		},
		"was approved": {
			func(m *manifest.Manifest) { m.Limits.InFlight = 1; approveX(m) }, absurd(),
			func(p *play) {
				p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a", Param: "approve"}}})
				p.Drive()
				require.NoError(p.t, p.resolve(p.newest().Intent.Key, journal.Approve))
				p.Drive()
			}, func(*play) {},
		},
		"awaited approval, and is approved afterwards": {
			approveX, absurd(),
			func(p *play) {
				p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a", Param: "approve"}}})
				p.Drive()
			}, func(p *play) { require.NoError(p.t, p.resolve(p.newest().Intent.Key, journal.Approve)); p.Drive() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, shared, x.change)
			p.ask()
			x.last(p)
			p.reply(x.reply)
			performed := len(p.out.Performed)
			x.until(p)
			p.Step(3)
			last := p.newest()
			require.Equal(t, receipt.StateAwaitingApproval, last.State)
			require.Len(t, p.out.Performed, performed)
			require.NoError(t, p.resolve(last.Intent.Key, journal.Approve))
			p.Drive()
			require.Len(t, p.out.Performed, performed+1)
			require.Empty(t, p.Status().Resting)
		})
	}
}

// approveX has a person asked about some.
func approveX(m *manifest.Manifest) {
	m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.params.p == "approve"`, Decide: manifest.DecideRequireApproval})
}

// A cost in a unit that no budget bounds is nobody's, and none that is max_cost is more than that.
func TestCapabilityRestsOnlyWhereABudgetIsTouched(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*manifest.Manifest)
		cost   receipt.Cost
		rests  bool
	}{
		"no budget":             {tool(func(e *manifest.Effect) { e.MaxCost.Tokens = new(uint64(40)) }), absurd().Cost, false},
		"max_cost":              {shared, receipt.Cost{Tokens: 40, Bytes: 40, Micros: 40}, false},
		"one more":              {shared, receipt.Cost{Tokens: 41}, true},
		"one more byte":         {shared, receipt.Cost{Bytes: 41}, true},
		"one more micro":        {shared, receipt.Cost{Micros: 41}, true},
		"calls are not claimed": {shared, receipt.Cost{Calls: math.MaxUint64}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, x.change)
			p.ask()
			r := worldtest.OK(nil)
			r.Cost = x.cost
			p.reply(r)
			require.Equal(t, x.rests, len(p.Status().Resting) == 1)
			for _, b := range p.Budgets() {
				for _, u := range governance.Units() {
					require.LessOrEqual(t, *u.Of(&b.Spent), uint64(40))
				}
			}
		})
	}
}
