package worldctl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// syncTree makes the files below a directory durable, and the directories.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncFile(path)
	})
}

// syncUp makes the names of the directories from dir upwards durable, up to
// that in which top is.
func syncUp(dir, top string) error {
	end := filepath.Dir(top)
	for at := dir; ; at = filepath.Dir(at) {
		if err := syncFile(at); err != nil || at == end || at == filepath.Dir(at) {
			return err
		}
	}
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
