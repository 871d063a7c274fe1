package world_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// calls bounds the capability tools.
func calls(n uint64) func(*manifest.Manifest) {
	return func(m *manifest.Manifest) {
		c := m.Caps["tools"]
		c.Budget.Calls = n
		m.Caps["tools"] = c
	}
}

// noCalls leaves nothing of a budget that bounds tokens.
func noCalls(m *manifest.Manifest) { m.Budget.Tokens = 1 }

func TestTwentyCellsOnAHundredCallsPerformExactlyAHundred(t *testing.T) {
	p := live(t, calls(100), func(m *manifest.Manifest) { m.Limits.InFlight = 7 })
	p.out.Play = func(t receipt.Task) {
		if t.Work == receipt.Perform {
			p.out.Reply(t, worldtest.OK(nil))
		}
	}
	for i := range 20 {
		do := make([]act, 6)
		for j := range do {
			do[j] = act{Effect: "tool.a", Param: fmt.Sprint(j)}
		}
		p.Submit("go", order{To: fmt.Sprint("c", i), Do: do})
		if i%5 == 0 {
			p.crash()
		}
	}
	p.Drive()
	require.Len(t, p.out.Performed, 100)
	require.Equal(t, 100, p.Status().Intents[receipt.StateCommitted])
	require.Equal(t, 20, p.Status().Intents[receipt.StateDenied])
}

// Each budget by itself stops the third call.
func TestEveryBudgetBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*manifest.Manifest)
		allowed int // of three for each of two bots
	}{
		"of the capability": {calls(2), 2},
		"of the world":      {func(m *manifest.Manifest) { m.Budget.Calls = 2 }, 2},
		"of the cell": {func(m *manifest.Manifest) {
			r := m.Reducers["bot"]
			r.Budget.Calls = 2
			m.Reducers["bot"] = r
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, c.change)
			for _, to := range []string{"a", "b"} {
				p.Submit("go", order{To: to, Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}, {Effect: "tool.a", Param: "z"}}})
			}
			p.Drive()
			require.Len(t, p.out.Performed, c.allowed, "the others wait for what these leave")
			for range c.allowed {
				p.reply(worldtest.OK(nil))
			}
			require.Len(t, p.out.Performed, c.allowed)
			require.Equal(t, 6-c.allowed, p.Status().Intents[receipt.StateDenied])
		})
	}
}

// another asks for one more effect, and reports whether the budget had it.
func (p *play) another() bool {
	before := len(p.out.Performed)
	p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a"}}})
	p.Drive()
	return len(p.out.Performed) > before
}

func TestUnsentAttemptReturnsItsCall(t *testing.T) {
	p := live(t, calls(2))
	p.ask()
	r := retryable()
	r.Unsent = true
	for range 2 {
		p.reply(r)
		p.due()
	}
	p.reply(worldtest.OK(nil))
	require.True(t, p.another(), "three attempts, and two of them never left")
	require.False(t, p.another())
}

func TestStartedAttemptsEachSpendACall(t *testing.T) {
	p := live(t, calls(2))
	key := p.ask()
	p.reply(retryable())
	p.due()
	p.reply(retryable())
	require.Equal(t, receipt.StateFailed, p.entry(key).State, "no call is left for the third attempt")
	p.tells("x0 error")
	require.False(t, p.another())
}

// Only a receipt that says that nothing left gives the call back, and the attempt with
// it, whatever else it says.
func TestSentAttemptKeepsItsCall(t *testing.T) {
	for _, status := range []receipt.Status{receipt.StatusOK, receipt.StatusError, receipt.StatusTimeout, receipt.StatusCancelled} {
		for _, class := range []receipt.Outcome{"", receipt.OutcomePermanentFailure, receipt.OutcomeRetryableFailure} {
			for _, unsent := range []bool{false, true} {
				if status == receipt.StatusOK && (class != "" || unsent) {
					continue
				}
				t.Run(fmt.Sprintf("%s,%s,unsent=%v", status, class, unsent), func(t *testing.T) {
					p := live(t, calls(2), tool(func(e *manifest.Effect) { e.Retry.Attempts = 1 }))
					p.ask()
					p.reply(worldtest.Reply{Status: status, Class: class, Unsent: unsent})
					if len(p.out.Tasks(receipt.Perform)) > 0 {
						require.True(t, unsent, "it was the only attempt")
						p.reply(worldtest.OK(nil))
					} else if unsent {
						require.True(t, p.another())
					}
					require.True(t, p.another())
					require.False(t, p.another())
				})
			}
		}
	}
}

