package world_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// dear bounds the capability tools to 100 tokens; an attempt of tool.a costs at most 40, of
// tool.l 10, and of tool.u 90.
func dear(m *manifest.Manifest) {
	tokens(m)
	for kind, most := range map[string]uint64{"tool.l": 10, "tool.u": 90} {
		e := m.Effects[kind]
		e.MaxCost.Tokens = new(most)
		m.Effects[kind] = e
	}
}

// used is an answer for an attempt that used so many tokens.
func used(tokens uint64) worldtest.Reply {
	r := worldtest.OK(nil)
	r.Cost.Tokens = tokens
	return r
}

// asks has a cell ask for one effect, and drives.
func (p *play) asks(cell, kind string) {
	p.t.Helper()
	p.Submit("go", order{To: cell, Do: []act{{Effect: kind}}})
	p.Drive()
}

// kinds returns the kinds that the outside performs now.
func (p *play) underWay() []string {
	out := []string{}
	for _, t := range p.out.Tasks(receipt.Perform) {
		out = append(out, t.Kind)
	}
	return out
}

// Where all that is open waits for budgets, alike, a receipt costs no look at each of them.
func TestWhoWaitsAlikeIsNotLookedAt(t *testing.T) {
	p := live(t, dear)
	for i := range 100 {
		p.Submit("go", order{To: fmt.Sprint("agent", i), Do: []act{{Effect: []string{"tool.a", "tool.u"}[i%2]}}})
	}
	p.Drive()
	require.Greater(t, p.Status().Intents[receipt.StateOpen], 90)
	require.LessOrEqual(t, p.LookedAt(), 3)
	for p.Status().Intents[receipt.StateOpen] > 50 {
		p.out.Reply(p.performing(), used(1))
		p.Drive()
		require.LessOrEqual(t, p.LookedAt(), 3)
	}
	p.crash()
	require.LessOrEqual(t, p.LookedAt(), 3)
}

func TestTwentyAgentsOnABudgetThatFitsThemOneByOne(t *testing.T) {
	p := live(t, dear)
	for i := range 20 {
		p.Submit("go", order{To: fmt.Sprint("agent", i), Do: []act{{Effect: "tool.a"}}})
	}
	p.Drive()
	require.Len(t, p.underWay(), 2, "two times 40 are set aside")
	for range 20 {
		p.reply(used(3))
	}
	require.Zero(t, p.Status().Intents[receipt.StateDenied])
	require.Equal(t, 20, p.Status().Intents[receipt.StateCommitted])
	require.Equal(t, receipt.Cost{Tokens: 60}, p.Budgets()[0].Spent)
	require.Zero(t, p.Budgets()[0].Held)
}

func TestNobodyPassesAnOlderIntentThatWaitsForTheSame(t *testing.T) {
	p := live(t, dear)
	p.asks("a", "tool.a") // 40 of 100
	p.asks("b", "tool.u") // 90: waits
	p.asks("c", "tool.l") // 10: fits, and would pass
	all, desk := p.Intents(), p.Budgets()[0]
	waits := p.Waits()
	require.Len(t, waits, 2)
	require.Equal(t, []governance.Shortage{{
		Of: governance.Budgeted{Scope: governance.ScopeCap, Name: "tools"}, Unit: governance.UnitTokens, Left: 60, Ask: 90,
	}}, waits[all[1].Intent.Key].Short)
	require.Equal(t, all[1].Intent.Key, waits[all[2].Intent.Key].Ahead[0].Key)
	require.Len(t, desk.Holders, 1)
	require.Equal(t, all[0].Intent, desk.Holders[0].Intent)
	require.Equal(t, all[1:], desk.Waiters)
	require.Equal(t, []string{"tool.a"}, p.underWay())
	p.reply(used(5))
	require.Equal(t, []string{"tool.u"}, p.underWay())
	p.reply(used(5))
	require.Equal(t, []string{"tool.l"}, p.underWay())
	p.reply(used(5))
}

