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

// ledger is the ledger of all intents, and what of it is out of memory.
type ledger struct {
	receipt.Ledger
	*ground

	shelf     *imageStore
	shelvedAt journal.Seq // what of the ledger is not in memory is as it was then; 0: all is
}

// shelveIntents leaves intents that have ended, and that nobody has asked for in a while, to
// the shelf where those in memory take more than so many bytes. All that has happened must be
// in an image that the journal has.
func (l *ledger) shelveIntents(most int) {
	if l.shelvedAt == 0 {
		l.KeepCold(l.shelf.cold())
	}
	l.shelvedAt = l.last
	l.Evict(most)
}

// cold reads entries of the ledger that lie on the shelf.
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

// known returns what the ledger knows of the intent that a step asks for, or nil.
//
// Of a new one, which is nearly every one, the shelf would have to be searched in vain. It
// need not be: what has left memory the history that goes on has asked for, and it only. Else
// a rollback has left it behind, or it was asked for several times: see receipt.Ledger. And a
// key comes once in a history, of a fork with that of its parent: it is made of the id of the
// step, which has the cell's name, the number of its step, which only grows there, and the
// place of the effect in the step. What is asked for otherwise is looked for everywhere: by a
// person in the place of another intent, and to make up for one. Operators' effects are
// numbered through all histories.
func (l *ledger) known(key receipt.Key) *receipt.Entry {
	e := l.AtHand(key)
	if e == nil && l.paranoid && l.Entry(key) != nil {
		l.shelf.fail(fmt.Errorf("world: intent %s has left memory, and is asked for again", key))
	}
	return e
}

// bringAsked has those intents in memory that were asked for after a record: a rollback has
// to look at them.
func (l *ledger) bringAsked(h journal.History, after journal.Seq) error {
	if l.Away() == 0 {
		return nil
	}
	if err := l.bringRecorded(h, after); err != nil {
		l.Bring(func(e *receipt.Entry) bool { return e.Asked[len(e.Asked)-1] > uint64(after) })
	}
	return l.shelf.err
}

// errNotRecorded says that records do not tell which intents were asked for.
var errNotRecorded = errors.New("world: the journal does not tell which intents were asked for")

// bringRecorded is bringAsked by the records since: it costs as much as has happened, and
// not as there is. What has left memory has one of them that asked for it.
func (l *ledger) bringRecorded(h journal.History, after journal.Seq) error {
	for s, err := range h.Scan(after) {
		if err != nil {
			return err
		}
		if s.ID > l.shelvedAt { // whatever was asked for since is in memory
			return nil
		}
		after = s.ID
		rec := s.Record
		if rec.Kind != journal.KindIntent && rec.Kind != journal.KindParked && rec.Kind != journal.KindDenied {
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
	if after < l.shelvedAt {
		return errNotRecorded // not yet
	}
	return nil
}

// imageIntents returns the intents that changed since the last image.
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

// unfinished returns the first effect of a kind that is under way; nil: none is.
func (l *ledger) unfinished(kind string) *receipt.Entry {
	for _, e := range l.Unfinished() {
		if e.Intent.Kind == kind {
			return e
		}
	}
	return nil
}

// resultIn reports whether an intent of the history that led to a record has the
// result of e: that history counts on it.
func (l *ledger) resultIn(e *receipt.Entry, of journal.Seq) bool {
	return slices.ContainsFunc(l.Repeated(e), func(x *receipt.Entry) bool { return x.Reused && l.askedIn(x, of) })
}

// repeated returns the intent that was left behind and that another one repeats, or
// nil.
func (l *ledger) repeated(in *receipt.Intent) *receipt.Entry {
	if !l.HasLeft() {
		return nil
	}
	return l.Left(in, l.waived)
}

// doneBy returns the intent that did what another one stands for: itself, or the
// one whose result it took.
func (l *ledger) doneBy(e *receipt.Entry) *receipt.Entry {
	if e.Reused {
		return l.Entry(*e.Repeats)
	}
	return e
}

// hasResult reports whether what was left behind has a result that another intent
// can get: it happened, and nobody is making up for it.
func (l *ledger) hasResult(left *receipt.Entry) bool {
	return left.State == receipt.StateCommitted && left.Held == nil
}

// notReusable says why an intent cannot get the result of what it repeats; empty: it
// can.
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

// standing returns the intents that somebody waits for or was told of, sorted by
// what they ask for, but for those of cells that are left out; of those that ask for the same
// the older first.
func (l *ledger) standing(left map[string]bool) []*receipt.Entry {
	out := l.Select(func(e *receipt.Entry) bool { return !e.Abandoned && !left[e.Intent.Cell] }) // in the order of their intents
	slices.SortStableFunc(out, byRequest)
	return out
}

// holders returns the intents that something is reserved for, in their order.
func (l *ledger) holders() []receipt.Entry {
	var out []receipt.Entry
	for _, e := range l.Holders() {
		out = append(out, *e)
	}
	return out
}

// deniedInHistory reports whether the history that goes on has asked for an intent, and it
// was denied, or edited, before anything was attempted.
func (l *ledger) deniedInHistory(e *receipt.Entry) bool {
	return e.State == receipt.StateDenied && l.askedIn(e, l.last)
}

// lastEdit returns what the editing of an intent has led to in the history that goes on: the
// intent itself where nobody has edited it.
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
