package world_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// rehearse runs a life's own manifest, or what change makes of it, on its history.
func rehearse(t *testing.T, l *life, cfg world.ShadowConfig, change ...func(*manifest.Manifest)) *governance.Report {
	t.Helper()
	before, root := l.Status(), l.StateRoot()
	next := *l.Manifest()
	for _, change := range change {
		change(&next)
	}
	r, err := l.Rehearse(t.Context(), &next, nil, cfg)
	require.NoError(t, err)
	require.Equal(t, before, l.Status(), "a shadow changes nothing")
	require.Equal(t, root, l.StateRoot(), "a shadow changes nothing")
	return r
}

func TestShadowOfTheSameRulesIsTheHistory(t *testing.T) {
	total, shadowed := make(map[string]int), 0
	stride := fault.Stride(5)
	for seed := fault.From(t, stride); seed < 400; seed += stride {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			l := newLife(t, uint64(seed), false, total)
			l.live()
			_, f := l.Proposals()
			for _, s := range l.Snapshots() {
				if s.Record > f.Since {
					requireNoOp(t, rehearse(t, l, world.ShadowConfig{From: s.Name}))
				}
			}
			if r := rehearse(t, l, world.ShadowConfig{}); r.From >= f.Since {
				requireNoOp(t, r)
				requireNoOp(t, rehearse(t, l, world.ShadowConfig{}, renamed))
				shadowed++
			}
		})
	}
	require.Greater(t, shadowed, 300/int(stride))
}

// renamed gives policies other names: the records of intents are others, and mean
// the same. Cells are told the names of those that deny.
func renamed(m *manifest.Manifest) {
	m.Policies = slices.Clone(m.Policies)
	for i := range m.Policies {
		if m.Policies[i].Decide != manifest.DecideDeny {
			m.Policies[i].Name += " by another name"
		}
	}
}

func requireNoOp(t *testing.T, r *governance.Report) {
	t.Helper()
	if d := r.Divergence; d != nil {
		t.Fatalf("#%d %s:\n%s\n%s", d.Record, d.Cell, d.Recorded, d.Computed)
	}
	require.True(t, r.NoOp(), "%+v", *r)
}

// What a shadow says is what comes of the same events in a world that had the
// candidate from the beginning, as long as that asks for nothing else.
func TestShadowIsTheWorldThatHadTheCandidateAllAlong(t *testing.T) {
	candidates := map[string]func(*manifest.Manifest){
		"other code":  func(m *manifest.Manifest) { setVersion(m, "bot", "2") },
		"code of two": func(m *manifest.Manifest) { setVersion(m, "bot", "2"); setVersion(m, "skip", "2") },
		"deny":        deciding("tool.a", manifest.DecideDeny),
		"ask":         deciding("tool.l", manifest.DecideRequireApproval),
		"route":       func(m *manifest.Manifest) { m.Routing = m.Routing[:4] },
		"small ticks": func(m *manifest.Manifest) { m.Limits.EventsPerTick = 2 },
		"no effects at a time": func(m *manifest.Manifest) {
			m.Limits.InFlight = 1
		},
	}
	for name, change := range candidates {
		t.Run(name, func(t *testing.T) {
			compared, differ := 0, 0
			for seed := range uint64(60) {
				then, now := botsWith(t, answering()), botsWith(t, answering(), change)
				l := &life{t: t, rng: rand.New(rand.NewPCG(seed, 9))}
				for range 12 {
					s := order{To: l.name(), Say: "hello", Do: l.acts(2)}
					event := []string{"go", "go", "skip.go", "both"}[l.rng.IntN(4)]
					for _, w := range []*worldtest.World{then, now} {
						w.Submit(event, s)
						w.Run()
					}
					at := max(then.Time(), now.Time())
					then.Step(int(at - then.Time()))
					now.Step(int(at - now.Time()))
				}
				next := *now.Manifest()
				r, err := then.Rehearse(t.Context(), &next, nil, world.ShadowConfig{})
				require.NoError(t, err)
				again, err := then.Rehearse(t.Context(), &next, nil, world.ShadowConfig{})
				require.NoError(t, err)
				require.Equal(t, r, again)
				if r.Counts.IntentsNew > 0 {
					continue
				}
				compared++
				requireCells(t, world.Compare(&then.Moment, &now.Moment), r)
				if !r.NoOp() {
					differ++
				}
			}
			require.Greater(t, compared, 30)
			if name != "small ticks" && name != "no effects at a time" {
				require.Greater(t, differ, 10)
			}
		})
	}
}

