package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// redaction is the value of 'r': after is the head before its blob.redacted. It
// is written before that record, so that an Open after a crash knows which blobs
// to look at, and it stays: by it a reader tells a redacted blob from a lost one.
type redaction struct {
	blob  journal.Hash
	after journal.Seq
	done  bool // the bytes are gone
	inLog bool // they are in the log; in the copy of it they may be
}

func (r redaction) body() []byte {
	body := append(binary.BigEndian.AppendUint64(nil, uint64(r.after)), 0)
	switch {
	case r.done:
		body[idLen] = 1
	case r.inLog:
		body[idLen] = 2
	}
	return body
}

func parseRedaction(key, body []byte) (redaction, error) {
	if len(key) != 1+len(journal.Hash{}) || len(body) != idLen+1 || body[idLen] > 2 {
		return redaction{}, damaged(key, errShape)
	}
	return redaction{
		blob: journal.Hash(key[1:]), after: journal.Seq(binary.BigEndian.Uint64(body)), done: body[idLen] == 1, inLog: body[idLen] == 2,
	}, nil
}

// Redact has journal make the blob.redacted of a blob durable; the next Open
// destroys the bytes, once no record after the last image needs them. The
// checkpoints that were asked for before are durable when journal is called. After
// an error of journal nothing is destroyed.
func (s *Store) Redact(blob journal.Hash, journal func() error) error {
	s.settleImages()
	r := redaction{blob: blob, after: s.Head().ID}
	err := s.settle()
	if s.opts.Log != nil && err == nil {
		err = s.putImage() // whoever opens the world by it does not need the payload
	}
	if err == nil {
		err = s.putSealed(hashKey(redactionPrefix, blob), r.body())
	}
	if err != nil {
		return fmt.Errorf("store: redact %s: %w", blob, err)
	}
	err = journal() // a note without its record is dropped by the next Open
	if s.opts.Log != nil && err == nil {
		err = s.redactInLog(r)
	}
	return err
}

// putSealed makes a value with a sum durable.
func (s *Store) putSealed(key, body []byte) error {
	if err := s.reading.beginRead(); err != nil {
		return err
	}
	defer s.reading.endRead()
	b := s.db.NewBatch()
	seal(b, key, body)
	return s.commit(b)
}

// commit makes a batch durable, and all that Pebble was given before it.
func commit(db *pebble.DB, b *pebble.Batch) error {
	if err := db.ApplyNoSyncWait(b, pebble.Sync); err != nil { // Commit would not return an error
		return err
	}
	return errors.Join(b.SyncWait(), b.Close())
}

// commit is commit of the store's own Pebble, which may say so of what was kept from the disk.
func (s *Store) commit(b *pebble.Batch) error {
	return cmp.Or(commit(s.db, b), s.failed())
}