// What an attempt gives back when it ends is no other's.
func TestCallThatIsGivenBackIsOneCall(t *testing.T) {
	p := live(t, calls(2), func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}}})
	p.Drive()
	p.reply(worldtest.Reply{Status: receipt.StatusError, Unsent: true}) // x gives its call back, y has one
	p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}}})
	p.Drive()
	for len(p.out.Tasks(receipt.Perform)) > 0 {
		p.reply(worldtest.OK(nil))
	}
	require.Equal(t, 2, p.Status().Intents[receipt.StateCommitted], "%v", p.Status().Intents)
	require.Equal(t, 1, p.Status().Intents[receipt.StateDenied], "one call was left for two")
}

func TestEffectInDoubtKeepsItsCall(t *testing.T) {
	for _, how := range []journal.Resolution{journal.Executed, journal.NotExecuted} {
		t.Run(string(how), func(t *testing.T) {
			p := live(t, calls(2))
			p.decided(how)
			if how == journal.NotExecuted {
				p.reply(worldtest.OK(nil))
				require.False(t, p.another(), "its second attempt spent the other one")
				return
			}
			require.True(t, p.another())
			require.False(t, p.another())
		})
	}
}

func TestRetryWithoutACallLeftIsRefused(t *testing.T) {
	p := live(t, calls(1))
	key := p.ask()
	p.lose()
	before := p.Status()
	require.ErrorIs(t, p.resolve(key, journal.RetryAnyway), world.ErrNoBudget)
	require.Equal(t, before, p.Status())
	require.NoError(t, p.resolve(key, journal.Executed))
}

func TestWhatDidNotHappenEndsWithoutACallLeft(t *testing.T) {
	p := live(t, calls(1))
	key := p.ask()
	p.lose()
	require.NoError(t, p.resolve(key, journal.NotExecuted))
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
	ends := worldtest.Bodies[*journal.IntentEnded](t, p.Journal)
	require.Len(t, ends, 1)
	require.Equal(t, receipt.StatusRejected, ends[0].Status)
}

func TestIdempotentEffectInDoubtWithoutACallLeftAsks(t *testing.T) {
	p := live(t, calls(1), inDoubt(manifest.InDoubtRetry))
	key := p.ask()
	p.lose()
	require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
	require.Equal(t, manifest.InDoubtAsk, worldtest.Bodies[*journal.InDoubt](t, p.Journal)[0].Action)
}

func TestVerdictWithoutACallLeftEndsTheIntent(t *testing.T) {
	p := live(t, calls(1), inDoubt(manifest.InDoubtVerify))
	key := p.ask()
	p.lose()
	p.out.Find(p.out.Task(receipt.Verify), receipt.NotHappened, nil, "it is not there")
	p.Drive()
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
}

// tokens bounds tools to 100 tokens; every tool.a may cost 40.
func tokens(m *manifest.Manifest) {
	tool(func(e *manifest.Effect) { e.MaxCost.Tokens = new(uint64(40)) })(m)
	c := m.Caps["tools"]
	c.Budget.Tokens = 100
	m.Caps["tools"] = c
}

func TestCostSettlesWhatWasReserved(t *testing.T) {
	used := func(n uint64) worldtest.Reply {
		r := worldtest.OK(nil)
		r.Cost.Tokens = n
		return r
	}
	// 100 tokens; each further effect asks for 40.
	for name, c := range map[string]struct {
		end  func(p *play)
		more int // effects that are allowed after it, all of which keep their reservation
	}{
		"in flight":    {func(*play) {}, 1},
		"used less":    {func(p *play) { p.reply(used(10)) }, 2},
		"used all":     {func(p *play) { p.reply(used(40)) }, 1},
		"used more":    {func(p *play) { p.reply(used(70)) }, 0},
		"nobody knows": {func(p *play) { p.reply(worldtest.OK(nil)) }, 1},
		"never left":   {func(p *play) { p.reply(worldtest.Reply{Status: receipt.StatusError, Unsent: true}) }, 2},
		"used nothing, for certain": {func(p *play) {
			p.reply(worldtest.Reply{Status: receipt.StatusError, Exact: true})
		}, 2},
		"used what it says and no more": {func(p *play) {
			r := used(10)
			r.Exact = true
			p.reply(r)
		}, 2},
		"in doubt":         {func(p *play) { p.lose() }, 1},
		"the process died": {func(p *play) { p.crash(); p.Drive() }, 1},
		"executed": {func(p *play) {
			lost := p.lose()
			require.NoError(p.t, p.resolve(lost.Key, journal.Executed))
		}, 1},
		"made good by its receipt": {func(p *play) {
			p.out.Reply(p.lose(), used(5))
			p.Drive()
		}, 2},
		"retried": {func(p *play) { // 10 used, and who waits holds nothing
			r := retryable()
			r.Cost.Tokens = 10
			p.reply(r)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, tokens)
			p.ask()
			c.end(p)
			for range c.more {
				require.True(t, p.another())
			}
			require.False(t, p.another())
		})
	}
}

