package host

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/receipt"
)

// effectLog keeps the results of live effects until the journal has them, in a file. One
// goroutine writes the file: whatever came while it wrote is the next group.
type effectLog struct {
	files  vfs.FS
	path   string
	world  string
	large  int64               // rewriteFrom, but in tests
	stored func(group []entry) // told of results that outlive the process, in their order; must not keep group
	failed func(error)         // told once; nothing is durable after it

	mu      sync.Mutex // guards what follows
	work    *sync.Cond // signalled when the writer has something to do
	waiting []entry    // for the writer
	results int        // how many of them have a receipt
	kept    map[attempt][]byte
	stale   map[attempt]bool // of kept: left by an earlier process, and not recovered yet
	loose   map[attempt]bool // of kept: not synced yet
	timed   bool             // hurry is to come
	due     bool             // it has come
	live    int64            // bytes that kept would take in the file
	dead    bool             // the file may have what kept has not
	closed  bool
	err     error

	ended chan struct{} // closed when the writer has ended

	// The writer's own.
	file   vfs.File
	size   int64
	synced int64 // up to where it is durable
	filled int64 // with zeros, up to where
	group  []entry
	buf    []byte

	syncs, written atomic.Uint64
}

// ahead is how far the file is filled with zeros before they are written over:
// syncing what does not make the file longer takes half the time, or less. It is
// as much as the file has already, within bounds.
func (l *effectLog) ahead() int64 { return min(max(l.size, minAhead), maxAhead) }

const minAhead, maxAhead = 4 << 10, 128 << 10

// openEffectLog opens or makes the effect store of a world. Without start
// nothing is written.
func openEffectLog(files vfs.FS, path, world string) (*effectLog, error) {
	l := &effectLog{files: files, path: path, world: world, large: rewriteFrom, ended: make(chan struct{}), stale: make(map[attempt]bool), loose: make(map[attempt]bool)}
	l.work = sync.NewCond(&l.mu)
	file, err := readAll(files, path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return nil, fmt.Errorf("host: effect store: %w", err)
	}
	end := 0
	if !fresh {
		l.kept, end, err = parseStore(file, world)
		if damage := (*DamageError)(nil); errors.As(err, &damage) {
			damage.Path = path
		}
		if err != nil {
			return nil, fmt.Errorf("host: effect store: %w", err)
		}
	} else {
		l.kept = make(map[attempt][]byte)
	}
	for at, data := range l.kept {
		e := entry{attempt: at, receipt: data}
		l.live += int64(e.size())
		l.stale[at] = true
	}
	if fresh || end < len(file) {
		err = l.rewrite(l.kept)
	} else {
		l.size, l.synced, l.filled = int64(end), int64(end), int64(end)
		l.dead = l.size > l.headSize()
		if l.file, err = files.OpenReadWrite(path, vfs.WriteCategoryUnspecified); err == nil {
			if err = l.file.SyncData(); err != nil { // the process that wrote it may have had no time to
				err = errors.Join(err, l.file.Close())
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("host: effect store: %w", err)
	}
	return l, nil
}

func readAll(files vfs.FS, path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// start begins to write.
func (l *effectLog) start(stored func([]entry), failed func(error)) {
	l.stored, l.failed = stored, failed
	go l.run()
}

// put hands a result to the writer. After close or a failure it is dropped, and
// put is false.
func (l *effectLog) put(e entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.err != nil {
		return false
	}
	l.waiting = append(l.waiting, e)
	l.results++
	l.work.Signal()
	return true
}

// forget drops a result. The file is told with the next group: a result that
// is forgotten twice does no harm.
func (l *effectLog) forget(at attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(at)
}

// drop is forget with mu held.
func (l *effectLog) drop(at attempt) {
	data, ok := l.kept[at]
	if !ok || l.closed || l.err != nil {
		return
	}
	e := entry{attempt: at, receipt: data}
	l.live -= int64(e.size())
	delete(l.kept, at)
	delete(l.loose, at)
	l.dead = true
	l.waiting = append(l.waiting, entry{attempt: at})
}

// begin needs no word of it: who has the file has the world.
func (l *effectLog) begin(attempt, string) *beginning { return nil }

func (l *effectLog) renew([]attempt) *beginning { return nil }

func (l *effectLog) lends(attempt) bool { return true }

// recover is get for what an earlier process has left, and keeps it from dropStale.
func (l *effectLog) recover(at attempt) left {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stale, at)
	return left{receipt: l.kept[at]}
}

// dropStale drops what earlier processes have left and nobody wanted back: the
// journal had it, but not the time to say so.
func (l *effectLog) dropStale() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := range l.stale {
		l.drop(at)
	}
	clear(l.stale)
}

// get returns a result that is not forgotten.
func (l *effectLog) get(at attempt) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, ok := l.kept[at]
	return data, ok
}

// all returns what is not forgotten, in the order in which it was
// made, and keeps it from dropStale.
func (l *effectLog) all() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.stale)
	return oldestFirst(l.kept)
}

