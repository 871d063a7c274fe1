// Package examples holds worlds that a reader can run: the templates of
// worldctl init.
//
// Each is a directory with a world.yaml, the sources that it names, a README.md
// whose first line is a heading of the form "# NAME: what it is", and, where
// the world needs a push to begin, an events.jsonl for worldctl send -.
package examples

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
)

//go:embed agent commons counter elfarol gateway go research schelling sir support town ville wealth
var worlds embed.FS

// ErrUnknown says that there is no example of a name.
var ErrUnknown = errors.New("no such example")

// Names returns the names of all examples, sorted.
func Names() []string {
	entries, err := worlds.ReadDir(".")
	if err != nil {
		panic(err) // the root of an embedded file system is there
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// Describe returns a line about an example, or "" for an unknown name.
func Describe(name string) string {
	readme, err := worlds.ReadFile(name + "/README.md")
	if err != nil {
		return ""
	}
	heading, _, _ := strings.Cut(string(readme), "\n")
	_, what, _ := strings.Cut(heading, ": ")
	return what
}

// live begins the comment of a world.yaml that says what makes an example live.
const live = "# These three lines make it live"

// Live returns the lines of a world.yaml for live effects, if the example has any.
func Live(name string) []string {
	text, err := worlds.ReadFile(name + "/world.yaml")
	_, after, found := strings.Cut(string(text), live)
	if err != nil || !found {
		return nil
	}
	var out []string
	for i, line := range strings.Split(after, "\n") {
		said, comment := strings.CutPrefix(line, "#")
		if i > 0 && !comment {
			break
		}
		if i > 0 {
			out = append(out, said)
		}
	}
	return out
}

// event finds an event that a README.md sends.
var event = regexp.MustCompile(`(?m)^    worldctl .*\bsend ([a-z][a-z.]* '.*')$`)

// Event returns an event that an example knows, as worldctl send takes it: NAME
// 'JSON'. It is "" where the README.md sends none.
func Event(name string) string {
	readme, err := worlds.ReadFile(name + "/README.md")
	if err != nil {
		return ""
	}
	if found := event.FindSubmatch(readme); found != nil {
		return string(found[1])
	}
	return ""
}

// Copy writes the files of an example to a directory, which it makes if need
// be, and makes them durable. It overwrites nothing: the error for a file that is there names it and
// wraps fs.ErrExist. After an error the directory is as it was.
func Copy(name, dir string) error { return CopyFor(name, dir, func() error { return nil }) }

// CopyFor is Copy, and has the files used: after an error of use, which must have left
// nothing of its own, the directory is as it was, too.
func CopyFor(name, dir string, use func() error) error {
	if Describe(name) == "" {
		return fmt.Errorf("%q: %w", name, ErrUnknown)
	}
	source, names, err := filesOf(name)
	if err != nil {
		return err
	}
	return write(source, names, dir, func() error {
		synced := make(map[string]bool)
		for _, name := range names {
			at := filepath.Dir(filepath.Join(dir, filepath.FromSlash(name)))
			if synced[at] {
				continue
			}
			synced[at] = true
			if err := file.SyncDir(at); err != nil {
				return err
			}
		}
		return use()
	})
}

// Files returns the files of an example, by their paths in its directory, with slashes.
func Files(name string) (map[string][]byte, error) {
	source, names, err := filesOf(name)
	out := make(map[string][]byte, len(names))
	for i := 0; i < len(names) && err == nil; i++ {
		out[names[i]], err = fs.ReadFile(source, names[i])
	}
	return out, err
}

func filesOf(name string) (source fs.FS, names []string, err error) {
	if source, err = fs.Sub(worlds, name); err != nil {
		return nil, nil, err
	}
	err = fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return source, names, err
}

// write writes files, and then uses them. After an error none is left.
func write(source fs.FS, names []string, dir string, use func() error) error {
	if len(names) == 0 {
		return use()
	}
	data, err := fs.ReadFile(source, names[0])
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o666)
	if bytes.HasPrefix(data, []byte("#!")) { // embedded files have no modes
		mode = 0o777
	}
	at := filepath.Join(dir, filepath.FromSlash(names[0]))
	return file.InDir(filepath.Dir(at), func() error {
		if err := file.WriteNew(at, data, mode); err != nil {
			return err
		}
		err := write(source, names[1:], dir, use)
		if err != nil {
			err = errors.Join(err, os.Remove(at))
		}
		return err
	})
}
