package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// effectLog is the medium of an effectStore that is a file of this process.
type effectLog struct {
	*effectStore

	files vfs.FS
	path  string
	world string
	large int64 // rewriteFrom, but in tests
	timed bool  // guarded by mu: hurry is to come
	dead  bool  // the file had more than its head when it was opened

	// The writer's own.
	file   vfs.File
	size   int64
	synced int64 // up to where it is durable
	filled int64 // with zeros, up to where
	buf    []byte
}

// ahead is how far the file is filled with zeros before they are written over:
// syncing what does not make the file longer takes half the time, or less. It is
// as much as the file has already, within bounds.
func (l *effectLog) ahead() int64 { return min(max(l.size, minAhead), maxAhead) }

const minAhead, maxAhead = 4 << 10, 128 << 10

// openEffectLog opens or makes the effect store of a world. Without start
// nothing is written.
func openEffectLog(files vfs.FS, path, world string) (*effectLog, error) {
	l := &effectLog{effectStore: newEffectStore("effect store", 0), files: files, path: path, world: world, large: rewriteFrom}
	l.medium, l.loose = l, make(map[attempt]bool)
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("host: effect store: %w", err)
	}
	return l, nil
}

func (l *effectLog) open() error {
	file, err := readAll(l.files, l.path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return err
	}
	var kept map[attempt][]byte
	end := 0
	if !fresh {
		kept, end, err = parseStore(file, l.world)
		if damage := (*DamageError)(nil); errors.As(err, &damage) {
			damage.Path = l.path
		}
		if err != nil {
			return err
		}
	}
	for at, data := range kept {
		l.rows[at] = row{receipt: data, stale: true}
		l.live += int64(entryHeader + len(data))
	}
	if fresh || end < len(file) {
		return l.rewrite()
	}
	l.size, l.synced, l.filled = int64(end), int64(end), int64(end)
	l.dead = l.size > l.headSize()
	if l.file, err = l.files.OpenReadWrite(l.path, vfs.WriteCategoryUnspecified); err != nil {
		return err
	}
	if err = l.file.SyncData(); err != nil { // the process that wrote it may have had no time to
		return errors.Join(err, l.file.Close())
	}
	return nil
}

func readAll(files vfs.FS, path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// syncAfter is how long a result may be loose: then the journal has not had it in time.
const syncAfter = 10 * time.Millisecond

// write writes the group, so that it outlives the process. A sync makes it outlive the
// machine: before it is told where somebody relies on that, else only where the journal does
// not have the results soon.
func (l *effectLog) write(group []change) error {
	if len(group) > 0 {
		if err := l.append(group); err != nil {
			return err
		}
	}
	l.keep(group, time.Time{})
	if !l.isDue(group) {
		return nil
	}
	return l.settle()
}

// append writes the group with one write.
func (l *effectLog) append(group []change) error {
	l.buf = beginGroup(l.buf[:0], l.size, l.synced)
	for i := range group {
		l.buf = appendEntry(l.buf, &group[i].entry)
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

// isDue reports whether it is time for a sync.
func (l *effectLog) isDue(group []change) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := l.woken && len(l.loose) > 0 || slices.ContainsFunc(group, func(c change) bool { return c.sure })
	l.woken = false
	if len(l.loose) > 0 && !due && !l.timed {
		l.timed = true
		time.AfterFunc(syncAfter, l.hurry)
	}
	return due
}

// hurry has what is loose synced.
func (l *effectLog) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timed, l.woken = false, len(l.loose) > 0
	if l.woken {
		l.work.Signal()
	}
}

// settle makes all durable.
func (l *effectLog) settle() error {
	if err := l.sync(l.file.SyncData, 0); err != nil {
		return err
	}
	l.isDurable()
	return nil
}

// isDurable takes note that all is.
func (l *effectLog) isDurable() {
	l.synced = l.size
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.loose)
}

func (l *effectLog) sync(sync func() error, bytes int) error {
	if err := sync(); err != nil {
		return err
	}
	l.syncs.Add(1)
	l.written.Add(uint64(bytes))
	return nil
}

// closeMedium makes durable what is loose. What was forgotten is in the file no more: a payload of it may
// have been redacted.
func (l *effectLog) closeMedium(err error) error {
	if err == nil && len(l.loose) > 0 {
		err = l.settle()
	}
	if err == nil && (l.dead || l.dropped) {
		err = l.rewrite()
	}
	if l.file == nil {
		return err
	}
	return errors.Join(err, l.file.Close())
}
