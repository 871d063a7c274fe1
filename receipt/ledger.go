package receipt

import (
	"bytes"
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Decision is the ledger's answer to whoever wants to execute an intent.
type Decision string

// The decisions about an intent. docs/adr/0013 says why a recorded end is returned whether
// it was a success or not.
const (
	AllowExecute         Decision = "allow_execute"          // it was never attempted
	ReturnRecordedResult Decision = "return_recorded_result" // it has ended
	WaitOtherWorker      Decision = "wait_other_worker"      // its end is still to come
	Rejected             Decision = "rejected"               // it happened and was made up for
)

// Ledger is the fold over a journal that lets every intent be executed at most
// once. The zero value is empty; it is not safe for concurrent use.
type Ledger struct {
	entries map[Key]*Entry
	open    []*Entry     // waiting for a slot, in intent order
	sorts   map[sort]int // how many of open are of each
	waiting []*Entry     // open, waiting for their backoff, in no order
	asked   []*Entry     // awaiting approval or an answer, by deadline, then in intent order
	flight  []*Entry     // in flight, in intent order
	slots   []bool       // taken, by slot
	free    int          // no slot below it is free
	counts  map[State]int
	cancels int                   // the denied ones that were cancelled
	stuck   map[Key]*Entry        // awaiting a person, or in doubt
	dirty   []*Entry              // changed since the last TakeDirty, once each; those that Emit replaced stay
	left    map[likeness][]*Entry // abandoned, in the order of emission, without those that Left has passed over
	repeats map[Key][]*Entry      // by the key of the intent that they repeat

	cold      Cold           // reads entries that left memory; zero: none leaves
	cooling   []cooling      // the entries that Evict looks at, in that order
	coolBytes int            // the bytes of cooling
	live      map[Key]*Entry // entries that could not leave when TakeDirty gave them; some can by now
	away      int            // entries that are not in memory
	awayBytes int            // the bytes of those, as Bytes counts
	sizes     map[Key]int    // the bytes of entries in memory, as TakeDirty gave them; without those of 0 bytes
	hereBytes int            // the sum of sizes
}

// Decide answers whether an intent may be executed now.
func (l *Ledger) Decide(key Key) Decision { return l.Entry(key).decision() }

// decision is the decision about an entry; nil is an intent that the ledger does not have.
func (e *Entry) decision() Decision {
	switch {
	case e == nil:
		return AllowExecute
	case e.State == StateDenied:
		return AllowExecute
	case e.State == StateFailed && e.Outcome == OutcomeCompensated:
		return Rejected
	case e.Ended() && e.Held == nil:
		return ReturnRecordedResult
	default: // its end is still to come
		return WaitOtherWorker
	}
}

// Entry returns what is known of an intent, or nil. The caller must not change it.
func (l *Ledger) Entry(key Key) *Entry {
	e := l.AtHand(key)
	if e == nil && l.away > 0 {
		e = l.readBack(key)
	}
	return e
}

// AtHand is Entry without a look at the disk: the caller knows that the intent is in memory or new.
func (l *Ledger) AtHand(key Key) *Entry {
	e := l.entries[key]
	if e != nil && e.cooling {
		e.used = true
	}
	return e
}

// Len returns the number of intents.
func (l *Ledger) Len() int { return len(l.entries) + l.away }

// Count returns how many intents are in a state. Cancelled ones count as StateCancelled, and
// not as StateDenied.
func (l *Ledger) Count(s State) int {
	switch s {
	case StateCancelled:
		return l.cancels
	case StateDenied:
		return l.counts[s] - l.cancels
	default:
		return l.counts[s]
	}
}

// count counts an intent in its state: by is 1 or -1.
func (l *Ledger) count(e *Entry, by int) {
	l.counts[e.State] += by
	if e.State == StateDenied && e.Outcome == "" {
		l.cancels += by
	}
}

// In returns the intents that are in a state, in the order in which they were
// emitted. The caller must not change them. Those that await a person or are in doubt cost
// no time for the others. Those that have not ended cost no read from disk.
func (l *Ledger) In(s State) []*Entry {
	if l.counts[s] == 0 {
		return nil
	}
	among := l.entries
	switch {
	case s.ended():
		return l.Select(func(e *Entry) bool { return e.State == s })
	case s.stuck():
		among = l.stuck
	}
	out := make([]*Entry, 0, l.counts[s])
	for _, e := range among { // order cannot show: sorted below
		if e.State == s {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, byEmission)
	return out
}

// Bytes returns how many bytes the params and answers of its intents have.
func (l *Ledger) Bytes() int {
	n := l.awayBytes
	for _, e := range l.entries { // order cannot show: a sum
		n += e.bytes()
	}
	return n
}

func byEmission(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Emitted, b.Emitted), bytes.Compare(a.Intent.Key.Hash[:], b.Intent.Key.Hash[:]))
}