// What waits for one budget holds back nobody who draws on others.
func TestWhoWaitsHoldsBackOnlyThoseThatWantTheSame(t *testing.T) {
	p := live(t, dear, func(m *manifest.Manifest) {
		m.Caps["more"] = manifest.Cap{Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"other.*"}}}
		r := m.Reducers["bot"]
		r.Grants = []string{"tools", "more"}
		m.Reducers["bot"] = r
		m.Budget.Calls = 10
	})
	p.asks("a", "tool.a")
	p.asks("b", "tool.u")
	p.asks("c", "other.x")
	require.Equal(t, []string{"tool.a", "other.x"}, p.underWay())
}

func TestWaitingIntentIsDeniedWhenWhatIsSpentLeavesNoRoom(t *testing.T) {
	p := live(t, dear)
	p.asks("b", "tool.a")
	p.asks("a", "tool.u")
	require.Equal(t, receipt.StateOpen, p.Intents()[1].State)
	p.reply(used(11))
	require.Equal(t, receipt.StateDenied, p.Intents()[1].State)
	p.tells("0 denied")
	denied := worldtest.Bodies[*journal.IntentDenied](t, p.Journal)
	require.Len(t, denied, 1)
	require.Equal(t, string(governance.CodeBudgetExceeded), denied[0].Code)
	require.Equal(t, `the budget of capability "tools" has 89 tokens left, effect "tool.u" asks for 90`, denied[0].Reason)
	p.asks("a", "tool.u") // and at once, where that is known
	p.tells("0 denied", "0 denied")
}

// An intent in doubt may hold what others wait for as long as nobody decides.
func TestWaitingForAnIntentInDoubtEndsWithADecision(t *testing.T) {
	for how, goes := range map[journal.Resolution]bool{journal.NotExecuted: false, journal.Executed: false} {
		p := live(t, dear, tool(func(e *manifest.Effect) { e.Retry.Attempts = 1; e.MaxCost.Tokens = new(uint64(50)) }))
		key := p.ask()
		p.lose()
		p.asks("b", "tool.u")
		require.Empty(t, p.underWay())
		progress, err := p.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, world.Idle, progress, "a person has to decide")
		p.decide(key, how)
		if how == journal.NotExecuted { // a person allows another attempt, which is older
			require.Equal(t, []string{"tool.a"}, p.underWay())
			p.reply(worldtest.Reply{Status: receipt.StatusError, Exact: true})
			goes = true
		}
		require.Equal(t, goes, len(p.underWay()) == 1, how)
		require.Equal(t, goes, p.Status().Intents[receipt.StateDenied] == 0, "nobody knows what it used, and 50 are kept")
	}
}

func TestRetryWaitsForItsBudgetAndHoldsNothing(t *testing.T) {
	p := live(t, dear)
	p.ask()
	p.asks("b", "tool.u")
	p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Exact: true})
	require.Equal(t, []string{"tool.u"}, p.underWay(), "while the other waits for its backoff")
	p.due()
	require.Equal(t, []string{"tool.u"}, p.underWay())
	p.reply(used(70))
	require.Empty(t, p.underWay())
	p.tells("x0 rejected")
	require.Equal(t, 1, p.Status().Intents[receipt.StateFailed], "it was attempted, and is not denied")
}

func TestRollbackCancelsWhatWaits(t *testing.T) {
	p := live(t, dear)
	p.asks("b", "tool.a")
	_, err := p.Snapshot(t.Context(), "s", "", "ada")
	require.NoError(t, err)
	p.asks("a", "tool.u")
	_, done, err := p.Rollback(t.Context(), journal.RolledBack{Snapshot: "s", Reason: "no", Actor: "ada"})
	require.NoError(t, err)
	require.Equal(t, journal.Cancelled, done.Abandoned[0].Disposition)
	p.reply(used(1))
	require.Empty(t, p.underWay())
}

