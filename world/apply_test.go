package world_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// council lets the play's rules be changed. Nobody is listed: any key will do.
func TestWhoWritesARecordReturnsItsNumber(t *testing.T) {
	p := live(t)
	ctx := t.Context()
	p.snapshot("before")
	wrote := func(want journal.Kind, id journal.Seq, err error) {
		t.Helper()
		require.NoError(t, err)
		data, err := p.Journal.Record(id)
		require.NoError(t, err)
		rec, err := journal.DecodeRecord(data)
		require.NoError(t, err)
		require.Equal(t, want, rec.Kind)
	}
	id, n, err := p.Propose(ctx, world.Proposal{Candidate: p.council().version(2), Base: p.Status().Manifest, Actor: "ada"})
	wrote(journal.KindProposed, id, err)
	id, _, err = p.Shadow(ctx, n, world.ShadowConfig{}, "bob")
	wrote(journal.KindShadowed, id, err)
	require.NoError(t, p.council().sign(n, 1))
	id, _, err = p.Apply(ctx, n, "dan")
	wrote(journal.KindApplied, id, err)
	id, _, err = p.Emit(ctx, journal.OperatorEffect{Actor: "ada", Kind: "tool.a", Cap: "tools", Reason: "so"})
	wrote(journal.KindOperator, id, err)
	id, _, err = p.Rollback(ctx, journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so", Ack: true})
	wrote(journal.KindRollback, id, err)
}

func (p *play) council() *council { return &council{World: p.World, t: p.t} }

// candidate returns the manifest in force with other effects, and without the policies of
// those that are gone.
func (p *play) candidate(change func(effects map[string]manifest.Effect)) *manifest.Manifest {
	next := *p.Manifest()
	next.Version++
	next.Effects = maps.Clone(next.Effects)
	change(next.Effects)
	next.Policies = slices.DeleteFunc(slices.Clone(next.Policies), func(x manifest.Policy) bool {
		for kind := range p.Manifest().Effects { // order cannot show: any will do
			if _, there := next.Effects[kind]; !there && strings.Contains(x.When, strconv.Quote(kind)) {
				return true
			}
		}
		return false
	})
	return &next
}

// without drops a kind of effect.
func without(kind string) func(map[string]manifest.Effect) {
	return func(effects map[string]manifest.Effect) { delete(effects, kind) }
}

func same(map[string]manifest.Effect) {}

// ready proposes a candidate, up to where it can be applied.
func (p *play) ready(next *manifest.Manifest) uint64 {
	p.t.Helper()
	c := p.council()
	require.NoError(p.t, c.propose(next))
	all, _ := p.Proposals()
	n := uint64(len(all))
	require.NoError(p.t, c.shadow(n))
	require.NoError(p.t, c.sign(n, 1))
	return n
}

func TestKindUnderWayIsNotDropped(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*manifest.Manifest)
		begin  func(*play)
		state  receipt.State
		end    func(*play)
	}{
		"open": {
			func(m *manifest.Manifest) { m.Limits.InFlight = 1 },
			func(p *play) {
				p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.l"}, {Effect: "tool.a", Param: "x"}}})
				p.Drive()
			},
			receipt.StateOpen,
			func(p *play) { p.reply(worldtest.OK(nil)); p.reply(worldtest.OK(nil)) },
		},
		"in flight": {nil, func(p *play) { p.ask() }, receipt.StateInFlight, func(p *play) { p.reply(worldtest.Fail(nil)) }},
		"waiting": {
			inDoubt(manifest.InDoubtRetry),
			func(p *play) { p.ask(); p.lose() },
			receipt.StateOpen,
			func(p *play) { p.due(); p.reply(worldtest.OK(nil)) },
		},
		"awaiting approval": {
			approvals,
			func(p *play) { p.ask() },
			receipt.StateAwaitingApproval,
			func(p *play) {
				p.decide(p.Intents()[0].Intent.Key, journal.Disapprove)
			},
		},
		"in doubt": {
			nil,
			func(p *play) { p.ask(); p.lose() },
			receipt.StateInDoubt,
			func(p *play) {
				p.decide(p.Intents()[0].Intent.Key, journal.Executed)
			},
		},
		"a verifier is asked": {
			inDoubt(manifest.InDoubtVerify),
			func(p *play) { p.ask(); p.lose() },
			receipt.StateInDoubt,
			func(p *play) { p.out.Find(p.out.Task(receipt.Verify), receipt.Happened, nil, "it is there"); p.Drive() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, func(m *manifest.Manifest) {
				if x.change != nil {
					x.change(m)
				}
			})
			x.begin(p)
			all := p.Intents()
			require.Equal(t, x.state, all[len(all)-1].State)
			n := p.ready(p.candidate(without("tool.a")))
			c := p.council()
			c.requireRefused(func() error { return c.apply(n) }, world.ErrUnderWay)
			c.requireRefused(func() error { _, err := c.WouldApply(t.Context(), n); return err }, world.ErrUnderWay)
			_, err := c.WouldApply(t.Context(), n)
			var refused *world.InputError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, refused.Rule, all[len(all)-1].Intent.Cell, "it names who asks")
			x.end(p)
			require.NoError(t, c.apply(n))
			p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a"}}})
			p.Drive()
			require.Equal(t, 1, p.Status().Halted, "nobody can ask for it any more")
		})
	}
}

