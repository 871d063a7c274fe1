package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sort"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

var (
	errUnchecked = errors.New("the chain cannot be checked after a damaged record")
	errUnsaid    = errors.New("the log has it as redacted, and no record says so")
)

// unreadable makes a *DamageError of what Pebble says of files that are damaged
// or gone.
func unreadable(err error) error {
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, pebble.ErrDBDoesNotExist) || errors.Is(err, pebble.ErrDBNotPristine) {
		return &DamageError{What: storeName, Err: err}
	}
	return err
}

// RecordDamage reads all records and yields a *DamageError for each that is not what
// was written. After one that is damaged the chain is unknown up to the next head
// that is known otherwise; the records between are checked one by one, and one error
// names them as unchecked. A payload that a record names and that is not there is a
// journal.ErrNotFound, unless it was redacted: whether the journal says so is not looked
// at here.
//
// A Scan whose records follow from each other, with their payloads and the Heads in
// their place, has found as much: then there is nothing more to learn from this.
func (s *Store) RecordDamage() iter.Seq[error] {
	return func(yield func(error) bool) {
		s.settleImages()
		s.recordDamage(yield)
	}
}

// Heads returns the heads that are known otherwise than from the records, ascending:
// those of whole images. In the chain they must be what they are here.
func (s *Store) Heads() []journal.Head {
	s.settleImages()
	return s.imageHeads()
}

// Damage reads everything but the records in the store, archives too, and yields a
// *DamageError or *journal.ArchivedError for each piece that is not what was written.
func (s *Store) Damage() iter.Seq[error] {
	return func(yield func(error) bool) {
		tell := yield
		yield = func(err error) bool { return tell(s.suspect(err)) }
		s.settleImages()
		for _, a := range s.archives.allArchives() {
			if err := s.checkArchive(a); err != nil && !errors.Is(err, fs.ErrNotExist) && !yield(err) {
				return
			}
		}
		if !s.blobDamage(yield) || !s.chunkDamage(yield) {
			return
		}
		for _, prefix := range []byte{
			imagePrefix, versionPrefix, countPrefix, ledgerPrefix, notePrefix, postingPrefix, metaPrefix, redactionPrefix, archivePrefix,
			tilePrefix, signedPrefix, momentPrefix,
		} {
			if !s.eachSealed(prefix, checkShape, yield) {
				return
			}
		}
	}
}

// links follows the chain over records that may be damaged.
type links struct {
	chain *canon.Chain
	heads []journal.Head // known otherwise than from the records, ascending
	lost  journal.Seq    // first record whose root is unknown; 0 where none is
}

func (s *Store) recordDamage(yield func(error) bool) bool {
	end := s.readable()
	l := &links{chain: &canon.Chain{}, heads: append(s.imageHeads(), end)}
	next := journal.Seq(1)
	for _, a := range s.archives.allArchives() {
		if !s.storedDamage(l, next, a.First-1, yield) || !s.archiveDamage(l, a, yield) {
			return false
		}
		next = a.Last.ID + 1
	}
	return s.storedDamage(l, next, end.ID, yield)
}

func (s *Store) storedDamage(l *links, next, end journal.Seq, yield func(error) bool) bool {
	for next <= end {
		for e, err := range s.entries(next) {
			if next > end {
				break
			}
			if err == nil {
				err = l.follow(e)
			} else {
				l.lose(next)
				next, err = s.alike(next, end, err)
			}
			if err != nil && !yield(err) {
				return false
			}
			if err = s.blobOf(e); err != nil && !yield(err) {
				return false
			}
			if err = l.resume(next); err != nil && !yield(err) {
				return false
			}
			next++
		}
	}
	return true
}

// alike returns the last record that lies in the same damaged block as the first, and an error
// that names them all. A block takes hundreds of records with it, and each time it is read Pebble
// looks for the bit that was flipped: a tenth of a second.
func (s *Store) alike(first, end journal.Seq, err error) (journal.Seq, error) {
	why := blockOf(err)
	if why == "" {
		return first, err
	}
	same := func(id journal.Seq) bool {
		_, err := s.storedEntry(id)
		return blockOf(err) == why
	}
	step := journal.Seq(1)
	for step <= end-first && same(first+step) {
		step *= 2
	}
	n := sort.Search(int(min(step, end-first+1)-step/2), func(i int) bool { return !same(first + step/2 + journal.Seq(i)) })
	last := first + step/2 + journal.Seq(n) - 1
	if last <= first {
		return first, err
	}
	damage := *err.(*DamageError) //nolint:errorlint // blockOf has found it
	damage.What = fmt.Sprintf("every record from #%d to #%d", first, last)
	return last, &damage
}

// blockOf returns what Pebble says of the block that an error is about, which names it; empty:
// it is about none.
func blockOf(err error) string {
	damage, ok := err.(*DamageError) //nolint:errorlint // as entries made it
	if !ok || !pebble.IsCorruptionError(damage.Err) {
		return ""
	}
	text, _, _ := strings.Cut(damage.Err.Error(), "\n")
	return text
}

// archiveDamage is storedDamage for an archive. Of one that is damaged as a file,
// Damage tells.
func (s *Store) archiveDamage(l *links, a Archived, yield func(error) bool) bool {
	if s.checkArchive(a) != nil {
		l.skip(a.Last)
		return true
	}
	return s.storedDamage(l, a.First, a.Last.ID, yield)
}

