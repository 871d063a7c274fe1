package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal/store"
)

// ErrNotEmpty says that a directory which is to become that of a world has
// something in it.
var ErrNotEmpty = errors.New("the directory is not empty")

// makingDir is in the names of directories that are to become those of worlds.
const makingDir = ".making-"

// whole makes a directory of fill's content, with the mode of a model if there is
// one: it is there with all of it, durable, or as it was, not there or empty.
func whole(dir, model string, fill func(making string) error) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := vacant(dir); err != nil {
		return err
	}
	mode := fs.FileMode(0o755)
	if info, err := os.Stat(model); err == nil {
		mode = info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	up := filepath.Dir(dir)
	return file.InDir(up, func() error { return wholeIn(up, dir, mode, fill) })
}

func wholeIn(up, dir string, mode fs.FileMode, fill func(making string) error) error {
	prefix := "." + filepath.Base(dir) + makingDir
	made, err := os.MkdirTemp(up, prefix)
	if err != nil {
		return err
	}
	if err = errors.Join(os.Remove(made), os.Mkdir(made, mode|0o700)); err == nil { // less what the umask takes away
		err = fill(made)
	}
	if err == nil {
		err = file.SyncDir(made)
	}
	if err == nil {
		err = moveInto(dir, made)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	sweepMaking(up, prefix)
	return file.SyncDir(up)
}

// moveInto puts what was made in the place of a directory that is empty or not there,
// or into it where this process is in it.
func moveInto(dir, made string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(made, dir)
	}
	if err != nil {
		return err
	}
	if here, err := os.Stat("."); err == nil && os.SameFile(here, info) {
		return moveUp(dir, made)
	}
	if err := os.Remove(dir); err != nil { // os.Rename replaces none
		return err
	}
	if err := os.Rename(made, dir); err != nil {
		return errors.Join(err, os.Mkdir(dir, info.Mode().Perm()))
	}
	return nil
}

// moveUp moves what was made into the directory that this process is in, which
// nobody would find themselves in if another took its place. .world comes last: it
// makes dir a world.
func moveUp(dir, made string) error {
	entries, err := os.ReadDir(made)
	move := func(name string) {
		if err == nil {
			err = os.Rename(filepath.Join(made, name), filepath.Join(dir, name))
		}
	}
	for _, e := range entries {
		if e.Name() != hiddenDir {
			move(e.Name())
		}
	}
	if err == nil {
		err = file.SyncDir(dir)
	}
	move(hiddenDir)
	for _, e := range entries {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, file.SyncDir(dir), os.RemoveAll(made))
}

// vacant refuses what cannot become the directory of a world. What builds have left that
// were killed is no obstacle, and goes.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 && strings.HasPrefix(entries[0].Name(), newDir) {
		sweep(dir)
		entries, err = os.ReadDir(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, hiddenDir)); err == nil {
		return fmt.Errorf("%s: %w", dir, ErrExists)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	return nil
}

// sweepMaking removes what was left by who was killed while making the same
// directory. What cannot be removed may be in use, and does no harm.
func sweepMaking(up, prefix string) {
	entries, _ := os.ReadDir(up)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		left := filepath.Join(up, e.Name())
		if _, err := os.Lstat(filepath.Join(left, hiddenDir)); err == nil && store.Remove(filepath.Join(left, hiddenDir)) == nil {
			_ = os.RemoveAll(left)
		} else {
			_ = os.Remove(left) // an empty one
		}
	}
}

// copyFiles copies the regular files of a world's directory, but those in .world
// and in directories that hold worlds, or that are to. The names in the directories that
// it makes are durable; those in to are the caller's to sync.
func copyFiles(to, from string) error {
	var made []string
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		switch {
		case e.IsDir():
			if strings.HasPrefix(e.Name(), hiddenDir) || strings.Contains(e.Name(), makingDir) || holdsWorld(path) {
				return fs.SkipDir
			}
			made = append(made, filepath.Join(to, rel))
			return copyDir(filepath.Join(to, rel), e)
		case e.Type().IsRegular():
			return copyFile(filepath.Join(to, rel), path)
		}
		return nil
	})
	for i := 0; err == nil && i < len(made); i++ {
		err = file.SyncDir(made[i])
	}
	return err
}

func holdsWorld(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, hiddenDir))
	return err == nil
}

func copyDir(to string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	return os.Mkdir(to, info.Mode().Perm()|0o700)
}

// copyFile copies a file, synced. Who may use it is as there, less what the umask takes away; it is
// nobody's but the user's who copies it.
func copyFile(to, from string) error {
	in, err := file.OpenRegular(from) // one of holes would fill the disk
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
