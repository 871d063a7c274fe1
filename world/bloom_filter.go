package world

// BloomFilter is a set of things, each of them a hash, that says of few others that they are in it: Bloom filters
// whose bits for one thing are in one word (Putze, Sanders, Singler, Cache-, hash- and space-efficient
// Bloom filters, 2007), each twice as large as the one before, of 16 bits a thing. To ask waits for
// memory once for each that does not fit a cache, and for all of these at the same time. What it
// answers costs time when it is wrong, and changes nothing. The zero value is empty.
type BloomFilter struct {
	layers [][]uint64
	room   int // in the last layer
}

// firstLayer is how many cells the first layer has room for. Layers have a power of two of words.
const firstLayer = 1 << 16

// Add adds what has a hash. What is there already takes no room again: things leave memory, come
// back and leave it as long as a world runs.
func (s *BloomFilter) Add(hash uint64) {
	if s.Has(hash) {
		return
	}
	if s.room == 0 {
		s.room = firstLayer << len(s.layers)
		s.layers = append(s.layers, make([]uint64, s.room*16/64))
	}
	s.room--
	bits := s.layers[len(s.layers)-1]
	bits[hash&uint64(len(bits)-1)] |= bitsOf(hash)
}

// Has reports whether what has a hash is there, or perhaps.
func (s *BloomFilter) Has(hash uint64) bool {
	want := bitsOf(hash)
	for _, bits := range s.layers {
		if bits[hash&uint64(len(bits)-1)]&want == want {
			return true
		}
	}
	return false
}

// bitsOf returns the bits of a word that stand for a hash, five at most. Which word it is, its low bits say.
func bitsOf(hash uint64) uint64 {
	hash *= 0x9e3779b97f4a7c15 // Fibonacci hashing: its high bits depend on all
	return 1<<(hash>>58) | 1<<(hash>>52&63) | 1<<(hash>>46&63) | 1<<(hash>>40&63) | 1<<(hash>>34&63)
}
