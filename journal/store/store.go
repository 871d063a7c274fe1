// Package store is the durable side of a world: its journal, blobs, images in versions of cells,
// ledger entries and counts, and the index of records by cell, on Pebble, with an anchor beside it
// that knows what was acknowledged. It is a part of worldctl, and not an API.
//
// A world's directory holds
//
//	store/   Pebble
//	anchor   the last acknowledged head, under a MAC
//	lock     an OS file lock; its text names the owner
//	copy     where the journal lies in a log: whether the rest can be believed
//
// # Keys
//
// Integers in keys and values are big-endian and of 64 bits, where nothing else
// is said; ‖ is concatenation.
//
//	'j' ‖ id                       segment: records from that id on, each
//	                               length (32 bits) ‖ record ‖ link ‖ crc
//	'b' ‖ hash                     blob of at most 4096 bytes
//	'o' ‖ hash                     list of a longer blob ‖ sum
//	'k' ‖ number                   chunk ‖ sum
//	'f' ‖ hash (6 bytes)           uvarint(number of a chunk) ‖ owner ‖ sum
//	'i' ‖ checkpoint               image: root ‖ core ‖ sum
//	'c' ‖ cell ‖ 00 ‖ checkpoint   cell version ‖ sum; empty: the cell is gone
//	'l' ‖ key ‖ checkpoint         ledger entry ‖ sum
//	'd' ‖ cell ‖ 00 ‖ what ‖ checkpoint  count of what a cell asked for ‖ sum
//	'h' ‖ checkpoint ‖ KEY         note about the version under KEY: sum
//	'e' ‖ checkpoint               mark: the image is kept for looks back alone: sum
//	'x' ‖ checkpoint ‖ cell        posting lists ‖ sum, from that cell on
//	'r' ‖ hash                     redaction: head before its record ‖ done, 2 in the log alone (1 byte) ‖ sum
//	'a' ‖ last id                  archive: first id ‖ root ‖ SHA-256 ‖ path ‖ sum
//	't' ‖ level (1 byte) ‖ number  tile: hashes of 32 bytes ‖ sum
//	'p' ‖ size                     signed checkpoint ‖ sum
//	'g'                            of a log: up to where nothing is indexed ‖ bytes of its image ‖ sum
//	'm'                            format version (32 bits) ‖ owner epoch ‖ sum
//
// record is the stored bytes of a record; link the first 8 bytes of the chain
// root with it; crc the CRC-32C of all before it, so that a damaged record is
// found even where the chain before it is lost. sum is the CRC-32C of
// key ‖ value. checkpoint is the id of the head that a checkpoint was
// taken at.
//
// The image at a checkpoint is its root and core and, of every cell and every
// intent, the last version at or before it. A version is there as long as an
// image needs it: one written at v and followed by one at n belongs to the images
// at checkpoints in [v, n), and has a note under the last of them, by which it is
// found when that image goes; one that nothing follows has none. A note's body is 01 where
// the version goes alone: a cell's, neither empty nor in chunks nor followed by an empty one;
// else it is empty, and all versions of the cell are looked at. A cell's first
// version is never an empty one.
//
// Images that the world does not need are kept besides, for looks back: so many records
// apart, 32 of them at most, and farther apart where the journal is too long for that. They
// are derived from the records, and go when a payload is redacted: it may be in them.
//
// Blobs and cell versions of more than 4096 bytes are in chunks, which package chunk
// cuts and lists; of such a version the value is 00 ‖ list ‖ sum. (No other version
// begins with 00.) A chunk is kept once: by the first 6 bytes of its SHA-256 it is found
// again, and the bytes are compared. (Blobs' chunks of less than 512 bytes, but lists, are not found, so they may be kept twice.) Owner is the first 8 bytes of the SHA-256 of the
// name of the cell whose versions alone were made of it, or is left out; so chunks go
// with the last version that needs them. Those that a payload may need stay until they
// are collected. Chunks are written with the first list that names them, or before it.
//
// Posting lists are sorted by cell, several to a value, each
// uvarint(len(cell)) ‖ cell ‖ uvarint(len(list)) ‖ list; a list holds the ids,
// after the checkpoint before, of the records that concern the cell: uvarints,
// each the distance to the id before it, the first to 0. They stay when images
// go. Records after the last checkpoint are in no list yet.
//
// Tiles are those of golang.org/x/mod/sumdb/tlog, of height 8, over the Merkle tree
// of package checkpoint: tile N of level 0 holds the hashes of records 256N+1 to
// 256N+256 as leaves, and of level L+1 the roots of the tiles 256N to 256N+255 of
// level L. Tiles are derived from the records. Those of level 1 and above are written with
// the records that bring them their 16th hash, their 32nd, and so on; those of level 0,
// 32 bytes a record, only where records were archived. The last tile of a level may be
// incomplete, and what is in no tile is computed.
//
// Signed checkpoints are notes of package checkpoint, not images; size is that of
// the tree. They stay for ever.
//
// # Anchor
//
// Two slots, at offsets 0 and 4096, written in turn, so that a torn write
// leaves the other, and their leads, at offsets 8192 and 8192 + 65536:
//
//	"wkanchor" ‖ version (32 bits) ‖ sequence ‖ id ‖ root ‖ owner epoch ‖
//	id before ‖ root before ‖ length (32 bits) ‖ crc ‖ mac ‖ sum
//
// mac is HMAC-SHA256 over all before it under Options.AnchorKey, sum the first
// 8 bytes of SHA-256 over all before it: a slot without a right sum was torn or
// damaged, one with a right sum and a wrong mac was written with another key.
// The slot with the higher sequence counts. It is written while the store syncs, and
// nothing is acknowledged before both have. So it may lead the store, and then it has
// a lead of so many bytes with such a crc: the batches of Pebble from the record before
// to its own, each length (32 bits) ‖ batch. Without a lead the store was synced before. A store that was closed
// has no leads, and no room for them.
//
// # Archives
//
// Records from the second on can be moved to files, several one after the other;
// 'a' names each, and its keys are the ids of their last records. Payloads that are
// blobs stay with their chunks, so that they can be redacted. A file is a table of
// Pebble, version 7, in blocks of 64 KiB packed by zstd, with the records in segments under
// keys 'j', as in the store. root is the chain root with its last record, by whose link
// an archive is known, and SHA-256 that of the file, which Damage compares.
//
// # Log
//
// Where Options.Log is given the journal of record lies there, with contents, signed
// checkpoints and an image, and what it says is durable is acknowledged. The directory has
// a copy of it, with all that is derived, which nobody syncs and which may be lost at any
// moment. Opening compares its last record with the log, by the link, and adds what follows.
// It is made anew where it has another past, or is damaged, or nobody has closed it and the
// machine was started since: then from the image, and what comes before that is read from
// the log, and kept, when somebody asks for it. So is what is damaged. The anchor, not synced
// either, finds a log that lacks what it has acknowledged: then nothing is touched. Who only reads
// has a copy of its own, of the log as it was in one moment, and owns nothing: see OpenReadOnly.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/journal"
)