// imageHeads returns the heads of the images that are whole; of the others
// Damage tells.
func (s *Store) imageHeads() []journal.Head {
	var heads []journal.Head
	s.each(imagePrefix, func(key, value []byte) error {
		if body, err := unseal(key, value); err == nil {
			if img, err := parseImage(key, body); err == nil {
				heads = append(heads, img.Head)
			}
		}
		return nil
	}, func(error) bool { return false })
	return heads
}

func (l *links) lose(id journal.Seq) {
	if l.lost == 0 {
		l.lost = id
	}
}

// skip takes the chain up at a head that is known otherwise.
func (l *links) skip(to journal.Head) {
	l.chain, l.lost = canon.ResumeChain(to.Root), 0
	for len(l.heads) > 0 && l.heads[0].ID <= to.ID {
		l.heads = l.heads[1:]
	}
}

// follow checks that e follows the records before it.
func (l *links) follow(e entry) error {
	if l.lost != 0 {
		return nil
	}
	root := l.chain.Add(e.ID, e.Kind, e.record)
	if bytes.Equal(root[:linkLen], e.link) {
		return nil
	}
	l.lose(journal.Seq(e.ID))
	return damagedRecord(journal.Seq(e.ID), errLink)
}

// resume compares the chain with a head that is known otherwise, or takes it up
// again there.
func (l *links) resume(id journal.Seq) error {
	for ; len(l.heads) > 0 && l.heads[0].ID <= id; l.heads = l.heads[1:] {
		head := l.heads[0]
		if head.ID < id { // the empty journal's
			continue
		}
		lost := l.lost
		l.lost = 0
		if lost == 0 && l.chain.Root() != head.Root {
			l.chain = canon.ResumeChain(head.Root)
			return damagedRecord(id, errLink)
		}
		l.chain = canon.ResumeChain(head.Root)
		if lost != 0 && lost < id {
			return &DamageError{What: fmt.Sprintf("the chain from #%d to #%d", lost+1, id), ID: lost + 1, Err: errUnchecked}
		}
	}
	return nil
}

func (s *Store) blobOf(e entry) error {
	if e.Blob.IsZero() {
		return nil
	}
	err := s.hasBlob(e.Blob)
	if errors.Is(err, journal.ErrNotFound) {
		if errors.Is(s.redacted(e.Blob), journal.ErrRedacted) {
			return nil
		}
		if errors.Is(err, journal.ErrRedacted) {
			err = errUnsaid
		}
		return &DamageError{What: fmt.Sprintf("the payload of record #%d", e.ID), ID: journal.Seq(e.ID), Err: err}
	}
	return nil // other damage is blobDamage's to name
}

func (s *Store) blobDamage(yield func(error) bool) bool {
	return s.each(blobPrefix, func(key, value []byte) error {
		if !isNamed(key, value) {
			return damaged(key, errBlobHash)
		}
		return nil
	}, yield)
}

// eachSealed is each for values that carry a sum; check gets their bodies.
func (s *Store) eachSealed(prefix byte, check func(key, body []byte) error, yield func(error) bool) bool {
	return s.each(prefix, func(key, value []byte) error {
		body, err := unseal(key, value)
		if err != nil {
			return err
		}
		return check(key, body)
	}, yield)
}

// checkShape reports whether key and body are such as are written under the key's
// prefix.
func checkShape(key, body []byte) error {
	ok := true
	switch key[0] {
	case postingPrefix:
		if ok = hasNumber(key); ok {
			return checkPostings(key, body)
		}
	case imagePrefix:
		_, err := parseImage(key, body)
		return err
	case versionPrefix, countPrefix, ledgerPrefix:
		_, _, ok = splitVersion(key)
	case redactionPrefix:
		_, err := parseRedaction(key, body)
		return err
	case archivePrefix:
		_, err := parseArchived(key, body)
		return err
	case tilePrefix:
		_, err := parseTile(key, body)
		return err
	case signedPrefix:
		_, err := parseSigned(key, body)
		return err
	case momentPrefix:
		ok = hasNumber(key) && len(body) == 0
	case notePrefix:
		_, name, _, whole := splitNote(key)
		ok = whole && (len(body) == 0 || name[0] == versionPrefix && string(body) == goesAlone)
	}
	if !ok {
		return damaged(key, errShape)
	}
	return nil
}

// firstInto returns a yield for each that keeps the error which it ends with.
func firstInto(err *error) func(error) bool {
	return func(first error) bool { *err = first; return false }
}

// each checks all values under a prefix, and reports whether more is wanted. A
// block that Pebble cannot read ends it: the keys behind it are unknown.
func (s *Store) each(prefix byte, check func(key, value []byte) error, yield func(error) bool) bool {
	it, err := s.iterate([]byte{prefix}, []byte{prefix + 1})
	if err != nil {
		return yield(err)
	}
	defer func() { _ = it.Close() }() // its error is Error's
	last := []byte{prefix}
	for ok := it.First(); ok; ok = it.Next() {
		last = append(last[:0], it.Key()...)
		value, err := it.ValueAndErr()
		if err != nil {
			err = damaged(last, err)
		} else {
			err = check(last, value)
		}
		if err != nil && !yield(err) {
			return false
		}
	}
	if err := it.Error(); err != nil {
		return yield(&DamageError{What: "what follows " + nameOf(last), Err: err})
	}
	return true
}
