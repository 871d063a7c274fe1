package verify

import (
	"encoding/binary"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// aside is where that lies which is known of intents that have ended, beyond the bound of
// memory: in a spill beside the replay's. A journal may name any of them again, and then it is
// read back, so that nothing shows of it in what is found.
type aside struct {
	open func() (world.Spill, error) // nil: all stays in memory
	most int                         // so many intents may be in memory
	full int                         // beyond so many putAside looks for what can leave

	spill  world.Spill       // nil: nothing has left yet
	left   world.BloomFilter // what has
	images journal.Seq       // of what has left, so many
}

// invocationBytes is about what an intent takes in memory.
const invocationBytes = 350

// asideAtOnce is how many intents leave in one image.
const asideAtOnce = 1 << 14

// newAside takes a quarter of the memory that there is, and leaves the others to the replay.
func newAside(s *world.Spilling) aside {
	ours := s.Memory / 4
	s.Memory -= ours
	return aside{open: s.Spill, most: ours / invocationBytes, full: ours / invocationBytes}
}

// close removes what was put aside.
func (a *aside) close() error {
	if a.spill == nil {
		return nil
	}
	return a.spill.Close()
}

// leave puts intents aside.
func (a *aside) leave(intents []journal.IntentVersion) (err error) {
	if len(intents) == 0 {
		return nil
	}
	if a.spill == nil {
		if a.spill, err = a.open(); err != nil {
			return err
		}
	}
	for _, x := range intents {
		a.left.Add(printOf(x.Key))
	}
	a.images++
	return a.spill.Checkpoint(&journal.Image{Head: journal.Head{ID: a.images}, Intents: intents})
}

// readInvocation returns an intent that has left, nil where none of that key has.
func (a *aside) readInvocation(key receipt.Key) (*invocation, error) {
	if a.spill == nil || !a.left.Has(printOf(key.Hash)) {
		return nil, nil
	}
	version, err := a.spill.IntentVersion(key.Hash, journal.Last)
	if err != nil || version == nil {
		return nil, err
	}
	x := &invocation{saved: true}
	return x, canon.UnmarshalTrusted(version.Bytes, x)
}

// printOf returns what stands for a key in world.BloomFilter.
func printOf(key journal.Hash) uint64 { return binary.LittleEndian.Uint64(key[:]) }

// putAside has intents leave that have ended, where more are in memory than may be.
func (v *verifier) putAside() {
	a := &v.aside
	if a.open == nil || len(v.intents) <= a.full {
		return
	}
	var out []journal.IntentVersion
	for key, x := range v.intents { // order cannot show: each by itself
		if !x.rests() {
			continue
		}
		data, err := canon.Marshal(x)
		v.spilled(err)
		out = append(out, journal.IntentVersion{Key: key.Hash, First: !x.saved, Bytes: data})
		delete(v.intents, key)
		if len(out) == asideAtOnce {
			v.spilled(a.leave(out))
			out = nil
		}
	}
	v.spilled(a.leave(out))
	a.full = max(a.most, len(v.intents)+len(v.intents)/4)
}

// bring returns what is known of an intent that is not in memory: nothing, where it is new.
func (v *verifier) bring(key receipt.Key) *invocation {
	x, err := v.aside.readInvocation(key)
	v.spilled(err)
	if x == nil {
		v.known++
		x = &invocation{Place: v.known, Gone: v.gone}
	}
	return x
}

// spilled ends the verification where something could not be put aside or read back: what
// it finds from then on nobody gets to see.
func (v *verifier) spilled(err error) {
	if err != nil {
		v.stop(&world.SpillError{Err: err})
	}
}
