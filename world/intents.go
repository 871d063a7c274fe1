package world

import (
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

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
func (s *shelf) cold() receipt.Cold { return receipt.Cold{Entry: s.entry, Each: s.eachEntry} }

// entry is receipt.Cold.Entry.
func (s *shelf) entry(key receipt.Key) (e *receipt.Entry, ok bool) {
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
func (s *shelf) eachEntry(skip func(receipt.Key) bool, visit func(*receipt.Entry)) {
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
