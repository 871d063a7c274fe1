package world_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// costs has an attempt of a kind cost so many tokens, and so many micros, at most.
func costs(kind string, tokens, micros uint64) func(*manifest.Manifest) {
	return func(m *manifest.Manifest) {
		e := m.Effects[kind]
		e.MaxCost.Tokens, e.MaxCost.Micros = new(tokens), new(micros)
		m.Effects[kind] = e
	}
}

// twoBudgets has tools bounded in tokens and the world in micros, 100 each: tool.a needs 60
// of both, tool.l 60 of the first, tool.u 60 of the second.
func twoBudgets(m *manifest.Manifest) {
	tokens(m)
	m.Budget.Micros = 100
	for kind, most := range map[string][2]uint64{"tool.a": {60, 60}, "tool.l": {60, 0}, "tool.u": {0, 60}} {
		costs(kind, most[0], most[1])(m)
	}
}

// TestWhoNeedsTwoBudgetsIsNotPassedByTwoStreams: one of them is always under way in each
// budget, and they end by turns.
func TestWhoNeedsTwoBudgetsIsNotPassedByTwoStreams(t *testing.T) {
	p := live(t, twoBudgets)
	free := worldtest.Reply{Status: receipt.StatusOK, Exact: true}
	p.asks("a", "tool.l")
	p.asks("b", "tool.u")
	p.asks("c", "tool.a")
	for i := range 3 {
		p.asks(fmt.Sprint("l", i), "tool.l")
		p.asks(fmt.Sprint("u", i), "tool.u")
	}
	require.Equal(t, []string{"tool.l", "tool.u"}, p.underWay())
	p.reply(free)
	require.Equal(t, []string{"tool.u"}, p.underWay(), "what is free is for who has waited longest")
	waits, all := p.Waits(), p.Intents()
	require.Equal(t, governance.UnitMicros, waits[all[2].Intent.Key].Short[0].Unit)
	require.Empty(t, waits[all[2].Intent.Key].Ahead)
	require.Equal(t, all[2].Intent.Key, waits[all[3].Intent.Key].Ahead[0].Key)
	require.Empty(t, waits[all[3].Intent.Key].Short, "there is room, and it is claimed")
	p.reply(free)
	require.Equal(t, []string{"tool.a"}, p.underWay())
	p.reply(free)
	require.Equal(t, []string{"tool.l", "tool.u"}, p.underWay())
	for range 6 {
		p.reply(free)
	}
	require.Equal(t, 9, p.Status().Intents[receipt.StateCommitted])
}

// TestWhoWaitsTakesOnlyWhatItNeeds: what its claims leave is there for others.
func TestWhoWaitsTakesOnlyWhatItNeeds(t *testing.T) {
	p := live(t, twoBudgets, costs("tool.u", 0, 40))
	p.asks("a", "tool.l")
	p.asks("b", "tool.a") // waits for tokens, and claims 60 of 100 micros
	p.asks("c", "tool.u")
	p.asks("d", "tool.u")
	require.Equal(t, []string{"tool.l", "tool.u"}, p.underWay())
}

// paced is a world with a real clock whose tool.a starts once in ten ticks.
func paced(t *testing.T, change ...func(*manifest.Manifest)) (p *play, clock *worldtest.Clock) {
	t.Helper()
	out := new(worldtest.Outside)
	change = append([]func(*manifest.Manifest){twoBudgets, rate(1, 10)}, change...)
	w, clock := realBots(t, worldtest.Options{Outside: out, BatchRecords: 1}, change...)
	t.Cleanup(func() {
		if !t.Failed() {
			w.RequireReplay()
		}
	})
	return &play{World: w, out: out, t: t}, clock
}

// TestWhoWaitsForARateKeepsItsPlace: when its tick comes the budget has room, whatever was
// asked for later.
func TestWhoWaitsForARateKeepsItsPlace(t *testing.T) {
	p, clock := paced(t)
	p.asks("a", "tool.a")
	p.asks("b", "tool.a") // its tick is ten ticks from now
	p.asks("c", "tool.l")
	p.reply(worldtest.Reply{Status: receipt.StatusOK, Exact: true})
	require.Empty(t, p.underWay(), "60 tokens of 100 are for who waits")
	all := p.Intents()
	require.Equal(t, all[1].Intent.Key, p.Waits()[all[2].Intent.Key].Ahead[0].Key)
	clock.Move(10 * time.Second)
	p.Drive()
	require.Equal(t, []string{"tool.a"}, p.underWay())
	p.reply(worldtest.Reply{Status: receipt.StatusOK, Exact: true})
	require.Equal(t, []string{"tool.l"}, p.underWay())
}

// TestOnlyTheNextOfARateClaims: of many that wait for it the others cannot start before it,
// and have what they need left to those who can.
func TestOnlyTheNextOfARateClaims(t *testing.T) {
	p, _ := paced(t, costs("tool.a", 30, 30), costs("tool.l", 40, 0), func(m *manifest.Manifest) {
		r := m.Reducers["bot"]
		r.Budget.Calls = 1000 // so those of two cells are not alike
		m.Reducers["bot"] = r
	})
	p.asks("a", "tool.a")
	p.asks("b", "tool.a")
	p.asks("c", "tool.a")
	p.asks("d", "tool.l")
	require.Equal(t, []string{"tool.a", "tool.l"}, p.underWay(), "30 and 40 are set aside, and 30 claimed")
}

// TestTheRateOfAKindDoesNotDenyAheadOfItsTick: its budget may have renewed by then.
func TestTheRateOfAKindDoesNotDenyAheadOfItsTick(t *testing.T) {
	p, clock := paced(t, func(m *manifest.Manifest) { m.Budget.Per = 8 })
	p.asks("a", "tool.a")
	p.asks("b", "tool.a")
	p.reply(used(1)) // nobody knows of micros: 60 of 100 are kept until the budget renews
	require.Equal(t, receipt.StateOpen, p.Intents()[1].State)
	clock.Move(10 * time.Second)
	p.Drive()
	require.Equal(t, []string{"tool.a"}, p.underWay())
}
