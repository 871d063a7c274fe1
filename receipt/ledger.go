package receipt

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// State is where an intent stands in the ledger.
type State string

// The states of an intent. New ones are only appended.
const (
	StateOpen      State = "open"      // allowed; waits for a slot
	StateInFlight  State = "in_flight" // a permit is granted, no receipt yet
	StateCommitted State = "committed" // answered; the side effect happened
	StateFailed    State = "failed"    // answered; it never will happen
	StateDenied    State = "denied"    // the gate said no
)

// States returns all states, in the order in which an intent can take them.
func States() []State {
	return []State{StateOpen, StateInFlight, StateCommitted, StateFailed, StateDenied}
}

// Decision is the ledger's answer to whoever wants to execute an intent.
type Decision string

// The decisions of semantics.md section 6.
const (
	AllowExecute         Decision = "allow_execute"
	ReturnRecordedResult Decision = "return_recorded_result"
	WaitOtherWorker      Decision = "wait_other_worker"
	Rejected             Decision = "rejected"
)

// Entry is what the ledger knows of one intent. Record ids are 0 where there
// is no such record yet.
type Entry struct {
	Version  uint64 `cbor:"version"`
	Intent   Intent `cbor:"intent"` // Params only while open or in flight
	Params   Hash   `cbor:"params"`
	State    State  `cbor:"state"`
	Attempt  uint64 `cbor:"attempt"`
	Nonce    Nonce  `cbor:"nonce"`
	Slot     uint64 `cbor:"slot"`     // the owner of the attempt: a slot below limits.in_flight
	Emitted  uint64 `cbor:"emitted"`  // record that made the intent
	Started  uint64 `cbor:"started"`  // record that granted the last permit
	Finished uint64 `cbor:"finished"` // record that ended it

	dirty bool // in Ledger.dirty
}

const entryVersion = 1

// maxSlots bounds the memory that a damaged entry can ask for.
const maxSlots = 1 << 24

// Ledger is the fold over a journal that lets every intent be executed at most
// once. The zero value is empty; it is not safe for concurrent use.
type Ledger struct {
	entries map[Key]*Entry
	open    []*Entry // waiting for a slot, in intent order
	flight  []*Entry // in flight, in intent order
	slots   []bool   // taken, by slot
	free    int      // no slot below it is free
	counts  map[State]int
	dirty   []*Entry // changed since the last TakeDirty, once each; those that Emit replaced stay
}

// Decide answers whether an intent may be executed now.
func (l *Ledger) Decide(key Key) Decision {
	e := l.entries[key]
	if e == nil {
		return AllowExecute
	}
	switch e.State {
	case StateDenied:
		return AllowExecute
	case StateCommitted:
		return ReturnRecordedResult
	case StateOpen, StateInFlight:
		return WaitOtherWorker
	default:
		return Rejected
	}
}

// Entry returns what is known of an intent, or nil. The caller must not change it.
func (l *Ledger) Entry(key Key) *Entry { return l.entries[key] }

// Len returns the number of intents.
func (l *Ledger) Len() int { return len(l.entries) }

// Count returns how many intents are in a state.
func (l *Ledger) Count(s State) int { return l.counts[s] }

// Keys returns the keys of all intents in the order in which they were emitted.
func (l *Ledger) Keys() []Key {
	entries := make([]*Entry, 0, len(l.entries))
	for _, e := range l.entries { // order cannot show: sorted below
		entries = append(entries, e)
	}
	slices.SortFunc(entries, byEmission)
	keys := make([]Key, len(entries))
	for i, e := range entries {
		keys[i] = e.Intent.Key
	}
	return keys
}

func byEmission(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Emitted, b.Emitted), bytes.Compare(a.Intent.Key.Hash[:], b.Intent.Key.Hash[:]))
}

// Emit enters an intent that the gate allowed. The ledger must have answered
// AllowExecute.
func (l *Ledger) Emit(in Intent, record uint64) {
	e := l.enter(in, record)
	l.move(e, StateOpen)
	l.open = append(l.open, e)
}

// Deny enters an intent that the gate denied.
func (l *Ledger) Deny(in Intent, record uint64) {
	e := l.enter(in, record)
	e.Intent.Params = nil
	e.Finished = record
	l.move(e, StateDenied)
}

func (l *Ledger) enter(in Intent, record uint64) *Entry {
	if l.Decide(in.Key) != AllowExecute {
		panic("receipt: intent " + in.Key.String() + " is in the ledger already")
	}
	if l.entries == nil {
		l.entries, l.counts = make(map[Key]*Entry), make(map[State]int)
	}
	if old := l.entries[in.Key]; old != nil {
		l.counts[old.State]--
	}
	e := &Entry{Version: entryVersion, Intent: in, Params: canon.Sum(in.Params), Emitted: record}
	l.entries[in.Key] = e
	return e
}

// NextOpen returns the oldest intent that waits for a permit, or nil, while
// fewer than slots are in flight.
func (l *Ledger) NextOpen(slots uint64) *Entry {
	if len(l.open) == 0 || uint64(len(l.flight)) >= slots {
		return nil
	}
	return l.open[0]
}