// Emit enters an intent that the gate allowed. The ledger must have answered
// AllowExecute.
func (l *Ledger) Emit(in Intent, record uint64) *Entry {
	e := l.enter(in, record)
	l.move(e, StateOpen)
	l.open = append(l.open, e)
	l.sorted(e, 1)
	return e
}

// AwaitApproval enters an intent that awaits approval, at most until a tick.
func (l *Ledger) AwaitApproval(in Intent, deadline, record uint64) *Entry {
	e := l.enter(in, record)
	l.await(e, StateAwaitingApproval, deadline)
	return e
}

// NoDeadline is the deadline of an intent that awaits a person as long as it takes.
const NoDeadline = math.MaxUint64

// await has an intent await an approval or an answer until a deadline.
func (l *Ledger) await(e *Entry, state State, deadline uint64) {
	e.Deadline = deadline
	l.move(e, state)
	at, _ := slices.BinarySearchFunc(l.asked, e, byDeadline)
	l.asked = slices.Insert(l.asked, at, e)
}

// Overdue returns the intent awaiting approval with the earliest deadline, if that is not
// after now, else nil.
func (l *Ledger) Overdue(now uint64) *Entry {
	if len(l.asked) == 0 || l.asked[0].Deadline > now {
		return nil
	}
	return l.asked[0]
}

// NextDeadline returns when the next intent awaiting approval is overdue; false: none ever is.
func (l *Ledger) NextDeadline() (uint64, bool) {
	if len(l.asked) == 0 || l.asked[0].Deadline == NoDeadline {
		return 0, false
	}
	return l.asked[0].Deadline, true
}

// endWait ends the wait for an approval or an answer.
func (l *Ledger) endWait(e *Entry) {
	if e.Deadline == 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(l.asked, e, byDeadline)
	l.asked = slices.Delete(l.asked, at, at+1)
	e.Deadline = 0
}

func byDeadline(a, b *Entry) int {
	return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), byEmission(a, b))
}

// Approve opens an intent that awaits approval. capability is the one under which the gate allows it now.
func (l *Ledger) Approve(e *Entry, capability string, record uint64) {
	l.endWait(e)
	l.stay(e) // its place among others is another
	e.Intent.Cap, e.Emitted = capability, record
	l.move(e, StateOpen)
	l.open = append(l.open, e) // no open intent was emitted later
	l.sorted(e, 1)
}

// Deny enters an intent that the gate denied.
func (l *Ledger) Deny(in Intent, record uint64) *Entry {
	e := l.enter(in, record)
	l.Refuse(e, record)
	return e
}

// Refuse ends an intent that awaits approval or is open before anything was attempted.
func (l *Ledger) Refuse(e *Entry, record uint64) {
	l.unqueue(e)
	l.endWait(e)
	l.endIntent(e, StateDenied, OutcomePermanentFailure, record)
}

func (l *Ledger) enter(in Intent, record uint64) *Entry {
	old := l.AtHand(in.Key) // if it is anywhere: whoever asks for it again has looked
	if old.decision() != AllowExecute {
		panic("receipt: intent " + in.Key.String() + " is in the ledger already")
	}
	if l.entries == nil {
		l.entries, l.counts = make(map[Key]*Entry), make(map[State]int)
	}
	e := &Entry{Intent: in, Params: canon.Sum(in.Params), Emitted: record}
	if old != nil { // denied once
		l.count(old, -1)
		e.saved = old.saved
		l.stay(old)
		l.replace(old, e)
	}
	l.entries[in.Key] = e
	e.noteAsked(record)
	return e
}

// HasSlot reports whether fewer than slots are in flight.
func (l *Ledger) HasSlot(slots uint64) bool { return uint64(len(l.flight)) < slots }

