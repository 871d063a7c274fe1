package worldtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// eager is an outside that begins whatever it has not given back when Start ends. After a
// crash nothing was begun.
type eager struct {
	*Outside

	begun map[receipt.Key]bool
}

func (h *eager) Start(tasks []receipt.Task) {
	for _, t := range tasks {
		if t.Work == receipt.Recover {
			h.answers = append(h.answers, receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work, Unbegun: true})
			continue
		}
		h.Outside.Start([]receipt.Task{t})
	}
	for _, t := range h.Tasks(receipt.Perform) {
		h.begun[t.Key] = true
	}
}

func TestHoldBeginsNothingThatWaitedForTheWorldToBeOpened(t *testing.T) {
	out := new(Outside)
	w := Load(t, "testdata/bots", Options{Outside: out})
	w.cfg.NewHost = func(id string, _ *manifest.Manifest) (world.Host, error) {
		h := &eager{out, make(map[receipt.Key]bool)}
		out.open(id, w.cfg.Keys)
		out.Unbegun = func(t receipt.Task) bool { return !h.begun[t.Key] }
		return h, nil
	}
	w.Crash()
	w.Submit("go", map[string]any{"to": "a", "do": []any{
		map[string]any{"effect": "tool.a", "param": "first"}, map[string]any{"effect": "tool.a", "param": "second"},
	}})
	for len(out.Tasks(receipt.Perform)) < 2 {
		_, err := w.Next(t.Context())
		require.NoError(t, err)
	}
	w.Crash()
	require.Len(t, w.InFlight(), 2)
	require.Len(t, w.Queued(), 2)
	release, err := w.Hold(t.Context())
	require.NoError(t, err)
	require.Empty(t, w.InFlight(), "they are given back before they begin")
	release()
	w.RequireReplay()
}
