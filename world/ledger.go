package world

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// ledger is the receipt.Ledger of all intents. Ended intents leave memory for the image store.
type ledger struct {
	receipt.Ledger
	*ground

	store    *imageStore
	storedAt journal.Seq // what of the ledger is not in memory is as it was then; 0: all is
}

// dropIntents drops ended intents that were not looked up lately, until those in memory take at most most
// bytes. Everything must be in an image of the journal before.
func (l *ledger) dropIntents(most int) {
	if l.storedAt == 0 {
		l.KeepCold(l.store.cold())
	}
	l.storedAt = l.last
	l.Evict(most)
}

// cold reads ledger entries from the image store.
func (s *imageStore) cold() receipt.Cold { return receipt.Cold{Entry: s.entry, Each: s.eachEntry} }

// entry is receipt.Cold.Entry.
func (s *imageStore) entry(key receipt.Key) (e *receipt.Entry, ok bool) {
	v, err := s.images.IntentVersion(key.Hash, journal.Last)
	if err == nil && v == nil {
		return nil, true
	}
	if err == nil {
		e, err = receipt.DecodeEntry(key, v.Bytes)
	}
	if err != nil {
		s.fail(fmt.Errorf("world: intent %s: %w", key, err))
	}
	return e, err == nil
}

// eachEntry is receipt.Cold.Each.
func (s *imageStore) eachEntry(skip func(receipt.Key) bool, visit func(*receipt.Entry)) {
	for v, err := range s.images.IntentVersions(journal.Last) {
		var e *receipt.Entry
		if err == nil && skip(receipt.Key{Hash: v.Key}) {
			continue
		}
		if err == nil {
			e, err = receipt.DecodeEntry(receipt.Key{Hash: v.Key}, slices.Clone(v.Bytes))
		}
		if err != nil {
			s.fail(fmt.Errorf("world: intent %s: %w", v.Key, err))
			return
		}
		visit(e)
	}
}

// known returns the ledger entry for the intent of a step, or nil.
//
// Nearly every intent is new, and then the image store would be searched in vain. So known searches memory
// only, where that is enough: an entry that left memory was asked for by the present history, and by no other
// step. (Entries that a rollback left behind, and entries asked for several times, stay in memory: see
// receipt.Ledger.) A key comes once in a history, also in a fork's: it is made of the step's id, which has
// the cell's name, the step's number, and the effect's place in the step. Intents asked for in another way
// are looked up in the image store, too: in the place of another intent, as a compensation, or by an
// operator, whose effects are numbered through all histories.
func (l *ledger) known(key receipt.Key) *receipt.Entry {
	e := l.AtHand(key)
	if e == nil && l.paranoid && l.Entry(key) != nil {
		l.store.fail(fmt.Errorf("world: intent %s has left memory, and is asked for again", key))
	}
	return e
}

// bringAsked loads the intents that were asked for after a record, for a rollback.
func (l *ledger) bringAsked(h journal.History, after journal.Seq) error {
	if l.Away() == 0 {
		return nil
	}
	if err := l.bringRecorded(h, after); err != nil {
		l.Bring(func(e *receipt.Entry) bool { return e.Asked[len(e.Asked)-1] > uint64(after) })
	}
	return l.store.err
}

// errNotRecorded means that records do not name the intents asked for.
var errNotRecorded = errors.New("world: the journal does not tell which intents were asked for")

// bringRecorded is bringAsked by the records since then. Its cost grows with the number of records, not of
// intents. Every entry out of memory has a record that asked for it.
func (l *ledger) bringRecorded(h journal.History, after journal.Seq) error {
	for s, err := range h.Scan(after) {
		if err != nil {
			return err
		}
		if s.ID > l.storedAt { // whatever was asked for since is in memory
			return nil
		}
		after = s.ID
		rec := s.Record
		if rec.Kind != journal.KindIntent && rec.Kind != journal.KindAwaitingApproval && rec.Kind != journal.KindDenied {
			continue
		}
		if err := rec.Load(h); err != nil {
			return err // it may have been redacted
		}
		key, _, ok := journal.IntentOf(rec.Kind, rec.Payload)
		if !ok {
			return errNotRecorded
		}
		l.Entry(receipt.Key{Hash: key})
	}
	if after < l.storedAt {
		return errNotRecorded // not yet
	}
	return nil
}

