package receipt

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Entry is the state of an intent in the ledger. Record ids are 0 where there
// is no such record yet.
type Entry struct {
	_ struct{} `cbor:",toarray"`

	Version  uint64
	Intent   Intent // Params only while it may still be attempted
	Params   Hash
	State    State
	Attempt  uint64
	Nonce    Nonce
	Slot     uint64 // the owner of the attempt: a slot below limits.in_flight
	Emitted  uint64 // record that made the intent, or that approved it
	Started  uint64 // record that granted the last permit
	Finished uint64 // record that ended it

	Outcome  Outcome // the last; empty while there is none, and of what was cancelled before anything was attempted
	Deadline uint64  // awaiting approval: the tick at which it is denied; NoDeadline: never, nor while it awaits an answer
	Reserved Cost    // of the budgets that it draws on
	Lost     []Lost  // attempts that were given up without a receipt
	Unused   uint64  // attempts that were given back: nothing was done
	For      *Key    // the intent that this one makes up for, or nil
	Held     Data    // what its cell will be told once a compensation has ended or a person has confirmed it

	// Open: the backoff before the next attempt is not over. In doubt: the
	// verifier is asked.
	Waiting bool

	Asked     []uint64 // records at which it was asked for: several where rollbacks led there again
	Abandoned bool     // a rollback left it behind: nobody waits for it
	Repeats   *Key     // the abandoned intent that it equals, or nil
	Reused    bool     // it was not executed: what Repeats came to is its result
	Attested  bool     // committed by the word of a person or a verifier: there is no receipt

	// In Ledger.dirty; TakeDirty has given it before; in Ledger.cooling; asked for since Evict
	// looked at it. They stand here to take no room.
	dirty, saved, cooling, used bool

	Uncertain bool   // an attempt was given up, and nobody has said that it did not happen
	Undone    uint64 // the rollback that had it made up for
	Former    uint64 // how many of Asked led to a denial, after which it was decided anew

	Inputs []Input // what it has asked a person; the last without an answer: it waits for that

	Polling *Polling // what the outside has accepted; nil: it never had anything to accept

	// Records since which its cell is told its end apart: it has cancelled it, or the one
	// in the place of which a person had it asked for. One in each history.
	Apart []uint64

	Seen *ApprovalBasis // what a person is asked about, has approved, or has answered; nil: nobody was asked, or it has ended
}

// ApprovalBasis is what an approval is bound to besides the intent, by digests of what the manifest
// says. A zero digest binds to nothing.
type ApprovalBasis struct {
	_ struct{} `cbor:",toarray"`

	Effect Hash `json:"effect"` // its declaration, with the adapter and its config
	Cap    Hash `json:"cap"`    // the capability, with its name
	Rules  Hash `json:"rules"`  // the policies that decided
}

func (s *ApprovalBasis) appendTo(b []byte) []byte {
	if s == nil {
		return append(b, canon.Null...)
	}
	b = canon.AppendBytes(canon.AppendArray(b, 3), s.Effect[:])
	return canon.AppendBytes(canon.AppendBytes(b, s.Cap[:]), s.Rules[:])
}

// Lost is an attempt that was given up without a receipt. One may still come.
type Lost struct {
	_       struct{} `cbor:",toarray"`
	Attempt uint64
	Nonce   Nonce
}

// entryVersion is the version of both forms of an entry: all of its fields, and the short one
// of entry_ended.go. How many fields it has tells them apart.
const entryVersion = 1

// maxSlots bounds the memory that a damaged entry can ask for.
const maxSlots = 1 << 24

// Compensating reports whether the effect that makes up for a failed one has not
// ended.
func (e *Entry) Compensating() bool {
	return e.State == StateFailed && len(e.Held) > 0 && string(e.Held) != canon.Null
}

// Resting reports whether the intent gets on only by an input, or not at all.
func (e *Entry) Resting() bool {
	switch e.State {
	case StateOpen, StateInFlight:
		return false
	case StateInDoubt:
		return !e.Waiting // else its verifier is asked
	default:
		return !e.Compensating()
	}
}

// NotBegun reports whether an intent waits for its first attempt, or for another one, or for a
// person before that. An attempt that only asks the outside about what that has accepted is
// begun.
func (e *Entry) NotBegun() bool {
	switch e.State {
	case StateOpen:
		return e.Accepted() == ""
	case StateAwaitingApproval, StateAwaitingAnswer:
		return true
	default:
		return false
	}
}

// Ended reports whether the intent waits for nothing any more but, where Held is not
// nil, the end of its compensation.
func (e *Entry) Ended() bool { return e.State.ended() }

// lost returns the place of the given-up attempt that a receipt answers, or -1.
func (e *Entry) lost(r *Receipt) int {
	return slices.IndexFunc(e.Lost, func(x Lost) bool { return x.Attempt == r.Attempt && x.Nonce == r.Nonce })
}

