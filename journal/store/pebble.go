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
	return pebble.NewCache(bytes), pebble.NewFileCache(runtime.GOMAXPROCS(0), max(runtime.GOMAXPROCS(0), 16, min(most, file.Descriptors()/8)))
})

// pebbleOptions suit one writer of ascending ids that seldom reads: no
// filters, no read-triggered or concurrent compactions. Journal
// files overlap nothing, so they are compressed once, when they are flushed,
// and then only change their level.
func (s *Store) pebbleOptions() *pebble.Options {
	blocks, files := tables()
	o := &pebble.Options{
		FS:                          &guardFS{FS: descriptorFS{s.opts.FS, s}, s: s},
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
		o.Levels[i].BlockSize = 96 << 10 // MinLZ finds what is alike far better from 64 KiB on
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
			if file.NoDescriptor(err) && s.opened.Load() && !errors.Is(err, errWaited) {
				return // Pebble tries again, and there will be some
			}
			s.broken(err)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			_ = s.fail(fmt.Errorf("store: %w", &DamageError{What: info.Path, Err: info.Details}))
		},
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
	cause = l.s.unwritable(cause)
	_ = l.s.fail(cause)
	l.s.opts.Fatal(cause)
	os.Exit(1) //nolint:forbidigo // Fatal must not return, and Pebble goes on where it does
}

// broken fails the store because the disk under Pebble does, and keeps Pebble from it: see guardFS.
func (s *Store) broken(err error) {
	_ = s.fail(s.unwritable(err)) // first: what Pebble then calls written is not acknowledged
	s.severed.Store(true)
}

// unwritable says what can be done about err.
func (s *Store) unwritable(err error) error {
	remedy := "check the disk under"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "free space on"
	case file.NoDescriptor(err):
		remedy = "raise ulimit -n of the process that writes"
	}
	return fmt.Errorf("store: %s cannot be written: %w; %s %s; then open the world again, nothing acknowledged is lost",
		s.dir, err, remedy, s.dir)
}
