package star

import (
	"fmt"
	"math/big"

	"go.starlark.net/starlark"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
)

// Bounds of the words that a decoder keeps.
const (
	maxWords     = 4096
	maxWordBytes = 32
)

// decoder turns canonical bytes into values that nothing else holds. What it
// makes is charged to the meter. It keeps the words that it sees as keys, so
// that the fields of a state are allocated once.
type decoder struct {
	m     *meter
	words map[string]starlark.Value
	r     canon.Reader
}

// decode returns the value that data stands for; empty data is None. name is
// what errors call it.
func (d *decoder) decode(name string, data reducer.Data) (starlark.Value, error) {
	if len(data) == 0 {
		return starlark.None, nil
	}
	defer d.m.prefix(func(err error) error { return fmt.Errorf("%s: %w", name, err) })
	d.r = *canon.NewReader(data)
	v := d.value(0)
	if err := d.r.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// value returns the next value. What it returns after an error of the reader, which keeps it, is nothing.
func (d *decoder) value(depth int) starlark.Value {
	switch d.r.Kind() {
	case canon.KindBool:
		return starlark.Bool(d.r.Bool())
	case canon.KindInt:
		return d.integer()
	case canon.KindFloat:
		return starlark.Float(d.r.Float())
	case canon.KindText:
		b := d.r.TextBytes()
		d.m.takeMemory(uint64(len(b)))
		return starlark.String(b)
	case canon.KindBytes:
		b := d.r.Bytes()
		d.m.takeMemory(uint64(len(b)))
		return starlark.Bytes(b)
	case canon.KindArray:
		return d.list(depth)
	case canon.KindMap:
		return d.dict(depth)
	default: // null, or what the reader finds wrong
		d.r.Raw()
		return starlark.None
	}
}

func (d *decoder) integer() starlark.Value {
	small, wide := d.r.Int()
	switch {
	case wide == nil:
		return starlark.MakeInt64(small)
	case wide.BitLen() > MaxIntBits:
		d.m.takeMemory(uint64(wide.BitLen()) / 8)
		return &wideInt{n: wide}
	}
	return starlark.MakeBigInt(wide)
}

func (d *decoder) list(depth int) starlark.Value {
	n := d.r.Array()
	d.open(depth, uint64(n)*slotBytes+tableBytes/8)
	items := make([]starlark.Value, n)
	for i := range items {
		items[i] = d.value(depth + 1)
	}
	return starlark.NewList(items)
}

// open charges for a container of n bytes at the given depth.
func (d *decoder) open(depth int, n uint64) {
	if depth >= canon.MaxDepth {
		d.m.exceed("a value nested deeper than %d", canon.MaxDepth)
	}
	d.m.takeMemory(n)
}

func (d *decoder) dict(depth int) starlark.Value {
	n := d.r.Map()
	d.open(depth, uint64(n)*entryBytes+tableBytes)
	dict := starlark.NewDict(n)
	d.m.spend(uint64(n))
	for range n {
		b := d.r.TextBytes()
		d.m.takeMemory(uint64(len(b)))
		key := d.word(b)
		d.m.insert(dict, key)
		if err := dict.SetKey(key, d.value(depth+1)); err != nil {
			panic(err) // a text can be a key, and nobody else has the dict
		}
	}
	return dict
}

// word returns b as a string value.
func (d *decoder) word(b []byte) starlark.Value {
	if v, ok := d.words[string(b)]; ok {
		return v
	}
	v := starlark.Value(starlark.String(b))
	if len(b) <= maxWordBytes && len(d.words) < maxWords {
		if d.words == nil {
			d.words = make(map[string]starlark.Value)
		}
		d.words[string(b)] = v
	}
	return v
}

// wideInt is an integer of more than MaxIntBits bits: it can be passed on and
// compared, and that is all.
type wideInt struct{ n *big.Int }

// String returns a description, because the digits could be a megabyte.
func (w *wideInt) String() string { return fmt.Sprintf("<integer of %d bits>", w.n.BitLen()) }

// Type returns a name of its own, so that the library does not take it for an int.
func (w *wideInt) Type() string { return "wide int" }

// Freeze does nothing: a wideInt never changes.
func (w *wideInt) Freeze() {}

// Truth is true: a wideInt is not 0.
func (w *wideInt) Truth() starlark.Bool { return true }

// Hash refuses.
func (w *wideInt) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: wide int") }

// Cmp compares two of them.
func (w *wideInt) Cmp(v starlark.Value, _ int) (int, error) { return w.n.Cmp(v.(*wideInt).n), nil }
