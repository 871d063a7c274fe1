package world_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// The parts that rollbacks left are no part of the history, but what they asked for
// and was answered answers: what was in flight at the snapshot, and what is asked
// for again.
func TestShadowLivesTheHistoryThatRollbacksLeft(t *testing.T) {
	turned := 0
	for seed := range uint64(150) {
		w := botsWith(t, answering(), func(m *manifest.Manifest) {
			for kind, e := range m.Effects {
				e.OnRepeat = manifest.RepeatRun
				m.Effects[kind] = e
			}
		})
		l := &life{t: t, rng: rand.New(rand.NewPCG(seed, 11))}
		for range 14 {
			switch all := w.Snapshots(); {
			case l.rng.IntN(4) == 0:
				_, err := w.Snapshot(t.Context(), "", "", "ada")
				require.NoError(t, err)
			case len(all) > 0 && l.rng.IntN(3) == 0:
				_, _, err := w.Rollback(t.Context(), journal.RolledBack{
					Snapshot: all[l.rng.IntN(len(all))].Name, Actor: "ada", Reason: "so", Ack: true,
				})
				require.NoError(t, err)
				turned++
			default:
				w.Submit([]string{"go", "skip.go", "both"}[l.rng.IntN(3)], order{To: l.name(), Say: "hello", Do: l.acts(1)})
				if l.rng.IntN(2) == 0 {
					w.Run()
				}
			}
		}
		w.Run()
		next := *w.Manifest()
		r, err := w.Rehearse(t.Context(), &next, nil, world.ShadowConfig{})
		require.NoError(t, err)
		require.Zero(t, r.Counts, "seed %d: %+v", seed, r)
		requireNoOp(t, r)
	}
	require.Greater(t, turned, 100)
}

// What is in flight at a snapshot and answered in the part that a rollback leaves
// is told again in the history, and so in the shadow.
func TestShadowAnswersWhatWasInFlightAtASnapshot(t *testing.T) {
	p := live(t)
	p.order("x")
	p.Drive()
	p.snapshot("s")
	p.reply(worldtest.OK("done"))
	p.back("s")
	p.requireShadowIsNoOp()
}

// Ends that came while the part was lived that a rollback leaves are told in the
// order in which they came.
func TestShadowTellsWhatARollbackLeftInItsOrder(t *testing.T) {
	ways := map[string]struct {
		change func(*manifest.Manifest)
		before func(*play) // the snapshot
		after  func(*play)
		then   func(*play) // after the rollback
	}{
		"the last permit first": {
			after: func(p *play) {
				for _, task := range slices.Backward(p.out.Tasks(receipt.Perform)) {
					p.out.Reply(task, worldtest.OK("done"))
					p.Drive()
				}
			},
		},
		"one slot": {
			change: func(m *manifest.Manifest) { m.Limits.InFlight = 1 },
			after: func(p *play) {
				for range 3 {
					p.reply(worldtest.OK("done"))
				}
			},
		},
		"two slots": {
			change: func(m *manifest.Manifest) { m.Limits.InFlight = 2 },
			after: func(p *play) {
				for range 2 {
					p.out.Reply(p.out.Tasks(receipt.Perform)[1], worldtest.OK("done"))
					p.Drive()
				}
				p.reply(worldtest.OK("done"))
			},
		},
		"some are still in flight": {
			after: func(p *play) {
				p.out.Reply(p.out.Tasks(receipt.Perform)[1], worldtest.OK("done"))
				p.Drive()
			},
		},
		"a backoff": {
			before: func(p *play) { p.reply(retryable()) },
			after: func(p *play) {
				p.due()
				for range 3 {
					p.reply(worldtest.OK("done"))
				}
			},
		},
		"a backoff, and then in flight": {
			before: func(p *play) { p.reply(retryable()) },
			after:  func(p *play) { p.due() },
			then: func(p *play) {
				p.reply(retryable())
				p.reply(retryable())
				p.lose()
			},
		},
		"attempts are spent": {
			change: inDoubt(manifest.InDoubtRetry),
			after: func(p *play) {
				for range 2 {
					p.out.Reply(newest(p), retryable())
					p.Drive()
					p.due()
				}
			},
			then: func(p *play) {
				p.out.Lose(newest(p), "the line is dead")
				p.Drive()
			},
		},
		"a person looked": {
			before: func(p *play) { p.lose() },
			after: func(p *play) {
				for _, e := range p.Intents() {
					if e.State == receipt.StateInDoubt {
						require.NoError(p.t, p.resolve(e.Intent.Key, journal.Executed))
					}
				}
				p.Drive()
			},
		},
		"in doubt, and then a receipt": {
			before: func(p *play) { p.lose() },
			after: func(p *play) {
				first := p.out.Performed[0]
				p.out.Reply(receipt.Task{Work: receipt.Perform, Permit: first}, worldtest.OK("late"))
				p.Drive()
			},
		},
		"approved": {
			change: deciding("tool.a", manifest.DecideRequireApproval),
			after: func(p *play) {
				for _, e := range p.Intents() {
					require.NoError(p.t, p.resolve(e.Intent.Key, journal.Approve))
				}
				p.Drive()
				p.reply(worldtest.OK("done"))
			},
		},
		"approved, and then another disapproved": {
			change: deciding("tool.a", manifest.DecideRequireApproval),
			after: func(p *play) {
				p.decide(p.Intents()[1].Intent.Key, journal.Approve)
				p.reply(worldtest.OK("done"))
				p.decide(p.Intents()[0].Intent.Key, journal.Disapprove)
			},
		},
		"disapproved": {
			change: deciding("tool.a", manifest.DecideRequireApproval),
			after: func(p *play) {
				p.decide(p.Intents()[1].Intent.Key, journal.Disapprove)
			},
		},
	}
	for name, w := range ways {
		t.Run(name, func(t *testing.T) {
			var change []func(*manifest.Manifest)
			if w.change != nil {
				change = append(change, w.change)
			}
			p := live(t, change...)
			p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}, {Effect: "tool.a", Param: "z"}}})
			p.Drive()
			if w.before != nil {
				w.before(p)
			}
			p.snapshot("s")
			w.after(p)
			p.back("s")
			if w.then != nil {
				w.then(p)
			}
			for len(p.out.Tasks(receipt.Perform)) > 0 {
				p.reply(worldtest.OK("done"))
			}
			p.requireShadowIsNoOp()
		})
	}
}

