package world_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// rate bounds how often tool.a starts.
func rate(calls uint64, per manifest.Tick) func(*manifest.Manifest) {
	return tool(func(e *manifest.Effect) { e.Rate = manifest.Rate{Calls: calls, Per: per} })
}

// starts returns the ticks in which attempts of tool.a started.
func starts(t require.TestingT, j *worldtest.Journal) (out []manifest.Tick) {
	kinds := make(map[receipt.Key]string)
	for _, stored := range j.Records() {
		rec, err := journal.DecodeRecord(stored.Bytes)
		require.NoError(t, err)
		body, err := rec.Body()
		require.NoError(t, err)
		switch b := body.(type) {
		case *journal.IntentEmitted:
			kinds[b.Key] = b.Kind
		case *journal.Started:
			if kinds[b.Key] == "tool.a" {
				out = append(out, rec.Time)
			}
		}
	}
	return out
}

// requireRate is the law: in no per ticks in a row more than so many start.
func requireRate(t require.TestingT, all []manifest.Tick, r manifest.Rate) {
	for i := range all {
		if n := i + int(r.Calls); n < len(all) {
			require.GreaterOrEqual(t, all[n]-all[i], r.Per, "%d starts from tick %d on", r.Calls+1, all[i])
		}
	}
}

func TestWhatComesTooEarlyWaitsForItsTick(t *testing.T) {
	p := live(t, rate(2, 5))
	p.out.Play = func(t receipt.Task) {
		if t.Work == receipt.Perform {
			p.out.Reply(t, worldtest.OK(nil))
		}
	}
	do := []act{{Effect: "tool.l"}}
	for i := range 7 {
		do = append(do, act{Effect: "tool.a", Param: fmt.Sprint(i)})
	}
	p.Submit("go", order{To: "a", Do: do})
	p.Drive()
	require.Equal(t, []manifest.Tick{1, 3, 6, 8, 11, 13, 16}, starts(t, p.Journal))
	require.Equal(t, 8, p.Status().Intents[receipt.StateCommitted], "none is denied, and another kind does not wait")
}

func TestManyStartInOneTickWhereTheRateLetsThem(t *testing.T) {
	p := live(t, rate(3, 1))
	do := []act{}
	for i := range 7 {
		do = append(do, act{Effect: "tool.a", Param: fmt.Sprint(i)})
	}
	p.Submit("go", order{To: "a", Do: do})
	p.Drive()
	require.Equal(t, []manifest.Tick{1, 1, 1, 2, 2, 2, 3}, starts(t, p.Journal))
}

// TestNoWindowHasMoreStartsThanTheRate is the law, whatever happens: retries count, too.
func TestNoWindowHasMoreStartsThanTheRate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := manifest.Rate{Calls: rapid.Uint64Range(1, 7).Draw(rt, "calls"), Per: manifest.Tick(rapid.Uint64Range(1, 9).Draw(rt, "per"))}
		out := new(worldtest.Outside)
		w := botsWith(t, worldtest.Options{Outside: out, BatchRecords: 1, CheckpointRecords: 9}, rate(r.Calls, r.Per), small)
		p := &play{World: w, out: out, t: t}
		rt.Repeat(map[string]func(*rapid.T){
			"ask": func(rt *rapid.T) {
				do := make([]act, rapid.IntRange(1, 9).Draw(rt, "n"))
				for i := range do {
					do[i] = act{Effect: "tool.a", Param: fmt.Sprint(i)}
				}
				w.Submit("go", order{To: "a", Do: do})
			},
			"drive": func(*rapid.T) { w.Drive() },
			"step":  func(*rapid.T) { w.Submit("go", order{To: "a", Do: []act{{Timer: 3}}}) },
			"answer": func(rt *rapid.T) {
				for _, task := range append(out.Tasks(receipt.Perform), out.Tasks(receipt.Retry)...) {
					if task.Work == receipt.Retry {
						out.Due(task)
					} else {
						out.Reply(task, rapid.SampledFrom([]worldtest.Reply{retryable(), worldtest.OK(nil)}).Draw(rt, "reply"))
					}
				}
			},
			"crash": func(*rapid.T) { w.Crash() },
		})
		w.Drive()
		requireRate(rt, starts(rt, w.Journal), r)
		p.requireSound()
		p.requireSameFromImages(1 + p.Journal.Head().ID/4)
	})
}

