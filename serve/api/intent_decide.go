package api

import (
	"encoding/json"
	"net/http"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// DecisionRequest is what a person decides about an intent. Who that is the token
// says.
type DecisionRequest struct {
	ParamsHash string `json:"params_hash"` // decide only if its params have this hash; empty: whatever they are
	Reuse      bool   `json:"reuse"`       // of an approval: do not perform it, it gets the result of what it repeats
	SeenRequest
}

// SeenRequest says why a person decides, and which attempt of the intent they have seen.
type SeenRequest struct {
	Reason  string  `json:"reason"`  // for those who read the journal
	Attempt *uint64 `json:"attempt"` // decide only if that is its last attempt; nil: whichever it is
}

// EditRequest is what is to be asked for in the place of an intent that awaits approval.
type EditRequest struct {
	ParamsHash string          `json:"params_hash"` // as of a DecisionRequest: of the intent that ends
	Params     json.RawMessage `json:"params"`      // needed
	SeenRequest
}

// ResolveRequest says whether an intent in doubt happened.
type ResolveRequest struct {
	Executed *bool           `json:"executed"` // needed
	Payload  json.RawMessage `json:"payload"`  // of what happened: what its cell is told; nil: null
	SeenRequest
}

// AnswerRequest answers what an attempt asks a person.
type AnswerRequest struct {
	Data json.RawMessage `json:"data"` // needed: an object that satisfies the schema of what is asked
	SeenRequest
}

// decideAs is the answer to requests for a decision.
func decideAs(how journal.Resolution) func(*call) error {
	return func(c *call) error {
		var req DecisionRequest
		return c.decide(c.decode(&req), &req.SeenRequest, &req.ParamsHash, func(b *journal.Resolved) (err error) {
			b.How, err = reuses(how, req.Reuse)
			return err
		})
	}
}

func editIntent(c *call) error {
	var req EditRequest
	return c.decide(c.decode(&req), &req.SeenRequest, &req.ParamsHash, func(b *journal.Resolved) (err error) {
		if len(req.Params) == 0 {
			return badRequest("params", "say what is to be asked for")
		}
		b.How = journal.Edit
		b.Payload, err = dataOf("params", req.Params)
		return err
	})
}

func resolveIntent(c *call) error {
	var req ResolveRequest
	return c.decide(c.decodeReceipt(&req), &req.SeenRequest, nil, func(b *journal.Resolved) (err error) {
		b.How, b.Payload, err = happened(req.Executed, req.Payload)
		return err
	})
}

func answerIntent(c *call) error {
	var req AnswerRequest
	return c.decide(c.decodeReceipt(&req), &req.SeenRequest, nil, func(b *journal.Resolved) (err error) {
		b.How = journal.Answer
		b.Payload, err = dataOf("data", req.Data)
		return err
	})
}

// decodeReceipt decodes a request that may be as large as a receipt.
func (c *call) decodeReceipt(req any) error {
	m, _ := c.world.Local.InForce()
	return c.decodeWithin(c.bytesWith(m.Limits.Receipt), req)
}

// decide has the world take a decision, which what says, about an intent as it was seen, if its params have
// the hash; and answers with what became of it. decoded is what is wrong with the request.
func (c *call) decide(decoded error, seen *SeenRequest, hash *string, what func(*journal.Resolved) error) error {
	if decoded != nil {
		return decoded
	}
	e, err := c.intent()
	if err != nil {
		return err
	}
	b := journal.Resolved{Key: e.Intent.Key, Params: e.Params, Reason: seen.Reason, Actor: c.actor()}
	if hash != nil && *hash != "" {
		if b.Params, err = canon.ParseHash(*hash); err != nil {
			return badRequest("params_hash", "it has to be 64 hex digits")
		}
	}
	if err := what(&b); err != nil {
		return err
	}
	as := *e
	if seen.Attempt != nil {
		as.Attempt = *seen.Attempt
	}
	d, err := c.world.Decide(c.Context(), &b, &as)
	if err != nil {
		return err
	}
	if d.Denied() {
		return failed(http.StatusForbidden, "denied", "the gate denies it now: "+d.Why)
	}
	return c.ok(object{"intent-decided", d})
}
