package worldtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// patient is a scripted host that gives the oldest answer first.
type patient struct{ scripted }

func (h *patient) Answers() ([]receipt.Answer, error) {
	if len(h.answers) == 0 {
		return nil, nil
	}
	a := h.answers[0]
	h.answers = h.answers[1:]
	return []receipt.Answer{a}, nil
}

func TestLateErrorOfAnAnsweredEffectIsNobodysConcern(t *testing.T) {
	silent := true
	w := Load(t, "testdata/bots", Options{})
	w.cfg.NewHost = func(id string, _ *manifest.Manifest) (world.Host, error) {
		return &patient{scripted{world: id, keys: w.cfg.Keys, answer: func(receipt.Permit) Reply {
			if silent {
				return Reply{Err: errors.New("no answer")}
			}
			return OK(nil)
		}}}, nil
	}
	w.Crash()
	w.Submit("go", map[string]any{"to": "a", "do": []any{
		map[string]any{"effect": "tool.a", "param": "first"}, map[string]any{"effect": "tool.a", "param": "second"},
	}})
	require.Error(t, w.World.Step(context.Background()), "the first is not answered; that of the second lies in the host")
	second := w.Intents()[1]
	data, err := Sign(w.cfg.Keys, "test", receipt.Permit{Intent: second.Intent, Attempt: second.Attempt, Nonce: second.Nonce}, OK(nil))
	require.NoError(t, err)
	_, err = w.Receive(data)
	require.NoError(t, err)
	silent = false
	w.Run()
	require.Equal(t, 2, w.Status().Intents[receipt.StateCommitted])
	w.RequireReplay()
}
