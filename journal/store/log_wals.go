package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walsName lists the write-ahead logs of a copy. Pebble does not miss one: where one is gone and
// the next is there, what it opens has a gap that no record shows.
const walsName = "wals"

// endOfWALs ends the list, so that the beginning of one is none.
const endOfWALs = "end\n"

var errWALs = errors.New("of its write-ahead logs not all are there")

// walList keeps that list.
type walList struct {
	files vfs.FS
	path  string

	mu    sync.Mutex
	names []string
}

// change adds a log that is there, and takes one away that is to go; both may be empty. A list
// that cannot be written is removed: without one the copy is made anew.
func (l *walList) change(created, gone string) {
	if l == nil { // it is no copy
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	gone = l.files.PathBase(gone)
	l.names = slices.DeleteFunc(l.names, func(name string) bool { return name == gone })
	if created != "" {
		l.names = append(l.names, l.files.PathBase(created))
	}
	f, err := l.files.Create(l.path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = io.WriteString(f, strings.Join(append(slices.Clone(l.names), endOfWALs), "\n"))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		_ = l.files.Remove(l.path)
	}
}

// readWALs reads the list of a copy, and returns errWALs where one of them is gone.
func (l *walList) readWALs(dir string) error {
	f, err := l.files.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return errWALs
	}
	if err != nil {
		return err
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	list, whole := strings.CutSuffix(string(text), endOfWALs)
	if !whole {
		return errWALs
	}
	there, err := l.files.List(dir)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(list) {
		if !slices.Contains(there, name) {
			return fmt.Errorf("%w: %s", errWALs, name)
		}
		l.names = append(l.names, name)
	}
	return nil
}
