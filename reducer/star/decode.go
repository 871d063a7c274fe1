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
	d.r = *canon.NewReader(data)
	v, err := d.value(0)
	if err == nil {
		err = d.r.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

func (d *decoder) value(depth int) (starlark.Value, error) {
	switch d.r.Kind() {
	case canon.KindNull:
		d.r.Null()
		return starlark.None, nil
	case canon.KindBool:
		return starlark.Bool(d.r.Bool()), d.r.Err()
	case canon.KindInt:
		return d.integer()
	case canon.KindFloat:
		return starlark.Float(d.r.Float()), d.r.Err()
	case canon.KindText:
		b := d.r.TextBytes()
		return starlark.String(b), d.paid(uint64(len(b)))
	case canon.KindBytes:
		b := d.r.Bytes()
		return starlark.Bytes(b), d.paid(uint64(len(b)))
	case canon.KindArray:
		return d.list(depth)
	case canon.KindMap:
		return d.dict(depth)
	default:
		d.r.Raw() // finds out what is wrong
		return nil, d.r.Close()
	}
}

// paid charges for n bytes, after what was read turned out to be right.
func (d *decoder) paid(n uint64) error {
	if err := d.r.Err(); err != nil {
		return err
	}
	return d.m.takeMemory(n)
}

func (d *decoder) integer() (starlark.Value, error) {
	small, wide := d.r.Int()
	switch {
	case d.r.Err() != nil:
		return nil, d.r.Err()
	case wide == nil:
		return starlark.MakeInt64(small), nil
	case wide.BitLen() > MaxIntBits:
		return &wideInt{n: wide}, d.paid(uint64(wide.BitLen()) / 8)
	}
	return starlark.MakeBigInt(wide), nil
}

func (d *decoder) list(depth int) (starlark.Value, error) {
	n := d.r.Array()
	if err := d.open(depth, uint64(n)*slotBytes+tableBytes/8); err != nil {
		return nil, err
	}
	items := make([]starlark.Value, n)
	for i := range items {
		var err error
		if items[i], err = d.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return starlark.NewList(items), nil
}

// open charges for a container of n bytes at the given depth.
func (d *decoder) open(depth int, n uint64) error {
	if depth >= canon.MaxDepth {
		return d.m.exceed("a value nested deeper than %d", canon.MaxDepth)
	}
	return d.paid(n)
}

func (d *decoder) dict(depth int) (starlark.Value, error) {
	n := d.r.Map()
	if err := d.open(depth, uint64(n)*entryBytes+tableBytes); err != nil {
		return nil, err
	}
	dict := starlark.NewDict(n)
	if err := d.m.spend(uint64(n)); err != nil {
		return nil, err
	}
	for range n {
		b := d.r.TextBytes()
		if err := d.paid(uint64(len(b))); err != nil {
			return nil, err
		}
		key := d.word(b)
		if err := d.m.insert(dict, key); err != nil {
			return nil, err
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if err := dict.SetKey(key, v); err != nil {
			return nil, err
		}
	}
	return dict, nil
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