// imageIntents returns the intents changed since the last image.
func (l *ledger) imageIntents() (out []journal.IntentVersion) {
	var b []byte
	for e, first := range l.TakeDirty() {
		if cap(b)-len(b) < len(e.Intent.Params)+arenaBytes/64 {
			b = make([]byte, 0, arenaBytes+len(e.Intent.Params))
		}
		start := len(b)
		b = e.Append(b)
		out = append(out, journal.IntentVersion{Key: e.Intent.Key.Hash, First: first, Bytes: b[start:len(b):len(b)]})
	}
	return out
}

// unfinished returns the first effect of a kind under way, or nil.
func (l *ledger) unfinished(kind string) *receipt.Entry {
	for _, e := range l.Unfinished() {
		if e.Intent.Kind == kind {
			return e
		}
	}
	return nil
}

// resultIn reports whether the history up to a record has used the result of e.
func (l *ledger) resultIn(e *receipt.Entry, of journal.Seq) bool {
	return slices.ContainsFunc(l.Repeated(e), func(x *receipt.Entry) bool { return x.Reused && l.askedIn(x, of) })
}

// repeated returns the abandoned intent that in repeats, or nil.
func (l *ledger) repeated(in *receipt.Intent) *receipt.Entry {
	if !l.HasLeft() {
		return nil
	}
	return l.Left(in, l.waived)
}

// doneBy returns the intent that performed the effect of e: e itself, or the intent whose result e took.
func (l *ledger) doneBy(e *receipt.Entry) *receipt.Entry {
	if e.Reused {
		return l.Entry(*e.Repeats)
	}
	return e
}

// hasResult reports whether an abandoned intent has a result that another intent can take: the effect
// happened, and is not being compensated.
func (l *ledger) hasResult(left *receipt.Entry) bool {
	return left.State == receipt.StateCommitted && left.Held == nil
}

// notReusable says why an intent cannot take the result of the repeated intent; empty: it can.
func (l *ledger) notReusable(e *receipt.Entry) string {
	if e.Repeats == nil {
		return "it repeats nothing that a rollback left behind"
	}
	left := l.Entry(*e.Repeats)
	switch key := left.Intent.Key; {
	case left.State != receipt.StateCommitted:
		return fmt.Sprintf("%s has no result: it is %s", key, cmp.Or(string(left.Outcome), string(left.State)))
	case left.Held != nil:
		return fmt.Sprintf("%s is being made up for", key)
	case !left.Abandoned:
		return fmt.Sprintf("%s is part of the history again", key)
	case l.Claimed(left):
		return fmt.Sprintf("another intent stands for %s already", key)
	}
	return ""
}

// standing returns the intents with a cell that waits or was told, except intents of cells in left. They are
// sorted by request, and equal requests by age.
func (l *ledger) standing(left map[string]bool) []*receipt.Entry {
	out := l.Select(func(e *receipt.Entry) bool { return !e.Abandoned && !left[e.Intent.Cell] }) // in the order of their intents
	slices.SortStableFunc(out, byRequest)
	return out
}

// holders returns the intents with a reservation, in their order.
func (l *ledger) holders() []receipt.Entry {
	var out []receipt.Entry
	for _, e := range l.Holders() {
		out = append(out, *e)
	}
	return out
}

// deniedInHistory reports whether the present history has asked for an intent that was denied, or edited,
// before any attempt.
func (l *ledger) deniedInHistory(e *receipt.Entry) bool {
	return e.State == receipt.StateDenied && l.askedIn(e, l.last)
}

// lastEdit follows the edits of an intent in the present history to the last one; without edits it returns e.
func (l *ledger) lastEdit(e *receipt.Entry) *receipt.Entry {
	edits := l.Select(func(x *receipt.Entry) bool {
		behind, of := strings.CutPrefix(string(x.Intent.Step), string(e.Intent.Step))
		return of && strings.HasPrefix(behind, stepEdited) && l.askedIn(x, l.last)
	})
	for _, x := range edits { // in the order in which they were asked for
		if x.Intent.Step == e.Intent.Step+stepEdited {
			e = x
		}
	}
	return e
}