// Where the candidate has fewer slots, receipts come before their intents are in
// flight.
func TestShadowWithFewerSlotsGetsEveryAnswer(t *testing.T) {
	answered := uint64(0)
	for seed := range uint64(150) {
		l := newLife(t, seed, false, make(map[string]int))
		l.live()
		_, f := l.Proposals()
		waits := func(e receipt.Entry) bool { return e.State == receipt.StateInFlight || e.State == receipt.StateOpen }
		if f.Since > 1 || slices.ContainsFunc(l.Intents(), waits) {
			continue // what has no end to this day keeps the slot
		}
		r := rehearse(t, l, world.ShadowConfig{}, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
		require.Zero(t, r.Counts.IntentsNew)
		require.Zero(t, r.Counts.Unknown, "seed %d: %v", seed, r.Unknown)
		answered += r.Events
	}
	require.Greater(t, answered, uint64(100))
}

// What the history has no answer to is said, and keeps nothing else from being
// answered.
func TestShadowSaysWhatNobodyCanKnow(t *testing.T) {
	w := botsWith(t, answering(), func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	for _, to := range []string{"a", "b", "a"} {
		w.Submit("go", order{To: to, Do: []act{{Effect: "tool.l", Param: "p"}}})
		w.Run()
	}
	next := *w.Manifest()
	setVersion(&next, "bot", "curious")
	r, err := w.Rehearse(t.Context(), &next, nil, world.ShadowConfig{})
	require.NoError(t, err)
	require.Equal(t, uint64(3), r.Counts.IntentsNew)
	require.Equal(t, uint64(3), r.Counts.Unknown, "%v", r.Unknown)
	for _, x := range r.Unknown {
		require.Equal(t, "tool.a", x.Kind)
		require.Contains(t, x.Why, "no answer")
	}
	require.Zero(t, r.Counts.IntentsGone)
	require.Zero(t, r.Counts.Cells, "the bots have seen the same: %v", r.Cells)
}

func setVersion(m *manifest.Manifest, reducer, version string) {
	def := m.Reducers[reducer]
	def.Version = version
	m.Reducers = maps.Clone(m.Reducers)
	m.Reducers[reducer] = def
}

// deciding decides about a kind.
func deciding(kind, how string) func(*manifest.Manifest) {
	return func(m *manifest.Manifest) {
		m.Policies = append(slices.Clone(m.Policies), manifest.Policy{Name: "new", When: `intent.kind == "` + kind + `"`, Decide: how})
	}
}

// answering answers effects by what they ask for.
func answering() worldtest.Options {
	return worldtest.Options{Reducers: cellAtRegistry(), Answer: func(p receipt.Permit) worldtest.Reply {
		if len(p.Params)%2 == 0 {
			return worldtest.Fail("no")
		}
		return worldtest.OK(p.Kind)
	}}
}

// requireCells requires that a report names the cells that differ.
func requireCells(t *testing.T, d world.Difference, r *governance.Report) {
	t.Helper()
	var want, got []string
	for _, c := range d.CellsAdded {
		want = append(want, c.Cell.String()+" new")
	}
	for _, c := range d.CellsGone {
		want = append(want, c.Cell.String()+" gone")
	}
	for _, c := range d.CellsChanged {
		want = append(want, c.A.Cell.String()+" changed")
	}
	for _, c := range r.Cells {
		got = append(got, c.Cell+" "+c.What)
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}
