package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
)

func errWritable(name, root string) error {
	return fmt.Errorf("the program %s is in the root %s, where file effects can write it", name, root)
}

// CheckPrograms is apart by what the lines of a trust file lead to, in the directory where
// relative paths begin.
func (t *Trust) CheckPrograms(dir string) error {
	for _, command := range t.programs {
		if err := t.writable(dir, command[0], command[1:]); err != nil {
			return err
		}
	}
	return nil
}

// runs is for host.Config.
func (t *Trust) runs(dir string) func(name string, args []string) error {
	return func(name string, args []string) error {
		if err := t.writable(dir, name, args); err != nil {
			return &governance.CapError{Code: codeNotTrusted, Reason: err.Error()}
		}
		return nil
	}
}

// writable says which part of a command file effects can write: the program, or an
// argument that names what is there, such as a script, also behind = or a letter. A
// program without a slash is one of the machine's.
func (t *Trust) writable(dir, program string, args []string) error {
	for _, root := range t.roots {
		if strings.Contains(program, "/") {
			if in, err := inside(dir, root, program); in || err != nil {
				return errors.Join(err, errWritable(program, root))
			}
		}
		for _, arg := range args {
			for _, name := range pathsIn(arg) {
				in, err := inside(dir, root, name)
				if err != nil {
					return err
				}
				if _, there := os.Lstat(inDir(dir, name)); in && (there == nil || strings.Contains(name, "/")) {
					return fmt.Errorf("the argument %s is in the root %s, where file effects can write it", arg, root)
				}
			}
		}
	}
	return nil
}

// pathsIn returns what of an argument may be a path.
func pathsIn(arg string) []string {
	const short = len("-x")
	names := []string{arg}
	if _, value, ok := strings.Cut(arg, "="); ok {
		names = append(names, value)
	}
	if strings.HasPrefix(arg, "-") && len(arg) > short {
		names = append(names, arg[short:])
	}
	return names
}

// inside reports whether a path leads into a directory, however the two are spelled
// and whatever links are on the way.
func inside(dir, root, name string) (bool, error) {
	at, err := leadsTo(inDir(dir, name))
	if err != nil {
		return false, err
	}
	top, err := leadsTo(inDir(dir, root))
	if err != nil {
		return false, err
	}
	if within(filepath.ToSlash(top), filepath.ToSlash(at)) {
		return true, nil
	}
	is, err := os.Stat(top)
	if err != nil {
		return false, nil // nothing is there yet, and so nothing that it could be the same as
	}
	for at != filepath.Dir(at) { // a directory may have two spellings without a link, too
		if info, err := os.Stat(at); err == nil && os.SameFile(info, is) {
			return true, nil
		}
		at = filepath.Dir(at)
	}
	return false, nil
}

// inDir returns a path as it is from a directory on.
func inDir(dir, name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// leadsTo returns where a path leads, absolute and without links. What is not there
// leads to where it would be made; a link to nothing is an error.
func leadsTo(name string) (string, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	end, err := filepath.EvalSymlinks(name)
	if !errors.Is(err, fs.ErrNotExist) || name == filepath.Dir(name) {
		return end, err
	}
	if _, gone := os.Lstat(name); gone == nil {
		return "", fmt.Errorf("%s is a link to nothing", name)
	}
	above, err := leadsTo(filepath.Dir(name))
	return filepath.Join(above, filepath.Base(name)), err
}
