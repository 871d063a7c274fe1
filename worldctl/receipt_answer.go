package worldctl

import (
	"iter"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/view"
)

// answersByIntent yields all answers in the order of their intents, and those to
// one intent in the order in which they came. It holds none back but their ids.
func (j records) answersByIntent() iter.Seq2[view.ReceiptLine, error] {
	return func(yield func(view.ReceiptLine, error) bool) {
		records := make(map[receipt.Key][]journal.Seq)
		for e, err := range j.Scan(0, view.AnswerKinds()...) {
			if err != nil {
				yield(view.ReceiptLine{}, err)
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
func (j records) answerLine(id journal.Seq) (line view.ReceiptLine, ok bool, err error) {
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
