package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world"
)

// BackedUp says what Backup or Restore made.
type BackedUp struct {
	ID     string       `json:"world_id"`
	Head   journal.Head `json:"head"`          // of the copy
	Dir    string       `json:"dir,omitempty"` // empty: it was restored into a store
	Linked bool         `json:"linked"`        // the records and images of both are one on the disk, by hard links
}

// Backup makes a copy of the world in a directory that is empty or not there: all
// that is journaled, with the same id and keyring (sealed if that is), the effect
// store, and the files in the world's directory as Fork copies them. So it does
// not get the secrets. Nobody but its owner may read it. The world can go on
// meanwhile. A crash leaves the copy or no directory.
//
// The copy opens by itself. Never run both: they hand out the same external keys,
// and neither knows what the other has done. See Restore.
func (lw *World) Backup(dir string) (*BackedUp, error) {
	lw.still.Lock()
	defer lw.still.Unlock()
	return lw.copyTo(dir, func(*store.Store) error { return nil }, keepPrivate)
}

// keepPrivate takes from everybody else what they may do in a directory: a backup is
// wherever there is room, and not behind the directory that it was in.
func keepPrivate(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			return err
		}
		return os.Chmod(path, info.Mode().Perm()&^0o077)
	})
}

// Restore makes a world in a directory that is empty or not there of a backup,
// once it has found that the backup has what was acknowledged to it and loads. A
// crash leaves the world or no directory. The backup stays, and is locked
// meanwhile.
//
// The world that it makes does not know what happened after the backup. It may
// perform again what was performed since, with the same external keys; see
// docs/history.md.
func Restore(backup, dir string, opts Options) (*BackedUp, error) {
	opts.Log = nil
	lw, err := own(backup, opts)
	if err != nil {
		return nil, err
	}
	done, err := lw.duplicate(dir, func(s *store.Store) error {
		_, err := world.At(lw.lifetime(), s, s.Head().ID, opts.Reducers)
		return err
	})
	return done, errors.Join(err, lw.abandon())
}

// duplicate copies the world. check looks at the copy before anybody else does.
func (lw *World) duplicate(dir string, check func(*store.Store) error) (*BackedUp, error) {
	return lw.copyTo(dir, check, func(string) error { return nil })
}

// copyTo is duplicate, and finish has the directory before it is there.
func (lw *World) copyTo(dir string, check func(*store.Store) error, finish func(making string) error) (done *BackedUp, err error) {
	err = whole(dir, lw.dir, func(making string) error {
		hidden := filepath.Join(making, hiddenDir)
		if err := os.Mkdir(hidden, 0o700); err != nil {
			return err
		}
		// The results of effects first: what is journaled after that is in the store.
		if err := lw.copyHidden(hidden); err != nil {
			return err
		}
		copied, err := lw.copyStore(hidden, ring{keys: lw.keys}, journal.Last, check)
		if err != nil {
			return err
		}
		done = &BackedUp{ID: lw.keys.World(), Head: copied.Head, Dir: dir, Linked: copied.Linked}
		return errors.Join(copyFiles(making, lw.dir), finish(making))
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// copyHidden copies what is under .world besides the store to another hidden directory.
func (lw *World) copyHidden(hidden string) error {
	for _, name := range []string{keyringFile, liveFile, effectsFile} {
		err := copyFile(filepath.Join(hidden, name), filepath.Join(lw.hidden, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	recorded, _, _, err := readRecorded(lw.hidden)
	if err == nil && recorded != "" {
		err = file.WriteNew(filepath.Join(hidden, recordedFile), []byte(recorded+"\n"), 0o600)
	}
	if attempts, ok := lw.store.Log().(host.Attempts); ok && err == nil {
		err = host.CopyResults(context.Background(), attempts, filepath.Join(hidden, effectsFile), lw.keys.World())
	}
	return err
}
