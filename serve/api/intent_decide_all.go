package api

import (
	"encoding/json"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// BatchRequest says which intents are meant, as the query of the list of intents does. Without
// a digest they are listed and nothing is decided; with that of the list they are decided
// about, if they are the same still.
type BatchRequest struct {
	Cell   string        `json:"cell"`
	Kind   string        `json:"kind"`
	Since  string        `json:"since"`
	State  receipt.State `json:"state"` // empty: that in which such a decision is waited for
	Digest string        `json:"digest"`
	Reason string        `json:"reason"`
}

// DecideAllRequest is a DecisionRequest about several intents.
type DecideAllRequest struct {
	BatchRequest
	Reuse bool `json:"reuse"` // as of a DecisionRequest
}

// StopRequest is a BatchRequest whose intents are stopped at once, also without a digest.
type StopRequest struct {
	BatchRequest
	DryRun bool `json:"dry_run"` // list them
}

// ResolveAllRequest is a ResolveRequest about several intents.
type ResolveAllRequest struct {
	BatchRequest
	Executed *bool           `json:"executed"` // needed
	Payload  json.RawMessage `json:"payload"`  // what each of their cells is told; nil: null
}

// decideAllAs is the answer to requests for a decision about several intents.
func decideAllAs(how journal.Resolution) func(*call) error {
	return withBody(func(c *call, req *DecideAllRequest) error {
		how, err := reuses(how, req.Reuse)
		if err != nil {
			return err
		}
		return c.decideAll(&req.BatchRequest, how, nil, req.Digest != "")
	})
}

func stopIntents(c *call, req *StopRequest) error {
	return c.decideAll(&req.BatchRequest, journal.Stop, nil, !req.DryRun)
}

// reuses returns the decision that gives what it repeats as the result, where that is asked for.
func reuses(how journal.Resolution, asked bool) (journal.Resolution, error) {
	switch {
	case asked && how != journal.Approve:
		return how, badRequest("reuse", "only an approval can reuse a result")
	case asked:
		return world.Reuse, nil
	}
	return how, nil
}

func resolveIntents(c *call) error {
	var req ResolveAllRequest
	if err := c.decodeReceipt(&req); err != nil {
		return err
	}
	how, payload, err := happened(req.Executed, req.Payload)
	if err != nil {
		return err
	}
	return c.decideAll(&req.BatchRequest, how, payload, req.Digest != "")
}

// happened returns what somebody says of an intent in doubt who looked.
func happened(executed *bool, payload json.RawMessage) (journal.Resolution, journal.Data, error) {
	data, err := dataOf("payload", payload)
	switch {
	case err != nil:
		return "", nil, err
	case executed == nil:
		return "", nil, badRequest("executed", "say whether it happened: true or false")
	case *executed:
		return journal.Executed, data, nil
	case len(data) > 0:
		return "", nil, badRequest("payload", "what did not happen has none")
	}
	return journal.NotExecuted, nil, nil
}

// decideAll has the world take one decision about several intents, or lists them.
func (c *call) decideAll(req *BatchRequest, how journal.Resolution, payload journal.Data, decides bool) (err error) {
	b := view.Batch{
		How: how, Payload: payload, Filter: view.IntentFilter{State: req.State, Cell: req.Cell, Kind: req.Kind, Since: req.Since},
		Most: c.server.cfg.Limits.Page, Bytes: c.server.cfg.Limits.PageBytes,
	}
	answer := c.answer("intents-decided")
	if err := c.takeTurn(); err != nil {
		return err
	}
	defer c.yield()
	if !decides {
		return answer(c.world.Preview(b))
	}
	if req.Digest != "" {
		digest, err := canon.ParseHash(req.Digest)
		if err != nil {
			return badRequest("digest", "it has to be 64 hex digits: that of the list without one")
		}
		b.Digest = &digest
	}
	return answer(c.world.DecideAll(c.Context(), b, journal.Resolved{Actor: c.actor(), Reason: req.Reason}))
}
