package worldtest

import (
	"iter"
	"maps"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// mostTokens is what an attempt uses at most.
const mostTokens = 20

// bounds are the budgets and the rate of a simulation: drawn apart from all else, so that a
// seed shows what it did before there were any.
type bounds struct {
	rng  *rand.Rand
	more bool          // than calls are bounded
	rate manifest.Rate // of tool.b; zero: it has none
}

// bound gives a manifest more to be bounded by than calls: in half of all simulations a
// rate, and in half of these tokens.
func (x *bounds) bound(m *manifest.Manifest) {
	x.more = x.rng.IntN(2) == 0
	if !x.more {
		return
	}
	b := m.Effects["tool.b"]
	x.rate = manifest.Rate{Calls: 1 + x.rng.Uint64N(3), Per: manifest.Tick(1 + x.rng.Uint64N(6))}
	b.Rate = x.rate
	m.Effects["tool.b"] = b
	if x.rng.IntN(2) == 0 {
		return
	}
	m.Caps = maps.Clone(m.Caps)
	tools := m.Caps["tools"]
	tools.Budget.Tokens = mostTokens * (2 + x.rng.Uint64N(20))
	m.Caps["tools"] = tools
	for kind, e := range m.Effects { // order cannot show: all alike
		e.MaxCost.Tokens = new(uint64(mostTokens))
		m.Effects[kind] = e
	}
}

// cost draws what an attempt used, and whether its receipt says that this is all. It
// reports whether its call comes back for that: the outside refused it.
func (x *bounds) cost(r *Reply) (refused bool) {
	if r.Unsent || !x.more {
		return false
	}
	if x.rng.IntN(3) > 0 {
		r.Cost.Tokens = x.rng.Uint64N(mostTokens + 1)
	}
	r.Exact = x.rng.IntN(2) == 0
	return r.Exact && r.Cost.Tokens == 0 && r.Status == receipt.StatusError
}

// conserved requires that of each budget what is spent, held and left is its limit.
func (s *liveSimulation) conserved() {
	for _, b := range s.w.Budgets() {
		limit := governance.Amounts(b.Limit)
		sum := governance.Sum(governance.Sum(b.Spent, b.Held), b.Left)
		require.Equal(s.t, limit, sum, "%s %s: %+v", b.Scope, b.Name, b)
	}
}

// bodies yields the records of the journal with what they say.
func (s *liveSimulation) bodies() iter.Seq2[*journal.Record, journal.Body] {
	return func(yield func(*journal.Record, journal.Body) bool) {
		for _, stored := range s.w.Journal.Records() {
			rec, err := journal.DecodeRecord(stored.Bytes)
			require.NoError(s.t, err)
			body, err := rec.LoadBody(s.w.Journal)
			require.NoError(s.t, err)
			if !yield(&rec, body) {
				return
			}
		}
	}
}

// drawn holds what budgets say at the end to what the journal says of attempts: each has
// its call, unless it gave it back, and then once; and each has the tokens that its receipt
// names.
func (s *liveSimulation) drawn() {
	var calls, tokens uint64
	for _, body := range s.bodies() {
		switch b := body.(type) {
		case *journal.Started:
			calls++
		case *journal.Finished:
			r, err := receipt.Decode(b.Receipt)
			require.NoError(s.t, err)
			tokens += r.Cost.Tokens
			if r.Unsent || r.Refused() {
				calls--
				s.total["calls given back"]++
			}
		case *journal.RolledBack:
			for _, e := range b.Abandoned {
				if e.Disposition == journal.Cancelled && e.State == receipt.StateInFlight {
					calls--
				}
			}
		}
	}
	for _, b := range s.w.Budgets() {
		for _, e := range b.Holders {
			require.Equal(s.t, receipt.StateInDoubt, e.State, "all else has ended")
		}
		if b.Scope == governance.ScopeWorld {
			require.Equal(s.t, calls, b.Spent.Calls+b.Held.Calls)
		} else {
			require.Equal(s.t, tokens, b.Spent.Tokens)
			s.total["tokens spent"] += int(tokens)
		}
	}
}

// rated requires that in no window more attempts of tool.b started than its rate lets.
func (s *liveSimulation) rated() {
	rate := s.bounds.rate
	if rate.Calls == 0 {
		return
	}
	ofB := make(map[receipt.Key]bool)
	var starts []manifest.Tick
	for rec, body := range s.bodies() {
		switch b := body.(type) {
		case *journal.IntentEmitted:
			ofB[b.Key] = ofB[b.Key] || b.Kind == "tool.b"
		case *journal.Started:
			if ofB[b.Key] {
				starts = append(starts, rec.Time)
			}
		}
	}
	for i := int(rate.Calls); i < len(starts); i++ {
		first := starts[i-int(rate.Calls)]
		require.GreaterOrEqual(s.t, starts[i]-first, rate.Per, "%d starts from tick %d on", rate.Calls+1, first)
		s.total["starts at a rate"]++
	}
}
