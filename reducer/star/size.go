package star

import (
	"math"

	"go.starlark.net/starlark"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// sizer adds up the sizes of values as trees: what is reached twice counts
// twice, as it does for printing, comparing and hashing.
type sizer struct {
	m    *meter
	left int64 // bytes that may still be added
	flat bool  // tuples and scalars only: what can be part of a key
	text bool  // what is printed must be an integer that has digits

	extra uint64 // steps
}

func (m *meter) sizer() sizer { return sizer{m: m, left: int64(min(m.value, math.MaxInt64))} }

// pay ends the sizing: it charges for the walk.
func (s *sizer) pay() {
	n := uint64(int64(min(s.m.value, math.MaxInt64)) - s.left)
	s.m.spend(n/slotBytes + s.extra)
}

func (s *sizer) takeBytes(n int) {
	if s.left -= int64(n); s.left < 0 {
		s.m.exceed("a value of more than %d bytes with all that it holds, limits.value is %d", s.m.value, s.m.value)
	}
}

// add adds v, which stands at the given depth.
func (s *sizer) add(v starlark.Value, depth int) {
	if depth > canon.MaxDepth {
		s.m.exceed("a value nested deeper than %d", canon.MaxDepth)
	}
	s.extra += uint64(sizeOf(v)) / slotBytes
	n := slotBytes
	switch v := v.(type) {
	case starlark.Int:
		if _, ok := v.Int64(); !ok {
			n += v.BigInt().BitLen() / 3 // decimal digits, and some
		}
	case *wideInt:
		if s.text {
			s.m.width(v.n.BitLen())
			return
		}
		n += v.n.BitLen() / 8
	case starlark.Tuple:
		s.sizeAll(v, depth)
		return
	case *starlark.List, *starlark.Set:
		if !s.flat {
			s.sizeAll(v.(starlark.Iterable), depth)
			return
		}
	case *starlark.Dict:
		if !s.flat {
			s.pairs(v, depth)
			return
		}
	default:
		n += max(starlark.Len(v), 0) // strings, bytes, views of strings, ranges
	}
	s.takeBytes(n)
}

func (s *sizer) sizeAll(v starlark.Iterable, depth int) {
	s.extra += uint64(depth) / 4 // what prints looks whether it has been here
	s.takeBytes(slotBytes)
	for x := range starlark.Elements(v) {
		s.add(x, depth+1)
	}
}

func (s *sizer) pairs(v *starlark.Dict, depth int) {
	s.extra += uint64(depth) / 4
	s.takeBytes(slotBytes)
	for k, x := range v.Entries() {
		s.add(k, depth+1)
		s.add(x, depth+1)
	}
}

// deep charges for walking v as a tree.
func (m *meter) deep(v starlark.Value) {
	s := m.sizer()
	s.add(v, 0)
	s.pay()
}

// tuple holds a tuple that was just made to the rule that hashing and printing
// rest on: as a tree of tuples it is no larger and no deeper than a value may be.
func (m *meter) tuple(t starlark.Tuple) {
	m.takeMemory(uint64(len(t)+2) * slotBytes)
	m.retain(t...)
	plain := len(t) <= 8
	for _, x := range t {
		if !plain {
			break
		}
		switch x.(type) {
		case starlark.Tuple:
			plain = false
		case starlark.String, starlark.Bytes:
			plain = starlark.Len(x) < bytesReadPerStep
		}
	}
	if plain {
		return
	}
	s := m.sizer()
	s.flat = true
	s.add(t, 0)
	s.pay()
}