// FormatVersion is the version of the layout that this package writes.
const FormatVersion = 1

// Why a store cannot be opened, created or used. The text around them names
// the directory and the records.
var (
	ErrNotWorld     = errors.New("not a world")
	ErrExists       = errors.New("there is a world already")
	ErrNoAnchor     = errors.New("the anchor is missing")
	ErrBadAnchor    = errors.New("the anchor is not valid")
	ErrBehindAnchor = errors.New("the store is behind its anchor")
	ErrOffAnchor    = errors.New("the store is not the one that was anchored")
	ErrNewerFormat  = errors.New("the store was written by a newer version")
	ErrClosed       = errors.New("the store is closed")
)

// Options say how a store is kept. The zero value works; AnchorKey should be
// secret wherever others can write to the directory.
type Options struct {
	FS        vfs.FS                           // nil: the operating system's
	Logf      func(format string, args ...any) // what Pebble complains about; nil: nobody listens
	AnchorKey []byte                           // HMAC key of the anchor

	// Log is the journal of record where that is outside of the directory, which has a copy of
	// it then; see the package comment. Nil: the directory has the journal.
	Log journal.Log

	// EachCell calls visit for the cells that a record concerns, for CellRecords.
	// It must do the same for the same record. Nil: none.
	EachCell func(kind string, payload []byte, visit func(cell []byte))

	// IntentOf returns the key of the intent that a record is about, and its cell
	// where the record names that, else an empty one; ok is false for a record about
	// no intent. One that names no cell concerns the cell that an earlier record
	// named, or the intent's ledger entry. It must return the same for the same
	// record. Nil: no record is about an intent.
	IntentOf func(kind string, payload []byte) (key journal.Hash, cell []byte, ok bool)

	// Moments is how many records lie at least between two images of which nobody has
	// said that they are needed, and which are kept all the same, for looks back; see
	// moments. 0: none are.
	Moments journal.Seq

	// Scratch waits for no disk: of a world that is thrown away, and that a crash may take.
	Scratch bool

	// Fatal ends the process, because Pebble cannot go on, and says nothing that the
	// store could end by itself for, as it does for a disk that fails. It must not
	// return. Nil: print to stderr and exit with 1.
	Fatal func(error)

	disk          vfs.FS // FS, which syncs
	boot          string // of the machine; for tests that start it anew
	memTableBytes uint64 // for tests that want many small files
	segmentBytes  int    // for tests that want a record a segment
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	o.disk = o.FS
	if o.Scratch || o.Log != nil {
		o.FS = unsyncedFS{o.FS}
	}
	if o.Log != nil && o.boot == "" {
		o.boot = thisBoot()
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.EachCell == nil {
		o.EachCell = func(string, []byte, func([]byte)) {}
	}
	if o.IntentOf == nil {
		o.IntentOf = func(string, []byte) (journal.Hash, []byte, bool) { return journal.Hash{}, nil, false }
	}
	if o.Fatal == nil {
		o.Fatal = func(err error) { fmt.Fprintln(os.Stderr, err) }
	}
	o.memTableBytes = cmp.Or(o.memTableBytes, memTableBytes)
	o.segmentBytes = cmp.Or(o.segmentBytes, segmentBytes)
	return o
}

// Store is a world on disk and its owner: a journal.Journal and a journal.History.
// Reading is safe for concurrent use, also beside one appending caller. No
// slice that it returns is used again by the store.
type Store struct {
	dir    string
	opts   Options
	lock   *fileLock
	anchor *anchor
	db     *pebble.DB

	mu     sync.Mutex   // guards what follows, and orders appends
	head   journal.Head // of what was appended
	epoch  uint64
	closed bool // for appends; reading goes on until pending ones are done

	tips     tips
	chunks   chunks
	archives archives // where records are that were moved out
	reading  reading
	failure  atomic.Pointer[error]
	failing  chan struct{} // closed when there is a failure
	opened   atomic.Bool   // it has been; until then somebody waits for what Pebble flushes
	closing  atomic.Bool   // nobody waits long for a descriptor any more
	severed  atomic.Bool   // nothing that Pebble writes reaches the disk; see guardFS

	recordless bool  // it has images alone; see Spill
	bytesLeft  error // see BytesLeft

	led  atomic.Bool // the anchor has a lead
	lead []byte      // the last; memory that acknowledge uses again

	logSyncs, anchorSyncs atomic.Uint64 // see Stats
	tookMu                sync.Mutex    // guards what follows
	syncTook              journal.Latency
	wake                  atomic.Pointer[func()]
	acked                 acknowledged // for Await

	imaged   chan struct{} // guarded by mu; closed when the last checkpoint is written; nil: there was none
	imagedID journal.Seq   // guarded by mu; its head's

	heads    []journal.Seq                // of images, ascending; writeImages's alone, which reads them once; nil: not yet
	written  []written                    // by the last images, the newest first; writeImages's alone; empty: not known
	inDB     atomic.Pointer[journal.Head] // of what has reached Pebble; nil: head has
	appended chan *pending                // to apply
	applied  chan *pending                // from there to acknowledge
	images   chan *imageWriter            // from apply to writeImages
	newest   newest
	done     sync.WaitGroup

	logged // where there is a log
}

var (
	_ journal.Journal = (*Store)(nil)
	_ journal.History = (*Store)(nil)
)

// Create makes an empty world in dir, which is created if need be, and opens
// it. A crash in the middle leaves either that world or none.
func Create(dir string, opts Options) (*Store, error) {
	return start("create", dir, opts, (*Store).create)
}

// Open opens the world in dir and becomes its owner. It refuses, changing
// nothing, a world that has an owner (*LockedError), and a store that lacks
// records that were acknowledged (ErrBehindAnchor).
func Open(dir string, opts Options) (*Store, error) {
	return start("open", dir, opts, (*Store).open)
}

func start(verb, dir string, opts Options, begin func(*Store) error) (*Store, error) {
	s := &Store{dir: dir, opts: opts.withDefaults(), failing: make(chan struct{})}
	if err := begin(s); err != nil {
		if errors.Is(err, syscall.ENOSPC) && s.failed() == nil {
			err = s.unwritable(err)
		}
		_ = s.release() // what matters is why it could not be opened
		return nil, fmt.Errorf("store: %s %s: %w", verb, dir, err)
	}
	s.inDB.Store(&journal.Head{ID: s.head.ID, Root: s.head.Root})
	s.appended = make(chan *pending, maxPending)
	s.applied = make(chan *pending, maxPending)
	s.images = make(chan *imageWriter, 1)
	s.keep = make(chan struct{}, 1)
	for _, worker := range []func(){s.apply, s.acknowledge, s.writeImages, s.keepImages} {
		s.done.Go(worker)
	}
	return s, nil
}

// Head returns the head of the last batch that was appended, durable or not.
func (s *Store) Head() journal.Head {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head
}

// Log returns the log that the journal lies in; nil: it lies in the directory.
func (s *Store) Log() journal.Log { return s.opts.Log }

// Epoch is that of this owner of the log; 0: the journal lies in the directory.
func (s *Store) Epoch() uint64 { return s.owned.Epoch }

// Stats counts what a store has done since it was opened.
type Stats struct {
	JournalSyncs uint64 // of Pebble's log
	AnchorSyncs  uint64
	SyncTook     journal.Latency // how long groups of appends waited for the log's, and for the anchor's where that is at the same time
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	s.tookMu.Lock()
	defer s.tookMu.Unlock()
	return Stats{JournalSyncs: s.logSyncs.Load(), AnchorSyncs: s.anchorSyncs.Load(), SyncTook: s.syncTook}
}

// Close waits for pending appends and for what is being read, and gives the world up. Closing
// twice is fine; nothing can be read after it.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.appended)
	s.mu.Unlock()
	s.closing.Store(true)
	s.done.Wait()
	given := s.leaveLog()
	none := s.reading.stop()
	s.newest.letGo()
	<-none
	flushed := s.flush()
	closed := s.db.Close()
	s.db = nil
	if flushed == nil && closed == nil && s.failed() == nil {
		s.dropLogs()
		_ = s.anchor.pack(s.opts.FS, s.path(anchorName)) // the one that is there is as good
		given = errors.Join(given, s.settleCopy())
	}
	if err := errors.Join(given, flushed, closed, s.release()); err != nil {
		return fmt.Errorf("store: close %s: %w", s.dir, err)
	}
	return nil
}