// everything has one effect of the bot a in each state that a host has to do with.
// InFlight comes last, so that the others are not lost with it.
func everything(t *testing.T) *play {
	p := live(t, func(m *manifest.Manifest) {
		m.Effects["tool.a"] = manifest.Effect{Adapter: "test", OnInDoubt: manifest.InDoubtVerify, Verify: &manifest.Verify{Adapter: "test"}}
		m.Effects["tool.l"] = manifest.Effect{Adapter: "test", OnInDoubt: manifest.InDoubtRetry, Idempotent: true}
		m.Effects["other.x"] = manifest.Effect{Adapter: "test"}
		m.Caps["tools"] = manifest.Cap{Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"*"}}}
	})
	p.Submit("go", order{To: "a", Do: []act{
		{Effect: "tool.a", Param: "asked"}, {Effect: "tool.l", Param: "waits"}, {Effect: "tool.u", Param: "lost"}, {Effect: "other.x", Param: "flies"},
	}})
	p.Drive()
	for range 3 {
		p.lose()
	}
	require.Len(t, p.out.Tasks(receipt.Verify), 1)
	require.Len(t, p.out.Tasks(receipt.Retry), 1)
	require.Len(t, p.out.Tasks(receipt.Perform), 1)
	return p
}

// The outside is asked by the new host as by one after a crash.
func TestApplyWithLiveEffectsPerformsNothingTwiceAndLosesNothing(t *testing.T) {
	for name, x := range map[string]struct {
		stored  bool // what is in flight was done, and its result is in the effect store
		crashed bool // not applied: so it is after a crash
	}{
		"applied": {}, "applied, result stored": {stored: true},
		"crashed": {crashed: true}, "crashed, result stored": {stored: true, crashed: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := everything(t)
			if x.stored {
				p.out.Store(p.performing(), worldtest.OK("it is done"))
			}
			if x.crashed {
				p.crash()
			} else {
				require.NoError(t, p.council().apply(p.ready(p.candidate(same))))
			}
			require.Empty(t, p.out.Tasks(receipt.Verify), "whoever looks on asks nobody")
			p.Drive()
			require.Empty(t, p.out.Tasks(receipt.Perform))
			require.Len(t, p.out.Tasks(receipt.Verify), 1)
			require.Len(t, p.out.Tasks(receipt.Retry), 1)
			require.Len(t, p.out.Performed, 4)
			want := receipt.StateInDoubt
			if x.stored {
				want = receipt.StateCommitted
				p.tells("flies3 ok")
			}
			all := p.Intents()
			require.Equal(t, want, all[3].State)

			p.out.Find(p.out.Task(receipt.Verify), receipt.Happened, nil, "it is there")
			p.Drive()
			p.due()
			p.reply(worldtest.OK(nil))
			for _, e := range p.Intents() {
				if e.State == receipt.StateInDoubt {
					require.NoError(t, p.resolve(e.Intent.Key, journal.Executed))
				}
			}
			p.Drive()
			require.Equal(t, 4, p.Status().Intents[receipt.StateCommitted])
			require.Len(t, p.out.Performed, 5, "each once, and the one that was to be retried twice")
			require.True(t, p.Idle())
			p.crash()
			p.Drive()
			require.Len(t, p.out.Performed, 5)
		})
	}
}

