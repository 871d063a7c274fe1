// Package source reads world.yaml, the form in which people write a manifest,
// and the files that it names.
//
// The file is one YAML document, a mapping. docs/world-yaml.md lists its keys, with
// their types, defaults and limits; what is not listed is refused.
//
// An integer is written in decimal. A size is an integer of bytes, or one with
// the unit B, KiB, MiB or GiB. A FILE is a path relative to the directory of
// world.yaml, which it cannot leave. A mapping or list may be left empty. The keys
// of approvers are part of the manifest; all other files are contents that it names.
//
// A config may hold any data, finite floats among it. The adapters recorded
// (cassette: FILE) and stub (either answers: FILE or script: FILE, Starlark)
// name files in their config, whose contents become part of the manifest. What
// http, file, exec, llm and mcp make of theirs is checked by the host.
//
// Of YAML, only what can be read in one way is accepted: no anchors, aliases,
// merge keys, tags, duplicate keys, keys that are not text, and, outside a
// config, no floats; no dates where no time is wanted.
package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// Greatest sizes of what is read, in bytes.
const (
	MaxWorldBytes   = 4 << 20  // world.yaml, and each Document
	MaxCodeBytes    = 1 << 20  // a Starlark source or a JSON Schema
	MaxContentBytes = 64 << 20 // any other file that world.yaml names
)

// Loaded is a manifest, valid and with its defaults filled in, and the contents
// that it names: exactly those of Manifest.Contents. No file names engines: the
// manifest has those of a new world.
type Loaded struct {
	Manifest *manifest.Manifest
	Contents map[manifest.Hash][]byte

	root *yaml.Node
}

// Place returns the line and column of what a JSON pointer into the manifest leads to, or of
// what is around it where the file leaves it out; 0 where l was not read from a file.
func (l *Loaded) Place(path string) (line, column int) {
	if l.root == nil {
		return 0, 0
	}
	place := l.root
	for n := l.root; path != ""; {
		var part string
		part, path, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
		key, value := child(n, unescape(part))
		if value == nil {
			break
		}
		if place, n = key, value; value.Kind == yaml.ScalarNode && !isNull(value) {
			place = value
		}
	}
	return place.Line, place.Column
}

// Amend is a world.Amendment: the file's manifest in the place of base, under the
// engines of that.
func (l *Loaded) Amend(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
	next := *l.Manifest
	next.Engines = base.Engines
	return &next, l.Contents, nil
}

// Option changes the behaviour of Load.
type Option func(*decoder)

// WithAdapter makes Load accept an adapter that the program registers itself,
// with whatever config. It takes the place of a built-in one of that name.
func WithAdapter(name string) Option {
	return func(d *decoder) { d.adapters[name] = nil }
}

// WithAnyAdapter makes Load accept adapters that nobody knows, with whatever config: for
// who performs nothing, or says himself what is missing.
func WithAnyAdapter() Option { return func(d *decoder) { d.anyAdapter = true } }

// WithCheck makes Load ask for more that is wrong with a manifest that is valid
// otherwise, so that it is reported with its place.
func WithCheck(check func(*Loaded) []manifest.Fault) Option {
	return func(d *decoder) { d.check = check }
}

// WithoutCode makes Load take schemas, Starlark and CEL without compiling them: for
// who compares the manifest with one whose code is known to be good.
func WithoutCode() Option { return func(d *decoder) { d.withoutCode = true } }

// Load reads a world file and all files named there. What is wrong with them is reported all at
// once, as an *Error; any other error says that the file itself cannot be read. Load is safe for
// concurrent use.
func Load(path string, options ...Option) (*Loaded, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read
	return load(root.FS(), path, options...)
}

// WithOpened has each file named, by its path in the directory of the world file, before it
// is read: also those that are not there, and where the file is not valid.
func WithOpened(opened func(name string)) Option {
	return func(d *decoder) { d.opened = opened }
}

// WithText makes Load take a text in the place of the one that the world file has.
func WithText(text []byte) Option { return func(d *decoder) { d.instead = text } }

// load is Load over fsys, which stands for the directory of path.
func load(fsys fs.FS, path string, options ...Option) (*Loaded, error) {
	d := newDecoder(fsys, path, nil)
	for _, option := range options {
		option(d)
	}
	data := d.instead
	if data == nil {
		var err error
		if data, err = readAtMost(fsys, filepath.Base(path), MaxWorldBytes); err != nil {
			return nil, fmt.Errorf("source: %s: %w", path, err)
		}
	}
	d.lines = strings.Split(string(data), "\n")
	root := d.parse(data)
	if root == nil {
		return nil, d.err()
	}
	d.lint(root, nil, outsideConfig)
	m := d.manifest(root).WithDefaults()
	m.Engines = world.NewestEngines()
	for _, f := range m.Validate() {
		d.invalid(root, f)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	loaded := &Loaded{Manifest: &m, Contents: d.contents, root: root}
	if err := d.checkNames(root, &m); err != nil {
		return nil, err
	}
	if d.check != nil {
		for _, f := range d.check(loaded) {
			d.invalid(root, f)
		}
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return loaded, nil
}
