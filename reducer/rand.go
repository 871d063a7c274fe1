package reducer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// Seed is where a step's randomness comes from.
type Seed struct {
	World uint64 // the manifest's seed
	Cell  Cell
	Step  uint64
}

// Rand is a source of randomness that is a fact of the journal: ChaCha8 (the
// generator of math/rand/v2) under the key
// SHA-256("worldkernel/rand/v1" ‖ world seed ‖ step ‖ cell), with the numbers as
// 8 bytes big-endian.
type Rand struct {
	src rand.ChaCha8
	key []byte // scratch
}

// New returns the generator of one step.
func (s Seed) New() *Rand {
	r := new(Rand)
	s.Begin(r)
	return r
}

// Begin makes r the generator of another step, in the same memory.
func (s Seed) Begin(r *Rand) {
	b := append(r.key[:0], "worldkernel/rand/v1"...)
	b = binary.BigEndian.AppendUint64(b, s.World)
	b = binary.BigEndian.AppendUint64(b, s.Step)
	b = append(append(append(b, s.Cell.Reducer...), '/'), s.Cell.Key...)
	r.key = b
	r.src.Seed(sha256.Sum256(b))
}

// Below returns a number in [0, n), each equally likely: it draws 64 bits,
// keeps the lowest that n-1 needs, and draws again when they are n or more.
// n must not be 0.
func (r *Rand) Below(n uint64) (uint64, error) {
	if n == 0 {
		return 0, fmt.Errorf("random: there is no number below 0")
	}
	mask := uint64(1)<<bits.Len64(n-1) - 1
	for {
		if v := r.src.Uint64() & mask; v < n {
			return v, nil
		}
	}
}
