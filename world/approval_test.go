package world_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// approvals lets every tool.a wait for a person, ten ticks long.
func approvals(m *manifest.Manifest) {
	m.Policies = append(m.Policies, manifest.Policy{Name: "a person", When: `intent.kind == "tool.a"`, Decide: manifest.DecideRequireApproval})
	m.Defaults.ApprovalTTL = 10
}

func TestIntentAwaitsApprovalAndOthersGoOn(t *testing.T) {
	p := live(t, approvals)
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.l", Param: "y"}}})
	p.Drive()
	require.Equal(t, "tool.l", p.performing().Kind)
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval])
	p.reply(worldtest.OK(nil))
	p.tells("y1 ok")
	require.True(t, p.Idle(), "intents that await approval and their deadlines do not count")
	asked := worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)
	require.Len(t, asked, 1)
	require.Equal(t, []string{"a person"}, asked[0].Rules)
	require.EqualValues(t, 11, asked[0].Deadline)
}

func TestApprovalLetsExactlyThatOneRun(t *testing.T) {
	p := live(t, approvals)
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}}})
	p.Drive()
	second := p.Intents()[1].Intent.Key
	require.NoError(t, p.resolve(second, journal.Approve))
	p.crash()
	p.Drive()
	require.Len(t, p.out.Performed, 1)
	require.Equal(t, second, p.performing().Key)
	p.reply(worldtest.OK(nil))
	p.tells("y1 ok")
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval])
	require.ErrorIs(t, p.resolve(second, journal.Approve), world.ErrNotWaiting)
}

func TestDenialIsToldToTheCell(t *testing.T) {
	p := live(t, approvals)
	key := p.ask()
	p.decide(key, journal.Disapprove)
	p.tells("x0 denied")
	require.Equal(t, receipt.StateDenied, p.entry(key).State)
	require.Empty(t, p.out.Performed)
	denied := worldtest.Bodies[*journal.IntentDenied](t, p.Journal)
	require.Equal(t, "approval_denied", denied[0].Code)
	require.Equal(t, "ada: she looked", denied[0].Reason)
}

func TestApprovalExpiresAtItsTick(t *testing.T) {
	p := live(t, approvals)
	early, late := p.ask(), p.ask() // in ticks 1 and 2
	p.Step(8)
	require.EqualValues(t, 10, p.Status().Time)
	require.Equal(t, 2, p.Status().Intents[receipt.StateAwaitingApproval])
	require.NoError(t, p.resolve(late, journal.Approve))
	p.out.Play = func(t receipt.Task) { p.out.Reply(t, worldtest.OK(nil)) }
	p.Step(1)
	require.Equal(t, receipt.StateDenied, p.entry(early).State, "at tick 11, and not one later")
	p.tells("x0 denied", "x0 ok")
	denied := worldtest.Bodies[*journal.IntentDenied](t, p.Journal)
	require.Equal(t, "approval_expired", denied[0].Code)
	require.ErrorIs(t, p.resolve(early, journal.Approve), world.ErrNotWaiting)
}

func TestExpiryIsNotForgottenInACrashOrAJump(t *testing.T) {
	p := live(t, approvals)
	key := p.ask()
	p.Submit("go", order{To: "b", Do: []act{{Timer: 500}}})
	p.crash()
	p.Drive()
	require.EqualValues(t, 502, p.Status().Time)
	require.Equal(t, receipt.StateDenied, p.entry(key).State)
	p.tells("x0 denied")
}

func TestApprovalIsBoundToTheParams(t *testing.T) {
	p := live(t, approvals)
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}}})
	p.Drive()
	x, y := p.Intents()[0], p.Intents()[1]
	b := journal.Resolved{Key: x.Intent.Key, How: journal.Approve, Params: y.Params, Actor: "ada", Reason: "so"}
	require.ErrorIs(t, worldtest.ErrorOf(p.Resolve(t.Context(), b)), world.ErrOtherParams)
	require.Empty(t, worldtest.Bodies[*journal.Resolved](t, p.Journal))
}

func TestApprovalRunsTheGateAgain(t *testing.T) {
	t.Run("the capability has expired", func(t *testing.T) {
		p := live(t, approvals, func(m *manifest.Manifest) {
			c := m.Caps["tools"]
			c.Expires = 5
			m.Caps["tools"] = c
		})
		key := p.ask()
		p.Step(4)
		p.decide(key, journal.Approve)
		p.tells("x0 denied")
		require.Equal(t, string(governance.CodeExpired), worldtest.Bodies[*journal.IntentDenied](t, p.Journal)[0].Code)
		require.Empty(t, p.out.Performed)
	})
	t.Run("the budget is spent", func(t *testing.T) {
		p := live(t, approvals, calls(1))
		p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}}})
		p.Drive()
		require.Equal(t, 2, p.Status().Intents[receipt.StateAwaitingApproval], "what awaits approval reserves nothing")
		for _, e := range p.Intents() {
			require.NoError(t, p.resolve(e.Intent.Key, journal.Approve))
		}
		p.Drive()
		p.reply(worldtest.OK(nil))
		p.tells("x0 ok", "y1 denied")
		require.Equal(t, string(governance.CodeBudgetExceeded), worldtest.Bodies[*journal.IntentDenied](t, p.Journal)[0].Code)
		require.Len(t, p.out.Performed, 1)
	})
}

