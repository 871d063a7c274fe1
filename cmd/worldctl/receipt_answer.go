package main

import (
	"iter"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// answersByIntent yields all answers in the order of their intents, and those to
// one intent in the order in which they came. It holds none back but their ids.
func (j journal) answersByIntent() iter.Seq2[view.ReceiptLine, error] {
	return func(yield func(view.ReceiptLine, error) bool) {
		records := make(map[receipt.Key][]world.Seq)
		for e, err := range j.Scan(0, view.AnswerKinds()...) {
			if err != nil {
				yield(view.ReceiptLine{}, err)
				return
			}
			key, _ := view.IntentOf(e.Body)
			records[key] = append(records[key], e.ID)
		}
		for _, in := range j.Ledger() {
			for a, err := range each(records[in.Intent.Key], j.answerLine) {
				if !yield(a, err) || err != nil {
					return
				}
			}
		}
	}
}

// answerLine returns the answer of a record that holds one.
func (j journal) answerLine(id world.Seq) (view.ReceiptLine, error) {
	e, err := j.Entry(id)
	if err != nil {
		return view.ReceiptLine{}, err
	}
	a, err := j.Answer(e)
	if err != nil {
		return view.ReceiptLine{}, err
	}
	return a.Line(), nil
}
