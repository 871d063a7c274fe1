package api

import (
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Receipts is a page of answers to intents, in the order of the journal.
type Receipts struct {
	Schema   string        `json:"schema"`
	Receipts []ReceiptLine `json:"receipts"`
	Next     *string       `json:"next"` // the path of what comes after it; null: nothing does yet
}

// ReceiptLine is an answer in a list.
type ReceiptLine struct {
	Key         receipt.Key          `json:"key"`
	Cell        string               `json:"cell"`
	Kind        string               `json:"kind"`
	Status      receipt.Status       `json:"status"`
	Attempt     uint64               `json:"attempt"`
	Outcome     receipt.Outcome      `json:"outcome"`
	Record      world.Seq            `json:"record"`
	StepID      receipt.StepID       `json:"step_id"`
	ExternalKey string               `json:"external_key"`
	Payload     world.Data           `json:"payload"`
	Cost        receipt.Cost         `json:"cost"`
	Signed      bool                 `json:"signed"` // false: the kernel made it, because the outside was not asked or did not answer
	Late        bool                 `json:"late"`   // its attempt had been given up: it changed nothing
	Unsent      bool                 `json:"unsent"`
	ExternalRef string               `json:"external_ref"`
	StateChange *receipt.StateChange `json:"state_change"`
}

// Receipt is an answer with all that it says and its stored bytes.
type Receipt struct {
	Schema string `json:"schema"`
	receipt.Receipt
	Cell        string          `json:"cell"`
	Outcome     receipt.Outcome `json:"outcome"`
	Record      world.Seq       `json:"record"`
	StepID      receipt.StepID  `json:"step_id"`
	ExternalKey string          `json:"external_key"`
	Signed      bool            `json:"signed"`
	Late        bool            `json:"late"`
	Raw         []byte          `json:"raw"` // prints as base64; null where it is not signed
}

// reply is an answer to an intent: a receipt of the outside, or an end that the
// kernel made where there is none.
type reply struct {
	receipt.Receipt                 // unsigned where the kernel made it
	intent          receipt.Entry   // that it answers
	record          world.Seq       // that tells of it
	outcome         receipt.Outcome // of the attempt that it answers
	raw             []byte          // the stored bytes of a receipt; nil: the kernel made it
	late            bool            // its attempt had been given up: it changed nothing
}

func replyKinds() []world.Kind {
	return []world.Kind{world.KindFinished, world.KindLate, world.KindEnded, world.KindDenied}
}

// explanation is what the kernel tells a cell where it makes the answer itself.
type explanation struct {
	Code   string `cbor:"code"`
	Reason string `cbor:"reason"`
}

// reply reads the answer that a record holds; ok is false where that was redacted.
func (j journal) reply(e *entry) (a reply, ok bool, err error) {
	a.record = e.ID
	switch b := e.body.(type) {
	case *world.Finished:
		err = a.read(b.Receipt)
	case *world.Late:
		a.late = true
		err = a.read(b.Receipt)
	case *world.IntentEnded:
		a.Key, a.Status, a.Payload, a.outcome = b.Key, b.Status, b.Payload, b.Outcome
	case *world.IntentDenied:
		a.Key, a.Status, a.outcome = b.Key, receipt.StatusDenied, receipt.OutcomePermanentFailure
		a.Payload, err = canon.Marshal(explanation{b.Code, b.Reason})
	default:
		return a, false, nil
	}
	if err == nil {
		if a.intent, ok = j.ledgerEntry(a.Key); !ok {
			err = fmt.Errorf("the ledger knows no intent %s", a.Key)
		}
	}
	if err != nil {
		return a, false, fmt.Errorf("record #%d: %w", e.ID, err)
	}
	if a.raw == nil {
		a.Version, a.World, a.Kind, a.Cap = receipt.ReceiptVersion, j.lw.Keys().World(), a.intent.Intent.Kind, a.intent.Intent.Cap
		a.ParamsHash, a.Attempt = a.intent.Params, a.intent.Attempt
	}
	return a, true, nil
}

func (a *reply) read(data []byte) error {
	r, err := receipt.Decode(data)
	if err != nil {
		return err
	}
	a.Receipt, a.raw, a.outcome = *r, data, r.Outcome()
	return nil
}

func (a *reply) line() ReceiptLine {
	return ReceiptLine{
		Key: a.Key, Cell: a.intent.Intent.Cell, Kind: a.Kind, Status: a.Status, Attempt: a.Attempt, Outcome: a.outcome,
		Record: a.record, StepID: a.intent.Intent.Step, ExternalKey: a.Key.External(a.World), Payload: a.Payload, Cost: a.Cost,
		Signed: a.raw != nil, Late: a.late, Unsent: a.Unsent, ExternalRef: a.ExternalRef, StateChange: a.StateChange,
	}
}

func (a *reply) full() Receipt {
	return Receipt{
		Schema: schemaOf("receipt"), Receipt: a.Receipt, Cell: a.intent.Intent.Cell, Outcome: a.outcome, Record: a.record,
		StepID: a.intent.Intent.Step, ExternalKey: a.Key.External(a.World), Signed: a.raw != nil, Late: a.late, Raw: a.raw,
	}
}

func listReceipts(c *call) error {
	after, err := c.number("after")
	if err != nil {
		return err
	}
	out := Receipts{Schema: schemaOf("receipt-list"), Receipts: []ReceiptLine{}}
	out.Next, err = page(c, selection{after: world.Seq(after), kinds: replyKinds()}, func(e *entry) error {
		a, ok, err := c.world.reply(e)
		if ok {
			out.Receipts = append(out.Receipts, a.line())
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.ok(out)
}

// showReceipt answers with the last answer to an intent that is not late, or with
// that to one attempt, late or not, and what the kernel made only where there is no
// other.
func showReceipt(c *call) error {
	e, err := c.intent()
	if err != nil {
		return err
	}
	attempt, err := c.number("attempt")
	if err != nil {
		return err
	}
	var found *reply
	for rec, err := range c.world.ofIntent(e) {
		if err != nil {
			return err
		}
		a, ok, err := c.world.reply(rec)
		if err != nil {
			return err
		}
		if ok && (attempt == 0 && !a.late || attempt != 0 && attempt == a.Attempt && (a.raw != nil || found == nil)) {
			found = &a
		}
	}
	if found == nil {
		return notFound("there is no such receipt")
	}
	return c.ok(found.full())
}
