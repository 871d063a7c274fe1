package store

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/file"
)

// memTableBytes is how much gathers in memory before it is flushed, and about
// what a log grows to. More would append a little faster, and leave more logs
// on the disk.
const memTableBytes = 32 << 20

// tables are what all stores of the process have open of their tables, and unpacked of them: a world of
// its own may have more files than the process may have, where there are a thousand.
var tables = sync.OnceValues(func() (*pebble.Cache, *pebble.FileCache) { //nolint:gochecknoglobals // the limit of files is one of the process, too
	const bytes, most = 16 << 20, 1000
	return pebble.NewCache(bytes), pebble.NewFileCache(runtime.GOMAXPROCS(0), max(64, min(most, file.Descriptors()/8)))
})

// pebbleOptions suit one writer of ascending ids that seldom reads: no
// filters, no read-triggered or concurrent compactions. Journal
// files overlap nothing, so they are compressed once, when they are flushed,
// and then only change their level.
func (s *Store) pebbleOptions() *pebble.Options {
	blocks, files := tables()
	o := &pebble.Options{
		FS:                          &guardFS{FS: descriptorFS{s.opts.FS, &s.opened}, logBroken: s.logBroken, dirBroken: s.fatal, logSyncs: &s.logSyncs, wals: s.wals},
		Logger:                      logger{s},
		EventListener:               s.listener(),
		FormatMajorVersion:          pebble.FormatValueSeparation,
		MemTableSize:                s.opts.memTableBytes,
		MemTableStopWritesThreshold: 4,
		Cache:                       blocks,
		FileCache:                   files,
		DisableTableStats:           true,
		L0CompactionThreshold:       12, // most of what is flushed never overlaps
		L0StopWritesThreshold:       64,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
	}
	o.Experimental.ReadSamplingMultiplier = -1
	o.Experimental.SpanPolicyFunc = tableOfOnePrefix
	for i := range o.Levels {
		o.Levels[i].BlockSize = 32 << 10
		o.Levels[i].IndexBlockSize = 256 << 10
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.MinLZCompression }
	}
	return o
}

// tableOfOnePrefix ends tables where the first byte of keys changes. So the
// tables of records, whose keys only grow, overlap with no others, and Pebble
// moves them down its levels as they are instead of writing them again.
func tableOfOnePrefix(start []byte) (pebble.SpanPolicy, []byte, error) {
	return pebble.SpanPolicy{}, []byte{start[0] + 1}, nil
}

// patientScheduler lets no compaction begin while the store is being opened:
// should opening fail after all, Pebble does not wait for those that run, and
// they crash; and a damaged file is to be named by who reads it.
type patientScheduler struct {
	pebble.CompactionScheduler

	db   pebble.DBForCompaction
	open atomic.Bool
}

func newPatientScheduler() *patientScheduler {
	// The name says ForTest; what it leaves out is a ticker for limits that change.
	return &patientScheduler{CompactionScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// Register implements pebble.CompactionScheduler.
func (p *patientScheduler) Register(goroutines int, db pebble.DBForCompaction) {
	p.db = db
	p.CompactionScheduler.Register(goroutines, db)
}

// TrySchedule implements pebble.CompactionScheduler.
func (p *patientScheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !p.open.Load() {
		return false, nil
	}
	return p.CompactionScheduler.TrySchedule()
}

// allow lets compactions begin. One that has asked before does not ask again.
func (p *patientScheduler) allow() {
	p.open.Store(true)
	if waiting, _ := p.db.GetWaitingCompaction(); !waiting {
		return
	}
	if ok, grant := p.TrySchedule(); ok && !p.db.Schedule(grant) {
		grant.Done()
	}
}

// listener stops the store when Pebble cannot flush, compact or read. Pebble
// itself would go on trying; where someone waits for it, in opening or for room
// to append, that would be forever.
func (s *Store) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if file.NoDescriptor(err) && s.opened.Load() {
				return // Pebble tries again, and there will be some
			}
			if s.stalled.Load() || !s.opened.Load() {
				s.fatal(err)
			}
			_ = s.fail(s.unwritable(err)) // the next append says so
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			_ = s.fail(fmt.Errorf("store: %w", &DamageError{What: info.Path, Err: info.Details}))
		},
		WriteStallBegin: func(pebble.WriteStallBeginInfo) {
			s.stalled.Store(true)
			if err := s.failed(); err != nil {
				s.end(err)
			}
		},
		WriteStallEnd: func() { s.stalled.Store(false) },
	}
}

// logger takes Pebble's messages. Fatalf is called where Pebble cannot go on.
type logger struct{ s *Store }

func (logger) Infof(string, ...any) {}

func (l logger) Errorf(format string, args ...any) {
	l.s.opts.Logf("store: %s: "+format, append([]any{l.s.dir}, args...)...)
}

func (l logger) Fatalf(format string, args ...any) {
	cause := fmt.Errorf(strings.ReplaceAll(format, "%s", "%v"), args...)
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			cause = err
		}
	}
	l.s.fatal(cause)
}