func TestForkAsksAboutWhatWaitsAndItHoldsNothing(t *testing.T) {
	p := live(t, dear)
	p.asks("a", "tool.a")
	p.asks("b", "tool.u")
	f := p.Fork(journal.ForkHold, worldtest.Options{ID: "child", Outside: new(worldtest.Outside), Reducers: botRegistry()})
	require.Equal(t, receipt.StateAwaitingApproval, f.Intents()[1].State)
	require.Equal(t, receipt.Cost{Tokens: 40}, f.Budgets()[0].Held)
}

// TestBudgetIsAsBeforeAfterAProviderThatAlwaysRefuses: what is refused uses nothing, not
// even a call.
func TestBudgetIsAsBeforeAfterAProviderThatAlwaysRefuses(t *testing.T) {
	p := live(t, dear, calls(3), tokens, tool(func(e *manifest.Effect) { e.Retry.Attempts = 10; e.MaxCost.Micros = new(uint64(7)) }),
		func(m *manifest.Manifest) { m.Budget.Micros = 10 })
	before := p.Budgets()
	p.ask()
	for range 9 {
		p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Exact: true})
		p.due()
	}
	p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Exact: true})
	p.tells("x0 error")
	require.Equal(t, before, p.Budgets())
}

func TestCallsAreSpentUnlessTheOutsideRefused(t *testing.T) {
	for name, c := range map[string]struct {
		reply worldtest.Reply
		calls uint64
	}{
		"done":                  {worldtest.OK(nil), 1},
		"failed":                {worldtest.Fail("no"), 1},
		"refused":               {worldtest.Reply{Status: receipt.StatusError, Exact: true}, 0},
		"refused, and it used":  {worldtest.Reply{Status: receipt.StatusError, Exact: true, Cost: receipt.Cost{Tokens: 1}}, 1},
		"refused, and it costs": {worldtest.Reply{Status: receipt.StatusError, Exact: true, Cost: receipt.Cost{Micros: 1}}, 1},
		"only bytes":            {worldtest.Reply{Status: receipt.StatusError, Exact: true, Cost: receipt.Cost{Bytes: 1}}, 0},
		"never left":            {worldtest.Reply{Status: receipt.StatusError, Unsent: true}, 0},
		"done, for nothing":     {worldtest.Reply{Status: receipt.StatusOK, Exact: true}, 1},
	} {
		p := live(t, calls(2), tool(func(e *manifest.Effect) { e.Retry.Attempts = 1 }))
		p.ask()
		require.Equal(t, receipt.Cost{Calls: 1}, p.Budgets()[0].Held, name)
		p.reply(c.reply)
		require.Equal(t, receipt.Cost{Calls: c.calls}, p.Budgets()[0].Spent, name)
		require.Zero(t, p.Budgets()[0].Held, name)
	}
}

