package worldctl

import (
	"errors"
	"os"
	"path/filepath"
)

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
