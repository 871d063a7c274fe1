package world_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// rule puts rules in force that are those of now but for a change.
func (p *play) rule(change ...func(*manifest.Manifest)) {
	p.t.Helper()
	require.NoError(p.t, p.council().apply(p.ready(p.changed(change...))))
}

// changed returns the rules of now but for a change.
func (p *play) changed(change ...func(*manifest.Manifest)) *manifest.Manifest {
	next := *p.Manifest()
	next.Version++
	next.Effects, next.Caps = maps.Clone(next.Effects), maps.Clone(next.Caps)
	next.Policies = slices.Clone(next.Policies)
	for _, c := range change {
		c(&next)
	}
	return &next
}

// denied lets no tool.a through any more.
func denied(m *manifest.Manifest) {
	m.Policies = append(m.Policies, manifest.Policy{Name: "no tool.a", When: `intent.kind == "tool.a"`, Decide: manifest.DecideDeny})
}

// An intent in each state in which nothing is begun, and how its cell is told the end that a
// deny brings.
var notBegun = map[string]struct {
	change func(*manifest.Manifest)
	begin  func(*play)
	told   string
}{
	"waits for a slot": {
		func(m *manifest.Manifest) { m.Limits.InFlight = 1 },
		func(p *play) {
			p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.l"}}})
			p.Drive()
			p.ask()
		}, "denied",
	},
	"waits for a rate": {
		tool(func(e *manifest.Effect) { e.Rate = manifest.Rate{Calls: 1, Per: 100} }),
		func(p *play) {
			p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a", Param: "x"}}})
			p.Drive()
			p.reply(worldtest.OK(nil))
			p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}}})
			p.Step(1)
		}, "denied",
	},
	"waits for a budget": {
		dear, func(p *play) { p.asks("b", "tool.u"); p.ask() }, "denied",
	},
	"waits for its backoff": {
		tool(func(e *manifest.Effect) { e.Retry.Attempts = 3 }),
		func(p *play) {
			p.ask()
			p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
		}, "rejected",
	},
	"waits for a person": {approvals, func(p *play) { p.ask() }, "denied"},
	"was approved": {
		approvals,
		func(p *play) { require.NoError(p.t, p.resolve(p.ask(), journal.Approve)) }, "denied",
	},
	"is attempted once more after it was in doubt": {
		inDoubt(manifest.InDoubtRetry), func(p *play) { p.ask(); p.lose() }, "rejected",
	},
}

// What is not begun when a deny is applied is not begun at all.
func TestAppliedDenyEndsWhatIsNotBegun(t *testing.T) {
	for name, x := range notBegun {
		t.Run(name, func(t *testing.T) {
			p := live(t, x.change)
			x.begin(p)
			performed := len(p.out.Performed)
			before := len(p.Journal.Records())
			p.rule(denied)
			all := p.Intents()
			last := all[len(all)-1]
			require.True(t, last.Ended(), "with the manifest: it is %s", last.State)
			require.Equal(t, x.told == "denied", last.State == receipt.StateDenied)
			require.Contains(t, p.told(before), "no tool.a", "the record names the rule")
			p.Drive()
			p.Step(200)
			require.Len(t, p.out.Performed, performed, "nothing more is performed")
			p.tells("x0 " + x.told)
		})
	}
}

// told returns what was written of ends of intents since a number of records.
func (p *play) told(since int) string {
	out := ""
	for _, b := range worldtest.Bodies[*journal.IntentDenied](p.t, p.Journal) {
		out += b.Reason
	}
	for _, b := range worldtest.Bodies[*journal.IntentEnded](p.t, p.Journal) {
		text, err := b.Payload.MarshalJSON()
		require.NoError(p.t, err)
		out += string(text)
	}
	require.Greater(p.t, len(p.Journal.Records()), since)
	return out
}

// What is not begun when rules are applied by which a person decides waits for that person.
func TestAppliedApprovalAsksAboutWhatIsNotBegun(t *testing.T) {
	for name, x := range notBegun {
		if name == "waits for a person" || name == "was approved" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := live(t, x.change)
			x.begin(p)
			performed := len(p.out.Performed)
			p.rule(approvals, func(m *manifest.Manifest) { m.Defaults.ApprovalTTL = 1000 })
			p.Drive()
			p.Step(200)
			require.Len(t, p.out.Performed, performed)
			asks := worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)
			require.Len(t, asks, 1)
			require.NotEmpty(t, asks[0].Reason)
			p.decide(asks[0].Key, journal.Approve)
			if name == "waits for a budget" { // another one holds it, in doubt since the apply
				require.Equal(t, receipt.StateOpen, p.entry(asks[0].Key).State)
				return
			}
			require.Len(t, p.out.Performed, performed+1, "it goes on after that")
		})
	}
	t.Run("a person who says no ends what was attempted as that", func(t *testing.T) {
		p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 3 }))
		key := p.ask()
		p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
		p.rule(approvals)
		p.decide(key, journal.Disapprove)
		p.tells("x0 rejected")
		require.Equal(t, receipt.StateFailed, p.entry(key).State)
	})
}