// TestOtherRulesKeepWhatNobodyKnows, so that nobody waits for it, and what is under way is
// counted once.
func TestOtherRulesKeepWhatNobodyKnows(t *testing.T) {
	p := live(t, tokens, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	p.asks("b", "tool.a")
	p.reply(worldtest.OK(nil)) // nobody knows what it used
	p.asks("c", "tool.a")
	p.lose()
	amounts := func() []receipt.Cost {
		b := p.Budgets()[0]
		return []receipt.Cost{b.Spent, b.Held, b.Kept, b.Left}
	}
	before := amounts()
	next := *p.Manifest()
	next.Version++
	require.NoError(t, worldtest.Adopt(t.Context(), p.World.World, &next, nil))
	require.Equal(t, before, amounts())
	p.ask()
	p.tells()
	require.Empty(t, p.underWay(), "40 are kept, 40 in doubt: it waits")
	p.decide(p.Intents()[1].Intent.Key, journal.Executed)
	p.tells("x0 denied")
}

// TestShadowKeepsWhatNobodyKnows, as the world does.
func TestShadowKeepsWhatNobodyKnows(t *testing.T) {
	p := live(t, tokens)
	for _, cell := range []string{"a", "b"} {
		p.asks(cell, "tool.a")
		p.reply(worldtest.OK(nil)) // nobody knows what it used
	}
	p.snapshot("before")
	p.asks("c", "tool.a") // 20 are left
	next := *p.Manifest()
	next.Version++
	r, err := p.Rehearse(t.Context(), &next, nil, world.ShadowConfig{From: "before"})
	require.NoError(t, err)
	requireNoOp(t, r)
}

// TestManyThatWaitForTheSameGoOneAfterTheOther: those that wait as an older one does are not
// looked at, and nobody passes anybody for that.
func TestManyThatWaitForTheSameGoOneAfterTheOther(t *testing.T) {
	p := live(t, dear)
	for i := range 60 {
		p.Submit("go", order{To: fmt.Sprint("agent", i), Do: []act{{Effect: []string{"tool.u", "tool.a", "tool.l"}[i%3]}}})
	}
	p.Drive()
	free := used(0)
	free.Exact = true
	var order []string
	for range 60 {
		order = append(order, p.performing().Kind)
		p.reply(free)
	}
	for i := 0; i < 60; i += 3 {
		require.Equal(t, "tool.u", order[i], "nobody passes")
	}
	require.Equal(t, 60, p.Status().Intents[receipt.StateCommitted])
}

// conserved requires that a budget is what is spent, held and left of it.
func conserved(t require.TestingT, all []world.BudgetView) {
	for _, b := range all {
		limit := governance.Amounts(b.Limit)
		sum := governance.Sum(governance.Sum(b.Spent, b.Held), b.Left)
		for _, u := range governance.Units() {
			if *u.Of(&b.Left) > 0 {
				require.Equal(t, *u.Of(&limit), *u.Of(&sum), "%s %s", b.Name, u)
			}
			require.GreaterOrEqual(t, *u.Of(&sum), *u.Of(&limit), "%s %s", b.Name, u)
		}
		held := b.Kept
		for _, e := range b.Holders {
			held = governance.Sum(held, e.Reserved)
			require.NotEqual(t, receipt.StateOpen, e.State, "who waits holds nothing")
		}
		require.Equal(t, b.Held, held, b.Name)
	}
}

func TestBudgetsAreConservedWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		out := new(worldtest.Outside)
		w := botsWith(t, worldtest.Options{Outside: out, BatchRecords: 1, CheckpointRecords: 9}, dear, inDoubt(manifest.InDoubtRetry), small,
			tool(func(e *manifest.Effect) { e.MaxCost.Tokens = new(uint64(40)) }),
			func(m *manifest.Manifest) {
				m.Budget = manifest.Budget{Calls: 12, Per: 5}
				e := m.Effects["tool.l"]
				e.Rate = manifest.Rate{Calls: 2, Per: 3}
				m.Effects["tool.l"] = e
			})
		p := &play{World: w, out: out, t: t}
		rt.Repeat(map[string]func(*rapid.T){
			"ask": func(rt *rapid.T) {
				kind := rapid.SampledFrom([]string{"tool.a", "tool.l", "tool.u"}).Draw(rt, "kind")
				w.Submit("go", order{To: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "to"), Do: []act{{Effect: kind}}})
			},
			"drive": func(*rapid.T) { w.Drive() },
			"answer": func(rt *rapid.T) {
				tasks := append(out.Tasks(receipt.Perform), out.Tasks(receipt.Retry)...)
				if len(tasks) == 0 {
					return
				}
				task := rapid.SampledFrom(tasks).Draw(rt, "task")
				if task.Work == receipt.Retry {
					out.Due(task)
					return
				}
				if rapid.IntRange(0, 5).Draw(rt, "lost") == 0 {
					out.Lose(task, "lost")
					return
				}
				r := used(rapid.Uint64Range(0, 50).Draw(rt, "used"))
				r.Exact = rapid.Bool().Draw(rt, "exact")
				if rapid.Bool().Draw(rt, "again") {
					r.Status, r.Class = receipt.StatusError, receipt.OutcomeRetryableFailure
				}
				out.Reply(task, r)
			},
			"crash": func(*rapid.T) { w.Crash() },
			"":      func(rt *rapid.T) { conserved(rt, w.Budgets()) },
		})
		p.requireSound()
		p.requireSameFromImages(1 + p.Journal.Head().ID/4)
	})
}
