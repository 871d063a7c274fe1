package receipt

import (
	"bytes"
	"cmp"
	"slices"
)

// Entries that are in memory no more: the part of the [Ledger] that lets them leave, and has
// them back where something asks for them. Only what Evict lets leave is ever away, so that a
// ledger without a Cold has all its entries at hand.

// Cold reads entries that left memory, as TakeDirty gave them last. Where something cannot be
// read whoever gave it to the ledger has to take nothing that the ledger says from then on.
type Cold struct {
	// Entry returns one that is the ledger's from then on, nil where there is none. ok says
	// that it could be read.
	Entry func(key Key) (e *Entry, ok bool)
	// Each visits all that TakeDirty ever gave, in an order that does not matter, but for
	// those that skip names.
	Each func(skip func(Key) bool, visit func(*Entry))
}

// entryBytes is about what an entry takes in memory that has ended and asked nobody.
const entryBytes = 700

// bytes returns how many bytes an entry's params and answers have.
func (e *Entry) bytes() int {
	n := len(e.Intent.Params) + len(e.Held) + len(e.Accepted())
	for _, in := range e.Inputs {
		n += len(in.Question) + len(in.Answer)
	}
	return n
}

// weigh counts an entry with so many bytes.
func (l *Ledger) weigh(key Key, bytes int) {
	before := l.sizes[key]
	if bytes == before {
		return
	}
	if l.sizes == nil {
		l.sizes = make(map[Key]int)
	}
	l.hereBytes += bytes - before
	if l.sizes[key] = bytes; bytes == 0 {
		delete(l.sizes, key)
	}
}

// KeepCold lets entries leave memory, and says how they are read again.
func (l *Ledger) KeepCold(c Cold) {
	l.cold, l.live = c, make(map[Key]*Entry)
	for _, e := range l.entries { // order cannot show: whatever leaves comes back the same
		l.cool(e)
	}
}

// mayLeave reports whether an entry can leave memory: it is as it was saved, its intent has
// come to an end that nothing is to follow, and no part of the ledger finds it other than
// by its key. Who was asked for several times was so by rollbacks, some of whose askings
// are in no record of the intent.
func (l *Ledger) mayLeave(e *Entry) bool {
	return e.saved && !e.dirty && e.Ended() && e.Held == nil && e.Reserved == (Cost{}) && len(e.Asked) == 1 &&
		!e.Abandoned && e.Repeats == nil && len(l.repeats[e.Intent.Key]) == 0
}

// cooling is an entry that may leave memory, or might when it was put there, and what it took.
type cooling struct {
	*Entry
	size int
}

// cool puts an entry among those that Evict looks at, where it may leave, and else among those
// that may not.
func (l *Ledger) cool(e *Entry) {
	if l.cold.Entry == nil {
		return
	}
	if !l.mayLeave(e) {
		l.live[e.Intent.Key] = e
		return
	}
	delete(l.live, e.Intent.Key)
	e.used = false
	if !e.cooling {
		e.cooling = true
		size := entryBytes + e.bytes()
		l.cooling = append(l.cooling, cooling{e, size})
		l.coolBytes += size
	}
}

// Evict drops ended entries from memory down to a number of bytes: first those that ended longest
// ago and were not looked up since the last call. What Entry gave before may not be the ledger's
// any more: whoever changes it asks for it again.
func (l *Ledger) Evict(most int) {
	for range l.cooling {
		if l.coolBytes <= most {
			return
		}
		c := l.cooling[0]
		l.cooling[0] = cooling{}
		l.cooling = l.cooling[1:]
		switch e := c.Entry; {
		case e.used:
			e.used = false
			l.cooling = append(l.cooling, c)
			continue
		case l.entries[e.Intent.Key] == e && l.mayLeave(e):
			delete(l.entries, e.Intent.Key)
			l.away++
			l.awayBytes += l.sizes[e.Intent.Key]
			l.weigh(e.Intent.Key, 0)
		default: // it comes again when it has ended, and is saved
			e.cooling = false
		}
		l.coolBytes -= c.size
	}
}

// Standing is what a ledger whose entries may leave memory goes on with in another process.
type Standing struct {
	Live    []Key            `cbor:"live"`    // of the entries that may not leave, in no order that matters
	Counts  map[State]uint64 `cbor:"counts"`  // of all intents, by their states
	Cancels uint64           `cbor:"cancels"` // see Count
	Bytes   uint64           `cbor:"bytes"`   // see Bytes
}

