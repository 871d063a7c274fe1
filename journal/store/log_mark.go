package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The mark says whether the copy of a log, which nobody syncs, can be believed. It is synced.
const (
	markName    = "copy"
	newMarkName = "copy.new" // a mark that is being written
	markClean   = "clean"    // it was closed, and synced
	markDamaged = "damaged"  // somebody has met damage
	markInUse   = "in use"   // else the id of the machine's boot, until the end of which the page cache is whole
)

// thisBoot returns an id that no other start of a machine has; empty: there is none.
func thisBoot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// readMark returns what the mark says; there is false where there is none.
func (s *Store) readMark() (mark string, there bool, err error) {
	f, err := s.opts.disk.Open(s.path(markName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	text, err := io.ReadAll(f)
	return strings.TrimSpace(string(text)), true, errors.Join(err, f.Close())
}

// setMark marks the copy, durably. At no moment there is no mark, or an empty one: without it the copy would be taken
// for a world of its own.
func (s *Store) setMark(mark string) error {
	files, making := s.opts.disk, s.path(newMarkName)
	f, err := files.Create(making, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(mark + "\n"))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = files.Rename(making, s.path(markName))
	}
	return errors.Join(err, syncDir(files, s.dir))
}

// suspect has the copy made anew by whoever opens it next, if err is of damage to it.
func (s *Store) suspect(err error) error {
	damage := (*DamageError)(nil)
	if s.opts.Log != nil && !s.severed.Load() && (errors.As(err, &damage) || pebble.IsCorruptionError(err)) && !s.damaged.Swap(true) {
		s.opts.Logf("store: %s: the copy is made anew by whoever opens it next: %v", s.dir, err)
		_ = s.setMark(markDamaged) // what cannot be written is not marked as clean either
	}
	return err
}

// settleCopy syncs the copy, which has been closed, and marks it as clean.
func (s *Store) settleCopy() error {
	if s.opts.Log == nil || s.damaged.Load() {
		return nil
	}
	files := s.opts.disk
	others := []string{s.path(anchorName)}
	if s.wals != nil {
		others = append(others, s.path(walsName))
	}
	if err := syncFiles(files, s.path(storeName), others...); err != nil {
		return err
	}
	if err := syncDir(files, s.dir); err != nil {
		return err
	}
	return s.setMark(markClean)
}

// syncFiles syncs the files in a directory, and others.
func syncFiles(files vfs.FS, dir string, others ...string) error {
	names, err := files.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		others = append(others, files.PathJoin(dir, name))
	}
	for _, path := range others {
		f, err := files.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return syncDir(files, dir)
}

// noCopy refuses a directory that holds the copy of a log, where none is given.
func (s *Store) noCopy() error {
	if _, there, err := s.readMark(); err != nil || !there {
		return err
	}
	return ErrCopy
}