// TestBudgetAfterAProviderThatAlwaysRefuses: ten rate-limit errors use no token.
func TestBudgetAfterAProviderThatAlwaysRefuses(t *testing.T) {
	p := live(t, tokens, tool(func(e *manifest.Effect) { e.Retry.Attempts = 10 }))
	before := p.Budgets()
	p.ask()
	for range 9 {
		p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Exact: true})
		p.due()
	}
	p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Exact: true})
	p.tells("x0 error")
	for i, b := range p.Budgets() {
		require.Zero(t, b.Spent.Tokens)
		require.Zero(t, b.Held.Tokens)
		require.Equal(t, before[i].Left.Tokens, b.Left.Tokens)
	}
	p.RequireReplay()
}

func TestVerifiedNotExecutedReleasesWhatWasReserved(t *testing.T) {
	p := live(t, tokens, inDoubt(manifest.InDoubtVerify), tool(func(e *manifest.Effect) { e.Retry.Attempts = 1 }))
	p.ask()
	p.lose()
	p.out.Find(p.out.Task(receipt.Verify), receipt.NotHappened, nil, "it is not there")
	p.Drive()
	p.tells("x0 rejected")
	require.True(t, p.another())
	require.True(t, p.another())
	require.False(t, p.another())
}

func TestBudgetInAUnitWithoutMaxCostDenies(t *testing.T) {
	p := live(t, noCalls)
	p.ask()
	p.tells("x0 denied")
}

// Whatever happens to them, no more attempts leave than there are calls; and
// what a crash or an image makes of the accounts is requireSound's.
func TestCallsAreNeverOverspent(t *testing.T) {
	const most = 12
	rapid.Check(t, func(rt *rapid.T) {
		out := new(worldtest.Outside)
		w := botsWith(t, worldtest.Options{Outside: out, BatchRecords: 1, CheckpointRecords: 9}, calls(most), inDoubt(manifest.InDoubtRetry), small)
		p := &play{World: w, out: out, t: t}
		returned := 0
		answer := func(rt *rapid.T) {
			tasks := append(out.Tasks(receipt.Perform), out.Tasks(receipt.Retry)...)
			if len(tasks) == 0 {
				return
			}
			task := rapid.SampledFrom(tasks).Draw(rt, "task")
			if task.Work == receipt.Retry {
				out.Due(task)
				return
			}
			unsent := retryable()
			unsent.Unsent = true
			switch rapid.IntRange(0, 4).Draw(rt, "answer") {
			case 0:
				out.Lose(task, "lost")
			case 1:
				out.Reply(task, retryable())
			case 2:
				out.Reply(task, unsent)
				returned++
			case 3:
				out.Store(task, unsent)
				returned++
				w.Crash()
			default:
				out.Reply(task, worldtest.OK(nil))
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"ask": func(rt *rapid.T) {
				w.Submit("go", order{To: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "to"), Do: []act{{Effect: "tool.a"}, {Effect: "tool.a"}}})
			},
			"drive":  func(*rapid.T) { w.Drive() },
			"answer": answer,
			"crash":  func(*rapid.T) { w.Crash() },
			"": func(rt *rapid.T) {
				if sent := len(out.Performed) - returned; sent > most {
					rt.Fatalf("%d attempts on %d calls", sent, most)
				}
			},
		})
		p.requireSound()
		p.requireSameFromImages(1 + p.Journal.Head().ID/4)
	})
}

// TestANewBudgetHoldsWhatIsUnderWay is attempts that began before their capability had one.
func TestANewBudgetHoldsWhatIsUnderWay(t *testing.T) {
	p := live(t)
	budget := func(spent, held, left uint64) {
		t.Helper()
		b := p.Budgets()[0]
		require.Equal(t, []uint64{spent, held, left}, []uint64{b.Spent.Calls, b.Held.Calls, b.Left.Calls})
	}
	doubt := p.ask()
	p.lose()
	p.ask()
	p.rule(calls(3))
	require.Equal(t, receipt.StateInDoubt, p.entry(doubt).State)
	budget(0, 2, 1)
	require.Equal(t, receipt.StateInFlight, p.entry(p.ask()).State)
	waits := p.ask()
	require.Equal(t, receipt.StateOpen, p.entry(waits).State, "there is nothing left but what may come back")
	p.reply(worldtest.OK(nil))
	budget(1, 2, 0)
	require.Equal(t, receipt.StateOpen, p.entry(waits).State)
	p.decide(doubt, journal.Executed)
	p.crash()
	budget(2, 1, 0)
	p.RequireReplay()
}
