package world_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// scarce are the rules of new worlds with budgets and rates that some effects wait for.
func scarce(seed uint64) func(m *manifest.Manifest) {
	rng := rand.New(rand.NewPCG(seed, 77))
	return func(m *manifest.Manifest) {
		per := manifest.Tick(0)
		if rng.IntN(2) == 0 {
			per = manifest.Tick(2 + rng.IntN(8))
		}
		m.Budget = manifest.Budget{Calls: uint64(3 + rng.IntN(20)), Per: per}
		c := m.Caps["tools"]
		c.Budget = manifest.Budget{Tokens: 100, Per: per}
		m.Caps["tools"] = c
		for kind, most := range map[string]uint64{"tool.a": 40, "tool.l": 10, "tool.u": 90} {
			e := m.Effects[kind]
			e.MaxCost.Tokens = new(most)
			if seed%3 == 0 {
				e.Rate = manifest.Rate{Calls: 2, Per: 3}
			}
			m.Effects[kind] = e
		}
	}
}

// instead lets a person have something asked for in the place of another intent.
func (l *life) instead() {
	all := l.Intents()
	l.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, e := range all {
		b := journal.Resolved{Key: e.Intent.Key, Params: e.Params, Actor: "ada", Reason: "so"}
		switch e.State {
		case receipt.StateAwaitingApproval, receipt.StateAwaitingAnswer, receipt.StateAwaitingConfirmation:
			b.How = journal.Edit
			b.Payload = mustData(l.t, map[string]string{"p": l.name() + "!"})
		case receipt.StateFailed:
			b.How = []journal.Resolution{journal.RetryAnyway, journal.NotExecuted}[l.rng.IntN(2)]
		default:
			continue
		}
		l.try("instead "+string(b.How), worldtest.ErrorOf(l.Resolve(l.t.Context(), b)))
		return
	}
}

// within requires that what is spent, and what is set aside, never exceeds a budget.
func (l *life) within() {
	for _, b := range l.Budgets() {
		limit, gone := b.Limit, governance.Sum(b.Spent, b.Held)
		require.False(l.t, limit.Calls > 0 && gone.Calls > limit.Calls, "%+v", b)
		require.False(l.t, limit.Tokens > 0 && gone.Tokens > limit.Tokens, "%+v", b)
	}
}

// TestLivesWithScarceBudgetsInWhichPeopleEditAndTryAgain: no budget is overspent, and replay,
// verify and a shadow of the same rules agree with what was lived.
func TestLivesWithScarceBudgetsInWhichPeopleEditAndTryAgain(t *testing.T) {
	total := make(map[string]int)
	for seed := range uint64(120) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			l := newLifeWith(t, seed, seed%2 == 0, total, scarce(seed))
			for range 20 + l.rng.IntN(50) {
				l.action()
				if l.rng.IntN(5) == 0 {
					l.instead()
					l.drive()
				}
				l.within()
			}
			l.drive()
			r, err := verify.Verify(t.Context(), l.Journal, verify.Config{
				Keys: worldtest.Keyring(t, "test"), Registry: cellAtRegistry(), Anchor: l.Status().Head,
			})
			require.NoError(t, err)
			require.Empty(t, r.Faults)
			if _, f := l.Proposals(); !l.returns {
				if r := rehearse(t, l, world.ShadowConfig{}); r.From >= f.Since {
					requireNoOp(t, r)
				}
			}
		})
	}
	for _, what := range []string{"instead edit", "instead retry", "instead not_executed", "rollback", "adopt"} {
		require.NotZero(t, total[what], what)
	}
}
