package worldctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/world/local"
)

// errNotEmpty says that a directory for a new world holds something.
var errNotEmpty = errors.New("the directory is not empty")

// importing begins the names of directories in which worlds are being made.
const importing = ".import-"

// inNewDir fills a directory that is empty or not there yet. fill works in a
// directory within it, so that a crash leaves no world that is half full; what
// such a crash leaves the next import sweeps away.
func inNewDir(dir string, fill func(making string) error) error {
	made, err := makeEmpty(dir)
	if err == nil {
		err = fillAndMove(dir, fill)
	}
	if err == nil {
		return nil
	}
	for _, m := range made {
		if gone := os.Remove(m); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

func fillAndMove(dir string, fill func(making string) error) error {
	making, err := os.MkdirTemp(dir, importing)
	if err != nil {
		return err
	}
	if err = fill(making); err == nil {
		err = moveUp(making, dir)
	}
	return errors.Join(err, os.RemoveAll(making))
}

// sweepImports removes from a directory that has become a world what imports
// have left that were killed. What cannot be removed does no harm.
func sweepImports(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), importing) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// makeEmpty makes a directory with its parents and returns those that were not
// there, the innermost first. One that exists has to be empty.
func makeEmpty(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err == nil {
		return nil, sweep(dir, entries)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var made []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			return made, makeDurably(dir, made)
		}
		made = append(made, at)
	}
}

func makeDurably(dir string, missing []string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return syncUp(dir, missing[len(missing)-1])
}

// sweep removes what imports that were killed have left. If there is anything
// else, it removes nothing.
func sweep(dir string, entries []fs.DirEntry) error {
	for _, e := range entries {
		if e.Name() == ".world" {
			return fmt.Errorf("%s: %w", dir, local.ErrExists)
		}
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), importing) {
			return fmt.Errorf("%s: %w", dir, errNotEmpty)
		}
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// moveUp moves everything in making to dir. The last move is that of .world,
// which makes dir a world, once the others are durable. After an error dir is
// as it was.
func moveUp(making, dir string) error {
	entries, err := os.ReadDir(making)
	if err != nil {
		return err
	}
	slices.Reverse(entries) // they are sorted, and a dot comes before letters
	for i, e := range entries {
		if i == len(entries)-1 {
			err = syncFile(dir)
		}
		if err == nil {
			err = os.Rename(filepath.Join(making, e.Name()), filepath.Join(dir, e.Name()))
		}
		if err != nil {
			for _, moved := range entries[:i] {
				err = errors.Join(err, os.RemoveAll(filepath.Join(dir, moved.Name())))
			}
			return err
		}
	}
	return syncFile(dir)
}
