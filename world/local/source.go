package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
)

// ErrEdited means that a world.yaml with its files makes another manifest than the manifest in
// force.
var ErrEdited = errors.New("it is not the manifest in force")

// CheckSource compares the world.yaml in the world's directory with the
// manifest in force, which alone counts: ErrEdited where they differ, a
// *source.Error where the file is not valid any more. A world needs none.
func (lw *World) CheckSource() error {
	path := filepath.Join(lw.dir, ManifestFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// Every command asks this, and nearly always nothing was edited.
	if same, err := lw.isInForce(path, source.WithoutCode()); err == nil && same {
		return nil
	}
	same, err := lw.isInForce(path)
	if err == nil && !same {
		err = fmt.Errorf("%s: %w", path, ErrEdited)
	}
	return err
}

// isInForce reports whether a world file makes the manifest in force.
func (lw *World) isInForce(file string, options ...source.Option) (bool, error) {
	loaded, err := load(file, lw.opts, options...)
	if errors.As(err, new(*manifest.NoAdapterError)) {
		loaded, err = Read(file, lw.opts, options...) // the file is right
	}
	if err != nil {
		return false, err
	}
	var inForce *manifest.Manifest
	lw.View(func(w *world.Moment) { inForce = w.Manifest() })
	next, _, err := loaded.Amend(inForce)
	if err != nil {
		return false, err
	}
	hash, err := next.Hash()
	return err == nil && hash == lw.Status().Manifest, err
}
