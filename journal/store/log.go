package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// Why a directory does not go with a log, or a verb not with what lies in it.
var (
	ErrNoCopy   = errors.New("the directory holds a world of its own, and not the copy of one that lies in a log")
	ErrCopy     = errors.New("the directory holds the copy of a world that lies in a log, and nothing else")
	ErrInTheLog = errors.New("the journal lies in a log that has its own backups and retention, and stays there")
)

// Why a copy is made anew.
var (
	errAhead     = errors.New("it has records that the log has not")
	errOtherPast = errors.New("it has another past than the log")
	errFarBehind = errors.New("the image in the log is much younger")
)

// farBehind is how many records a copy is behind the image in the log at most: beginning with
// that takes less than computing what is in it.
const farBehind = 1 << 17

// errLog says that the log has answered with an error, or with what cannot be: no fault of the copy.
var errLog = errors.New("the log")

// logged is what a store knows of its log, and of the copy of it that it has.
type logged struct {
	owned   journal.Owned
	owns    bool
	damaged atomic.Bool // the copy is; see suspect
	wals    *walList

	keeping   sync.Mutex    // held while an image is put, and from a redaction's record to its end
	imageSize uint64        // of the one that was put last; keeping guards it
	grown     atomic.Uint64 // bytes that were appended since
	unkept    atomic.Bool   // there has been another image since
	wakes     journal.Wake  // see SetWake
	keep      chan struct{} // has one where it may be put

	indexing sync.Mutex // guards what is said of what is indexed
}

// createLogged is create for a world whose journal lies in a log.
func (s *Store) createLogged() error {
	end, err := s.opts.Log.End(context.Background())
	if err != nil {
		return err
	}
	if end.ID > 0 {
		return fmt.Errorf("%w: the log ends at #%d", ErrExists, end.ID)
	}
	return s.openLogged()
}

// openLogged becomes the owner of a log, and opens the copy of it, or makes it anew.
func (s *Store) openLogged() (err error) {
	files := s.opts.disk
	if err := files.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := syncDir(files, files.PathDir(s.dir)); err != nil {
		return err
	}
	if s.lock, err = acquire(s.opts.FS, s.path(lockName)); err != nil {
		return err
	}
	mark, marked, err := s.readMark()
	if err != nil {
		return err
	}
	there, err := s.exists(storeName)
	if err != nil {
		return err
	}
	if there && !marked {
		return ErrNoCopy
	}
	acknowledged, err := s.acknowledgedIn(s.dir)
	if err != nil {
		return err
	}
	if s.owned, err = s.opts.Log.Own(context.Background()); err != nil {
		return err
	}
	s.owns = true
	if err := s.rewound(acknowledged); err != nil {
		return err
	}
	if err := s.setMark(cmp.Or(s.opts.boot, markInUse)); err != nil {
		return err
	}
	s.wals = &walList{files: s.opts.FS, path: s.path(walsName)}
	if there && (mark == markClean || mark == s.opts.boot && mark != "") {
		if err = s.wals.readWALs(s.path(storeName)); err == nil {
			err = s.own()
		}
		if err == nil || errors.Is(err, errLog) {
			return err
		}
		s.opts.Logf("store: %s: the copy is made anew: %v", s.dir, err)
		s.restart()
	}
	return s.makeCopy()
}

// acknowledgedIn returns the head that the log has acknowledged, as the anchor in a directory
// knows. What an anchor says that cannot be read, or is another world's, goes with the copy.
func (s *Store) acknowledgedIn(dir string) (journal.Head, error) {
	newest, err := trustedSlot(s.opts.FS, s.opts.FS.PathJoin(dir, anchorName), s.opts.AnchorKey)
	if errors.Is(err, ErrNoAnchor) || errors.Is(err, ErrBadAnchor) {
		return journal.Head{}, nil
	}
	return newest.Head, err
}

// rewound reports whether the log lacks what it has acknowledged.
func (s *Store) rewound(acknowledged journal.Head) error {
	end := s.owned.Head
	if acknowledged.ID == 0 || acknowledged == end {
		return nil
	}
	if acknowledged.ID >= end.ID {
		return fmt.Errorf("%w: #%d was acknowledged, the log ends at #%d", journal.ErrRewound, acknowledged.ID, end.ID)
	}
	for r, err := range s.opts.Log.Records(context.Background(), acknowledged.ID-1) {
		if err == nil && [linkLen]byte(acknowledged.Root[:linkLen]) != r.Link {
			err = fmt.Errorf("%w: #%d is not the record that was acknowledged", journal.ErrRewound, acknowledged.ID)
		}
		return err
	}
	return fmt.Errorf("%w: it has no record #%d", journal.ErrRewound, acknowledged.ID)
}