// logBroken is told of every error in writing Pebble's log. After one Pebble
// may have lost a write, and it panics as soon as it changes to another log; so
// the process ends here. While Pebble opens its files, or closes them again without
// the world having been opened, it changes to no other, and returns the error. (Where
// a directory cannot be synced Pebble panics at once, in any goroutine.)
func (s *Store) logBroken(err error) {
	if s.logging.Load() {
		s.fatal(err)
	}
}

// fatal ends the process, because err keeps Pebble from going on.
func (s *Store) fatal(err error) {
	err = s.unwritable(err)
	_ = s.fail(err)
	s.end(err)
}

func (s *Store) end(err error) {
	s.opts.Fatal(err)
	os.Exit(1) //nolint:forbidigo // Fatal must not return, and Pebble goes on where it does
}

// unwritable says what can be done about err.
func (s *Store) unwritable(err error) error {
	remedy := "check the disk under"
	if errors.Is(err, syscall.ENOSPC) {
		remedy = "free space on"
	}
	return fmt.Errorf("store: %s cannot be written: %w; %s %s; then open the world again, nothing acknowledged is lost",
		s.dir, err, remedy, s.dir)
}

// walSuffix ends the names of Pebble's logs.
const walSuffix = ".log"

// guardFS reports errors in writing Pebble's logs and in syncing directories.
// It also closes a gap: Pebble makes a file, then a marker that names it, and
// syncs their directory once; a file system might keep the marker alone.
type guardFS struct {
	vfs.FS

	logBroken, dirBroken func(error)
	logSyncs             *atomic.Uint64
	wals                 *walList // of a copy; or nil
}

// Unwrap implements vfs.FS.
func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// Create implements vfs.FS.
func (g *guardFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(g.PathBase(name), "marker.") {
		if err := syncDir(g, g.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := g.FS.Create(name, category)
	if strings.HasSuffix(name, walSuffix) && err == nil {
		g.wals.change(name, "")
	}
	return g.guard(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (g *guardFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.ReuseForWrite(oldname, newname, category)
	if strings.HasSuffix(newname, walSuffix) && err == nil {
		g.wals.change(newname, oldname)
	}
	return g.guard(newname, f, err)
}

// Remove implements vfs.FS.
func (g *guardFS) Remove(name string) error {
	if strings.HasSuffix(name, walSuffix) {
		g.wals.change("", name)
	}
	return g.FS.Remove(name)
}

// OpenDir implements vfs.FS.
func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: f, broken: g.dirBroken}, nil
}

func (g *guardFS) guard(name string, f vfs.File, err error) (vfs.File, error) {
	if !strings.HasSuffix(name, walSuffix) {
		return f, err
	}
	if err != nil {
		g.logBroken(err)
		return nil, err
	}
	return &guardFile{File: f, broken: g.logBroken, syncs: g.logSyncs}, nil
}

type guardFile struct {
	vfs.File

	broken func(error)
	syncs  *atomic.Uint64 // counts; nil: it is not a log

	size, filled int64 // bytes written, and zeros up to where
	since, last  int64 // bytes written since the last sync, and between the two before
}

// Preallocate implements vfs.File. It does nothing: Pebble would set aside a
// memtable's size for every log, for a world that may hold ten records. Write
// does it, step by step.
func (f *guardFile) Preallocate(int64, int64) error { return nil }

// aheadBytes is how far a log is filled with zeros before they are overwritten.
// Syncing what has its place in the file already takes half the time, or less,
// of syncing what makes the file longer. Pebble ends reading at zeros. It is as
// much as the log has already, within bounds; and where much is written between
// two syncs, nothing: it would be written twice for little.
func (f *guardFile) aheadBytes() int64 { return min(max(f.size, 4<<10), 128<<10) }

// aheadUpTo is how many bytes between two syncs are not much.
const aheadUpTo = 32 << 10

func (f *guardFile) report(err error) error {
	if err != nil {
		f.broken(err)
	}
	return err
}

// Write implements vfs.File. Of what is guarded only logs are written.
func (f *guardFile) Write(p []byte) (int, error) {
	if end := f.size + int64(len(p)); end > f.filled && f.last <= aheadUpTo {
		from := max(f.filled, end)
		ahead := f.aheadBytes()
		if _, err := f.WriteAt(make([]byte, ahead), from); err != nil {
			return 0, f.report(err)
		}
		f.filled = from + ahead
	}
	n, err := f.File.Write(p)
	f.size += int64(n)
	f.since += int64(n)
	return n, f.report(err)
}

// Sync implements vfs.File.
func (f *guardFile) Sync() error {
	f.count()
	return f.report(f.File.Sync())
}

// SyncData implements vfs.File.
func (f *guardFile) SyncData() error {
	f.count()
	return f.report(f.File.SyncData())
}

// count counts the syncs of a log. Pebble writes and syncs one from a single
// goroutine; other files may be synced by several.
func (f *guardFile) count() {
	if f.syncs == nil {
		return
	}
	f.syncs.Add(1)
	f.last, f.since = f.since, 0
}

// SyncTo implements vfs.File.
func (f *guardFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.report(err)
}

// Stat implements vfs.File. Pebble asks a log that it is to write over for its size.
func (f *guardFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	return info, f.report(err)
}

// Close implements vfs.File.
func (f *guardFile) Close() error { return f.report(f.File.Close()) }