// renewing gives the capability tools so many calls in each per ticks.
func renewing(n uint64, per manifest.Tick) func(*manifest.Manifest) {
	return func(m *manifest.Manifest) {
		calls(n)(m)
		c := m.Caps["tools"]
		c.Budget.Per = per
		m.Caps["tools"] = c
	}
}

// later has a cell do something at a tick.
func (p *play) later(cell string, at uint64, kind string) {
	p.t.Helper()
	p.Submit("go", order{To: cell, Do: []act{{Timer: at - uint64(p.Time()) - 1, Do: []act{{Effect: kind}}}}})
	p.Drive()
}

func TestBudgetRenewsInEveryTickThatIsAMultiple(t *testing.T) {
	p := live(t, renewing(1, 10))
	p.ask()
	p.reply(worldtest.OK(nil))
	p.asks("b", "tool.l")
	denied := worldtest.Bodies[*journal.IntentDenied](t, p.Journal)
	require.Equal(t, `the budget of capability "tools" has 0 calls left, effect "tool.l" asks for 1; it renews at tick 10`, denied[0].Reason)
	require.Equal(t, manifest.Tick(10), p.Budgets()[0].Renews)
	p.later("c", 9, "tool.l")
	require.Equal(t, manifest.Tick(9), p.Time())
	require.Equal(t, 2, p.Status().Intents[receipt.StateDenied])
	p.later("c", 11, "tool.l")
	require.Equal(t, []string{"tool.l"}, p.underWay())
	require.Equal(t, receipt.Cost{Calls: 1}, p.Budgets()[0].Held)
	require.Zero(t, p.Budgets()[0].Spent)
	p.later("a", 25, "tool.a") // the one that is held counts here, too
	require.Equal(t, []string{"tool.l"}, p.underWay())
	p.reply(worldtest.OK(nil))
	require.Equal(t, receipt.Cost{Calls: 1}, p.Budgets()[0].Spent, "in the window in which it ended")
	require.Equal(t, 3, p.Status().Intents[receipt.StateDenied])
}

// TestWaitingIntentStartsWhenItsBudgetRenews: what is spent leaves room for it, what is
// held besides does not, and nobody decides about that.
func TestWaitingIntentStartsWhenItsBudgetRenews(t *testing.T) {
	p := live(t, dear, func(m *manifest.Manifest) {
		c := m.Caps["tools"]
		c.Budget.Per = 50
		m.Caps["tools"] = c
	})
	p.asks("a", "tool.a")
	p.asks("b", "tool.a")
	p.reply(used(25))
	p.lose() // 40 are held
	p.asks("c", "tool.a")
	require.Equal(t, manifest.Tick(50), p.Time(), "there is nothing else to do")
	require.Equal(t, []string{"tool.a"}, p.underWay())
	require.Equal(t, receipt.Cost{Tokens: 80}, p.Budgets()[0].Held)
	require.Equal(t, receipt.Cost{Tokens: 20}, p.Budgets()[0].Left)
}

func TestRateOfARealClockComesWithTheClock(t *testing.T) {
	out := new(worldtest.Outside)
	w, clock := realBots(t, worldtest.Options{Outside: out}, rate(1, 3))
	do := []act{{Effect: "tool.a"}, {Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}}
	w.Submit("go", order{To: "a", Do: do})
	w.Drive()
	require.Len(t, out.Tasks(receipt.Perform), 1)
	out.Reply(out.Task(receipt.Perform), worldtest.OK(nil))
	w.Drive()
	p, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, world.Waiting, p)
	at, waits := w.NextWake()
	require.True(t, waits)
	require.Equal(t, w.Time()+3, at)
	clock.Move(2 * time.Second)
	w.Drive()
	require.Empty(t, out.Tasks(receipt.Perform))
	clock.Move(time.Hour) // nobody ran it: no more start than one tick lets
	w.Drive()
	require.Len(t, out.Tasks(receipt.Perform), 1)
	w.RequireReplay()
}
