package source

import (
	"errors"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/manifest"
)

// Document reads a YAML file that is no world file as a world file is read: only what can
// be read in one way is accepted, and what is wrong is gathered with its place. After a
// fault its methods go on with the zero value. It is not safe for concurrent use.
type Document struct {
	d    *decoder
	root *yaml.Node
}

// NewDocument parses the only document in data; path names it in faults, and wants describes a
// missing document. Floats may stand anywhere, dates nowhere. The error is an *Error.
func NewDocument(path, wants string, data []byte) (*Document, error) {
	d := newDecoder(nil, path, data)
	d.wants = wants
	d.clock = manifest.Manifest{}.WithDefaults().Clock
	root := d.parse(data)
	if root == nil {
		return nil, d.err()
	}
	d.lint(root, nil, insideConfig)
	return &Document{d, root}, nil
}

// ReadDocument is NewDocument for a regular file of at most [MaxWorldBytes] bytes. The error
// is an *Error, or says that the file cannot be read.
func ReadDocument(path, wants string) (*Document, error) {
	data, err := file.ReadRegular(path, MaxWorldBytes)
	d := newDecoder(nil, path, nil)
	switch {
	case errors.Is(err, file.ErrIrregular):
		d.here(1, 1, "is not a regular file: want a file of YAML")
		return nil, d.err()
	case errors.Is(err, file.ErrSize):
		d.here(1, 1, tooLarge, MaxWorldBytes)
		return nil, d.err()
	case err != nil:
		return nil, err
	}
	return NewDocument(path, wants, data)
}

// Root returns the node of the whole document.
func (x *Document) Root() *yaml.Node { return x.root }

// Err returns what is wrong so far, as an *Error, or nil.
func (x *Document) Err() error { return x.d.err() }

// Fault records that something is wrong at a node.
func (x *Document) Fault(n *yaml.Node, format string, args ...any) {
	if !x.d.refused[n] {
		x.d.refuse(n, format, args...)
	}
}

// Refused reports whether a fault was recorded at a node.
func (x *Document) Refused(n *yaml.Node) bool { return x.d.refused[n] }

// Mapping reads a mapping whose keys are known; those that are not are faults.
func (x *Document) Mapping(n *yaml.Node, known map[string]func(*yaml.Node)) {
	x.d.mapping(n, known)
}

// Entries calls f for every key of a mapping, in the order of the file.
func (x *Document) Entries(n *yaml.Node, f func(key, value *yaml.Node)) { x.d.entries(n, f) }

// Items returns the items of a list.
func (x *Document) Items(n *yaml.Node) []*yaml.Node {
	return listed(x.d, n, func(item *yaml.Node) *yaml.Node { return item })
}

// Text returns what reads a text.
func (x *Document) Text(to *string) func(*yaml.Node) { return x.d.text(to) }

// Texts returns what reads a list of texts.
func (x *Document) Texts(to *[]string) func(*yaml.Node) { return x.d.texts(to) }

// Expression returns what reads the text of an expression, for which true and false need
// no quotes.
func (x *Document) Expression(to *string) func(*yaml.Node) { return x.d.expression(to) }

// Number returns what reads an integer from 0, of 64 bits.
func (x *Document) Number(to *uint64) func(*yaml.Node) { return x.d.number(to) }

// Count returns what reads an integer from 1, of 64 bits.
func (x *Document) Count(to *uint64) func(*yaml.Node) { return x.d.count(to) }

// Size returns what reads a number of bytes, at least 1, with a unit or without.
func (x *Document) Size(to *uint64) func(*yaml.Node) { return x.d.size(to) }

// Boolean returns what reads true or false.
func (x *Document) Boolean(to *bool) func(*yaml.Node) { return x.d.boolean(to) }

// Value reads any data: nil, bool, *big.Int, float64, string, []any and map[string]any.
func (x *Document) Value(n *yaml.Node) any { return x.d.value(n) }

// Data reads any data to canonical bytes.
func (x *Document) Data(n *yaml.Node) manifest.Data {
	data, err := canon.Marshal(x.d.value(n))
	if err != nil {
		x.Fault(n, "%s", err)
	}
	return data
}
