package view

import (
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// ReceiptLine is an answer in a list.
type ReceiptLine struct {
	Key         receipt.Key          `json:"key"`
	Cell        string               `json:"cell"`
	Kind        string               `json:"kind"`
	Status      receipt.Status       `json:"status"`
	Attempt     uint64               `json:"attempt"`
	Outcome     receipt.Outcome      `json:"outcome"`
	Record      journal.Seq          `json:"record"`
	StepID      receipt.StepID       `json:"step_id"`
	ExternalKey string               `json:"external_key"`
	Payload     journal.Data         `json:"payload"`
	Cost        receipt.Cost         `json:"cost"`
	Signed      bool                 `json:"signed"` // false: the kernel made it, because the outside was not asked or did not answer
	Late        bool                 `json:"late"`   // its attempt had been given up: it changed nothing
	Unsent      bool                 `json:"unsent"`
	ExternalRef string               `json:"external_ref"`
	StateChange *receipt.StateChange `json:"state_change"`
	Cancelled   bool                 `json:"cancelled"` // its cell had cancelled the intent
}

// Receipt is an answer with all that it says and its stored bytes.
type Receipt struct {
	receipt.Receipt
	Cell        string          `json:"cell"`
	Outcome     receipt.Outcome `json:"outcome"`
	Record      journal.Seq     `json:"record"`
	StepID      receipt.StepID  `json:"step_id"`
	ExternalKey string          `json:"external_key"`
	Signed      bool            `json:"signed"`
	Late        bool            `json:"late"`
	Cancelled   bool            `json:"cancelled"`
	Raw         []byte          `json:"raw"` // prints as base64; null where it is not signed
}

// Answer is an answer to an intent: a receipt of the outside, or an end that the
// kernel made where there is none.
type Answer struct {
	receipt.Receipt                 // unsigned where the kernel made it
	Intent          receipt.Entry   // that it answers
	Record          journal.Seq     // that tells of it
	Ended           receipt.Outcome // of the attempt that it answers
	Raw             []byte          // the stored bytes of a receipt; nil: the kernel made it
	Late            bool            // its attempt had been given up: it changed nothing
	Cancelled       bool            // its cell had cancelled the intent
}

// AnswerKinds returns the kinds of records that hold answers.
func AnswerKinds() []journal.Kind {
	return []journal.Kind{journal.KindFinished, journal.KindLate, journal.KindEnded, journal.KindDenied}
}

// explanation is what the kernel tells a cell where it makes the answer itself.
type explanation struct {
	Code   string `cbor:"code"`
	Reason string `cbor:"reason"`
}

// explained returns what the kernel says in an answer that it made.
func explained(payload journal.Data) string {
	var x explanation
	if canon.Unmarshal(payload, &x) != nil {
		return "" // a person's payload
	}
	return x.Code + ": " + x.Reason
}

// Answers yields all answers in the order in which they came.
func (j Journal) Answers() iter.Seq2[*Answer, error] {
	return each(j.Scan(0, AnswerKinds()...), func(e *Entry) (*Answer, bool, error) {
		a, err := j.Answer(e)
		return a, a != nil, err
	})
}

// AnswerTo returns the last answer to an intent that is not late; nil where there is
// none yet. Of an attempt that is not 0 it returns the receipt, late or not, and what
// the kernel made only where there is none.
func (j Journal) AnswerTo(e *receipt.Entry, attempt uint64) (found *Answer, err error) {
	for rec, err := range j.OfIntent(e) {
		if err != nil {
			return nil, err
		}
		a, err := j.Answer(rec)
		if err != nil {
			return nil, err
		}
		if a != nil && (attempt == 0 && !a.Late || attempt != 0 && attempt == a.Attempt && (a.Raw != nil || found == nil)) {
			found = a
		}
	}
	return found, nil
}

// Answer reads the answer in a record; nil: the record has no answer, or was redacted.
func (j Journal) Answer(e *Entry) (*Answer, error) {
	a := &Answer{Record: e.ID}
	var err error
	switch b := e.Body.(type) {
	case *journal.Finished:
		err = a.readReceipt(b.Receipt)
	case *journal.Late:
		a.Late = true
		err = a.readReceipt(b.Receipt)
	case *journal.IntentEnded:
		a.Key, a.Status, a.Payload, a.Ended = b.Key, b.Status, b.Payload, b.Outcome
	case *journal.IntentDenied:
		a.Key, a.Status, a.Ended = b.Key, receipt.StatusDenied, receipt.OutcomePermanentFailure
		a.Payload, err = canon.Marshal(explanation{b.Code, b.Reason})
	default:
		return nil, nil
	}
	if err == nil {
		var ok bool
		if a.Intent, ok = j.LedgerEntry(a.Key); !ok {
			err = fmt.Errorf("the ledger knows no intent %s", a.Key)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("record #%d: %w", e.ID, err)
	}
	a.Cancelled = j.cancelled(&a.Intent, a.Record)
	if a.Raw == nil {
		a.Version, a.World, a.Kind, a.Cap = receipt.ReceiptVersion, j.Local.Keys().World(), a.Intent.Intent.Kind, a.Intent.Intent.Cap
		a.ParamsHash, a.Attempt = a.Intent.Params, a.Intent.Attempt
	}
	return a, nil
}

func (a *Answer) readReceipt(data []byte) error {
	r, err := receipt.Decode(data)
	if err != nil {
		return err
	}
	a.Receipt, a.Raw, a.Ended = *r, data, r.Outcome()
	return nil
}

// Line returns the answer as lists have it.
func (a *Answer) Line() ReceiptLine {
	return ReceiptLine{
		Key: a.Key, Cell: a.Intent.Intent.Cell, Kind: a.Kind, Status: a.Status, Attempt: a.Attempt, Outcome: a.Ended,
		Record: a.Record, StepID: a.Intent.Intent.Step, ExternalKey: a.Key.External(a.World), Payload: a.Payload, Cost: a.Cost,
		Signed: a.Raw != nil, Late: a.Late, Unsent: a.Unsent, ExternalRef: a.ExternalRef, StateChange: a.StateChange, Cancelled: a.Cancelled,
	}
}

// Full returns the answer with all its fields.
func (a *Answer) Full() *Receipt {
	return &Receipt{
		Receipt: a.Receipt, Cell: a.Intent.Intent.Cell, Outcome: a.Ended, Record: a.Record, StepID: a.Intent.Intent.Step,
		ExternalKey: a.Key.External(a.World), Signed: a.Raw != nil, Late: a.Late, Cancelled: a.Cancelled, Raw: a.Raw,
	}
}

// AnswersByIntent yields all answers in the order of their intents, and those to
// one intent in the order in which they came. It holds none back but their ids.
func (j Journal) AnswersByIntent() iter.Seq2[ReceiptLine, error] {
	return func(yield func(ReceiptLine, error) bool) {
		records := make(map[receipt.Key][]journal.Seq)
		for e, err := range j.Scan(0, AnswerKinds()...) {
			if err != nil {
				yield(ReceiptLine{}, err)
				return
			}
			key, _ := e.Intent()
			records[key] = append(records[key], e.ID)
		}
		for _, in := range j.Ledger() {
			for _, id := range records[in.Intent.Key] {
				line, ok, err := j.answerLine(id)
				if (ok || err != nil) && !yield(line, err) || err != nil {
					return
				}
			}
		}
	}
}

// answerLine returns the answer of a record that held one; false: it has been
// redacted since.
func (j Journal) answerLine(id journal.Seq) (line ReceiptLine, ok bool, err error) {
	e, err := j.Entry(id)
	if err != nil {
		return line, false, err
	}
	a, err := j.Answer(e)
	if a == nil || err != nil {
		return line, false, err
	}
	return a.Line(), true, nil
}
