package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/journal"
)

// stagedName is where Pebble's part of a copy lies until it is moved to its own
// place. It is beside the store because what goes wrong while Pebble makes it
// counts as the store's own disk that fails; the disk of the copy may be full.
const stagedName = "store.copy"

// Copied is the result of CopyTo.
type Copied struct {
	Head   journal.Head // of the copy
	Bytes  int64        // of the copy's files
	Linked bool         // its tables are those of the store, by hard links
}

// CopyTo makes another store in dir, as Create would, of the records up to one
// (journal.Last: all that there are) and what belongs to them, and opens it. What
// is younger is left out: later records, and whatever was derived of more than
// the last image at or before that record. Blobs are not looked through. Where
// opts.AnchorKey is another it is another world's store, which has signed nothing
// yet: signed checkpoints are left out too.
//
// It cannot end at a record that was archived (journal.ErrArchived); other archives
// are read by both, where they are.
//
// Where the journal lies in a log, and opts.Log is nil, the other store is one in a directory all the same: of what the
// copy of the log lacks it gets the index and the signed checkpoints. Records and contents are
// there when they were read: that is for the caller. Else opts.Log is a [journal.Movable] in which the other world is being made: it
// inherits there what it has, and its store is a copy of that.
//
// Its anchor is under opts.AnchorKey; opts.FS must be the store's. Appends wait
// for as long as it takes to link the tables, and no longer. A crash leaves this
// store as it was, and in dir the copy or nothing that opens. One copy can be
// made at a time.
func (s *Store) CopyTo(dir string, at journal.Seq, opts Options) (*Store, Copied, error) {
	if end := s.Head().ID; at == 0 || at > end && at != journal.Last {
		return nil, Copied{}, fmt.Errorf("store: copy %s: record #%d of %d: %w", s.dir, at, end, journal.ErrNotFound)
	}
	if opts.Log != nil && s.opts.Log == nil {
		return nil, Copied{}, fmt.Errorf("store: copy %s: %w", s.dir, ErrInTheLog)
	}
	if a := s.archives.archiveOf(at); a != nil { // its records cannot be had in part
		return nil, Copied{}, fmt.Errorf("store: copy %s at #%d: records #%d to #%d are %w in %s", s.dir, at, a.First, a.Last.ID, journal.ErrArchived, a.File)
	}
	if err := s.indexAfter(0); err != nil {
		return nil, Copied{}, fmt.Errorf("store: copy %s: %w", s.dir, err)
	}
	var done Copied
	c, err := start("copy "+s.dir+" to", dir, opts, func(c *Store) (err error) {
		done, err = c.createFrom(s, at)
		return err
	})
	if err != nil {
		return nil, Copied{}, errors.Join(err, s.opts.FS.RemoveAll(s.path(stagedName)))
	}
	return c, done, nil
}

// headAt returns the head that the journal had at a record: from the nearest that
// is known, of an image, and the records since.
func (s *Store) headAt(at journal.Seq) (head journal.Head, err error) {
	err = s.settled(func(v *view) error {
		img, err := v.image(at)
		if img != nil {
			head = img.Head
		}
		return err
	})
	if err == nil {
		err = s.onChain(head)
	}
	if err != nil || head.ID == at {
		return head, err
	}
	for r, err := range s.scan(head) {
		if err != nil {
			return head, err
		}
		if r.ID == at {
			return journal.Head{ID: r.ID, Root: r.Root}, nil
		}
	}
	return head, damagedRecord(at, journal.ErrNotFound)
}

// createFrom is create, but of what another store holds.
func (s *Store) createFrom(from *Store, at journal.Seq) (done Copied, err error) {
	if err := s.claim(); err != nil {
		return done, err
	}
	if done.Head, err = from.stage(); err != nil {
		return done, err
	}
	if err := from.place(s.path(newStoreName)); err != nil {
		return done, err
	}
	if done.Bytes, done.Linked, err = from.shared(s.path(newStoreName)); err != nil {
		return done, err
	}
	if from.opts.Log != nil && s.opts.Log == nil { // nobody has synced them yet
		if err := syncFiles(s.opts.FS, s.path(newStoreName)); err != nil {
			return done, err
		}
	}
	earlier := at < done.Head.ID
	if earlier {
		if done.Head, err = from.headAt(at); err != nil {
			return done, err
		}
	}
	if s.opts.Log != nil {
		if err := s.inherit(from, done.Head); err != nil {
			return done, err
		}
	}
	if err := s.adapt(from, done.Head.ID, earlier); err != nil {
		return done, err
	}
	return done, s.publish(slot{Head: done.Head, Epoch: max(from.epoch, s.owned.Epoch)})
}