// operator asks for a tool.a in the name of ada.
func (p *play) operator() receipt.Key {
	p.t.Helper()
	_, key, err := p.Emit(p.t.Context(), journal.OperatorEffect{
		Actor: "ada", Kind: "tool.a", Cap: "tools", Reason: "by hand", Params: mustData(p.t, map[string]string{"p": "x"}),
	})
	require.NoError(p.t, err)
	return key
}

func TestOperatorsEffectGoesTheSameRoad(t *testing.T) {
	p := live(t)
	key := p.operator()
	p.Drive()
	require.Equal(t, key, p.performing().Key)
	p.reply(worldtest.OK(nil))
	e := p.entry(key)
	require.Equal(t, receipt.StateCommitted, e.State)
	require.Equal(t, "operator/ada", e.Intent.Cell)
	require.Zero(t, p.Status().Cells, "its receipt reaches no cell")
	require.True(t, p.Idle())
}

func TestOperatorsNumberNeverReturns(t *testing.T) {
	p := live(t)
	first := p.operator()
	p.crash()
	second := p.operator()
	require.NotEqual(t, first, second, "the same params, and another key")
	require.EqualValues(t, "operator/ada@1", p.entry(first).Intent.Step)
	require.EqualValues(t, "operator/ada@2", p.entry(second).Intent.Step)
}

func TestOperatorsEffectIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*manifest.Manifest)
		state  receipt.State
	}{
		"denied": {func(m *manifest.Manifest) {
			m.Policies = append(m.Policies, manifest.Policy{Name: "no", When: "true", Decide: manifest.DecideDeny})
		}, receipt.StateDenied},
		"asked":       {approvals, receipt.StateAwaitingApproval},
		"over budget": {noCalls, receipt.StateDenied},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, c.change)
			key := p.operator()
			p.Drive()
			require.Equal(t, c.state, p.entry(key).State)
			require.Empty(t, p.out.Performed)
			require.Zero(t, p.Status().Cells)
		})
	}
}

func TestRefusedOperatorsEffectLeavesNoTrace(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) { m.Limits.Payload = 100 })
	good := journal.OperatorEffect{Actor: "ada", Kind: "tool.a", Cap: "tools", Reason: "so", Params: mustData(t, "p")}
	before := p.Status()
	for name, c := range map[string]struct {
		change func(*journal.OperatorEffect)
		want   error
	}{
		"no actor":       {func(b *journal.OperatorEffect) { b.Actor = "" }, world.ErrBadKey},
		"unknown kind":   {func(b *journal.OperatorEffect) { b.Kind = "tool.none" }, world.ErrNoEffect},
		"no reason":      {func(b *journal.OperatorEffect) { b.Reason = "" }, world.ErrNoReason},
		"params too big": {func(b *journal.OperatorEffect) { b.Params = mustData(t, make([]byte, 101)) }, world.ErrTooLarge},
		"bad params":     {func(b *journal.OperatorEffect) { b.Params = []byte{0x18, 1} }, world.ErrBadData},
	} {
		b := good
		c.change(&b)
		_, _, err := p.Emit(t.Context(), b)
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, before, p.Status(), name)
	}
	_, key, err := p.Emit(t.Context(), good)
	require.NoError(t, err)
	require.EqualValues(t, "operator/ada@1", p.entry(key).Intent.Step)
}

// undo lets tool.u make up for a tool.a that failed and left something behind.
func undo(m *manifest.Manifest) {
	tool(func(e *manifest.Effect) {
		e.Compensate = &manifest.Compensate{Kind: "tool.u", Params: `{"undo": receipt.payload.id}`}
	})(m)
}

func halfDone() worldtest.Reply {
	return worldtest.Reply{
		Status: receipt.StatusError, Class: receipt.OutcomeCompensatable, Payload: map[string]any{"id": 7},
	}
}

func TestCompensationEndsTheOriginal(t *testing.T) {
	for name, c := range map[string]struct {
		reply   worldtest.Reply
		outcome receipt.Outcome
	}{
		"committed": {worldtest.OK(nil), receipt.OutcomeCompensated},
		"failed":    {worldtest.Fail(nil), receipt.OutcomeCompensatable},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, undo)
			key := p.ask()
			p.reply(halfDone())
			p.tells()
			require.False(t, p.Idle())
			task := p.performing()
			require.Equal(t, "tool.u", task.Kind)
			require.Equal(t, p.entry(key).Intent.Step+"!compensate", task.Step)
			require.JSONEq(t, `{"undo": 7}`, mustJSON(t, task.Params))
			p.crash()
			p.Drive()
			require.Equal(t, receipt.StateInDoubt, p.entry(task.Key).State)
			p.decide(task.Key, journal.RetryAnyway)
			p.tells()
			p.reply(c.reply)
			p.tells("x0 error") // what the cell asked for has failed, once and for all
			e := p.entry(key)
			require.Equal(t, []any{receipt.StateFailed, c.outcome}, []any{e.State, e.Outcome})
			require.Empty(t, e.Held)
			ended := worldtest.Bodies[*journal.IntentEnded](t, p.Journal)
			require.Len(t, ended, 1)
			require.Equal(t, []any{key, c.outcome}, []any{ended[0].Key, ended[0].Outcome})
		})
	}
}