// newest returns the attempt that the outside was given last.
func newest(p *play) receipt.Task {
	all := p.out.Tasks(receipt.Perform)
	return all[len(all)-1]
}

func TestShadowLeavesOutTheAttemptsOfWhatARollbackLeft(t *testing.T) {
	p := live(t)
	p.snapshot("s")
	p.order("x")
	p.Drive()
	p.back("s")
	p.reply(retryable())
	p.due()
	p.lose()
	p.requireShadowIsNoOp()
}

// A receipt that comes after all ends what was in doubt, and so it does in the
// shadow.
func TestShadowTakesTheReceiptOfWhatIsInDoubt(t *testing.T) {
	p := live(t)
	p.order("x")
	p.Drive()
	p.out.Reply(p.lose(), worldtest.OK("late"))
	p.Drive()
	p.tells("x0 ok")
	p.requireShadowIsNoOp()
}

func TestShadowTellsAgainWhatAPersonKnew(t *testing.T) {
	p := live(t)
	p.snapshot("s")
	p.order("x")
	p.Drive()
	p.decide(p.lose().Key, journal.Executed)
	p.back("s")
	p.order("x")
	p.Drive()
	p.tells("x0 ok")
	p.requireShadowIsNoOp()
}

// What a rollback left has ended in the shadow, under the number that its record has
// there: a step that asks for it again is told what the history's record says.
func TestShadowTellsAgainWhatARollbackLeft(t *testing.T) {
	p := live(t)
	back := func(to string) {
		_, _, err := p.Rollback(t.Context(), journal.RolledBack{Snapshot: to, Actor: "ada", Reason: "so", Ack: true})
		require.NoError(t, err)
	}
	p.order("x")
	p.snapshot("pending")
	p.Drive()
	doubted := p.lose().Key
	back("pending")
	p.snapshot("doubt") // the step that asked is to be taken
	p.order("y")        // so that the numbers part
	p.order("z")
	require.NoError(t, p.resolve(doubted, journal.Executed))
	back("doubt")
	p.Drive()
	p.tells("x0 ok")
	next := *p.Manifest()
	r, err := p.Rehearse(t.Context(), &next, nil, world.ShadowConfig{From: "doubt"})
	require.NoError(t, err)
	requireNoOp(t, r)
}

// After a rollback with fresh effects the history's intents have other keys than
// the shadow's, which knows of no rollback.
func TestShadowFindsWhatWasInFlightUnderAnotherKey(t *testing.T) {
	p := live(t)
	p.done("first", worldtest.OK("done"))
	p.snapshot("s")
	p.back("s", fresh)
	p.order("x")
	p.Drive()
	p.snapshot("waiting")
	p.reply(worldtest.OK("done"))
	p.back("waiting")
	p.tells("first0 ok", "x0 ok")
	p.requireShadowIsNoOp()
}

func (p *play) requireShadowIsNoOp() {
	p.t.Helper()
	next := *p.Manifest()
	r, err := p.Rehearse(p.t.Context(), &next, nil, world.ShadowConfig{})
	require.NoError(p.t, err)
	requireNoOp(p.t, r)
}