// What was in flight, or in doubt, when rules were applied is attempted again by these.
func TestNextAttemptIsJudgedByTheRulesOfThen(t *testing.T) {
	p := live(t)
	key := p.ask()
	p.lose()
	p.rule(denied)
	require.Equal(t, receipt.StateInDoubt, p.entry(key).State, "it may have happened")
	p.decide(key, journal.RetryAnyway)
	require.Len(t, p.out.Performed, 1)
	p.tells("x0 rejected")
	require.Contains(t, p.told(0), "nobody can tell whether an attempt before happened")
}

// An attempt that asked a person did something; the next one, with the answer, is another.
func TestAnswerStartsNothingThatTheRulesDeny(t *testing.T) {
	for _, answered := range []bool{false, true} { // when the rules are applied
		p, key := asked(t)
		if answered {
			require.NoError(t, p.answer(key, map[string]any{"yes": true}))
		}
		p.rule(denied)
		if !answered && p.entry(key).State == receipt.StateAwaitingAnswer {
			require.NoError(t, p.answer(key, map[string]any{"yes": true}))
		}
		p.Drive()
		require.Len(t, p.out.Performed, 1)
		p.tells("x0 rejected")
	}
}

// What an attempt may do is decided in the tick in which it starts.
func TestAttemptStartsUnderWhatHoldsThen(t *testing.T) {
	expires := func(m *manifest.Manifest) {
		c := m.Caps["tools"]
		c.Expires = 50
		m.Caps["tools"] = c
	}
	for _, name := range []string{"waits for a rate", "waits for its backoff"} {
		t.Run(name, func(t *testing.T) {
			p := live(t, notBegun[name].change, expires)
			notBegun[name].begin(p)
			performed := len(p.out.Performed)
			p.Step(99)
			if name == "waits for its backoff" {
				p.due()
			}
			require.Len(t, p.out.Performed, performed)
			p.tells("x0 " + notBegun[name].told)
			require.Contains(t, p.told(0), "expired at tick 50")
		})
	}
	t.Run("night", func(t *testing.T) {
		p := live(t, notBegun["waits for a rate"].change, func(m *manifest.Manifest) {
			m.Policies = append(m.Policies, manifest.Policy{Name: "late", When: "world.time > 60", Decide: manifest.DecideRequireApproval})
		})
		notBegun["waits for a rate"].begin(p)
		performed := len(p.out.Performed)
		p.Step(99)
		p.Step(10)
		require.Len(t, p.out.Performed, performed)
		require.Equal(t, []string{"late"}, worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)[0].Rules)
	})
}

// An approval is one of what was seen then: the effect with its config, the capability, the rules.
func TestApprovalIsBoundToWhatWasSeen(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*manifest.Manifest)
		why    string // empty: it goes on
	}{
		"nothing": {func(*manifest.Manifest) {}, ""},
		"another effect": {func(m *manifest.Manifest) {
			e := m.Effects["tool.l"]
			e.Config = mustData(t, map[string]string{"program": "./other.sh"})
			m.Effects["tool.l"] = e
		}, ""},
		"the config": {tool(func(e *manifest.Effect) { e.Config = mustData(t, map[string]string{"program": "./other.sh"}) }), "the declaration of effect tool.a"},
		"the class":  {tool(func(e *manifest.Effect) { e.Class = manifest.ClassDestructive }), "the declaration of effect tool.a"},
		"the capability": {func(m *manifest.Manifest) {
			c := m.Caps["tools"]
			c.Params.Kinds = []string{"tool.*", "other.*"}
			m.Caps["tools"] = c
		}, "capability tools"},
		"the rule": {func(m *manifest.Manifest) {
			m.Policies[len(m.Policies)-1].When = `intent.kind in ["tool.a", "tool.l"]`
		}, "the policies"},
		"no rule asks any more": {func(m *manifest.Manifest) { m.Policies = m.Policies[:len(m.Policies)-1] }, ""},
	} {
		for _, approved := range []bool{true, false} {
			t.Run(map[bool]string{true: "approved", false: "not yet"}[approved]+"/"+name, func(t *testing.T) {
				p := live(t, approvals)
				key := p.ask()
				if approved {
					require.NoError(t, p.resolve(key, journal.Approve))
				}
				p.rule(x.change)
				if x.why == "" && approved {
					p.Drive()
					require.Len(t, p.out.Performed, 1)
					return
				}
				require.Equal(t, receipt.StateAwaitingApproval, p.entry(key).State)
				asks := worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)
				require.Equal(t, x.why != "", len(asks) == 2, "it is asked again where it is another question")
				require.Contains(t, asks[len(asks)-1].Reason, x.why)
				p.Drive()
				require.Empty(t, p.out.Performed)
				p.decide(key, journal.Approve)
				require.Len(t, p.out.Performed, 1)
			})
		}
	}
}

