package kit

import "math/bits"

// Stream is a [Source] that depends on an integer alone: for what is alike in many cells or
// worlds, such as a network. It is SplitMix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014), and no secret to anybody.
type Stream struct{ state uint64 }

// NewStream returns the stream of a seed.
func NewStream(seed int64) *Stream { return &Stream{uint64(seed)} }

// Random returns a number in [0, n), each equally likely: it keeps the lowest bits that
// n-1 needs, and draws again when they are n or more. It returns 0 where n is 0.
func (s *Stream) Random(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	mask := uint64(1)<<bits.Len64(n-1) - 1
	for {
		if v := s.next() & mask; v < n {
			return v
		}
	}
}

func (s *Stream) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