// Append appends the canonical bytes of an entry. By hand, because
// an image has every intent that changed; a test holds it equal to the library's. The key of
// one that has ended may be left out.
func (e *Entry) Append(b []byte) []byte {
	if short, ok := e.appendEnded(b); ok {
		return short
	}
	b = canon.AppendUint(canon.AppendArray(b, 30), entryVersion)
	b = e.Intent.appendTo(b)
	b = canon.AppendBytes(b, e.Params[:])
	b = canon.AppendText(b, string(e.State))
	b = canon.AppendUint(b, e.Attempt)
	b = canon.AppendBytes(b, e.Nonce[:])
	for _, n := range [...]uint64{e.Slot, e.Emitted, e.Started, e.Finished} {
		b = canon.AppendUint(b, n)
	}
	b = canon.AppendText(b, string(e.Outcome))
	b = canon.AppendUint(b, e.Deadline)
	b = e.Reserved.appendTo(b)
	b = canon.AppendArray(b, len(e.Lost))
	for _, x := range e.Lost {
		b = canon.AppendBytes(canon.AppendUint(canon.AppendArray(b, 2), x.Attempt), x.Nonce[:])
	}
	b = canon.AppendUint(b, e.Unused)
	b = e.For.appendTo(b)
	b = canon.AppendRaw(b, e.Held)
	b = canon.AppendBool(b, e.Waiting)
	b = appendUints(b, e.Asked)
	b = canon.AppendBool(b, e.Abandoned)
	b = e.Repeats.appendTo(b)
	for _, is := range [...]bool{e.Reused, e.Attested, e.Uncertain} {
		b = canon.AppendBool(b, is)
	}
	b = canon.AppendUint(canon.AppendUint(b, e.Undone), e.Former)
	b = canon.AppendArray(b, len(e.Inputs))
	for _, x := range e.Inputs {
		b = canon.AppendRaw(canon.AppendRaw(canon.AppendArray(b, 2), x.Question), x.Answer)
	}
	if p := e.Polling; p != nil {
		b = canon.AppendText(canon.AppendArray(b, 3), p.ID)
		b = canon.AppendInt(canon.AppendUint(b, p.Polls), p.Until)
	} else {
		b = append(b, canon.Null...)
	}
	return e.Seen.appendTo(appendUints(b, e.Apart))
}

func (in *Intent) appendTo(b []byte) []byte {
	b = canon.AppendBytes(canon.AppendArray(b, 8), in.Key.Hash[:])
	b = canon.AppendText(b, string(in.Step))
	b = canon.AppendText(b, in.Cell)
	b = canon.AppendText(b, in.Kind)
	b = canon.AppendRaw(b, in.Params)
	b = canon.AppendText(b, in.Tag)
	b = canon.AppendText(b, in.Cap)
	return canon.AppendUint(b, in.Occurrence)
}

// appendTo appends a key, or null.
func (k *Key) appendTo(b []byte) []byte {
	if k == nil {
		return append(b, canon.Null...)
	}
	return canon.AppendBytes(b, k.Hash[:])
}

func appendUints(b []byte, all []uint64) []byte {
	b = canon.AppendArray(b, len(all))
	for _, n := range all {
		b = canon.AppendUint(b, n)
	}
	return b
}

// DecodeEntry parses what Append wrote of a key's intent.
func DecodeEntry(key Key, data []byte) (*Entry, error) {
	if bytes.HasPrefix(data, []byte(endedHead)) {
		return decodeEnded(key, data)
	}
	e := new(Entry)
	if err := canon.Unmarshal(data, e); err != nil {
		return nil, err
	}
	if e.Version != entryVersion || e.Intent.Key != key || e.Former > uint64(len(e.Asked)) {
		return nil, ErrVersion
	}
	if string(e.Held) == canon.Null {
		e.Held = nil
	}
	if e.Ended() && string(e.Intent.Params) == canon.Null {
		e.Intent.Params = nil
	}
	for i := range e.Inputs {
		if string(e.Inputs[i].Answer) == canon.Null {
			e.Inputs[i].Answer = nil
		}
	}
	return e, nil
}

// Restore makes l the ledger that has exactly so many entries, by their keys, which
// TakeDirty gave and Append wrote. After an error l is empty.
func (l *Ledger) Restore(n int, entries iter.Seq2[Key, []byte]) error {
	*l = Ledger{entries: make(map[Key]*Entry, n), counts: make(map[State]int)}
	for key, data := range entries {
		if err := l.restore(key, data); err != nil {
			*l = Ledger{}
			return fmt.Errorf("receipt: ledger entry: %w", err)
		}
	}
	slices.SortFunc(l.open, byEmission)
	slices.SortFunc(l.waiting, byEmission)
	slices.SortFunc(l.asked, byDeadline)
	slices.SortFunc(l.flight, func(a, b *Entry) int { return cmp.Compare(a.Started, b.Started) })
	return nil
}

func (l *Ledger) restore(key Key, data []byte) error {
	e, err := DecodeEntry(key, data)
	if err != nil {
		return err
	}
	if l.entries[e.Intent.Key] != nil {
		return fmt.Errorf("intent %s is there twice", e.Intent.Key)
	}
	switch e.State {
	case StateOpen:
		if e.Waiting {
			l.waiting = append(l.waiting, e)
		} else {
			l.open = append(l.open, e)
			l.sorted(e, 1)
		}
	case StateInFlight:
		if e.Slot >= maxSlots || e.Slot < uint64(len(l.slots)) && l.slots[e.Slot] {
			return fmt.Errorf("intent %s cannot have slot %d", e.Intent.Key, e.Slot)
		}
		l.takeSlot(e.Slot)
		l.flight = append(l.flight, e)
	case StateAwaitingApproval, StateAwaitingAnswer:
		l.asked = append(l.asked, e)
	case StateAwaitingConfirmation, StateInDoubt, StateCommitted, StateFailed, StateDenied:
	default:
		return fmt.Errorf("intent %s is in the unknown state %q", e.Intent.Key, e.State)
	}
	e.saved = true
	l.entries[e.Intent.Key] = e
	l.weigh(e.Intent.Key, e.bytes())
	l.count(e, 1)
	l.unstick(e)
	if e.Abandoned {
		l.leave(e)
	}
	l.index(e)
	return nil
}