// What a person answers is for what has asked: another tool, server or program gets it only where
// somebody approves that.
func TestAnswerIsForWhatHasAsked(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*manifest.Manifest)
		why    string // empty: it goes on
	}{
		"nothing": {func(*manifest.Manifest) {}, ""},
		"another effect": {func(m *manifest.Manifest) {
			e := m.Effects["tool.l"]
			e.Config = mustData(t, map[string]string{"program": "./other.sh"})
			m.Effects["tool.l"] = e
		}, ""},
		"the config": {tool(func(e *manifest.Effect) { e.Config = mustData(t, map[string]string{"tool": "wipe"}) }), "the declaration of effect tool.a"},
		"the capability": {func(m *manifest.Manifest) {
			c := m.Caps["tools"]
			c.Params.Kinds = []string{"tool.*", "other.*"}
			m.Caps["tools"] = c
		}, "capability tools"},
		"a rule asks": {approvals, "the policies"},
	} {
		for _, when := range []string{"asking", "asked", "answered"} {
			t.Run(when+"/"+name, func(t *testing.T) {
				p := live(t)
				key := p.ask()
				answered := func() { require.NoError(t, p.answer(key, map[string]any{"yes": true})) }
				switch when {
				case "asking":
					task := p.performing()
					p.rule(x.change)
					p.out.Reply(task, asksToConfirm(t, "s1"))
					p.Drive()
					answered()
				case "asked":
					p.out.Reply(p.performing(), asksToConfirm(t, "s1"))
					p.Drive()
					p.rule(x.change)
					answered()
				default:
					p.out.Reply(p.performing(), asksToConfirm(t, "s1"))
					p.Drive()
					answered()
					p.rule(x.change)
				}
				p.crash()
				p.Drive()
				asks := worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)
				if x.why == "" && when != "asking" {
					require.Empty(t, asks)
					require.Len(t, p.out.Performed, 2)
					return
				}
				require.Len(t, p.out.Performed, 1, "the answer went to something else")
				require.Equal(t, receipt.StateAwaitingApproval, p.entry(key).State)
				require.Len(t, asks, 1)
				why := x.why
				if when == "asking" { // under rules that are gone: what of them matters is not kept
					why = "the declaration of effect tool.a"
				}
				require.Contains(t, asks[0].Reason, why)
				p.decide(key, journal.Approve)
				require.Len(t, p.performing().Inputs, 1, "it was approved to get the answer")
			})
		}
	}
}

// What a person has approved is denied where the rules deny it now.
func TestApprovedIsDeniedByNarrowerRules(t *testing.T) {
	for name, change := range map[string]func(*manifest.Manifest){
		"capability": func(m *manifest.Manifest) {
			c := m.Caps["tools"]
			c.Params.Kinds = []string{"tool.l"}
			m.Caps["tools"] = c
		},
		"expired": func(m *manifest.Manifest) {
			c := m.Caps["tools"]
			c.Expires = 1
			m.Caps["tools"] = c
		},
		"grant": func(m *manifest.Manifest) {
			r := m.Reducers["bot"]
			r.Grants = nil
			m.Reducers = maps.Clone(m.Reducers)
			m.Reducers["bot"] = r
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, approvals)
			key := p.ask()
			require.NoError(t, p.resolve(key, journal.Approve))
			p.rule(change)
			p.Drive()
			require.Empty(t, p.out.Performed)
			require.Equal(t, receipt.StateDenied, p.entry(key).State)
			p.tells("x0 denied")
		})
	}
}

// The digests in a record are those of what the manifest says.
func TestAwaitingApprovalRecordSaysWhatWasSeen(t *testing.T) {
	p := live(t, approvals)
	p.ask()
	seen := worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)[0].Seen
	require.Equal(t, governance.ApprovalBasis(p.Manifest(), "tool.a", "tools", []string{"a person"}), seen)
	require.NotContains(t, []receipt.Hash{seen.Cap, seen.Rules}, seen.Effect)
	require.NotZero(t, seen.Effect)
}

