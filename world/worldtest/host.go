package worldtest

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// scripted is a world.Host that answers out of a Script, at once.
type scripted struct {
	world   string
	keys    *receipt.Keyring
	answer  Script
	answers []world.Answer
}

// Start implements world.Host.
func (h *scripted) Start(permits []receipt.Permit) {
	for _, p := range permits {
		data, err := h.perform(p)
		h.answers = append(h.answers, world.Answer{Key: p.Key, Receipt: data, Err: err})
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
	r.StartedAt, r.FinishedAt = p.Time, p.Time
	return keys.Sign(&r)
}

// Await implements world.Host. The newest answer comes first, so that a test
// fails if the order in which answers arrive can show.
func (h *scripted) Await(ctx context.Context) (world.Answer, error) {
	if err := ctx.Err(); err != nil {
		return world.Answer{}, err
	}
	last := len(h.answers) - 1
	if last < 0 {
		return world.Answer{}, errors.New("worldtest: the world waits for an answer to an effect that was never started")
	}
	a := h.answers[last]
	h.answers = h.answers[:last]
	return a, nil
}