// restart closes what was opened of a copy, and forgets it.
func (s *Store) restart() {
	if s.db != nil {
		_ = s.db.Close() // it is to be removed
	}
	if s.anchor != nil {
		_ = s.anchor.file.Close()
	}
	*s = Store{dir: s.dir, opts: s.opts, lock: s.lock, logged: logged{owned: s.owned, owns: s.owns, wals: &walList{files: s.opts.FS, path: s.path(walsName)}}, failing: make(chan struct{})}
}

// makeCopy makes a copy of the log that has the image in it and what follows.
func (s *Store) makeCopy() error {
	for _, name := range []string{storeName, newStoreName, stagedName, anchorName, walsName} {
		if err := s.opts.FS.RemoveAll(s.path(name)); err != nil {
			return err
		}
	}
	if err := s.makeStore(); err != nil {
		return err
	}
	kept, err := s.opts.Log.Kept(context.Background())
	if err == nil && kept != nil {
		err = s.stillOwns(kept.Head.ID)
	}
	if err == nil && kept != nil {
		err = s.using(newStoreName, s.pebbleOptions(), func() error { return s.installImage(kept) })
	}
	if err != nil {
		return err
	}
	return s.publish(slot{Head: s.owned.Head, Epoch: s.owned.Epoch})
}

// catchUp brings a copy to where the log is, and returns what inspect does. The copy is
// believed if its last record is the log's, for with that all before it is.
func (s *Store) catchUp() (m meta, found unfinishedRedactions, err error) {
	options := s.pebbleOptions()
	options.DisableAutomaticCompactions = true // whoever reads names damage
	err = s.using(storeName, options, func() (err error) {
		if m, err = s.meta(); err != nil {
			return err
		}
		if s.imageSize, err = s.keptSize(); err != nil {
			return err
		}
		last, err := s.lastID()
		if err != nil {
			return unreadable(err)
		}
		if err := s.follows(last); err != nil {
			return err
		}
		if found, err = s.unfinished(); err == nil {
			err = s.redactAgain(found.bytes)
		}
		return err
	})
	m.epoch = s.owned.Epoch - 1
	return m, found, err
}

// follows compares the last record of the copy with the log, and adds what follows.
func (s *Store) follows(last journal.Seq) error {
	ctx, log := context.Background(), s.opts.Log
	if last > s.owned.Head.ID {
		return fmt.Errorf("%w: up to #%d, and the log ends at #%d", errAhead, last, s.owned.Head.ID)
	}
	if kept, err := log.Kept(ctx); err != nil {
		return fmt.Errorf("%w: %w", errLog, err)
	} else if kept != nil && kept.Head.ID > last+farBehind {
		return cmp.Or(s.stillOwns(kept.Head.ID), errFarBehind)
	}
	s.head = journal.Head{ID: last}
	var records []journal.Stored
	size := 0
	for r, err := range log.Records(ctx, max(last, 1)-1) {
		if err != nil {
			return fmt.Errorf("%w: %w", errLog, err)
		}
		if err := s.stillOwns(r.ID); err != nil {
			return err
		}
		if r.ID == last {
			err = s.sameRecord(r)
		} else {
			records = append(records, storedAs(r))
			if size += len(r.Bytes); size >= cutBytes {
				err = s.addRecords(records)
				records, size = records[:0], 0
			}
		}
		if err != nil {
			return err
		}
	}
	if err := s.addRecords(records); err != nil {
		return err
	}
	if s.head.ID != s.owned.Head.ID {
		return fmt.Errorf("%w gives records up to #%d and ends at #%d", errLog, s.head.ID, s.owned.Head.ID)
	}
	s.head = s.owned.Head
	return nil
}

// stillOwns returns journal.ErrFenced where the log has gone on to a record that this owner knows
// nothing of.
func (s *Store) stillOwns(id journal.Seq) error {
	if id <= s.owned.Head.ID {
		return nil
	}
	return fmt.Errorf("%w has gone on from #%d: %w", errLog, s.owned.Head.ID, journal.ErrFenced)
}

// sameRecord compares a record of the copy with the log's.
func (s *Store) sameRecord(r journal.Linked) error {
	e, err := s.storedEntry(r.ID)
	if err != nil {
		return err
	}
	if [linkLen]byte(e.link) != r.Link {
		return fmt.Errorf("%w: record #%d", errOtherPast, r.ID)
	}
	return nil
}

