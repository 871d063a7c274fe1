package world

import (
	"github.com/worldkernel/worldkernel/reducer"
)

// Seen is a set of things, each of them a hash, that says of few others that they are in it: Bloom filters (Bloom,
// Space/time trade-offs in hash coding with allowable errors, 1970), each twice as large as the
// one before, of 16 bits each. What it answers costs time when it is wrong, and changes nothing.
// The zero value is empty.
type Seen struct {
	layers [][]uint64
	room   int // in the last layer
}

// firstLayer is how many cells the first layer has room for. Layers have a power of two of bits.
const firstLayer = 1 << 16

// Add adds what has a hash. What is there already takes no room again: things leave memory, come
// back and leave it as long as a world runs.
func (s *Seen) Add(hash uint64) {
	if s.Has(hash) {
		return
	}
	if s.room == 0 {
		s.room = firstLayer << len(s.layers)
		s.layers = append(s.layers, make([]uint64, s.room*16/64))
	}
	s.room--
	bits := s.layers[len(s.layers)-1]
	for _, at := range places(hash) {
		at %= uint64(len(bits)) * 64
		bits[at/64] |= 1 << (at % 64)
	}
}

// Has reports whether what has a hash is there, or perhaps.
func (s *Seen) Has(hash uint64) bool {
	at := places(hash)
	for _, bits := range s.layers {
		all := true
		for _, at := range at {
			at %= uint64(len(bits)) * 64
			all = all && bits[at/64]&(1<<(at%64)) != 0
		}
		if all {
			return true
		}
	}
	return false
}

// places returns which bits stand for a hash, to be taken modulo their number.
func places(hash uint64) (out [6]uint64) {
	step := hash>>32 | 1 // Kirsch and Mitzenmacher, Less hashing, same performance, 2006
	for i := range out {
		out[i] = hash + uint64(i)*step
	}
	return out
}

// hashOf returns what stands for a cell in a Seen.
func hashOf(id reducer.Cell) uint64 { return hashOfText(id.Reducer, "/", id.Key) }

func hashOfText(parts ...string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, RFC 9923
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	return h ^ h>>29 // its low bits are those of the last bytes
}
