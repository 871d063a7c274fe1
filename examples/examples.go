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

	"github.com/worldkernel/worldkernel/world/local"
)

//go:embed counter go support town ville
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

// Describe returns one line that says what an example is, or "" for one that
// does not exist.
func Describe(name string) string {
	readme, err := worlds.ReadFile(name + "/README.md")
	if err != nil {
		return ""
	}
	heading, _, _ := strings.Cut(string(readme), "\n")
	_, what, _ := strings.Cut(heading, ": ")
	return what
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
func Copy(name, dir string) error {
	if Describe(name) == "" {
		return fmt.Errorf("%q: %w", name, ErrUnknown)
	}
	source, err := fs.Sub(worlds, name)
	if err != nil {
		return err
	}
	var made []string
	err = fs.WalkDir(source, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(dir, filepath.FromSlash(file))
		if d.IsDir() {
			created, err := local.MakeDir(at)
			made = append(made, created...)
			return err
		}
		data, err := fs.ReadFile(source, file)
		if err != nil {
			return err
		}
		created, err := writeNew(at, data)
		made = append(made, created...)
		return err
	})
	if err == nil {
		err = syncNames(made)
	}
	for i := len(made) - 1; err != nil && i >= 0; i-- {
		err = errors.Join(err, os.Remove(made[i]))
	}
	return err
}

// writeNew writes a file that is not there yet, and returns it as soon as it is.
// Embedded files have no modes: what begins like a program can be run.
func writeNew(file string, data []byte) ([]string, error) {
	mode := fs.FileMode(0o666)
	if bytes.HasPrefix(data, []byte("#!")) {
		mode = 0o777
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	return []string{file}, errors.Join(err, f.Sync(), f.Close())
}

// syncNames makes the names of what was made durable, each directory once.
func syncNames(made []string) error {
	synced := make(map[string]bool)
	for _, m := range made {
		dir := filepath.Dir(m)
		if synced[dir] {
			continue
		}
		synced[dir] = true
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	return nil
}
