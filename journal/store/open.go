package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/journal"
)

// Names in a world's directory. A store is made under newStoreName and renamed,
// so that a store with its final name is whole and has an anchor.
const (
	storeName    = "store"
	newStoreName = "store.new"
	anchorName   = "anchor"
	lockName     = "lock"
)

func (s *Store) path(name string) string { return s.opts.FS.PathJoin(s.dir, name) }

func (s *Store) exists(name string) (bool, error) {
	_, err := s.opts.FS.Stat(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) create() error {
	if s.opts.Log != nil {
		return s.createLogged()
	}
	if err := s.claim(); err != nil {
		return err
	}
	if err := s.makeStore(); err != nil {
		return err
	}
	return s.publish(slot{})
}

// claim makes the directory, and takes its lock, for a store that is to be made.
func (s *Store) claim() (err error) {
	files := s.opts.FS
	if err := files.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := syncDir(files, files.PathDir(s.dir)); err != nil {
		return err
	}
	if s.lock, err = acquire(files, s.path(lockName)); err != nil {
		return err
	}
	if err := s.noCopy(); err != nil {
		return err
	}
	return s.vacant()
}

// publish gives a store that is made its anchor and its name, and owns it.
func (s *Store) publish(first slot) error {
	files := s.opts.FS
	if err := createAnchor(files, s.path(anchorName), s.opts.AnchorKey, first); err != nil {
		return err
	}
	if err := syncDir(files, s.dir); err != nil {
		return err
	}
	if err := files.Rename(s.path(newStoreName), s.path(storeName)); err != nil {
		return err
	}
	if err := syncDir(files, s.dir); err != nil {
		return err
	}
	return s.own()
}

// vacant refuses a directory with a world in it, or with what is left of one:
// an anchor of acknowledged records. Leftovers of an earlier create may go.
func (s *Store) vacant() error {
	if there, err := s.exists(storeName); err != nil {
		return err
	} else if there {
		return ErrExists
	}
	slot, err := readAnchor(s.opts.FS, s.path(anchorName))
	if err == nil && slot.Head.ID > 0 {
		return fmt.Errorf("%w: its anchor says that #%d was acknowledged, but its store is gone", ErrExists, slot.Head.ID)
	}
	if err != nil && !errors.Is(err, ErrNoAnchor) && !errors.Is(err, ErrBadAnchor) {
		return err
	}
	return s.opts.FS.RemoveAll(s.path(newStoreName))
}

func (s *Store) makeStore() error {
	db, err := pebble.Open(s.path(newStoreName), s.pebbleOptions())
	if err != nil {
		return err
	}
	return cmp.Or(errors.Join(setMeta(db, meta{format: FormatVersion}), db.Close()), s.failed())
}

// using opens Pebble's files under a name, does work with them and closes them.
func (s *Store) using(name string, options *pebble.Options, work func() error) (err error) {
	options.ErrorIfNotExists = true
	if s.db, err = pebble.Open(s.path(name), options); err != nil {
		return unreadable(err)
	}
	defer func() {
		err = cmp.Or(s.failed(), errors.Join(err, s.db.Close()), s.failed())
		s.db = nil
	}()
	return work()
}

func syncDir(files vfs.FS, path string) error {
	dir, err := files.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (s *Store) open() error {
	if s.opts.Log != nil {
		return s.openLogged()
	}
	there, err := s.exists(storeName)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w: it has no %s", ErrNotWorld, storeName)
	}
	if s.lock, err = acquire(s.opts.FS, s.path(lockName)); err != nil {
		return err
	}
	if err := s.noCopy(); err != nil {
		return err
	}
	return s.own()
}

// own opens anchor and store, whose lock is held, compares them, and makes this
// process the owner: a new epoch, first in the store, then in the anchor.
// Records after the anchored head were never acknowledged; they are kept, and
// syncing the epoch syncs them too.
func (s *Store) own() error {
	var err error
	if s.anchor, err = openAnchor(s.opts.FS, s.path(anchorName), s.opts.AnchorKey); err != nil {
		return err
	}
	m, found, err := s.inspect()
	if errors.Is(err, errLed) {
		if err = s.follow(); err == nil {
			m, found, err = s.inspect()
		}
	}
	if err != nil {
		return err
	}
	if len(found.bytes) > 0 {
		err := s.purge(found.bytes)
		if damage := (*DamageError)(nil); errors.As(err, &damage) && s.opts.Log == nil { // the next Open tries again; a copy is made anew
			s.bytesLeft, found.bytes = err, nil
		} else if err != nil {
			return err
		}
	}
	options, scheduler := s.pebbleOptions(), newPatientScheduler()
	options.ErrorIfNotExists = true
	options.Experimental.CompactionScheduler = scheduler
	if s.db, err = pebble.Open(s.path(storeName), options); err != nil {
		return unreadable(err)
	}
	if err := s.opts.FS.RemoveAll(s.path(stagedName)); err != nil { // of a copy that a crash ended
		return err
	}
	m.epoch++
	if err := setMeta(s.db, m); err != nil {
		return err
	}
	s.epoch = m.epoch
	if err := s.failed(); err != nil { // the anchor would lead where the store has not come
		return err
	}
	if err := s.anchor.write(s.head, s.epoch); err != nil {
		return err
	}
	if len(found.bytes) > 0 {
		if err := s.forgetLeads(); err != nil {
			return err
		}
	}
	if err := cmp.Or(s.finishRedactions(found), s.loadArchives()); err != nil {
		return err
	}
	s.opened.Store(true)
	scheduler.allow()
	return nil
}

// forgetLeads has the anchor in a file without leads: those of before may hold what was redacted.
func (s *Store) forgetLeads() (err error) {
	if err := s.anchor.pack(s.opts.FS, s.path(anchorName)); err != nil {
		return err
	}
	if err := errors.Join(syncDir(s.opts.FS, s.dir), s.anchor.file.Close()); err != nil {
		return err
	}
	s.anchor, err = openAnchor(s.opts.FS, s.path(anchorName), s.opts.AnchorKey)
	return err
}

// inspect finds the head and compares it with the anchor, without writing:
// Pebble takes a damaged log for one that ends early, moves what comes before
// into tables and deletes it, and with it what could still be rescued.
func (s *Store) inspect() (m meta, found unfinishedRedactions, err error) {
	if s.opts.Log != nil {
		return s.catchUp()
	}
	options := s.pebbleOptions()
	options.ReadOnly = true
	err = s.using(storeName, options, func() (err error) {
		if m, err = s.meta(); err != nil {
			return err
		}
		if m.epoch < s.anchor.slot.Epoch {
			return fmt.Errorf("%w: the store has seen owner epoch %d, the anchor %d: an older copy was put in its place, or its log is damaged",
				ErrBehindAnchor, m.epoch, s.anchor.slot.Epoch)
		}
		if err := s.findHead(); err != nil {
			return err
		}
		found, err = s.unfinished()
		return err
	})
	return m, found, err
}

// errLed says that the store lacks what the anchor has, and nothing else.
var errLed = errors.New("the anchor leads the store")

// follow brings the store to where the anchor leads it: both were being written when a
// process or the machine ended, or the log has lost its end since.
func (s *Store) follow() error {
	err := s.using(storeName, s.pebbleOptions(), func() error {
		if err := s.onChain(s.anchor.slot.After); err != nil {
			return fmt.Errorf("%w: %w", ErrOffAnchor, err)
		}
		for lead := s.anchor.slot.Lead; len(lead) > 4; {
			n := min(uint64(binary.BigEndian.Uint32(lead)), uint64(len(lead)-4))
			b := s.db.NewBatch()
			if err := b.SetRepr(bytes.Clone(lead[4 : 4+n])); err != nil {
				return err
			}
			if err := s.commit(b); err != nil {
				return err
			}
			lead = lead[4+n:]
		}
		return nil
	})
	if err == nil {
		s.anchor.slot.Lead = nil // it leads nowhere now: what is behind is damaged
	}
	return err
}

// findHead finds the last record, and its root by scanning from the anchored
// head: there is little after it, whatever the size of the journal.
func (s *Store) findHead() error {
	anchored := s.anchor.slot.Head
	last, err := s.lastID()
	if err != nil {
		return unreadable(err)
	}
	// It may have come on a part of the way: Pebble writes a log while batches still go in. Those of a lead
	// only set keys, in their order, so what is there already stays as it is.
	if len(s.anchor.slot.Lead) > 0 && last >= s.anchor.slot.After.ID && last < anchored.ID {
		return errLed
	}
	if last < anchored.ID {
		return fmt.Errorf("%w: the store ends at #%d, but the anchor says #%d was acknowledged: records are missing",
			ErrBehindAnchor, last, anchored.ID)
	}
	if err := s.onChain(anchored); err != nil {
		return fmt.Errorf("%w: %w", ErrOffAnchor, err)
	}
	s.head = journal.Head{ID: last}
	head := anchored
	for r, err := range s.scan(anchored) {
		if err != nil {
			return err
		}
		head = journal.Head{ID: r.ID, Root: r.Root}
	}
	s.head = head
	return nil
}

// onChain reports whether the record at head has head's root.
func (s *Store) onChain(head journal.Head) error {
	if head.ID == 0 || s.recordless {
		return nil
	}
	e, err := s.entry(head.ID)
	if errors.Is(err, journal.ErrArchived) {
		return nil // nobody can tell, and images have sums
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(e.link, head.Root[:linkLen]) {
		return damagedRecord(head.ID, errLink)
	}
	return nil
}

// meta is the value of 'm'.
type meta struct {
	format uint32
	epoch  uint64
}

func (s *Store) meta() (meta, error) {
	body, err := s.sealed([]byte{metaPrefix})
	if errors.Is(err, journal.ErrNotFound) {
		return meta{}, fmt.Errorf("%w: the store has no format version", ErrNotWorld)
	}
	if err != nil {
		return meta{}, err
	}
	if len(body) != 12 {
		return meta{}, &DamageError{What: nameOf([]byte{metaPrefix}), Err: errShape}
	}
	m := meta{format: binary.BigEndian.Uint32(body), epoch: binary.BigEndian.Uint64(body[4:])}
	if m.format != FormatVersion {
		return meta{}, fmt.Errorf("%w: it has format %d, this program knows %d", ErrNewerFormat, m.format, FormatVersion)
	}
	return m, nil
}

func setMeta(db *pebble.DB, m meta) error {
	body := binary.BigEndian.AppendUint32(nil, m.format)
	body = binary.BigEndian.AppendUint64(body, m.epoch)
	b := db.NewBatch()
	seal(b, []byte{metaPrefix}, body)
	return commit(db, b)
}