func TestLateResultIsCaughtUpByTheNewHost(t *testing.T) {
	p := live(t)
	key := p.ask()
	lost := p.lose()
	p.out.Store(lost, worldtest.OK("it was done after all"))
	require.NoError(t, p.council().apply(p.ready(p.candidate(same))))
	p.Drive()
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
	p.tells("x0 ok")
	require.Len(t, p.out.Performed, 1)
}

// As after any input, what comes then is for the next tick.
func TestStepOfAProposalEndsTheTick(t *testing.T) {
	for name, step := range map[string]func(*play, uint64){
		"a proposal": func(p *play, _ uint64) { require.NoError(t, p.council().propose(p.council().version(9))) },
		"an apply":   func(p *play, n uint64) { require.NoError(t, p.council().apply(n)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t)
			n := p.ready(p.candidate(same))
			p.ask()
			flying := p.performing()
			p.out.Store(flying, worldtest.OK(nil)) // for whoever asks
			step(p, n)
			if len(p.out.Tasks(receipt.Perform)) > 0 {
				p.out.Reply(flying, worldtest.OK(nil))
			}
			p.Drive()
			require.Equal(t, []string{"1:go ", "2:receipt x0 ok"}, p.seen("a"))
		})
	}
}

func TestWhatIsHeldPermitsNothing(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 2 })
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}, {Effect: "tool.a", Param: "z"}}})
	p.Drive()
	begun := p.performing()
	p.out.Unbegun = func(task receipt.Task) bool { return task.Key != begun.Key }
	n := p.ready(p.candidate(same))
	release, err := p.Hold(t.Context())
	require.NoError(t, err)
	require.Len(t, p.InFlight(), 1, "what was not begun is given back")
	require.Equal(t, begun.Key, p.InFlight()[0].Key)

	landed, err := p.Landed(t.Context())
	require.NoError(t, err)
	require.False(t, landed)
	p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a", Param: "w"}}})
	p.Drive()
	require.Len(t, p.InFlight(), 1, "no tick permits anything")
	p.out.Reply(begun, worldtest.OK(nil))
	landed, err = p.Landed(t.Context())
	require.NoError(t, err)
	require.True(t, landed)
	p.Drive()
	require.Empty(t, p.InFlight())

	require.NoError(t, p.council().apply(n))
	p.Drive()
	require.Empty(t, p.InFlight(), "it is held until it is released")
	release()
	p.out.Play = func(task receipt.Task) {
		if task.Work == receipt.Perform {
			p.out.Reply(task, worldtest.OK(nil))
		}
	}
	p.Drive()
	p.tells("x0 ok", "y1 ok", "z2 ok")
	require.Len(t, p.out.Performed, 4)
}

func TestWorldThatIsOnlyReadCanBeHeld(t *testing.T) {
	p := live(t)
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}}})
	p.Drive()
	require.Len(t, p.InFlight(), 1)
	w, err := world.Open(world.Config{
		Journal: p.Journal, History: p.Journal, Registry: botRegistry(),
		NewHost: func(string, *manifest.Manifest) (world.Host, error) { return nil, nil },
	})
	require.NoError(t, err)
	release, err := w.Hold(t.Context())
	require.NoError(t, err)
	release()
}

// unverified drops the verifier of a kind.
func unverified(kind string) func(map[string]manifest.Effect) {
	return func(effects map[string]manifest.Effect) {
		e := effects[kind]
		e.Verify, e.OnInDoubt = nil, manifest.InDoubtAsk
		effects[kind] = e
	}
}

