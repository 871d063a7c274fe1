package world

import (
	"github.com/worldkernel/worldkernel/reducer"
)

// seen is a set of cells that says of few others that they are in it: Bloom filters (Bloom,
// Space/time trade-offs in hash coding with allowable errors, 1970), each twice as large as the
// one before, of 16 bits a cell. What it answers costs time when it is wrong, and changes nothing.
// The zero value is empty.
type seen struct {
	layers [][]uint64
	room   int // in the last layer
}

// firstLayer is how many cells the first layer has room for. Layers have a power of two of bits.
const firstLayer = 1 << 16

func (s *seen) add(id reducer.Cell) {
	if s.room == 0 {
		s.room = firstLayer << len(s.layers)
		s.layers = append(s.layers, make([]uint64, s.room*16/64))
	}
	s.room--
	bits := s.layers[len(s.layers)-1]
	for _, at := range s.places(id) {
		at %= uint64(len(bits)) * 64
		bits[at/64] |= 1 << (at % 64)
	}
}

func (s *seen) has(id reducer.Cell) bool {
	places := s.places(id)
	for _, bits := range s.layers {
		all := true
		for _, at := range places {
			at %= uint64(len(bits)) * 64
			all = all && bits[at/64]&(1<<(at%64)) != 0
		}
		if all {
			return true
		}
	}
	return false
}

// places returns which bits stand for a cell, to be taken modulo their number.
func (s *seen) places(id reducer.Cell) (out [6]uint64) {
	h := uint64(14695981039346656037) // FNV-1a, RFC 9923
	for _, part := range [...]string{id.Reducer, "/", id.Key} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	h ^= h >> 29      // its low bits are those of the last bytes
	step := h>>32 | 1 // Kirsch and Mitzenmacher, Less hashing, same performance, 2006
	for i := range out {
		out[i] = h + uint64(i)*step
	}
	return out
}
