package world

import (
	"context"
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// An attempt that asks a person: its intent waits for the answer, which the next
// attempt takes along.

// maxAnswerChecks bounds the parts of a schema that are evaluated for one answer: the
// schema is the outside's.
const maxAnswerChecks = 100_000

// asks has an intent wait for a person's answer. It reports whether it may: the
// receipt asks something, and the intent has not asked too often.
func (k *kernel) asks(e *receipt.Entry, r *receipt.Receipt, id journal.Seq) bool {
	if _, err := receipt.DecodeQuestion(r.Payload); err != nil || len(e.Inputs) >= receipt.MaxInputs {
		return false
	}
	k.wait(e, id)
	k.ledger.Ask(e, r.Payload)
	return true
}

// answer opens an intent for the attempt that takes a person's answer along, for which
// answerable has seen to the budget.
func (k *kernel) answer(e *receipt.Entry, data journal.Data) {
	k.reserveAgain(e)
	k.ledger.Answer(e, data)
}

// answerable returns why data cannot be the answer that an intent waits for. What the
// journal holds was checked before it came there.
func (k *kernel) answerable(e *receipt.Entry, data journal.Data) error {
	if !k.hasAgain(e) {
		return refuse(ErrNoBudget, "key", "%s", e.Intent.Key)
	}
	if k.replaying {
		return nil
	}
	q, err := receipt.DecodeQuestion(e.Inputs[len(e.Inputs)-1].Question)
	if err != nil {
		return err
	}
	given, err := q.Answers(data)
	if err != nil {
		return refuse(ErrBadData, "data", "%v", err)
	}
	for _, name := range q.Names() {
		if err := checkAnswer(q.Requests[name].Schema, given[name]); err != nil {
			return refuse(ErrBadData, "data", "the answer to %q: %v", name, err)
		}
	}
	return nil
}

func checkAnswer(source, data journal.Data) error {
	if len(source) == 0 || string(source) == canon.Null {
		return nil
	}
	text, err := canon.ToJSON(source)
	if err != nil {
		return err
	}
	s, err := compileSchema("of the question", text, newGuard(context.Background(), Bounds{Gas: maxAnswerChecks}))
	if err != nil {
		return err
	}
	if field, rule, ok := s.check(data); !ok {
		return fmt.Errorf("%s: %s", strings.TrimPrefix(strings.TrimPrefix(field, "data"), "."), rule)
	}
	return nil
}
