package local

import (
	"errors"

	"github.com/worldkernel/worldkernel/receipt"
)

// Look opens the world in a directory to be read, in no other process meanwhile.
// What would change it is refused with ErrNoKeys; what a crash left half-done
// stays so; and a fork does not need the world whose recordings answer its
// effects.
func Look(dir string, opts Options) (*World, error) {
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	cfg := lw.config() // verifies with the world's keys
	if lw.keys, err = receipt.NewKeyring(lw.keys.World(), nil); err == nil {
		err = lw.load(cfg)
	}
	if err != nil {
		return nil, errors.Join(err, lw.abandon())
	}
	return lw, nil
}
