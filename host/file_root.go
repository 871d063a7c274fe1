package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
)

// fileDir is an open directory below the root of a file effect. What is done
// through it stays in it, whatever happens to its path meanwhile.
type fileDir struct {
	*os.Root
	own []fs.FileInfo // the directories that are the world's or a worker's own
}

func (d *fileDir) hidden(info fs.FileInfo) bool {
	return slices.ContainsFunc(d.own, func(own fs.FileInfo) bool { return os.SameFile(info, own) })
}

// openParent opens the directory of a target's path, and returns the path's
// last element.
func openParent(worldDir string, t *governance.FileTarget) (*fileDir, string, error) {
	d, err := openDir(worldDir, t.Root, path.Dir(t.Path))
	return d, path.Base(t.Path), err
}

// openDir opens a directory below root, both slash-separated. No element below
// root may be a symbolic link, and none the world's own directory: a link could
// lead there although it stays below root, which is all that os.Root holds it
// to.
func openDir(worldDir, root, below string) (*fileDir, error) {
	d, err := openRoot(worldDir, root)
	if err != nil {
		return nil, cause(err)
	}
	if below == "." {
		return d, nil
	}
	for segment := range strings.SplitSeq(below, "/") {
		next, err := d.enter(segment)
		_ = d.Close()
		if err != nil {
			return nil, cause(err)
		}
		d = next
	}
	return d, nil
}

func openRoot(worldDir, root string) (*fileDir, error) {
	base := filepath.FromSlash(root)
	if !filepath.IsAbs(base) {
		base = filepath.Join(worldDir, base)
	}
	var hidden []fs.FileInfo
	for _, name := range []string{".world", ".worker"} {
		own := filepath.Join(worldDir, name)
		info, err := os.Stat(own)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = checkOutside(base, own)
		}
		if err != nil {
			return nil, err
		}
		hidden = append(hidden, info)
	}
	r, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	return &fileDir{Root: r, own: hidden}, nil
}

// checkOutside refuses a directory that is the world's own one or below it,
// also through symbolic links.
func checkOutside(dir, own string) error {
	for _, at := range []*string{&dir, &own} {
		end, err := filepath.EvalSymlinks(*at)
		if err != nil {
			return err
		}
		if *at, err = filepath.Abs(end); err != nil {
			return err
		}
	}
	if rel, err := filepath.Rel(own, dir); err == nil && filepath.IsLocal(rel) {
		return errWorld
	}
	return nil
}

// enter opens one directory in d.
func (d *fileDir) enter(name string) (*fileDir, error) {
	seen, err := d.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !seen.IsDir():
		return nil, errNotDir
	case d.hidden(seen):
		return nil, errWorld
	}
	r, err := d.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := r.Stat("."); err != nil || !os.SameFile(seen, opened) {
		return nil, errors.Join(errSwapped, r.Close())
	}
	return &fileDir{Root: r, own: d.own}, nil
}

// lstatRegular returns what stands under a name, which must be a regular file.
func (d *fileDir) lstatRegular(name string) (fs.FileInfo, error) {
	info, err := d.Lstat(name)
	switch {
	case err != nil:
		return nil, cause(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	return info, nil
}

// openRegular opens a regular file that exists.
func openRegular(d *fileDir, name string, flag int) (*os.File, fs.FileInfo, error) {
	seen, err := d.lstatRegular(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := d.OpenFile(name, flag|openNonblock, 0)
	if err != nil {
		return nil, nil, cause(err)
	}
	info, err := f.Stat()
	if err != nil || !os.SameFile(seen, info) {
		return nil, nil, errors.Join(errSwapped, f.Close())
	}
	return f, info, nil
}

// openTarget opens a target's file, which must be a regular one, to be read.
func openTarget(worldDir string, t *governance.FileTarget) (*os.File, fs.FileInfo, error) {
	d, name, err := openParent(worldDir, t)
	if err != nil {
		return nil, nil, err
	}
	defer d.Close() //nolint:errcheck // a directory
	return openRegular(d, name, os.O_RDONLY)
}

// sync makes the names in d durable.
func (d *fileDir) sync() error {
	f, err := d.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