// Where the candidate has no verifier, nobody is left to ask: it is as if the
// verifier could not tell.
func TestVerifierThatIsDroppedWhileItIsAskedLeavesAPersonToDecide(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtVerify))
	key := p.ask()
	p.lose()
	require.Len(t, p.out.Tasks(receipt.Verify), 1)
	require.NoError(t, p.council().apply(p.ready(p.candidate(unverified("tool.a")))))
	for range 2 {
		progress, err := p.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, world.Idle, progress, "there is nothing to wait for")
		require.Empty(t, p.out.Tasks(receipt.Verify))
		require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
		require.True(t, p.Idle())
		p.crash()
	}
	p.decide(key, journal.Executed)
	p.tells("x0 ok")
}

// A verdict that has come and is not yet taken is of the host before.
func TestVerdictsOfTheHostBeforeAreAskedForAgain(t *testing.T) {
	happened := func(p *play) { p.out.Find(p.out.Task(receipt.Verify), receipt.Happened, nil, "it is there") }
	for name, hold := range map[string]func(*play){
		"held until the tick is over": func(p *play) {
			p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.l"}}})
			happened(p)
			require.ErrorIs(p.t, p.World.World.Step(p.t.Context()), worldtest.ErrNoAnswer)
		},
		"held beside a confirmation": func(p *play) {
			p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a"}}})
			p.Drive()
			data, err := worldtest.Sign(worldtest.Keyring(p.t, "test"), "test", p.performing().Permit, worldtest.OK(nil))
			require.NoError(p.t, err)
			p.Submit("go", order{To: "c"}) // ends the tick: b handles the receipt in the next one
			_, err = p.Receive(data)
			require.NoError(p.t, err)
			happened(p)
			p.out.Play = func(task receipt.Task) {
				if task.Work == receipt.Confirm {
					p.out.Find(task, receipt.Happened, nil, "it is there")
				}
			}
			_, err = p.Confirm(p.t.Context())
			require.NoError(p.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, change := range []func(map[string]manifest.Effect){same, unverified("tool.a")} {
				p := live(t, inDoubt(manifest.InDoubtVerify))
				key := p.ask()
				p.lose()
				hold(p)
				require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
				next := p.candidate(change)
				require.NoError(t, p.council().apply(p.ready(next)))
				p.Drive()
				require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
				if next.Effects["tool.a"].Verify == nil {
					require.Empty(t, p.out.Tasks(receipt.Verify))
					continue
				}
				progress, err := p.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, world.Waiting, progress)
				happened(p)
				p.Drive()
				require.Equal(t, receipt.StateCommitted, p.entry(key).State)
			}
		})
	}
}

func TestRecordedResultIsToldWhereItsVerifierIsDropped(t *testing.T) {
	for name, drop := range map[string]func(map[string]manifest.Effect){
		"the verifier": unverified("tool.a"), "the kind": without("tool.a"),
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: manifest.VerifyStrict} }))
			p.order("x")
			p.Drive()
			p.snapshot("waiting")
			p.reply(worldtest.OK(nil))
			_, _, err := p.Rollback(t.Context(), journal.RolledBack{Snapshot: "waiting", Actor: "ada", Reason: "a try", Ack: true})
			require.NoError(t, err)
			p.Drive()
			require.Len(t, p.out.Tasks(receipt.Confirm), 1)
			p.tells()
			require.NoError(t, p.council().apply(p.ready(p.candidate(drop))))
			applied := p.Status().Head.ID
			p.crash()
			p.Drive()
			require.Empty(t, p.out.Tasks(receipt.Confirm))
			p.tells("x0 ok")
			require.Len(t, p.out.Performed, 1)
			last, err := journal.DecodeRecord(p.Journal.Records()[p.Status().Head.ID-1].Bytes)
			require.NoError(t, err)
			require.Equal(t, []any{journal.KindStepped, applied}, []any{last.Kind, last.CausedBy})
		})
	}
}
