package source

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// library holds the modules that worldctl brings along. Their text goes into manifests
// like that of any other, so that no world depends on which worldctl has which.
//
//go:embed library
var library embed.FS

// libraryPrefix begins the names of modules that are not the world's own.
const libraryPrefix = "@"

// errNoLibrary says that a module's name is none of the library's.
var errNoLibrary = errors.New("worldctl has no such module")

// libraryModule returns a module that worldctl brings along, by its name in load.
func libraryModule(name string) ([]byte, error) {
	file := "library/" + strings.TrimPrefix(name, libraryPrefix) + ".star"
	if data, err := library.ReadFile(file); err == nil {
		return data, nil
	}
	known := ""
	err := fs.WalkDir(library, "library", func(at string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			known += ", " + libraryPrefix + strings.TrimSuffix(strings.TrimPrefix(at, "library/"), ".star")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w as %q; there are: %s", errNoLibrary, name, strings.TrimPrefix(known, ", "))
}

// modules reads what a file of a reducer loads, and what that loads, into its manifest
// and its code. Circles and bounds are the compiler's to report, once all is read.
func (d *decoder) modules(reader reducer.Reader, r *manifest.Reducer, code *reducer.Code, file string, source []byte) {
	loads, err := reader.Loads(file, source)
	if err != nil {
		return // which the compiler says, too
	}
	for _, load := range loads {
		if code.Modules[load.Module] != nil || load.Module == code.File || len(code.Modules) > manifest.MaxModules {
			continue
		}
		data, err := d.module(load.Module)
		if err != nil {
			d.addFault(file, load.Line, load.Column, err.Error())
			continue
		}
		if r.Modules == nil {
			r.Modules = make(map[string]manifest.Hash)
		}
		r.Modules[load.Module], code.Modules[load.Module] = d.keep(data), data
		d.modules(reader, r, code, load.Module, data)
	}
}

// module reads one module. It is not nil without an error.
func (d *decoder) module(name string) ([]byte, error) {
	if strings.HasPrefix(name, libraryPrefix) {
		return libraryModule(name)
	}
	if path.Clean(name) != name || !isSource(name) {
		return nil, notASource(name)
	}
	data, err := d.readFile(name, MaxCodeBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %q", name)
	case err != nil:
		return nil, err
	case len(data) > MaxCodeBytes:
		return nil, fmt.Errorf("the file %q is larger than %d bytes", name, MaxCodeBytes)
	}
	return data, nil
}

// ReadCode reads a Starlark program from a file, which is named relative to a directory, and all modules
// that it loads. The error is an *Error where there is such a file.
func ReadCode(dir, named string) (reducer.Code, error) {
	file := named
	if !filepath.IsAbs(named) {
		file = filepath.Join(dir, named)
	}
	name := filepath.Base(file)
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return reducer.Code{}, fmt.Errorf("there is no file %q: %w", named, err)
	}
	defer root.Close() //nolint:errcheck // only read
	d := newDecoder(root.FS(), file, nil)
	code := reducer.Code{File: name, Modules: make(map[string][]byte)}
	source, err := d.readFile(name, MaxCodeBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return code, fmt.Errorf("there is no file %q", named)
	case err != nil:
		d.here(1, 1, "%s", err)
	case len(source) > MaxCodeBytes:
		d.here(1, 1, "is larger than %d bytes", MaxCodeBytes)
	default:
		code.Source = source
		d.modules(star.Engine{}, new(manifest.Reducer), &code, name, source)
	}
	return code, d.err()
}
