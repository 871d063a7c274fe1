package worldtest

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// scripted is a world.Host that answers out of a Script, at once.
type scripted struct {
	world   string
	keys    *receipt.Keyring
	answer  Script
	answers []receipt.Answer
}

// Live implements world.Host.
func (h *scripted) Live(*receipt.Intent) bool { return false }

// Start implements world.Host.
func (h *scripted) Start(tasks []receipt.Task) {
	for _, t := range tasks {
		if t.Work == receipt.Forget {
			continue
		}
		data, err := h.perform(t.Permit)
		h.answers = append(h.answers, receipt.Answer{Key: t.Key, Attempt: t.Attempt, Receipt: data, Err: err})
	}
}

func (h *scripted) perform(p receipt.Permit) ([]byte, error) {
	reply := h.answer(p)
	if reply.Err != nil {
		return nil, reply.Err
	}
	return Sign(h.keys, h.world, p, reply)
}

// Sign makes the receipt for one attempt, as a host would.
func Sign(keys *receipt.Keyring, worldID string, p receipt.Permit, reply Reply) ([]byte, error) {
	payload, err := canon.Marshal(reply.Payload)
	if err != nil {
		return nil, err
	}
	r := receipt.New(worldID, p, reply.Status, payload)
	r.Class, r.Unsent, r.Cost, r.Exact, r.StateChange = reply.Class, reply.Unsent, reply.Cost, reply.Exact, reply.StateChange
	r.StartedAt, r.FinishedAt = p.Time, p.Time
	return keys.Sign(&r)
}

// Answers implements world.Host. It gives one answer at a time, the newest
// first, so that a test fails if the order in which answers arrive can show.
func (h *scripted) Answers() ([]receipt.Answer, error) {
	last := len(h.answers) - 1
	if last < 0 {
		return nil, nil
	}
	a := h.answers[last]
	h.answers = h.answers[:last]
	return []receipt.Answer{a}, nil
}

// Wake implements world.Host: its Wait never blocks on the journal.
func (*scripted) Wake() {}

// Queued implements world.Host.
func (*scripted) Queued() receipt.Queued { return nil }

// Wait implements world.Host.
func (h *scripted) Wait(ctx context.Context) error {
	if len(h.answers) == 0 {
		return errors.New("worldtest: the world waits for an answer to an effect that was never started")
	}
	return ctx.Err()
}