// Standing returns what TakeDirty does not give of a ledger, nil where no entry ever leaves
// memory. TakeDirty must have given all that changed. It costs what is live, and not what is there.
func (l *Ledger) Standing() *Standing {
	if l.cold.Entry == nil {
		return nil
	}
	s := &Standing{Live: []Key{}, Counts: make(map[State]uint64), Cancels: uint64(l.cancels), Bytes: uint64(l.hereBytes + l.awayBytes)}
	for key, e := range l.live { // order cannot show: sorted below
		if l.entries[key] != e || l.mayLeave(e) {
			delete(l.live, key)
			continue
		}
		s.Live = append(s.Live, key)
	}
	slices.SortFunc(s.Live, func(a, b Key) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	for state, n := range l.counts { // order cannot show: another map
		s.Counts[state] = uint64(n)
	}
	return s
}

// Resume sets the standing of a ledger whose live entries Restore has added; the other entries are
// away, in c.
func (l *Ledger) Resume(s *Standing, c Cold) {
	all := 0
	for state, n := range s.Counts { // order cannot show: another map
		l.counts[state] = int(n)
		all += int(n)
	}
	l.cancels = int(s.Cancels)
	l.away, l.awayBytes = all-len(l.entries), int(s.Bytes)-l.hereBytes
	l.KeepCold(c)
}

// Held returns about how many bytes the entries take that are in memory. It looks at all of them.
func (l *Ledger) Held() int {
	n := entryBytes * len(l.entries)
	for _, e := range l.entries { // order cannot show: a sum
		n += e.bytes()
	}
	return n
}

// Away returns how many entries are not in memory.
func (l *Ledger) Away() int { return l.away }

// Bring has the entries that fit in memory again. It looks at all that are not. fits must not
// ask the ledger.
func (l *Ledger) Bring(fits func(*Entry) bool) {
	var all []*Entry
	l.eachAway(func(e *Entry) {
		if fits(e) {
			all = append(all, e)
		}
	})
	for _, e := range all {
		l.bring(e)
	}
}

// bring has an entry that was read in memory again.
func (l *Ledger) bring(e *Entry) {
	e.saved = true
	l.entries[e.Intent.Key] = e
	l.away--
	l.awayBytes -= e.bytes()
	l.weigh(e.Intent.Key, e.bytes())
	l.cool(e)
	e.used = true
}

// each visits all entries. Those that are not in memory are not the ledger's.
func (l *Ledger) each(visit func(*Entry)) {
	for _, e := range l.entries { // order cannot show: who calls sorts, or adds up
		visit(e)
	}
	l.eachAway(visit)
}

func (l *Ledger) eachAway(visit func(*Entry)) {
	if l.away > 0 {
		l.cold.Each(func(key Key) bool { return l.entries[key] != nil }, visit)
	}
}

// Select returns the intents that fit, nil: all, in the order in which they were emitted. It
// looks at all there are. fits must not ask the ledger, and the caller must not change them.
func (l *Ledger) Select(fits func(*Entry) bool) []*Entry {
	var out []*Entry
	l.each(func(e *Entry) {
		if fits == nil || fits(e) {
			out = append(out, e)
		}
	})
	slices.SortFunc(out, byEmission)
	return out
}

// Holders returns the intents for which something is reserved, in the order in which they
// were emitted. These never leave memory.
func (l *Ledger) Holders() []*Entry {
	var out []*Entry
	for _, e := range l.entries { // order cannot show: sorted below
		if e.Reserved != (Cost{}) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, byEmission)
	return out
}

// AskedAfter returns the intents that were asked for after a record, in the order in which
// they first were, once each. Those that are not in memory it leaves out: whoever asks has
// read them back before.
func (l *Ledger) AskedAfter(record uint64) []*Entry {
	type asking struct {
		record uint64
		*Entry
	}
	var all []asking
	for _, e := range l.entries { // order cannot show: sorted below
		if at := slices.IndexFunc(e.Asked, func(asked uint64) bool { return asked > record }); at >= 0 {
			all = append(all, asking{e.Asked[at], e})
		}
	}
	slices.SortFunc(all, func(a, b asking) int { // a rollback asks for several, cell by cell
		return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(a.Intent.Cell, b.Intent.Cell), byEmission(a.Entry, b.Entry))
	})
	out := make([]*Entry, len(all))
	for i, a := range all {
		out[i] = a.Entry
	}
	return out
}