// storedAs returns a record of the log to be put into the copy: of its root only the link is known.
func storedAs(r journal.Linked) journal.Stored {
	out := journal.Stored{ID: r.ID, Bytes: r.Bytes}
	copy(out.Root[:], r.Link[:])
	return out
}

// addRecords puts the next records of the log into the copy. Of redactions among them nobody
// knows whether they were brought to an end.
func (s *Store) addRecords(records []journal.Stored) error {
	if len(records) == 0 {
		return nil
	}
	if at := records[0].ID; at != s.head.ID+1 {
		return fmt.Errorf("%w gives record #%d after #%d", errLog, at, s.head.ID)
	}
	b := s.db.NewBatch()
	if err := setRecords(b, records, s.opts.segmentBytes); err != nil {
		return err
	}
	s.tips.mu.Lock()
	defer s.tips.mu.Unlock()
	if err := s.growTree(b, records); err != nil {
		return err
	}
	for _, r := range records {
		e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
		if err != nil || journal.Seq(e.ID) != r.ID {
			return damagedRecord(r.ID, errors.Join(err, errShape))
		}
		if journal.Kind(e.Kind) != journal.KindRedacted {
			continue
		}
		blob, err := s.redactedBy(entry{Envelope: e, record: r.Bytes})
		if err != nil {
			return err
		}
		seal(b, hashKey(redactionPrefix, blob), redaction{after: r.ID - 1}.body())
	}
	s.grown.Add(lengthOf(records, nil))
	s.head = journal.Head{ID: records[len(records)-1].ID}
	return errors.Join(b.Commit(pebble.NoSync), b.Close())
}

// SetWake says when the world needs an owner again once the store is closed: at once, where nobody
// has said so, or where the store fails. It is called before Close.
func (s *Store) SetWake(wake journal.Wake) { s.wakes = wake }

// giveUp lets others own the log.
func (s *Store) giveUp() error {
	if !s.owns {
		return nil
	}
	s.owns = false
	if s.failed() != nil {
		s.wakes = journal.WakeNow
	}
	err := s.opts.Log.Release(context.Background(), s.wakes)
	if errors.Is(err, journal.ErrFenced) {
		return nil // they do
	}
	return err
}

// leaveLog puts the last image into the log where it has no younger one, and gives it up.
func (s *Store) leaveLog() error {
	var err error
	if s.failed() == nil {
		err = s.keepImage(smallImage)
	}
	return errors.Join(err, s.giveUp())
}

// KeepImage puts the image of the last Checkpoint into the log, if that lacks it: what Close would
// do, which then takes less time.
func (s *Store) KeepImage() error {
	s.settleImages()
	if s.failed() != nil {
		return nil // as Close says
	}
	err := s.keepImage(smallImage)
	s.keeping.Lock() // it may be on its way already
	defer s.keeping.Unlock()
	return err
}

// appendToLog begins to append what is to be acknowledged.
func (s *Store) appendToLog(p *pending) (err error) {
	if s.opts.Log == nil || len(p.Records) == 0 {
		return nil
	}
	if p.log, err = s.opts.Log.Append(p.Batch); err != nil {
		return err
	}
	s.grown.Add(lengthOf(p.Records, p.Blobs))
	return nil
}

// lengthOf is about what records and contents take in a log.
func lengthOf(records []journal.Stored, blobs []journal.Blob) (n uint64) {
	for _, r := range records {
		n += uint64(linkLen + len(r.Bytes))
	}
	for _, b := range blobs {
		n += uint64(len(b.Hash) + len(b.Bytes))
	}
	return n
}

// redactInLog destroys a content in the log, unless somebody may need it to open the world: then
// the next Open does it. The copy is purged by that in any case.
func (s *Store) redactInLog(r redaction) error {
	_, needed, err := s.judge(r)
	if err != nil || needed {
		return err
	}
	if err := s.opts.Log.Redact(context.Background(), r.blob); err != nil {
		return fmt.Errorf("store: redact %s: %w", r.blob, err)
	}
	r.inLog = true
	return s.putSealed(hashKey(redactionPrefix, r.blob), r.body())
}

// redactAgain destroys in the log what an Open found to be redacted, and not needed by who has
// the last image.
func (s *Store) redactAgain(found []redaction) error {
	found = slices.DeleteFunc(slices.Clone(found), func(r redaction) bool { return r.inLog })
	if len(found) == 0 || s.looks() {
		return nil
	}
	if err := s.putImage(); err != nil {
		return fmt.Errorf("%w: %w", errLog, err)
	}
	for _, r := range found {
		if err := s.opts.Log.Redact(context.Background(), r.blob); err != nil {
			return fmt.Errorf("%w: %w", errLog, err)
		}
	}
	return nil
}
