package receipt

import (
	"errors"
	"fmt"
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

// Polling is what the ledger knows of what the outside has accepted. It does not change.
type Polling struct {
	_ struct{} `cbor:",toarray"`

	ID    string // see Accepted; empty: the outside works on nothing any more
	Polls uint64 // attempts that ended with its being at work, or asked in vain
	Until int64  // see Accepted.Until; 0 also where ID is empty
}

// Accepted returns the outside's name for the work in progress; empty: there is no such work. The
// next attempt asks about that.
func (e *Entry) Accepted() string {
	if e.Polling == nil {
		return ""
	}
	return e.Polling.ID
}

// AskUntil returns until when it makes sense to ask about that: see Accepted.Until.
func (e *Entry) AskUntil() int64 {
	if e.Polling == nil {
		return 0
	}
	return e.Polling.Until
}

// Polls returns how many attempts ended with the outside at work, or asked in vain.
func (e *Entry) Polls() uint64 {
	if e.Polling == nil {
		return 0
	}
	return e.Polling.Polls
}

// poll has an intent whose attempt is over ask, when Due says so, what came of what the
// outside has accepted under an id, and until when: see Accepted.Until.
func (l *Ledger) poll(e *Entry, id string, until int64) {
	if id == e.Accepted() {
		until = e.AskUntil()
	}
	e.Polling = &Polling{ID: id, Polls: e.Polls() + 1, Until: until}
	l.Reopen(e, true)
}

// unaccept notes that nobody will ask about what the outside has accepted.
func (e *Entry) unaccept() {
	if e.Polling != nil {
		e.Polling = &Polling{Polls: e.Polling.Polls}
	}
}