// What is not begun can be stopped by a person, whatever it waits for.
func TestStopEndsWhatIsNotBegun(t *testing.T) {
	for name, x := range notBegun {
		t.Run(name, func(t *testing.T) {
			p := live(t, x.change)
			x.begin(p)
			performed, all := len(p.out.Performed), p.Intents()
			last := all[len(all)-1]
			require.NoError(t, p.resolve(last.Intent.Key, journal.Stop))
			last = p.entry(last.Intent.Key)
			require.True(t, last.Ended(), "it is %s", last.State)
			require.Contains(t, p.told(0), "ada: she looked")
			p.crash()
			p.Drive()
			p.Step(200)
			require.Len(t, p.out.Performed, performed, "nothing more is performed")
			p.tells("x0 " + x.told)
			require.ErrorIs(t, p.resolve(last.Intent.Key, journal.Stop), world.ErrNotWaiting, "it has ended")
		})
	}
	t.Run("asks a person", func(t *testing.T) {
		p, key := asked(t)
		p.decide(key, journal.Stop)
		p.tells("x0 rejected")
	})
}

// What may have happened is not undone by a stop, which changes nothing there.
func TestStopLeavesWhatIsBegun(t *testing.T) {
	refused := func(t *testing.T, p *play, key receipt.Key) {
		t.Helper()
		was := p.Journal.Head()
		require.ErrorIs(t, p.resolve(key, journal.Stop), world.ErrNotWaiting)
		require.Equal(t, was, p.Journal.Head())
	}
	t.Run("in flight", func(t *testing.T) {
		p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 3 }))
		key := p.ask()
		refused(t, p, key)
		p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
		p.decide(key, journal.Stop)
		p.tells("x0 rejected")
	})
	t.Run("in doubt", func(t *testing.T) {
		p := live(t)
		key := p.ask()
		p.lose()
		refused(t, p, key)
	})
	t.Run("accepted", func(t *testing.T) {
		p, key := accepted(t)
		refused(t, p, key)
	})
	t.Run("committed", func(t *testing.T) {
		p := live(t)
		key := p.ask()
		p.reply(worldtest.OK(nil))
		refused(t, p, key)
	})
}

// What an apply would stop is said before it, as it then comes.
func TestForeseenIsWhatAnApplyStops(t *testing.T) {
	for name, x := range notBegun {
		for rule, change := range map[string][]func(*manifest.Manifest){"deny": {denied}, "ask": {approvals}, "nothing": nil} {
			if rule == "ask" && (name == "waits for a person" || name == "was approved") {
				continue
			}
			t.Run(name+"/"+rule, func(t *testing.T) {
				p := live(t, x.change)
				x.begin(p)
				next := p.changed(change...)
				n, before := p.ready(next), p.Journal.Head()
				foreseen, err := world.PreviewApply(t.Context(), func(look func(*world.Moment)) { look(&p.Moment) }, next, nil)
				require.NoError(t, err)
				require.Equal(t, before, p.Journal.Head())
				require.Equal(t, rule == "deny", foreseen.Open.Denied == 1)
				require.NotZero(t, foreseen.Open.Open)
				_, done, err := p.Apply(t.Context(), n, "dan")
				require.NoError(t, err)
				foreseen.Open.UnderWay = 0 // it has ended
				require.Equal(t, foreseen.Open, done.Open)
				require.Len(t, done.Open.First, int(done.Open.Denied+done.Open.Asked))
			})
		}
	}
}

// Whoever applies rules can go at any moment: nothing has changed, or all of it.
func TestApplyIsJudgedToItsEnd(t *testing.T) {
	refused, applied := 0, 0
	stride := int(fault.Stride(3))
	for checks := int(fault.From(t, int64(stride))); checks < 60; checks += stride {
		p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
		for i := range 5 {
			p.Submit("go", order{To: fmt.Sprint("c", i), Do: []act{{Effect: "tool.a", Param: "x"}}})
		}
		p.Drive()
		n := p.ready(p.changed(func(m *manifest.Manifest) {
			m.Policies = append(m.Policies, manifest.Policy{Name: "only a", When: `cell.key == "c1"`, Decide: manifest.DecideDeny})
		}))
		_, _, err := p.Apply(&patience{t.Context(), checks}, n, "dan")
		if err != nil {
			refused++
			require.Empty(t, worldtest.Bodies[*journal.IntentDenied](t, p.Journal))
			continue
		}
		applied++
		denied := worldtest.Bodies[*journal.IntentDenied](t, p.Journal)
		require.Len(t, denied, 1)
		require.Equal(t, []string{"only a"}, denied[0].Rules)
	}
	require.NotZero(t, refused)
	require.NotZero(t, applied)
}