// Start grants the next attempt of the oldest open intent.
func (l *Ledger) Start(nonce Nonce, record uint64) *Entry {
	e := l.open[0]
	l.open = l.open[1:]
	if len(l.open) == 0 {
		l.open = nil // lets the backing array go
	}
	e.Attempt++
	e.Nonce, e.Started = nonce, record
	e.Slot = l.NextSlot()
	l.takeSlot(e.Slot)
	l.flight = append(l.flight, e)
	l.move(e, StateInFlight)
	return e
}

// NextSlot returns the slot that Start will give: the lowest that is free.
func (l *Ledger) NextSlot() uint64 {
	for l.free < len(l.slots) && l.slots[l.free] {
		l.free++
	}
	return uint64(l.free)
}

func (l *Ledger) takeSlot(slot uint64) {
	for uint64(len(l.slots)) <= slot {
		l.slots = append(l.slots, false)
	}
	l.slots[slot] = true
}

func (l *Ledger) releaseSlot(slot uint64) {
	l.slots[slot] = false
	l.free = min(l.free, int(slot))
}

// InFlight returns the intents that have a permit and no receipt, in the order
// of their permits. The caller must not change the slice.
func (l *Ledger) InFlight() []*Entry { return l.flight }

// Open returns the intents that wait for a permit, in intent order.
func (l *Ledger) Open() []*Entry { return l.open }

// Check reports why a receipt does not answer the attempt that is in flight.
// The signature is the keyring's to verify.
func (l *Ledger) Check(r *Receipt) error {
	e := l.entries[r.Key]
	switch {
	case e == nil:
		return ErrUnknownIntent
	case e.State == StateCommitted || e.State == StateFailed || e.State == StateDenied:
		return ErrDuplicate
	case e.State != StateInFlight || r.Attempt != e.Attempt || r.Nonce != e.Nonce:
		return ErrWrongAttempt
	case r.Kind != e.Intent.Kind || r.ParamsHash != e.Params || r.Cap != e.Intent.Cap:
		return ErrWrongIntent
	}
	return nil
}

// Finish ends the attempt that r answers; Check must have passed.
func (l *Ledger) Finish(r *Receipt, record uint64) *Entry {
	e := l.entries[r.Key]
	at := slices.Index(l.flight, e)
	l.flight = slices.Delete(l.flight, at, at+1)
	l.releaseSlot(e.Slot)
	e.Finished = record
	e.Intent.Params = nil
	if r.Outcome() == OutcomeSideEffectCommitted {
		l.move(e, StateCommitted)
	} else {
		l.move(e, StateFailed)
	}
	return e
}

func (l *Ledger) move(e *Entry, to State) {
	if e.State != "" {
		l.counts[e.State]--
	}
	l.counts[to]++
	e.State = to
	if !e.dirty {
		e.dirty = true
		l.dirty = append(l.dirty, e)
	}
}

// TakeDirty returns the entries that changed since the last call, each once,
// in the order of their intents.
func (l *Ledger) TakeDirty() []*Entry {
	out := slices.DeleteFunc(l.dirty, func(e *Entry) bool {
		e.dirty = false
		return l.entries[e.Intent.Key] != e // denied once, and emitted again since
	})
	slices.SortFunc(out, byEmission)
	l.dirty = nil
	return out
}

// Encode returns the canonical bytes of an entry.
func (e *Entry) Encode() ([]byte, error) { return canon.Marshal(e) }

// Restore makes l the ledger that has exactly the entries in data, which
// TakeDirty gave and Encode wrote. After an error l is empty.
func (l *Ledger) Restore(data [][]byte) error {
	*l = Ledger{entries: make(map[Key]*Entry, len(data)), counts: make(map[State]int)}
	for _, b := range data {
		if err := l.restore(b); err != nil {
			*l = Ledger{}
			return fmt.Errorf("receipt: ledger entry: %w", err)
		}
	}
	slices.SortFunc(l.open, byEmission)
	slices.SortFunc(l.flight, func(a, b *Entry) int { return cmp.Compare(a.Started, b.Started) })
	return nil
}

func (l *Ledger) restore(data []byte) error {
	e := new(Entry)
	if err := canon.Unmarshal(data, e); err != nil {
		return err
	}
	if e.Version != entryVersion {
		return ErrVersion
	}
	if l.entries[e.Intent.Key] != nil {
		return fmt.Errorf("intent %s is there twice", e.Intent.Key)
	}
	switch e.State {
	case StateOpen:
		l.open = append(l.open, e)
	case StateInFlight:
		if e.Slot >= maxSlots || e.Slot < uint64(len(l.slots)) && l.slots[e.Slot] {
			return fmt.Errorf("intent %s cannot have slot %d", e.Intent.Key, e.Slot)
		}
		l.takeSlot(e.Slot)
		l.flight = append(l.flight, e)
	case StateCommitted, StateFailed, StateDenied:
	default:
		return fmt.Errorf("intent %s is in the unknown state %q", e.Intent.Key, e.State)
	}
	l.entries[e.Intent.Key] = e
	l.counts[e.State]++
	return nil
}
