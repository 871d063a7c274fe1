package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Diff returns the patch that makes b of a, with no op that it could do without,
// sorted by path. It goes as deep as maps go on both sides; of lists of one
// length it sets the items that differ, each as a whole, and of others the whole
// list. The version is left to NewVersion. The error says that one of the two
// has no bytes, or wraps ErrBadPatch where they differ in more than MaxPatchOps
// places.
func Diff(a, b *Manifest) (Patch, error) {
	base, from, err := a.tree()
	if err != nil {
		return Patch{}, err
	}
	_, to, err := b.tree()
	if err != nil {
		return Patch{}, err
	}
	p := Patch{Base: base, Ops: []Op{}}
	if a.Version != b.Version {
		version := b.Version
		p.NewVersion = &version
	}
	delete(from.(map[string]any), "version")
	delete(to.(map[string]any), "version")
	d := differ{ops: p.Ops}
	d.diff("", from, to)
	if d.err != nil {
		return Patch{}, fmt.Errorf("manifest: %w", d.err)
	}
	p.Ops = d.ops
	slices.SortFunc(p.Ops, func(a, b Op) int { return cmp.Compare(a.Path, b.Path) })
	if err := p.check(); err != nil {
		return Patch{}, err
	}
	return p, nil
}

// differ gathers ops, and the first error.
type differ struct {
	ops []Op
	err error
}

func (d *differ) diff(path string, from, to any) {
	switch f := from.(type) {
	case map[string]any:
		if t, ok := to.(map[string]any); ok {
			d.maps(path, f, t)
			return
		}
	case []any:
		if t, ok := to.([]any); ok && len(f) == len(t) {
			for i := range f {
				d.value(path+"/"+strconv.Itoa(i), f[i], t[i])
			}
			return
		}
	}
	d.value(path, from, to)
}

func (d *differ) maps(path string, from, to map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		at := path + "/" + escape(name)
		if value, ok := to[name]; ok {
			d.diff(at, from[name], value)
		} else {
			d.ops = append(d.ops, Op{Op: OpRemove, Path: at})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if _, ok := from[name]; !ok {
			d.set(path+"/"+escape(name), to[name])
		}
	}
}

// value sets what is at path as a whole, where it differs.
func (d *differ) value(path string, from, to any) {
	if !reflect.DeepEqual(from, to) {
		d.set(path, to)
	}
}

func (d *differ) set(path string, value any) {
	encoded, err := canon.Marshal(value)
	if err != nil && d.err == nil {
		d.err = err
	}
	d.ops = append(d.ops, Op{Op: OpSet, Path: path, Value: encoded})
}
