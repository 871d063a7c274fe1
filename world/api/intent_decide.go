package api

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// DecisionRequest is what a person decides about an intent. Who that is the token
// says.
type DecisionRequest struct {
	Reason     string `json:"reason"`      // why, for those who read the journal
	ParamsHash string `json:"params_hash"` // decide only if its params have this hash; empty: whatever they are
	Reuse      bool   `json:"reuse"`       // of an approval: do not perform it, it gets the result of what it repeats
}

// ResolveRequest says whether an intent in doubt happened.
type ResolveRequest struct {
	Reason   string          `json:"reason"`
	Executed *bool           `json:"executed"` // needed
	Payload  json.RawMessage `json:"payload"`  // of what happened: what its cell is told; nil: null
}

// Decided is what became of an intent, as `worldctl intent approve -o json` says it.
type Decided struct {
	Schema     string             `json:"schema"`
	Key        receipt.Key        `json:"key"`
	Cell       string             `json:"cell"`
	Kind       string             `json:"kind"`
	How        journal.Resolution `json:"how"`
	Actor      string             `json:"actor"`
	Reason     string             `json:"reason"` // of the decision
	ParamsHash journal.Hash       `json:"params_hash"`
	State      receipt.State      `json:"state"`
	Why        string             `json:"why"` // of the state
}

// confirmByHand stands for local.World.ConfirmByHand among the resolutions.
const confirmByHand journal.Resolution = "confirm"

// noReason is journaled where a person need not give a reason and gave none.
const noReason = "no reason was given"

func approveIntent(c *call) error { return c.decideAs(journal.Approve, noReason) }
func denyIntent(c *call) error    { return c.decideAs(journal.Disapprove, noReason) }
func retryIntent(c *call) error   { return c.decideAs(journal.RetryAnyway, "") }
func confirmIntent(c *call) error { return c.decideAs(confirmByHand, "") }

// decideAs takes a decision. otherwise is the reason where none is given.
func (c *call) decideAs(how journal.Resolution, otherwise string) error {
	var req DecisionRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	e, err := c.intent()
	if err != nil {
		return err
	}
	b := journal.Resolved{How: how, Params: e.Params, Reason: cmp.Or(req.Reason, otherwise)}
	if req.ParamsHash != "" {
		if b.Params, err = canon.ParseHash(req.ParamsHash); err != nil {
			return badRequest("params_hash", "it has to be 64 hex digits")
		}
	}
	switch {
	case how == confirmByHand && b.Params != e.Params:
		return world.ErrOtherParams
	case req.Reuse && how != journal.Approve:
		return badRequest("reuse", "only an approval can reuse a result")
	case req.Reuse:
		b.How = world.Reuse
	}
	return c.decide(e, b)
}

func resolveIntent(c *call) error {
	var req ResolveRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	e, err := c.intent()
	if err != nil {
		return err
	}
	b := journal.Resolved{How: journal.NotExecuted, Params: e.Params, Reason: req.Reason}
	if b.Payload, err = dataOf("payload", req.Payload); err != nil {
		return err
	}
	switch {
	case req.Executed == nil:
		return badRequest("executed", "say whether it happened: true or false")
	case *req.Executed:
		b.How = journal.Executed
	case len(b.Payload) > 0:
		return badRequest("payload", "what did not happen has none")
	}
	return c.decide(e, b)
}

// decide has the world take a decision, and answers with what became of it.
func (c *call) decide(e *receipt.Entry, b journal.Resolved) error {
	b.Key, b.Actor = e.Intent.Key, c.actor()
	err := c.world.Local.Update(func(w *world.World) (err error) {
		if b.How == confirmByHand {
			_, err = w.ConfirmByHand(c.Context(), b.Key, b.Actor, b.Reason)
		} else {
			_, err = w.Resolve(c.Context(), b)
		}
		return err
	})
	if err != nil {
		return err
	}
	now, _ := c.world.LedgerEntry(b.Key)
	line, err := c.world.IntentLine(&now)
	if err != nil {
		return err
	}
	if b.How == journal.Approve && now.State == receipt.StateDenied {
		return failed(http.StatusForbidden, "denied", "the gate denies it now: "+line.Reason)
	}
	return c.ok(Decided{
		Schema: schemaOf("intent-decided"), Key: b.Key, Cell: line.Cell, Kind: line.Kind, How: b.How, Actor: b.Actor, Reason: b.Reason,
		ParamsHash: now.Params, State: now.State, Why: line.Reason,
	})
}
