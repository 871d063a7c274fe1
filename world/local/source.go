package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// ErrEdited says that a world.yaml, with the files that it names, makes another
// manifest than the one in force.
var ErrEdited = errors.New("it is not the manifest in force")

// CheckSource compares the world.yaml in the world's directory with the
// manifest in force, which alone counts: ErrEdited where they differ, a
// *source.Error where the file is not valid any more. A world needs none.
func (lw *World) CheckSource() error {
	path := filepath.Join(lw.dir, ManifestFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	loaded, err := load(filepath.Join(lw.dir, ManifestFile), lw.opts)
	if err != nil {
		return err
	}
	encoded, err := loaded.Manifest.Encode()
	if err != nil {
		return err
	}
	if canon.Sum(encoded) != lw.Status().Manifest {
		return fmt.Errorf("%s: %w", path, ErrEdited)
	}
	return nil
}