// Start grants the next attempt of the intent at an index of Open.
func (l *Ledger) Start(at int, nonce Nonce, record uint64) *Entry {
	e := l.open[at]
	l.sorted(e, -1)
	if at == 0 {
		l.open = l.open[1:]
	} else {
		l.open = slices.Delete(l.open, at, at+1)
	}
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

// sort is what intents that wait for a permit have in common: kind and capability, or that
// they ask what came of something.
type sort struct {
	kind, capability string
	asks             bool
}

// OpenSorts returns how many sorts of intents Open has: by kind and capability, and those
// whose next attempt asks what came of something, which are one sort.
func (l *Ledger) OpenSorts() int { return len(l.sorts) }

// sorted counts an intent that comes to open, or goes: by is 1 or -1.
func (l *Ledger) sorted(e *Entry, by int) {
	of := sort{kind: e.Intent.Kind, capability: e.Intent.Cap}
	if e.Accepted() != "" {
		of = sort{asks: true}
	}
	if l.sorts == nil {
		l.sorts = make(map[sort]int)
	}
	if l.sorts[of] += by; l.sorts[of] == 0 {
		delete(l.sorts, of)
	}
}

// Check reports why a receipt does not answer the attempt that is in flight or
// in doubt: ErrLate where it answers one that was given up. The signature is the
// keyring's to verify.
func (l *Ledger) Check(r *Receipt) error {
	e := l.Entry(r.Key)
	if e == nil {
		return ErrUnknownIntent
	}
	current := r.Attempt == e.Attempt && r.Nonce == e.Nonce
	awaited := current && (e.State == StateInFlight || e.State == StateInDoubt)
	late := !awaited && e.lost(r) >= 0
	switch {
	case !awaited && !late && e.Ended():
		return ErrDuplicate
	case !awaited && !late:
		return ErrWrongAttempt
	case r.Kind != e.Intent.Kind || r.ParamsHash != e.Params || r.Cap != e.Intent.Cap:
		return ErrWrongIntent
	case late:
		return ErrLate
	}
	return nil
}

// Late takes a receipt for an attempt that was given up: from then on an equal receipt is a
// duplicate, and the effect in the receipt may have happened.
func (l *Ledger) Late(r *Receipt) {
	e := l.Entry(r.Key)
	at := e.lost(r)
	e.Lost = slices.Delete(slices.Clone(e.Lost), at, at+1)
	if r.Outcome() == OutcomeSideEffectCommitted {
		e.Uncertain = true
	}
	l.touch(e)
}

func (l *Ledger) move(e *Entry, to State) {
	if e.State != "" {
		l.count(e, -1)
	}
	e.State = to
	l.count(e, 1)
	l.unstick(e)
	l.touch(e)
}

// unstick brings the index of stuck intents up to date after a change of state.
func (l *Ledger) unstick(e *Entry) {
	if !e.State.stuck() {
		delete(l.stuck, e.Intent.Key)
		return
	}
	if l.stuck == nil {
		l.stuck = make(map[Key]*Entry)
	}
	l.stuck[e.Intent.Key] = e
}

// touch notes that an entry has changed.
func (l *Ledger) touch(e *Entry) {
	if e.Abandoned {
		l.leave(e)
	}
	if e.Repeats != nil { // it may stand for that, or do so no more
		if original := l.entries[*e.Repeats]; original != nil && original.Abandoned {
			l.leave(original)
		}
	}
	if !e.dirty {
		e.dirty = true
		l.dirty = append(l.dirty, e)
	}
}

// TakeDirty returns the entries that changed since the last call, each once,
// in the order of their intents, and whether it is the first time for each. An entry
// counts as saved once it was yielded.
func (l *Ledger) TakeDirty() iter.Seq2[*Entry, bool] {
	out := slices.DeleteFunc(l.dirty, func(e *Entry) bool {
		e.dirty = false
		return l.entries[e.Intent.Key] != e // denied once, and emitted again since
	})
	slices.SortFunc(out, byEmission)
	l.dirty = nil
	return func(yield func(*Entry, bool) bool) {
		for _, e := range out {
			first := !e.saved
			e.saved = true
			l.weigh(e.Intent.Key, e.bytes())
			l.cool(e)
			if !yield(e, first) {
				return
			}
		}
	}
}

// readBack has an entry back that left memory; nil: there is none of that key. Of one that
// cannot be read it makes up an end, which nobody is to take.
func (l *Ledger) readBack(key Key) *Entry {
	e, ok := l.cold.Entry(key)
	if !ok {
		return &Entry{Intent: Intent{Key: key}, State: StateFailed, Outcome: OutcomePermanentFailure, saved: true}
	}
	if e != nil {
		l.bring(e)
	}
	return e
}
