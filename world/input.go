package world

import (
	"errors"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// An attempt that asks a person: its intent waits for the answer, which the next
// attempt takes along.

// answerable returns why a decision cannot be the answer that an intent waits for, and sees to
// the budget of the attempt that takes it along.
func (d *decision) answerable() error {
	if !d.replaying { // what the journal holds was checked before it came there
		if err := fitsQuestion(d.e, d.Payload); err != nil {
			return err
		}
	}
	if !d.mayGoOn(d.e) {
		return refuse(ErrNoBudget, "key", "%s", d.Key)
	}
	return nil
}

// fitsQuestion returns why data does not answer what an intent asks.
func fitsQuestion(e *receipt.Entry, data journal.Data) error {
	q, err := receipt.DecodeQuestion(e.Inputs[len(e.Inputs)-1].Question)
	if err != nil {
		return err
	}
	given, err := q.Answers(data)
	if err != nil {
		return refuse(ErrBadAnswer, "data", "%v", err)
	}
	for _, name := range q.Names() {
		if err := checkAnswer(q.Requests[name].Schema, given[name]); err != nil {
			return refuse(ErrBadAnswer, "data", "the answer to %q: %v", name, err)
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
	s, err := compileSchema("of the question", text, nil)
	if err != nil {
		return err
	}
	if field, rule, ok := s.check(data); !ok {
		if within := strings.TrimPrefix(strings.TrimPrefix(field, "data"), "."); within != "" {
			rule = within + ": " + rule
		}
		return errors.New(rule)
	}
	return nil
}
