package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/journal/store"
)

// Freed counts the unreferenced data that Collect found.
type Freed struct {
	store.Garbage
	Leftovers   uint64 `json:"leftovers"`    // directories and files of processes that were killed
	BytesBefore uint64 `json:"bytes_before"` // on the disk, of .world and the leftovers beside it
	BytesAfter  uint64 `json:"bytes_after"`
}

// Collect deletes from the world in a directory what nothing refers to, and what
// processes have left that were killed. Either all records can be read, those in
// archives too, or nothing is deleted.
func Collect(dir string, opts Options) (Freed, error) {
	lw, err := own(dir, opts)
	if err != nil {
		return Freed{}, err
	}
	f := Freed{BytesBefore: worldBytes(dir)}
	f.Garbage, err = lw.store.Collect()
	if err == nil {
		f.Leftovers, err = lw.sweepAll()
	}
	if err = errors.Join(err, lw.abandon()); err != nil {
		return Freed{}, err
	}
	f.BytesAfter = worldBytes(dir)
	return f, nil
}

// sweepAll removes what killed processes have left, and counts it. The effect
// store's is written anew under another name first, and nobody has it open.
func (lw *World) sweepAll() (n uint64, err error) {
	switch err := os.Remove(filepath.Join(lw.hidden, effectsFile+".new")); {
	case err == nil:
		n++
	case !errors.Is(err, fs.ErrNotExist):
		return n, err
	}
	before := leftovers(lw.dir)
	sweep(lw.dir)
	return n + uint64(len(before)-len(leftovers(lw.dir))), nil
}

func leftovers(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // sweep could not read it either
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), newDir) {
			names = append(names, e.Name())
		}
	}
	return names
}

// worldBytes returns the sizes of the files of a world. What goes away meanwhile
// counts for nothing.
func worldBytes(dir string) (sum uint64) {
	for _, name := range append(leftovers(dir), hiddenDir) {
		_ = filepath.WalkDir(filepath.Join(dir, name), func(_ string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			if info, err := e.Info(); err == nil {
				sum += uint64(info.Size())
			}
			return nil
		})
	}
	return sum
}
