package world_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// asksToConfirm is what an attempt says that asks a person one thing.
func asksToConfirm(t testing.TB, state string) worldtest.Reply {
	t.Helper()
	q := receipt.Question{State: state, Requests: map[string]receipt.InputRequest{"confirm": {
		Message: "really?", Schema: mustData(t, map[string]any{"type": "object", "required": []any{"yes"}, "properties": map[string]any{"yes": map[string]any{"type": "boolean"}}}),
	}}}
	payload, err := q.Encode()
	require.NoError(t, err)
	return worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeInputRequired, Payload: payload}
}

// asked returns a world whose bot a has an intent that asks a person.
func asked(t *testing.T, change ...func(*manifest.Manifest)) (*play, receipt.Key) {
	t.Helper()
	p := live(t, change...)
	key := p.ask()
	p.out.Reply(p.performing(), asksToConfirm(t, "s1"))
	p.Drive()
	return p, key
}

func (p *play) answer(key receipt.Key, data any) error {
	return worldtest.ErrorOf(p.Resolve(p.t.Context(), journal.Resolved{
		Key: key, How: journal.Answer, Params: p.entry(key).Params, Actor: "ada", Reason: "she asked", Payload: mustData(p.t, data),
	}))
}

func TestAttemptThatAsksWaitsUntilItIsAnswered(t *testing.T) {
	p, key := asked(t)
	require.Equal(t, receipt.StateAwaitingAnswer, p.entry(key).State)
	require.True(t, p.Idle(), "it waits for a person")
	p.tells()
	first := p.entry(key).Nonce
	p.crash()
	require.NoError(t, p.answer(key, map[string]any{"yes": true}))
	p.Drive()
	task := p.performing()
	require.EqualValues(t, 2, task.Attempt)
	require.NotEqual(t, first, task.Nonce, "under a permit of its own")
	require.Len(t, task.Inputs, 1)
	q, given, err := task.Inputs[0].Read()
	require.NoError(t, err)
	require.Equal(t, "s1", q.State)
	require.Equal(t, map[string]receipt.Data{"confirm": mustData(t, map[string]any{"yes": true})}, given)
	p.out.Reply(task, worldtest.OK(nil))
	p.Drive()
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
	p.tells("x0 ok")
	require.Len(t, p.out.Performed, 2)
}

func TestAttemptThatAsksAgainWaitsAgain(t *testing.T) {
	p, key := asked(t, tool(func(e *manifest.Effect) { e.Retry = manifest.Retry{Attempts: 2} }))
	require.NoError(t, p.answer(key, map[string]any{"yes": true}))
	p.Drive()
	p.out.Reply(p.performing(), asksToConfirm(t, "s2"))
	p.Drive()
	require.Equal(t, receipt.StateAwaitingAnswer, p.entry(key).State)
	require.NoError(t, p.answer(key, map[string]any{"yes": false}))
	p.Drive()
	require.Len(t, p.performing().Inputs, 2, "it has all answers")
	p.out.Reply(p.performing(), worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
	p.Drive()
	require.Equal(t, receipt.StateOpen, p.entry(key).State, "attempts that ask are none of those that a retry has")
}

func TestIntentThatAsksTooOftenFails(t *testing.T) {
	p, key := asked(t)
	for range receipt.MaxInputs {
		require.NoError(t, p.answer(key, map[string]any{"yes": true}))
		p.Drive()
		p.out.Reply(p.performing(), asksToConfirm(t, ""))
		p.Drive()
	}
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
	p.tells("x0 error")
}

func TestDenialEndsWhatAsks(t *testing.T) {
	p, key := asked(t)
	p.decide(key, journal.Disapprove)
	require.Equal(t, receipt.StateFailed, p.entry(key).State, "it was attempted: no step can ask for it anew")
	p.tells("x0 rejected")
	require.Len(t, p.out.Performed, 1)
}

func TestAnswerThatIsNoneIsRefused(t *testing.T) {
	p, key := asked(t)
	for name, c := range map[string]struct {
		data any
		err  error
	}{
		"breaks the schema": {map[string]any{"yes": "perhaps"}, world.ErrBadAnswer},
		"lacks a field":     {map[string]any{}, world.ErrBadAnswer},
		"no object":         {true, world.ErrBadAnswer},
		"nothing":           {nil, world.ErrBadAnswer},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, p.answer(key, c.data), c.err) })
	}
	require.ErrorIs(t, p.resolve(key, journal.Approve), world.ErrNotWaiting, "nobody asked for approval")
	require.Equal(t, receipt.StateAwaitingAnswer, p.entry(key).State)
	require.NoError(t, p.answer(key, map[string]any{"yes": true}))
	require.ErrorIs(t, p.answer(key, map[string]any{"yes": true}), world.ErrNotWaiting, "it is answered once")
}

func TestAnswerNeedsBudget(t *testing.T) {
	p, key := asked(t, func(m *manifest.Manifest) {
		m.Budget = manifest.Budget{Calls: 1}
	})
	require.ErrorIs(t, p.answer(key, map[string]any{"yes": true}), world.ErrNoBudget)
}

func TestReceiptThatAsksNothingIsAFailure(t *testing.T) {
	p := live(t)
	key := p.ask()
	p.out.Reply(p.performing(), worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeInputRequired, Payload: receipt.Data(canon.Null)})
	p.Drive()
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
	p.tells("x0 error")
}

func TestAnswerWhoseCheckDoesNotEndIsRefused(t *testing.T) {
	var schema any
	require.NoError(t, json.Unmarshal([]byte(blowUp), &schema))
	q := receipt.Question{Requests: map[string]receipt.InputRequest{"confirm": {Message: "really?", Schema: mustData(t, schema)}}}
	payload, err := q.Encode()
	require.NoError(t, err)
	p := live(t)
	key := p.ask()
	p.out.Reply(p.performing(), worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeInputRequired, Payload: payload})
	p.Drive()
	require.ErrorIs(t, p.answer(key, nested(50)), world.ErrBadAnswer)
	require.Equal(t, receipt.StateAwaitingAnswer, p.entry(key).State)
}
