// Package file reads small files, and makes files and directories such that after an
// error, and where Replace writes after a crash, too, there is all of one or nothing. It
// locks files, too.
package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrExposed reports a file of secrets with permissions beyond its owner.
var ErrExposed = errors.New("others can read its secrets; want 0600")

// ErrSize says that there is more to read than was wanted.
var ErrSize = errors.New("too large")

// ErrIrregular says that something is no regular file, such as a directory or a pipe.
var ErrIrregular = errors.New("it is not a regular file")

// ErrNoDir says that something is no directory, such as a link to one.
var ErrNoDir = errors.New("it is not a directory")

// ErrLocked says that somebody else has locked a file.
var ErrLocked = errors.New("somebody else has locked it")

// Read returns what a file holds. ErrSize says that it has more than a number of bytes.
// Errors are *fs.PathError.
func Read(path string, most int64) ([]byte, error) {
	return readAtMost(path, most, func(fs.FileMode) error { return nil })
}

// ReadRegular is Read for regular files, ErrIrregular otherwise: it waits for nobody.
func ReadRegular(path string, most int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := ReadFrom(f, most)
	if at := (*fs.PathError)(nil); err != nil && !errors.As(err, &at) {
		err = &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, err
}

func regular(mode fs.FileMode) error {
	if !mode.IsRegular() {
		return ErrIrregular
	}
	return nil
}

// ReadSecret is Read for a regular file that is its owner's alone: ErrExposed otherwise.
func ReadSecret(path string, most int64) ([]byte, error) {
	return readAtMost(path, most, func(mode fs.FileMode) error {
		if err := regular(mode); err != nil {
			return err
		}
		if mode.Perm()&0o077 != 0 {
			return fmt.Errorf("mode is %#o: %w", mode.Perm(), ErrExposed)
		}
		return nil
	})
}

func readAtMost(path string, most int64, allow func(fs.FileMode) error) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var data []byte
	if err = allow(info.Mode()); err == nil {
		data, err = ReadFrom(f, most)
	}
	if at := (*fs.PathError)(nil); err != nil && !errors.As(err, &at) {
		err = &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, err
}

// ReadFrom reads to the end. ErrSize says that there is more than a number of bytes.
func ReadFrom(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%w: more than %d bytes", ErrSize, most)
	}
	return data, err
}

// WriteNew writes a file that is not there yet, and syncs it, but not its name. After an
// error it is not there, unless it was: the error wraps fs.ErrExist then. A crash may leave
// a part of it.
func WriteNew(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// Replace puts a file in its place once it is complete, and then its name is durable
// too. Until then, and after an error, what was there before stays. What is no regular
// file, such as a pipe, is written to instead.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return place(path, mode, write, os.Rename)
}

// New is Replace for a file that is not there yet; the error wraps fs.ErrExist where it
// is, before anything is written and if it has come since. What is no regular file is
// written to all the same.
func New(path string, mode fs.FileMode, write func(io.Writer) error) error {
	if err := Vacant(path); err != nil {
		return err
	}
	return place(path, mode, write, func(from, to string) error {
		err := os.Link(from, to)
		if err == nil {
			return os.Remove(from)
		}
		if err := Vacant(to); err != nil {
			return err
		}
		return os.Rename(from, to) // the file system has no links
	})
}

// Vacant returns why no file can be made with a name and nothing be written over: an
// error that wraps fs.ErrExist where there is a regular file, or a link to nothing.
func Vacant(path string) error {
	at, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		at, err = os.Lstat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && (at.Mode().IsRegular() || at.Mode().Type() == fs.ModeSymlink):
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	return err
}

func place(path string, mode fs.FileMode, write func(io.Writer) error, name func(from, to string) error) error {
	if at, err := os.Stat(path); err == nil && !at.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return err // names the directory, and not a file that nobody knows
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-") // 0600
	if err != nil {
		return err
	}
	err = write(named{f, path})
	if err == nil {
		err = f.Chmod(mode)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = name(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := SyncDir(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // who may write to a directory and not read it cannot sync it
}

// named writes to a file that nobody knows; its errors have the name of the file that it will be.
type named struct {
	file *os.File
	path string
}

func (n named) Write(data []byte) (int, error) {
	done, err := n.file.Write(data)
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: n.path, Err: at.Err}
	}
	return done, err
}

// Put is Replace with what is in memory.
func Put(path string, data []byte, mode fs.FileMode) error {
	return Replace(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// InDir makes a directory with its missing parents, calls use, and syncs the directory's
// name. After an error of use, which must have left nothing in it, the
// directories that were made are gone.
func InDir(dir string, use func() error) error {
	made, err := makeDir(dir)
	if err == nil {
		err = use()
	}
	for i := 0; err == nil && i < len(made); i++ {
		err = SyncDir(filepath.Dir(made[i])) // its name
	}
	for i := len(made) - 1; err != nil && i >= 0; i-- {
		err = errors.Join(err, os.Remove(made[i]))
	}
	return err
}

// makeDir returns the directories that it made, parents first.
func makeDir(dir string) ([]string, error) {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil, nil
	} else if err == nil {
		return nil, &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR} // as os.MkdirAll says it
	}
	var made []string
	if up := filepath.Dir(dir); up != dir {
		var err error
		if made, err = makeDir(up); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return made, err
	}
	return append(made, dir), nil
}
