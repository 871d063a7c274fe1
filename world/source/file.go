package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// file decodes the path of a file and reads it. It returns the path cleaned,
// and no data after a fault.
func (d *decoder) file(n *yaml.Node, maxBytes int64) (string, []byte) {
	var name string
	if d.text(&name)(n); d.refused[n] {
		return "", nil
	}
	clean := path.Clean(name)
	if name == "" || !isSource(clean) {
		d.refuse(n, "%s", notASource(name))
		return "", nil
	}
	data, err := d.readFile(clean, maxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.refuse(n, "there is no file %q", name)
	case err != nil:
		d.refuse(n, "%s", err)
	case int64(len(data)) > maxBytes:
		d.refuse(n, "the file %q is larger than %d bytes", name, maxBytes)
		return "", nil
	}
	return clean, data
}

// isSource reports whether a clean path is one of a file in the directory of the world
// file, and of none that the world keeps there for itself.
func isSource(clean string) bool {
	first, _, _ := strings.Cut(clean, "/")
	return fs.ValidPath(clean) && clean != "." && !strings.HasPrefix(first, ".world")
}

func notASource(name string) error {
	return fmt.Errorf("%q is not the path of a file in the directory of the world file, beside .world", name)
}

// readFile reads a file in the directory of the world file, as readAtMost does.
func (d *decoder) readFile(name string, maxBytes int64) ([]byte, error) {
	if d.opened != nil {
		d.opened(name)
	}
	return readAtMost(d.fsys, name, maxBytes)
}

// readAtMost returns a regular file, and where it has more than maxBytes one byte
// more than those; the result is not nil without an error.
func readAtMost(fsys fs.FS, name string, maxBytes int64) ([]byte, error) {
	// Opening a pipe would wait for its writer.
	info, err := fs.Stat(fsys, name)
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		at.Op = "open" // and not the name of a call of the system
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// keep makes data a content of the manifest and returns its name.
func (d *decoder) keep(data []byte) manifest.Hash {
	h := canon.Sum(data)
	d.contents[h] = data
	return h
}