func TestCompensationIsGated(t *testing.T) {
	t.Run("denied", func(t *testing.T) {
		p := live(t, undo, func(m *manifest.Manifest) {
			m.Policies = append(m.Policies, manifest.Policy{Name: "no undo", When: `intent.kind == "tool.u"`, Decide: manifest.DecideDeny})
		})
		key := p.ask()
		p.reply(halfDone())
		p.tells("x0 error")
		require.Equal(t, receipt.OutcomeCompensatable, p.entry(key).Outcome)
		require.Len(t, p.out.Performed, 1)
	})
	t.Run("awaiting approval", func(t *testing.T) {
		p := live(t, undo, func(m *manifest.Manifest) {
			m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.kind == "tool.u"`, Decide: manifest.DecideRequireApproval})
		})
		key := p.ask()
		p.reply(halfDone())
		p.tells()
		p.crash()
		p.decide(p.Intents()[1].Intent.Key, journal.Approve)
		p.reply(worldtest.OK(nil))
		p.tells("x0 error")
		require.Equal(t, receipt.OutcomeCompensated, p.entry(key).Outcome)
	})
	t.Run("awaiting approval, and denied", func(t *testing.T) {
		p := live(t, undo, func(m *manifest.Manifest) {
			m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.kind == "tool.u"`, Decide: manifest.DecideRequireApproval})
		})
		key := p.ask()
		p.reply(halfDone())
		p.decide(p.Intents()[1].Intent.Key, journal.Disapprove)
		p.tells("x0 error")
		require.Equal(t, receipt.OutcomeCompensatable, p.entry(key).Outcome)
	})
}

func TestCompensationOfAnOperatorsEffectReachesNoCell(t *testing.T) {
	p := live(t, undo)
	key := p.operator()
	p.Drive()
	p.reply(halfDone())
	p.reply(worldtest.OK(nil))
	require.Equal(t, receipt.OutcomeCompensated, p.entry(key).Outcome)
	require.Zero(t, p.Status().Cells)
	require.True(t, p.Idle())
}

func TestFailureWithoutCompensationIsToldAtOnce(t *testing.T) {
	for name, change := range map[string]func(*manifest.Manifest){
		"none is declared": func(*manifest.Manifest) {},
		"its params fail": func(m *manifest.Manifest) {
			tool(func(e *manifest.Effect) {
				e.Compensate = &manifest.Compensate{Kind: "tool.u", Params: `receipt.payload.nothing`}
			})(m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, change)
			key := p.ask()
			p.reply(halfDone())
			p.tells("x0 error")
			require.Equal(t, receipt.OutcomeCompensatable, p.entry(key).Outcome)
			require.Len(t, p.out.Performed, 1)
		})
	}
}

// TestManyAreDecidedTogetherOrNotAtAll has the process end before and after each append
// that decisions about many intents bring about: every intent is decided then, or none,
// and the one that cannot be is kept from nothing.
func TestManyAreDecidedTogetherOrNotAtAll(t *testing.T) {
	const many = 20
	for _, how := range []journal.Resolution{journal.Approve, journal.Disapprove} {
		for _, fails := range []string{"", "append", "wait"} {
			p := live(t, approvals)
			for i := range many {
				p.Submit("go", order{To: fmt.Sprint("a", i), Do: []act{{Effect: "tool.a", Param: "x"}}})
			}
			p.Drive()
			require.Equal(t, many, p.Status().Intents[receipt.StateAwaitingApproval])
			var all []journal.Resolved
			stood := p.Intents()
			for _, e := range stood {
				all = append(all, journal.Resolved{Key: e.Intent.Key, How: how, Params: e.Params, Actor: "ada", Reason: "so"})
			}
			all, stood = append(all, all[0]), append(stood, stood[0])
			appends := 0
			fail := func(at string) func(int) error {
				return func(int) error {
					if appends++; at == fails {
						return worldtest.ErrInjected
					}
					return nil
				}
			}
			p.Journal.FailAppend, p.Journal.FailWait = fail("append"), fail("wait")
			refused, err := p.ResolveAll(t.Context(), all, stood)
			require.LessOrEqual(t, appends, 2, "one batch")
			p.Journal.FailAppend, p.Journal.FailWait = nil, nil
			left := many
			if fails == "" {
				require.NoError(t, err)
				require.ErrorIs(t, refused[many], world.ErrNotWaiting, "it is decided once")
				require.Equal(t, make([]error, many), refused[:many])
				left = 0
			} else {
				require.ErrorIs(t, err, worldtest.ErrInjected)
			}
			p.crash()
			require.Equal(t, left, p.Status().Intents[receipt.StateAwaitingApproval])
		}
	}
}
