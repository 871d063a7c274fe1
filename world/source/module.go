package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// modules reads what a file of a reducer loads, and what that loads, into its manifest
// and its code. Circles and bounds are the compiler's to report, once all is read.
func (d *decoder) modules(r *manifest.Reducer, code *star.Code, file string, source []byte) {
	loads, err := star.Loads(file, source)
	if err != nil {
		return // which the compiler says, too
	}
	for _, load := range loads {
		if code.Modules[load.Module] != nil || load.Module == code.File || len(code.Modules) > manifest.MaxModules {
			continue
		}
		data, err := d.module(load.Module)
		if err != nil {
			d.at(file, load.Line, load.Column, err.Error())
			continue
		}
		if r.Modules == nil {
			r.Modules = make(map[string]manifest.Hash)
		}
		r.Modules[load.Module], code.Modules[load.Module] = d.keep(data), data
		d.modules(r, code, load.Module, data)
	}
}

// module reads one module. It is not nil without an error.
func (d *decoder) module(name string) ([]byte, error) {
	if path.Clean(name) != name || !fs.ValidPath(name) || name == "." {
		return nil, fmt.Errorf("%q is not the path of a file in the directory of the world file", name)
	}
	data, err := read(d.fsys, name, MaxCodeBytes)
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