// redacted returns what is said of a blob that is not there.
func (s *Store) redacted(blob journal.Hash) error {
	_, err := s.sealed(hashKey(redactionPrefix, blob))
	if err == nil {
		return fmt.Errorf("blob %s: %w", blob, journal.ErrRedacted)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	return err
}

// unfinishedRedactions are those that an Open has to bring to an end.
type unfinishedRedactions struct {
	bytes []redaction // to be destroyed
	void  []redaction // without a record: a crash came between
}

func (s *Store) unfinished() (found unfinishedRedactions, err error) {
	s.eachSealed(redactionPrefix, func(key, body []byte) error {
		r, err := parseRedaction(key, body)
		if err != nil || r.done {
			return err
		}
		said, needed, err := s.judge(r)
		switch {
		case err != nil:
			return err
		case !said:
			found.void = append(found.void, r)
		case !needed:
			found.bytes = append(found.bytes, r)
		}
		return nil
	}, firstInto(&err))
	return found, err
}

// judge reports whether the journal says that a blob is redacted, and whether an
// Open still needs it: as the payload of a record that no image covers.
func (s *Store) judge(r redaction) (said, needed bool, err error) {
	imaged, err := s.lastImage()
	if err != nil {
		return false, false, err
	}
	for e, err := range s.entries(min(r.after, imaged) + 1) {
		if err != nil {
			return false, false, err
		}
		id := journal.Seq(e.ID)
		needed = needed || id > imaged && e.Blob == r.blob
		if id <= r.after || journal.Kind(e.Kind) != journal.KindRedacted {
			continue
		}
		blob, err := s.redactedBy(e)
		if err != nil {
			return false, false, err
		}
		said = said || blob == r.blob
	}
	return said, needed, nil
}

// redactedBy returns the blob that a blob.redacted is about.
func (s *Store) redactedBy(e entry) (journal.Hash, error) { return redactionOf(e, s) }

func redactionOf(e entry, blobs journal.Blobs) (journal.Hash, error) {
	rec, err := journal.DecodeRecord(e.record)
	if err != nil {
		return journal.Hash{}, err
	}
	if err := rec.Load(blobs); err != nil {
		return journal.Hash{}, err
	}
	body, err := rec.Body()
	if err != nil {
		return journal.Hash{}, damagedRecord(rec.ID, err)
	}
	b, ok := body.(*journal.Redacted)
	if !ok {
		return journal.Hash{}, damagedRecord(rec.ID, errShape)
	}
	return b.Blob, nil
}

// BytesLeft returns the damage by which this opening could not destroy the bytes of redacted blobs; nil: none are left. The
// next opening tries again.
func (s *Store) BytesLeft() error { return s.bytesLeft }

// purge destroys the bytes of redacted blobs, while the store is being opened and
// nobody else reads or writes it: then no log is in use that holds them. Pebble
// writes over logs only of the session that began them, and removes those of the
// sessions before once they are in tables. A crash in the middle has it done again.
func (s *Store) purge(found []redaction) error {
	options := s.pebbleOptions()
	options.DisableAutomaticCompactions = true
	return s.using(storeName, options, func() error { return s.destroy(found) })
}

func (s *Store) destroy(found []redaction) error {
	b := s.db.NewBatch()
	for _, r := range found {
		if err := deleteBlob(b, r.blob); err != nil {
			return err
		}
	}
	if err := s.commit(b); err != nil {
		return err
	}
	if err := s.dropMoments(); err != nil {
		return err
	}
	if err := s.sweep(new(Garbage)); err != nil {
		return err
	}
	for _, r := range found {
		if err := s.compact(hashKey(blobPrefix, r.blob), append(hashKey(blobPrefix, r.blob), 0)); err != nil {
			return err
		}
	}
	// What images let go of may hold copies: mailboxes, and events that were due.
	if err := s.rewrite(imagePrefix, versionPrefix, countPrefix, ledgerPrefix, listPrefix, chunkPrefix, findPrefix); err != nil {
		return err
	}
	return s.db.Flush()
}

// rewrite writes all tables of some prefixes anew, without what was deleted. Pebble
// leaves a table of its last level as it is, unless something new covers it.
func (s *Store) rewrite(prefixes ...byte) error {
	s.newest.letGo()
	for _, prefix := range prefixes {
		b := s.db.NewBatch()
		last := append([]byte{prefix}, bytes.Repeat([]byte{0xff}, 2*len(journal.Hash{}))...)
		if err := cmp.Or(b.Delete([]byte{prefix}, nil), b.Delete(last, nil)); err != nil {
			return err
		}
		if err := s.commit(b); err != nil {
			return err
		}
		if err := s.compact([]byte{prefix}, []byte{prefix + 1}); err != nil {
			return err
		}
	}
	return nil
}

// compact pushes what lies over a range of keys down to the last level.
func (s *Store) compact(from, to []byte) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	compacted := make(chan error, 1)
	go func() { compacted <- s.db.Compact(ctx, from, to, false) }()
	select {
	case err := <-compacted:
		return cmp.Or(err, s.failed())
	case <-s.failing: // Pebble would try to flush again, forever
		cancel()
		<-compacted //nolint:errcheck // it was told to end
		return s.failed()
	}
}

// finishRedactions notes that bytes are gone, and drops notes without a record.
func (s *Store) finishRedactions(found unfinishedRedactions) error {
	if len(found.bytes)+len(found.void) == 0 {
		return nil
	}
	b := s.db.NewBatch()
	for _, r := range found.bytes {
		r.done = true
		seal(b, hashKey(redactionPrefix, r.blob), r.body())
	}
	for _, r := range found.void {
		if err := b.Delete(hashKey(redactionPrefix, r.blob), nil); err != nil {
			return err
		}
	}
	return s.commit(b)
}
