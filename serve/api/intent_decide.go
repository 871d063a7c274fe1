package api

import (
	"encoding/json"
	"net/http"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// DecisionRequest is what a person decides about an intent. Who that is the token
// says.
type DecisionRequest struct {
	Reason     string `json:"reason"`      // why, for those who read the journal
	ParamsHash string `json:"params_hash"` // decide only if its params have this hash; empty: whatever they are
	Reuse      bool   `json:"reuse"`       // of an approval: do not perform it, it gets the result of what it repeats
	SeenRequest
}

// SeenRequest says what whoever decides has seen of an intent.
type SeenRequest struct {
	Attempt *uint64 `json:"attempt"` // decide only if that is its last attempt; nil: whichever it is
}

// of returns an intent as it was seen.
func (r SeenRequest) of(e *receipt.Entry) *receipt.Entry {
	seen := *e
	if r.Attempt != nil {
		seen.Attempt = *r.Attempt
	}
	return &seen
}

// EditRequest is what is to be asked for in the place of a parked intent.
type EditRequest struct {
	Reason     string          `json:"reason"`
	ParamsHash string          `json:"params_hash"` // as of a DecisionRequest: of the intent that ends
	Params     json.RawMessage `json:"params"`      // needed
	SeenRequest
}

// ResolveRequest says whether an intent in doubt happened.
type ResolveRequest struct {
	Reason   string          `json:"reason"`
	Executed *bool           `json:"executed"` // needed
	Payload  json.RawMessage `json:"payload"`  // of what happened: what its cell is told; nil: null
	SeenRequest
}

// AnswerRequest answers what an attempt asks a person.
type AnswerRequest struct {
	Reason string          `json:"reason"`
	Data   json.RawMessage `json:"data"` // needed: an object that satisfies the schema of what is asked
	SeenRequest
}

func approveIntent(c *call) error { return c.decideAs(journal.Approve) }
func denyIntent(c *call) error    { return c.decideAs(journal.Disapprove) }
func retryIntent(c *call) error   { return c.decideAs(journal.RetryAnyway) }
func stopIntent(c *call) error    { return c.decideAs(journal.Stop) }
func confirmIntent(c *call) error { return c.decideAs(local.Confirm) }

// decideAs takes a decision.
func (c *call) decideAs(how journal.Resolution) error {
	var req DecisionRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	e, err := c.intent()
	if err != nil {
		return err
	}
	b := journal.Resolved{Params: e.Params, Reason: req.Reason}
	if err := bind(&b, req.ParamsHash); err != nil {
		return err
	}
	if b.How, err = reuses(how, req.Reuse); err != nil {
		return err
	}
	return c.decide(req.of(e), b)
}

// bind binds a decision to params of a hash, where there is one.
func bind(b *journal.Resolved, hash string) (err error) {
	if hash == "" {
		return nil
	}
	if b.Params, err = canon.ParseHash(hash); err != nil {
		return badRequest("params_hash", "it has to be 64 hex digits")
	}
	return nil
}

func editIntent(c *call) error {
	var req EditRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	e, err := c.intent()
	if err != nil {
		return err
	}
	b := journal.Resolved{How: journal.Edit, Params: e.Params, Reason: req.Reason}
	if err := bind(&b, req.ParamsHash); err != nil {
		return err
	}
	if len(req.Params) == 0 {
		return badRequest("params", "say what is to be asked for")
	}
	if b.Payload, err = dataOf("params", req.Params); err != nil {
		return err
	}
	return c.decide(req.of(e), b)
}

func resolveIntent(c *call) error {
	var req ResolveRequest
	m, _ := c.world.Local.InForce()
	if err := c.decodeWithin(c.bytesWith(m.Limits.Receipt), &req); err != nil {
		return err
	}
	e, err := c.intent()
	if err != nil {
		return err
	}
	b := journal.Resolved{Params: e.Params, Reason: req.Reason}
	if b.How, b.Payload, err = happened(req.Executed, req.Payload); err != nil {
		return err
	}
	return c.decide(req.of(e), b)
}

func answerIntent(c *call) error {
	var req AnswerRequest
	m, _ := c.world.Local.InForce()
	if err := c.decodeWithin(c.bytesWith(m.Limits.Receipt), &req); err != nil {
		return err
	}
	e, err := c.intent()
	if err != nil {
		return err
	}
	b := journal.Resolved{How: journal.Answer, Params: e.Params, Reason: req.Reason}
	if b.Payload, err = dataOf("data", req.Data); err != nil {
		return err
	}
	return c.decide(req.of(e), b)
}

// decide has the world take a decision about an intent as it was seen, and answers with
// what became of it.
func (c *call) decide(seen *receipt.Entry, b journal.Resolved) error {
	b.Key, b.Actor = seen.Intent.Key, c.actor()
	d, err := c.world.Decide(c.Context(), &b, seen)
	if err != nil {
		return err
	}
	if d.Denied() {
		return failed(http.StatusForbidden, "denied", "the gate denies it now: "+d.Why)
	}
	return c.ok(object{"intent-decided", d})
}
