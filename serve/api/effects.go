package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// MaxWaitSeconds is how long a request for attempts can wait for one.
const MaxWaitSeconds = 30

// AcquireRequest asks for attempts of live effects to perform.
type AcquireRequest struct {
	Worker      string   `json:"worker"`       // who asks: 1 to host.MaxWorkerBytes of printable text
	Kinds       []string `json:"kinds"`        // of effects; none: any
	Most        int      `json:"most"`         // attempts, up to host.MaxOffers; 0: 1
	WaitSeconds int      `json:"wait_seconds"` // for the first of them, up to MaxWaitSeconds; 0: not at all
}

// Offers are attempts that are the caller's from now on, and nobody else's ever.
type Offers struct {
	Schema   string       `json:"schema"`
	Manifest journal.Hash `json:"manifest"` // in force when they were asked for
	Offers   []Offer      `json:"offers"`
}

// Offer is one attempt to perform.
type Offer struct {
	Key           receipt.Key     `json:"key"`
	StepID        receipt.StepID  `json:"step_id"`
	Cell          string          `json:"cell"`
	Kind          string          `json:"kind"`
	Params        json.RawMessage `json:"params"` // to read; Raw are their bytes
	Raw           []byte          `json:"raw"`    // canonical CBOR; prints as base64
	Tag           string          `json:"tag"`
	Cap           string          `json:"cap"`
	Occurrence    uint64          `json:"occurrence"`
	Attempt       uint64          `json:"attempt"`
	Nonce         string          `json:"nonce"`
	Time          int64           `json:"time"`           // the world's calendar time, nanoseconds since 1970-01-01 UTC
	LeaseMillis   int64           `json:"lease_millis"`   // how long it is the caller's without being renewed
	TimeoutMillis int64           `json:"timeout_millis"` // of the effect
	Inputs        []OfferInput    `json:"inputs"`         // what attempts before it have asked a person, with the answers
	Accepted      string          `json:"accepted"`       // what the outside calls what it works on: ask it about that, and do nothing else; empty: nothing
	Unwanted      bool            `json:"unwanted"`       // its cell has cancelled that: tell the outside, too
}

// OfferInput is a question and its answer, canonical CBOR that prints as base64.
type OfferInput struct {
	Question []byte `json:"question"`
	Answer   []byte `json:"answer"`
}

func offerOf(o *host.Offer) (Offer, error) {
	p := &o.Permit
	params, err := canon.ToJSON(p.Params)
	inputs := make([]OfferInput, len(p.Inputs))
	for i, in := range p.Inputs {
		inputs[i] = OfferInput{in.Question, in.Answer}
	}
	return Offer{
		Key: p.Key, StepID: p.Step, Cell: p.Cell, Kind: p.Kind, Params: params, Raw: p.Params, Tag: p.Tag, Cap: p.Cap,
		Occurrence: p.Occurrence, Attempt: p.Attempt, Nonce: p.Nonce.String(), Time: p.Time,
		LeaseMillis: o.Lease.Milliseconds(), TimeoutMillis: o.Timeout.Milliseconds(), Inputs: inputs,
		Accepted: p.Accepted, Unwanted: p.Unwanted,
	}, err
}

// Permit returns what a worker's own host needs to perform the attempt.
func (o *Offer) Permit() (receipt.Permit, error) {
	nonce, err := parseNonce(o.Nonce)
	inputs := make([]receipt.Input, len(o.Inputs))
	for i, in := range o.Inputs {
		inputs[i] = receipt.Input{Question: in.Question, Answer: in.Answer}
	}
	return receipt.Permit{
		Intent: receipt.Intent{
			Key: o.Key, Step: o.StepID, Cell: o.Cell, Kind: o.Kind, Params: o.Raw, Tag: o.Tag, Cap: o.Cap, Occurrence: o.Occurrence,
		},
		Attempt: o.Attempt, Nonce: nonce, Time: o.Time, Inputs: inputs,
		Accepted: o.Accepted, Unwanted: o.Unwanted,
	}, err
}

func parseNonce(text string) (n receipt.Nonce, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(n) {
		return n, fmt.Errorf("want %d hex digits", hex.EncodedLen(len(n)))
	}
	return receipt.Nonce(b), nil
}

// RenewRequest asks to keep an attempt for another lease.
type RenewRequest struct {
	Worker  string      `json:"worker"`
	Key     receipt.Key `json:"key"`
	Attempt uint64      `json:"attempt"`
	Nonce   string      `json:"nonce"`
}

