package receipt

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// MaxInputs is how often one intent can ask a person. An attempt that asks once
// more has failed.
const MaxInputs = 32

// MaxInputRequests is how much one attempt can ask at once.
const MaxInputRequests = 16

// Question is the payload of a receipt whose outcome is input_required: what the
// outside asks of a person before it does what an intent asks for.
type Question struct {
	Requests map[string]InputRequest `cbor:"requests"` // by the names that the outside gives them; 1 to MaxInputRequests
	State    string                  `cbor:"state"`    // goes back to the outside with the answers, as it is
}

// InputRequest is a single question.
type InputRequest struct {
	Message string `cbor:"message"` // for a person to read
	Schema  Data   `cbor:"schema"`  // JSON Schema of the answer; null: any
}

// Input is one question that an intent has asked a person.
type Input struct {
	_ struct{} `cbor:",toarray"`

	Question Data // a Question
	Answer   Data // see Question.Answers; nil: not yet
}

// Why a question or an answer is none.
var (
	ErrQuestion = errors.New("receipt: not a question to a person")
	ErrAnswer   = errors.New("receipt: not an answer to what is asked")
)

// Encode returns the canonical bytes of q. The error is ErrQuestion.
func (q *Question) Encode() (Data, error) {
	if n := len(q.Requests); n == 0 || n > MaxInputRequests {
		return nil, fmt.Errorf("%w: it asks %d things, want 1 to %d", ErrQuestion, n, MaxInputRequests)
	}
	data, err := canon.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuestion, err)
	}
	return data, nil
}

// DecodeQuestion parses the bytes of Encode. The error is ErrQuestion.
func DecodeQuestion(data Data) (*Question, error) {
	q := new(Question)
	if err := canon.Unmarshal(data, q); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuestion, err)
	}
	_, err := q.Encode()
	return q, err
}

// Names returns the names of what is asked, in order.
func (q *Question) Names() []string { return slices.Sorted(maps.Keys(q.Requests)) }

// Answers returns the answers that a person's data holds, by name: all of it where
// one thing is asked, else a map of all the names. Each is a map. The error says what
// is missing.
func (q *Question) Answers(data Data) (map[string]Data, error) {
	names := q.Names()
	given := map[string]Data{names[0]: data}
	if len(names) > 1 {
		given = nil
		if err := canon.Unmarshal(data, &given); err != nil || !slices.Equal(slices.Sorted(maps.Keys(given)), names) {
			return nil, fmt.Errorf("want an object with an answer to each of %q", names)
		}
	}
	for _, name := range names {
		if canon.NewReader(given[name]).Kind() != canon.KindMap {
			return nil, fmt.Errorf("the answer to %q has to be an object", name)
		}
	}
	return given, nil
}

// Read returns a question and the answers to it, by name. The errors are ErrQuestion
// and ErrAnswer.
func (in *Input) Read() (*Question, map[string]Data, error) {
	q, err := DecodeQuestion(in.Question)
	if err != nil {
		return nil, nil, err
	}
	given, err := q.Answers(in.Answer)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return q, given, err
}

// awaitAnswer has an intent whose last attempt asks a person wait for the answer, for as
// long as it takes.
func (l *Ledger) awaitAnswer(e *Entry, question Data) {
	e.Inputs = append(slices.Clone(e.Inputs), Input{Question: question})
	e.unaccept() // the attempt with the answer begins anew
	l.await(e, StateAwaitingAnswer, NoDeadline)
}

// Answer opens an intent that waits for the answer to a question. Its next attempt
// takes that along.
func (l *Ledger) Answer(e *Entry, answer Data) {
	l.endWait(e)
	e.Inputs = slices.Clone(e.Inputs) // permits have the others
	e.Inputs[len(e.Inputs)-1].Answer = answer
	l.move(e, StateOpen)
	l.queue(e)
}
