package receipt

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// The bounds of an acceptance.
const (
	MaxAcceptedID      = 1 << 10 // bytes
	MaxAcceptedMessage = 4 << 10 // bytes
)

// Accepted is the payload of a receipt whose outcome is accepted: the outside works
// on what an intent asks for, and the attempts that follow ask what came of it. They
// do nothing else.
type Accepted struct {
	ID      string `cbor:"id"`      // by which the outside knows it; 1 to MaxAcceptedID bytes
	Message string `cbor:"message"` // what the outside says of it, for a person to read; up to MaxAcceptedMessage bytes

	// Until when it makes sense to ask, in nanoseconds since 1970-01-01 UTC: what is at work
	// still after that is in doubt. What the first receipt with this ID says holds. 0: always.
	Until int64 `cbor:"until,omitempty"`
}

// ErrAccepted says that a payload names nothing that the outside has accepted.
var ErrAccepted = errors.New("receipt: not the name of what the outside has accepted")

// Encode returns the canonical bytes of a. The error is ErrAccepted.
func (a *Accepted) Encode() (Data, error) {
	switch {
	case a.ID == "" || len(a.ID) > MaxAcceptedID:
		return nil, fmt.Errorf("%w: an id of %d bytes, want 1 to %d", ErrAccepted, len(a.ID), MaxAcceptedID)
	case len(a.Message) > MaxAcceptedMessage:
		return nil, fmt.Errorf("%w: a message of %d bytes, the most is %d", ErrAccepted, len(a.Message), MaxAcceptedMessage)
	case a.Until < 0:
		return nil, fmt.Errorf("%w: it is to be asked until before 1970", ErrAccepted)
	case !utf8.ValidString(a.ID) || !utf8.ValidString(a.Message):
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrAccepted)
	}
	data, err := canon.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccepted, err)
	}
	return data, nil
}

// DecodeAccepted parses the bytes of Encode. The error is ErrAccepted.
func DecodeAccepted(data Data) (*Accepted, error) {
	a := new(Accepted)
	if err := canon.Unmarshal(data, a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccepted, err)
	}
	_, err := a.Encode()
	return a, err
}

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

// Explanation is what a cell is told in the place of what the outside answers.
func Explanation(code, reason string) Data {
	b := canon.AppendMap(nil, 2)
	b = canon.AppendText(canon.AppendText(b, "code"), code)
	return canon.AppendText(canon.AppendText(b, "reason"), reason)
}