// attempted names the attempt that an answer is about.
type attempted struct {
	Key     receipt.Key `json:"key"`
	Attempt uint64      `json:"attempt"`
}

// LoseRequest reports an attempt in doubt, with the reason.
type LoseRequest struct {
	RenewRequest

	Reason string `json:"reason"`
}

// CommitRequest hands in what came of an attempt.
type CommitRequest struct {
	Worker           string `json:"worker"`
	Receipt          []byte `json:"receipt"`            // canonical CBOR, signed by whomever: the world signs it anew
	RetryAfterMillis int64  `json:"retry_after_millis"` // how long the outside asked to wait before the next attempt
}

// ReceiveRequest hands in a receipt that was signed with a key of the world.
type ReceiveRequest struct {
	Receipt []byte `json:"receipt"` // canonical CBOR
}

func acquireEffects(c *call, req *AcquireRequest) error {
	switch {
	case req.WaitSeconds < 0 || req.WaitSeconds > MaxWaitSeconds:
		return badRequest("wait_seconds", "it has to be from 0 to "+strconv.Itoa(MaxWaitSeconds))
	case req.Most < 0 || req.Most > host.MaxOffers:
		return badRequest("most", "it has to be from 1 to "+strconv.Itoa(host.MaxOffers))
	}
	if req.WaitSeconds > 0 { // for longer than others are answered
		if err := c.takeSlotOf(c.server.waits); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(c.follow, time.Duration(req.WaitSeconds)*time.Second)
	defer cancel()
	defer context.AfterFunc(c.world.life, cancel)()
	offers, rules, err := c.world.Local.AcquireEffects(ctx, req.Worker, req.Kinds, req.Most)
	if err != nil {
		return err
	}
	out := Offers{Schema: view.SchemaOf("effect-offers"), Manifest: rules, Offers: []Offer{}}
	for i := range offers {
		o, err := offerOf(&offers[i])
		if err != nil {
			return err // params that are not canonical are not in a journal
		}
		out.Offers = append(out.Offers, o)
	}
	return c.ok(out)
}

// renewEffect answers that an attempt stays the caller's for another lease.
func renewEffect(c *call) error {
	const most = unhurried // so that it does not wait for others of its token
	var req RenewRequest
	if err := c.decodeWithin(most, &req); err != nil {
		return err
	}
	nonce, err := parseNonce(req.Nonce)
	if err != nil {
		return badRequest("nonce", err.Error())
	}
	err = c.world.Local.RenewEffect(req.Worker, req.Key, req.Attempt, nonce)
	return c.answer("effect-renewed")(attempted{req.Key, req.Attempt}, err)
}

// loseEffect answers that an attempt is not the caller's any more: its intent is in doubt.
func loseEffect(c *call, req *LoseRequest) error {
	nonce, err := parseNonce(req.Nonce)
	if err != nil {
		return badRequest("nonce", err.Error())
	}
	err = c.world.Local.LoseEffect(req.Worker, req.Key, req.Attempt, nonce, req.Reason)
	return c.answer("effect-lost")(attempted{req.Key, req.Attempt}, err)
}

// commitEffect answers that a result is durable.
func commitEffect(c *call) error {
	var req CommitRequest
	if err := c.decodeWithin(c.receiptBytes(), &req); err != nil {
		return err
	}
	err := c.world.Local.CommitEffect(req.Worker, req.Receipt, time.Duration(req.RetryAfterMillis)*time.Millisecond)
	return c.answer("effect-committed")(struct{}{}, err)
}

// receiveReceipt answers which record has the receipt.
func receiveReceipt(c *call) error {
	var req ReceiveRequest
	if err := c.decodeWithin(c.receiptBytes(), &req); err != nil {
		return err
	}
	id, err := local.Change(c.world.Local, func(w *world.World) (journal.Seq, error) { return w.Receive(req.Receipt) })
	if err != nil {
		return err
	}
	return c.created(c.link("records", strconv.FormatUint(uint64(id), 10)), object{"receipt-received", struct {
		Record journal.Seq `json:"record"`
	}{id}})
}

// receiptBytes bounds a body with a receipt: as base64, with what is around it.
func (c *call) receiptBytes() int64 {
	const around = 64 << 10
	m, _ := c.world.Local.InForce()
	return int64(min(m.Limits.Receipt, uint64(c.server.cfg.Limits.BulkBytes)))/3*4 + around
}