// oldestFirst returns results in the order in which they were made.
func oldestFirst(kept map[attempt][]byte) [][]byte {
	results := make([]storedResult, 0, len(kept))
	for at, data := range kept { // order cannot show: sorted below
		s := storedResult{entry: entry{attempt: at, receipt: data}}
		if r, err := receipt.Decode(data); err == nil { // it was made by this package
			s.finished = r.FinishedAt
		}
		results = append(results, s)
	}
	slices.SortFunc(results, func(a, b storedResult) int {
		return cmp.Or(cmp.Compare(a.finished, b.finished), bytes.Compare(a.key.Hash[:], b.key.Hash[:]), cmp.Compare(a.number, b.number))
	})
	out := make([][]byte, len(results))
	for i := range results {
		out[i] = results[i].receipt
	}
	return out
}

type storedResult struct {
	entry
	finished int64
}

// close waits until everything that was put is durable, or failed to be. What was
// forgotten is in the file no more: a payload of it may have been redacted.
func (l *effectLog) close() error {
	l.mu.Lock()
	l.closed = true
	l.work.Signal()
	l.mu.Unlock()
	<-l.ended
	if l.err == nil && l.dead {
		l.err = l.rewrite(l.kept)
	}
	if l.file == nil {
		return l.err
	}
	return errors.Join(l.err, l.file.Close())
}

// syncAfter is how long a result may be loose: then the journal has not had it in time.
const syncAfter = 10 * time.Millisecond

// run is the writer.
func (l *effectLog) run() {
	defer close(l.ended)
	for l.next() {
		if err := l.write(); err != nil {
			err = fmt.Errorf("host: effect store: %w", err)
			l.mu.Lock()
			l.err = err
			l.waiting = nil
			l.mu.Unlock()
			l.failed(err)
			return
		}
	}
}

// next waits for the next group, which is empty where only a sync is due. It leaves what
// is more than a group may hold.
func (l *effectLog) next() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.results == 0 && !l.closed && !l.due {
		l.work.Wait()
	}
	if l.results == 0 && !l.closed { // a sync is due
		l.group = l.group[:0]
		return true
	}
	if l.results == 0 && len(l.loose) == 0 {
		return false // what is forgotten goes when the file is closed
	}
	l.mu.Unlock()
	runtime.Gosched() // workers that are about to end their attempts join the group
	l.mu.Lock()
	n, bytes := 0, 0
	for n < len(l.waiting) && bytes < frameBodyLimit {
		bytes += l.waiting[n].size()
		if l.waiting[n].receipt != nil {
			l.results--
		}
		n++
	}
	if n == len(l.waiting) {
		l.group, l.waiting = l.waiting, l.group[:0]
		return true
	}
	l.group = append(l.group[:0], l.waiting[:n]...)
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	return true
}

// write writes the group, so that it outlives the process, keeps it and tells of it. A
// sync makes it outlive the machine: before it is told where somebody relies on that,
// else only where the journal does not have the results soon.
func (l *effectLog) write() error {
	if len(l.group) > 0 {
		if err := l.writeGroup(); err != nil {
			return err
		}
	}
	if l.keep() {
		if err := l.sync(l.file.SyncData, 0); err != nil {
			return err
		}
		l.settle()
	}
	if len(l.group) == 0 {
		return nil
	}
	l.stored(l.group)
	return l.shrink()
}

// writeGroup writes the group with one write.
func (l *effectLog) writeGroup() error {
	l.buf = beginGroup(l.buf[:0], l.size, l.synced)
	for i := range l.group {
		l.buf = appendEntry(l.buf, &l.group[i])
	}
	endFrame(l.buf)
	n := len(l.buf)
	if end := l.size + int64(n); end > l.filled {
		ahead := l.ahead()
		l.buf = append(l.buf, make([]byte, ahead)...)
		l.filled = end + ahead
	}
	if _, err := l.file.WriteAt(l.buf, l.size); err != nil {
		return err
	}
	l.size += int64(n)
	l.written.Add(uint64(n))
	if cap(l.buf) > 2*frameBodyLimit {
		l.buf = nil // one giant must not hold its memory for good
	}
	return nil
}

// keep keeps the group, and reports whether it is time for a sync.
func (l *effectLog) keep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sure := l.closed
	for i := range l.group {
		e := &l.group[i]
		if e.receipt == nil {
			continue
		}
		l.kept[e.attempt] = e.receipt
		l.live += int64(e.size())
		l.loose[e.attempt] = true
		sure = sure || e.sure
	}
	if len(l.loose) > 0 && !sure && !l.timed {
		l.timed = true
		time.AfterFunc(syncAfter, l.hurry)
	}
	due := l.due && len(l.loose) > 0
	l.due = false
	return sure || due
}

// hurry has what is loose synced.
func (l *effectLog) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timed, l.due = false, len(l.loose) > 0
	l.work.Signal()
}

// settle takes note that all is durable.
func (l *effectLog) settle() {
	l.synced = l.size
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.loose)
}

func (l *effectLog) stats() Stats {
	return Stats{EffectSyncs: l.syncs.Load(), EffectBytes: l.written.Load()}
}

func (l *effectLog) sync(sync func() error, bytes int) error {
	if err := sync(); err != nil {
		return err
	}
	l.syncs.Add(1)
	l.written.Add(uint64(bytes))
	return nil
}
