package star

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
)

// encoder appends values to buf as canonical bytes.
type encoder struct {
	m     *meter
	buf   []byte
	start int    // where the value begins in buf
	limit uint64 // bytes
	items uint64 // so far
	name  string // of the limit
}

// pathError is a fault in a value, with the way to it: ".items[3].price".
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }

func (e *pathError) Unwrap() error { return e.err }

// prefixPath puts a step in front of the path of err.
func prefixPath(step string, err error) error {
	if fault, ok := errors.AsType[*pathError](err); ok {
		return &pathError{path: step + fault.path, err: fault.err}
	}
	return &pathError{path: step, err: err}
}

// encode appends v to buf and charges for it. what is what errors call the
// value, and limit, in bytes, the limit of that name.
func (e *encoder) encode(buf []byte, what string, v starlark.Value, limit uint64, name string) ([]byte, error) {
	e.buf, e.start, e.limit, e.name, e.items = buf, len(buf), limit, name, 0
	err := e.value(v, 0)
	if err == nil {
		err = e.room(0)
	}
	if err != nil {
		err = prefixPath(what, err)
		if errors.Is(err, reducer.ErrLimit) {
			e.m.end(err)
		}
		return nil, err
	}
	e.m.spend(e.items / 2)
	e.m.takeMemory(uint64(len(e.buf) - e.start))
	return e.buf, nil
}

// room refuses a value that n more bytes make too large.
func (e *encoder) room(n int) error {
	if size := uint64(len(e.buf) - e.start + n); size > e.limit {
		return limitError("%d bytes or more, %s is %d", size, e.name, e.limit)
	}
	return nil
}

func (e *encoder) value(v starlark.Value, depth int) error {
	if err := e.room(1); err != nil {
		return err
	}
	e.items++
	switch v := v.(type) {
	case starlark.NoneType:
		e.buf = canon.AppendNull(e.buf)
	case starlark.Bool:
		e.buf = canon.AppendBool(e.buf, bool(v))
	case starlark.Int:
		if n, ok := v.Int64(); ok {
			e.buf = canon.AppendInt(e.buf, n)
		} else {
			e.buf = canon.AppendBig(e.buf, v.BigInt())
		}
	case *wideInt:
		e.buf = canon.AppendBig(e.buf, v.n)
	case starlark.Float:
		b, err := canon.AppendFloat(e.buf, float64(v))
		if err != nil {
			return errors.New("a float that is " + v.String() + " has no canonical form")
		}
		e.buf = b
	case starlark.String:
		return e.text(string(v))
	case starlark.Bytes:
		if err := e.room(len(v)); err != nil {
			return err
		}
		e.buf = canon.AppendBytes(e.buf, []byte(v))
	case *starlark.List, starlark.Tuple:
		return e.list(v.(starlark.Indexable), depth)
	case *starlark.Dict:
		return e.dict(v, depth)
	default:
		return fmt.Errorf("a %s is no data: use None, bool, int, float, string, bytes, list, tuple or dict", v.Type())
	}
	return nil
}

func (e *encoder) text(s string) error {
	if err := e.room(len(s)); err != nil {
		return err
	}
	if !utf8.ValidString(s) {
		return errors.New("a string that is not UTF-8; use bytes")
	}
	e.buf = canon.AppendText(e.buf, s)
	return nil
}

func (e *encoder) open(depth int) error {
	if depth >= canon.MaxDepth {
		return limitError("a value nested deeper than %d", canon.MaxDepth)
	}
	return nil
}

func (e *encoder) list(v starlark.Indexable, depth int) error {
	if err := e.open(depth); err != nil {
		return err
	}
	n := v.Len()
	e.buf = canon.AppendArray(e.buf, n)
	for i := range n {
		if err := e.value(v.Index(i), depth+1); err != nil {
			return prefixPath("["+strconv.Itoa(i)+"]", err)
		}
	}
	return nil
}

// dict appends the pairs as they stand when their keys are in order, which they
// are in a dict that was decoded, and sorts them otherwise.
func (e *encoder) dict(v *starlark.Dict, depth int) error {
	if err := e.open(depth); err != nil {
		return err
	}
	start := len(e.buf)
	e.buf = canon.AppendMap(e.buf, v.Len())
	last, first, sorted := "", true, true
	for k, x := range v.Entries() {
		key, err := keyOf(k)
		if err != nil {
			return err
		}
		if sorted = first || before(last, key); !sorted {
			break
		}
		last, first = key, false
		if err := e.pair(key, x, depth); err != nil {
			return err
		}
	}
	if sorted {
		return nil
	}
	e.buf = canon.AppendMap(e.buf[:start], v.Len())
	return e.sortedPairs(v, depth)
}

func (e *encoder) sortedPairs(v *starlark.Dict, depth int) error {
	type pair struct {
		key string
		v   starlark.Value
	}
	pairs := make([]pair, 0, v.Len())
	for k, x := range v.Entries() {
		key, err := keyOf(k)
		if err != nil {
			return err
		}
		pairs = append(pairs, pair{key, x})
	}
	e.items += uint64(len(pairs) * bits.Len(uint(len(pairs))) / 2)
	slices.SortFunc(pairs, func(a, b pair) int {
		if before(a.key, b.key) {
			return -1
		}
		return 1 // the keys of a dict are distinct
	})
	for _, p := range pairs {
		if err := e.pair(p.key, p.v, depth); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) pair(key string, v starlark.Value, depth int) error {
	if err := e.text(key); err != nil {
		return prefixPath("."+key, err)
	}
	if err := e.value(v, depth+1); err != nil {
		return prefixPath("."+key, err)
	}
	return nil
}

func keyOf(k starlark.Value) (string, error) {
	if key, ok := k.(starlark.String); ok {
		return string(key), nil
	}
	return "", fmt.Errorf("a key that is %s, not string", k.Type())
}

// before is the order of encoded text keys (RFC 8949 section 4.2.1): the length
// is in the first bytes, so shorter ones come first.
func before(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return strings.Compare(a, b) < 0
}
