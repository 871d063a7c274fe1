package main

import (
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// answer is an answer to an intent: a receipt of the outside, or an end that
// the kernel made where there is none.
type answer struct {
	receipt.Receipt                 // unsigned where the kernel made it
	intent          *receipt.Entry  // that it answers
	record          world.Seq       // that tells of it
	outcome         receipt.Outcome // of the attempt that it answers
	raw             []byte          // the stored bytes of a receipt; nil: the kernel made it
	late            bool            // its attempt had been given up: it changed nothing
}

// answers yields all answers in the order in which they came.
func (j journal) answers() iter.Seq2[answer, error] {
	return func(yield func(answer, error) bool) {
		entries := byKey(j.lw)
		for e, err := range j.scan(0, answerKinds()...) {
			var a answer
			if err == nil {
				a, err = j.answer(e, entries)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// answersByIntent yields all answers in the order of their intents, and those to
// one intent in the order in which they came. It holds none back but their ids.
func (j journal) answersByIntent() iter.Seq2[answer, error] {
	return func(yield func(answer, error) bool) {
		records := make(map[receipt.Key][]world.Seq)
		for e, err := range j.scan(0, answerKinds()...) {
			if err != nil {
				yield(answer{}, err)
				return
			}
			key, _ := intentOf(e.body)
			records[key] = append(records[key], e.ID)
		}
		entries := byKey(j.lw)
		for _, in := range ledger(j.lw) {
			for a, err := range each(records[in.Intent.Key], func(id world.Seq) (answer, error) {
				e, err := j.entry(id)
				if err != nil {
					return answer{}, err
				}
				return j.answer(e, entries)
			}) {
				if !yield(a, err) || err != nil {
					return
				}
			}
		}
	}
}

func answerKinds() []world.Kind {
	return []world.Kind{world.KindFinished, world.KindLate, world.KindEnded, world.KindDenied}
}

// answerTo returns the last answer to an intent that is not late; false where
// there is none yet. Of an attempt that is not 0 it returns the receipt, late or
// not, and what the kernel made only where there is none.
func (j journal) answerTo(key receipt.Key, attempt uint64) (found answer, ok bool, err error) {
	for a, err := range j.answers() {
		if err != nil {
			return a, false, err
		}
		if wanted := attempt == 0 && !a.late || attempt != 0 && attempt == a.Attempt && (a.raw != nil || !ok); wanted && a.Key == key {
			found, ok = a, true
		}
	}
	return found, ok, nil
}

// answer reads the answer that a record holds.
func (j journal) answer(e *entry, entries map[receipt.Key]*receipt.Entry) (answer, error) {
	a := answer{record: e.ID}
	var err error
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
	}
	if a.intent = entries[a.Key]; err == nil && a.intent == nil {
		err = fmt.Errorf("the ledger knows no intent %s", a.Key)
	}
	if err != nil {
		return a, fmt.Errorf("record #%d: %w", e.ID, err)
	}
	if a.raw == nil {
		a.Version, a.World, a.Kind, a.Cap = receipt.ReceiptVersion, j.lw.Keys().World(), a.intent.Intent.Kind, a.intent.Intent.Cap
		a.ParamsHash, a.Attempt = a.intent.Params, a.intent.Attempt
	}
	return a, nil
}

func (a *answer) read(data []byte) error {
	r, err := receipt.Decode(data)
	if err != nil {
		return err
	}
	a.Receipt, a.raw, a.outcome = *r, data, r.Outcome()
	return nil
}

// explanation is what the kernel tells a cell where it makes the answer itself.
type explanation struct {
	Code   string `cbor:"code"`
	Reason string `cbor:"reason"`
}

// explained returns what the kernel says in an answer that it made.
func explained(payload world.Data) string {
	var x explanation
	if canon.Unmarshal(payload, &x) != nil {
		return "" // a person's payload
	}
	return x.Code + ": " + x.Reason
}
