package host

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	osfile "github.com/worldkernel/worldkernel/internal/file"
)

// rewriteFrom is the size from which on an effect store that is mostly dead is
// written anew.
const rewriteFrom = 16 << 20

// tidy writes the file anew where it is large and mostly dead.
func (l *effectLog) tidy() error {
	l.mu.Lock()
	is := l.size >= l.large && 2*l.live <= l.size
	l.mu.Unlock()
	if !is {
		return nil
	}
	return l.rewrite()
}

func (l *effectLog) headSize() int64 { return int64(frameHeader + len(storeMagic) + len(l.world)) }

// rewrite replaces the file by one that holds just what is kept: the old one stands
// until the new one is whole and durable.
func (l *effectLog) rewrite() error {
	kept := l.kept()
	b := append(append(beginFrame(nil, 0), storeMagic...), l.world...)
	endFrame(b)
	if len(kept) > 0 {
		start := len(b)
		b = beginGroup(b, int64(start), int64(start))
		for at, data := range kept {
			e := entry{attempt: at, receipt: data}
			if len(b)-start > frameBodyLimit {
				endFrame(b[start:])
				start = len(b)
				b = beginGroup(b, int64(start), int64(start))
			}
			b = appendEntry(b, &e)
		}
		endFrame(b[start:])
	}
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return err
		}
		l.file = nil
	}
	if err := l.replace(b); err != nil {
		return err
	}
	f, err := osfile.Patiently(l.patience(), func() (vfs.File, error) {
		return l.files.OpenReadWrite(l.path, vfs.WriteCategoryUnspecified)
	})
	if err != nil {
		return err
	}
	l.file, l.size, l.filled = f, int64(len(b)), int64(len(b))
	l.isDurable()
	return nil
}

// patience is how long the writer waits for a file descriptor where the process has none
// left: for as long as the store of the world does, which is over without the file. Who opens it is
// told.
func (l *effectLog) patience() time.Duration {
	const opening, writing = 5 * time.Second, time.Minute
	if l.stored == nil {
		return opening
	}
	return writing
}

func (l *effectLog) replace(b []byte) error {
	fresh := l.path + ".new"
	f, err := osfile.Patiently(l.patience(), func() (vfs.File, error) {
		return l.files.Create(fresh, vfs.WriteCategoryUnspecified)
	})
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = l.sync(f.Sync, len(b))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := l.files.Rename(fresh, l.path); err != nil {
		return err
	}
	dir, err := osfile.Patiently(l.patience(), func() (vfs.File, error) { return l.files.OpenDir(filepath.Dir(l.path)) })
	if err != nil {
		return err
	}
	return errors.Join(l.sync(dir.Sync, 0), dir.Close())
}
