package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrSparse means that a file's size is far above its share of the disk.
var ErrSparse = errors.New("it is far larger than what the disk has of it")

// ErrLinked says that what is written to a file is written to another, too: they are one.
var ErrLinked = errors.New("it is a hard link, one file with another name besides; a copy (cp -r) has files of its own")

const (
	sparseFrom  = 64 << 20 // bytes
	sparseShare = 16       // of its bytes at least one so many is on the disk: files are compressed at times
)

// CheckTree returns nil of a directory that has nothing but directories and regular files,
// at any depth, and of a path that is not there. Whatever opens a file there afterwards waits for
// nobody, reads no device, and changes nothing outside. Links, also of the directory itself, pipes,
// devices and sockets are ErrIrregular, but for the one socket that is named by its path in the directory.
// ErrSparse says that reading a file would take much more than the disk has; ErrLinked that it has a second
// name: only tables may, which copies share and nobody writes to again, and they are of the user whose directory
// it is. Errors are *fs.PathError.
//
// It holds for who is not fought meanwhile: who can write to the directory can change it later.
func CheckTree(dir, socket string) error {
	above, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !above.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: ErrNoDir}
	}
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil // it went meanwhile
		}
		if err != nil || e.IsDir() {
			return err
		}
		if e.Type() == fs.ModeSocket && path == filepath.Join(dir, socket) {
			return nil
		}
		if !e.Type().IsRegular() {
			return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w, but %s", ErrIrregular, kindOf(e.Type()))}
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = checkFile(path, info, above)
		}
		return err
	})
}

func checkFile(path string, info, dir fs.FileInfo) error {
	has, _ := OwnerOf(info)
	if of, _ := OwnerOf(dir); has == of && slices.Contains([]string{".sst", ".blob"}, filepath.Ext(path)) {
		return CheckRegular(path, info)
	}
	return CheckWritable(path, info)
}

// CheckWritable returns nil of a file that passes CheckRegular and has one name: what is written to it is written
// to no other. Else ErrLinked, in a *fs.PathError.
func CheckWritable(path string, info fs.FileInfo) error {
	if err := CheckRegular(path, info); err != nil {
		return err
	}
	if links, _, _ := facts(info); links > 1 {
		return &fs.PathError{Op: "open", Path: path, Err: ErrLinked}
	}
	return nil
}

// CheckRegular returns nil of a regular file whose reading takes about as much as the disk has of
// it: else ErrIrregular or ErrSparse, in a *fs.PathError.
func CheckRegular(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if _, onDisk, known := facts(info); known && info.Size() > sparseFrom && onDisk < info.Size()/sparseShare {
		return &fs.PathError{Op: "open", Path: path, Err: ErrSparse}
	}
	return nil
}

// OpenRegular opens a file to be read that passes CheckRegular. It waits for nobody.
func OpenRegular(path string) (*os.File, error) {
	info, err := os.Stat(path) // opening a pipe would wait for its writer
	if err == nil {
		err = CheckRegular(path, info)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// kindOf names what is no regular file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