// adapt makes of a copy of another store one of the records up to one, which is not all there
// are if they end earlier.
func (s *Store) adapt(from *Store, end journal.Seq, earlier bool) error {
	unsigned := false
	if !bytes.Equal(s.opts.AnchorKey, from.opts.AnchorKey) {
		last, err := from.LastCheckpoint()
		unsigned = last != nil || err != nil
	}
	logged := from.opts.Log != nil
	if !earlier && !unsigned && !logged {
		return nil
	}
	return s.using(newStoreName, s.pebbleOptions(), func() (err error) {
		if earlier {
			err = s.cut(end)
		}
		switch {
		case err != nil || !logged:
		case s.opts.Log == nil:
			err = s.leave(from, end)
		default:
			b := s.db.NewBatch()
			setLogState(b, 0, 0) // it has no image yet
			err = s.commit(b)
		}
		if err == nil && unsigned {
			err = s.db.DeleteRange([]byte{signedPrefix}, []byte{signedPrefix + 1}, pebble.Sync)
		}
		return err
	})
}

// inherit becomes the owner of a log in which a world is being made, and has it get there what
// another has up to a head.
func (s *Store) inherit(from *Store, to journal.Head) (err error) {
	log, ok := s.opts.Log.(journal.Movable)
	if !ok {
		return journal.ErrElsewhere
	}
	ctx := context.Background()
	if s.owned, err = log.Own(ctx); err != nil {
		return err
	}
	s.owns = true
	if err := log.Inherit(ctx, from.opts.Log, to); err != nil {
		return err
	}
	s.owned.Head = to
	s.wals = &walList{files: s.opts.FS, path: s.path(walsName)}
	return s.setMark(cmp.Or(s.opts.boot, markInUse))
}

// leave makes a store in a directory of the copy of a log, with the checkpoints that are signed
// there of records up to one, and what it says of contents that were redacted there, before that or later.
func (s *Store) leave(from *Store, end journal.Seq) error {
	b := s.db.NewBatch()
	for c, err := range from.signedIn(0, end) {
		if err != nil {
			return err
		}
		seal(b, signedKey(journal.Seq(c.Size)), c.Note)
	}
	for e, err := range from.entries(1) {
		if err != nil {
			return err
		}
		if journal.Kind(e.Kind) != journal.KindRedacted {
			continue
		}
		h, err := from.redactedBy(e)
		if err != nil {
			return err
		}
		if _, err := from.blob(h); errors.Is(err, journal.ErrRedacted) { // which only the log knew
			seal(b, hashKey(redactionPrefix, h), redaction{after: journal.Seq(e.ID) - 1, done: true}.body())
		}
	}
	if err := b.Delete(logKey(), nil); err != nil {
		return err
	}
	return s.commit(b)
}

// stage makes a copy of Pebble's files beside them, when all that was asked for
// is in them, and returns the head that they hold.
func (s *Store) stage() (journal.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return journal.Head{}, err
	}
	last := &pending{Batch: journal.Batch{After: s.head, Head: s.head}, done: make(chan struct{})}
	s.appended <- last // behind all others
	if err := last.Wait(); err != nil {
		return journal.Head{}, err
	}
	if s.imaged != nil {
		<-s.imaged
	}
	if err := s.flush(); err != nil { // else the copy would begin with reading the log
		return journal.Head{}, err
	}
	if err := s.failed(); err != nil {
		return journal.Head{}, err
	}
	if err := s.opts.FS.RemoveAll(s.path(stagedName)); err != nil { // left by a crash
		return journal.Head{}, err
	}
	return s.head, cmp.Or(s.db.Checkpoint(s.path(stagedName)), s.failed())
}

// place moves what was staged to where the copy is made, or copies it where that
// is on another disk.
func (s *Store) place(making string) error {
	files, staged := s.opts.FS, s.path(stagedName)
	if files.Rename(staged, making) == nil {
		return errors.Join(syncDir(files, files.PathDir(making)), syncDir(files, s.dir))
	}
	if err := files.MkdirAll(making, 0o755); err != nil {
		return err
	}
	names, err := files.List(staged)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := vfs.Copy(files, files.PathJoin(staged, name), files.PathJoin(making, name)); err != nil {
			return err
		}
	}
	return errors.Join(syncDir(files, making), files.RemoveAll(staged))
}

// shared returns how long the files of a copy are, and whether tables among them
// are the store's own. Only the operating system's files have an identity.
func (s *Store) shared(making string) (bytes int64, linked bool, err error) {
	files := s.opts.FS
	names, err := files.List(making)
	if err != nil {
		return 0, false, err
	}
	for _, name := range names {
		copied := files.PathJoin(making, name)
		info, err := files.Stat(copied)
		if err != nil {
			return 0, false, err
		}
		bytes += info.Size()
		if vfs.Root(files) != vfs.Default || !strings.HasSuffix(name, ".sst") {
			continue
		}
		a, err := os.Stat(copied)
		if err != nil {
			return 0, false, err
		}
		// A compaction may have removed the store's meanwhile.
		if b, err := os.Stat(files.PathJoin(s.path(storeName), name)); err == nil && os.SameFile(a, b) {
			linked = true
		}
	}
	return bytes, linked, nil
}