// dropLogs removes the logs that a flush has emptied. Pebble keeps them to write
// over, and they may take more room than all tables. The newest, too, may be one that was
// to be written over: nothing was written since the flush. What cannot be removed does
// no harm.
func (s *Store) dropLogs() {
	dir := s.path(storeName)
	names, err := s.opts.FS.List(dir)
	if err != nil {
		return
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") })
	for _, name := range names {
		s.wals.change("", name)
		_ = s.opts.FS.Remove(s.opts.FS.PathJoin(dir, name))
	}
}

// flush moves the log into tables, which the next Open would have to do twice.
// Without it nothing is lost.
func (s *Store) flush() error {
	if s.failed() != nil {
		return nil
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
		return nil
	case <-s.failing: // Pebble would try again, forever
		return s.failed()
	}
}

// release closes what is open, the lock last.
func (s *Store) release() error {
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	errs = append(errs, s.giveUp())
	if s.anchor != nil {
		errs = append(errs, s.anchor.file.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// readable returns the head up to which records can be read.
func (s *Store) readable() journal.Head {
	if head := s.inDB.Load(); head != nil {
		return *head
	}
	return s.head // while opening
}

// fail makes err what every later append answers, unless an earlier one does,
// and returns the one that does.
func (s *Store) fail(err error) error {
	_ = s.suspect(err)
	if s.failure.CompareAndSwap(nil, &err) {
		close(s.failing)
		s.acked.change(func() {})
	}
	return *s.failure.Load()
}

// failed returns the first failure.
func (s *Store) failed() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}
