package snapshot

import (
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// ErrBadProof says that a proof is not one: its bytes are malformed, or it does
// not lead from the key to the root.
var ErrBadProof = errors.New("snapshot: bad proof")

const proofVersion = 1

// Proof proves, against a tree's root, a key's value or its absence. Tree.Prove makes it. The zero
// value proves nothing.
type Proof struct {
	_        struct{} `cbor:",toarray"`
	Version  uint64
	Siblings []Hash // the roots beside the key's way, from the top; at most 256
	Leaf     *Leaf  // at the way's end; nil: there is none
}

// Prove returns the proof that a key has its value in t, or that it is absent.
// It computes the root, if that is to be done.
func (t *Tree) Prove(key Hash) Proof {
	p := Proof{Version: proofVersion}
	end := t.find(&key)
	if len(t.path) > 0 {
		p.Siblings = make([]Hash, len(t.path))
	}
	for depth, r := range t.path {
		p.Siblings[depth] = t.root(t.node(r).kids[1-bit(&key, depth)])
	}
	if end < 0 {
		l := *t.leaf(end)
		p.Leaf = &l
	}
	return p
}

// Check returns the value that a key has in the tree with the given root, or
// that it is absent; the error is ErrBadProof where p shows neither. It
// believes nothing but the root.
func (p Proof) Check(root, key Hash) (value Hash, present bool, err error) {
	if err := p.validate(); err != nil {
		return Hash{}, false, err
	}
	var at Hash
	if p.Leaf != nil {
		if shared(&p.Leaf.Key, &key) < len(p.Siblings) {
			return Hash{}, false, fmt.Errorf("%w: its leaf is not in the key's way", ErrBadProof)
		}
		at = p.Leaf.root()
	}
	for depth := len(p.Siblings) - 1; depth >= 0; depth-- {
		if bit(&key, depth) == 0 {
			at = join(at, p.Siblings[depth])
		} else {
			at = join(p.Siblings[depth], at)
		}
	}
	if at != root {
		return Hash{}, false, fmt.Errorf("%w: it leads to root %s, not %s", ErrBadProof, at, root)
	}
	if p.Leaf == nil || p.Leaf.Key != key {
		return Hash{}, false, nil
	}
	return p.Leaf.Value, true, nil
}

func (p Proof) validate() error {
	if p.Version != proofVersion {
		return fmt.Errorf("%w: unknown version %d", ErrBadProof, p.Version)
	}
	if len(p.Siblings) > maxDepth {
		return fmt.Errorf("%w: it is %d deep, more than %d", ErrBadProof, len(p.Siblings), maxDepth)
	}
	return nil
}

// StateProof shows to whoever knows a world's state root what a cell was then.
// The three roots join to the state root, and Cell proves the cell's leaf under
// the first: its key is H of the cell's name, its value H of the cell's leaf,
// of which docs/journal-format.md says what is in it.
type StateProof struct {
	_         struct{} `cbor:",toarray"`
	Cells     Hash
	Mailboxes Hash
	Timers    Hash
	Cell      Proof
}

// Check returns the value that a cell's key has in the world with the given
// state root, or that there is no such cell; the error is ErrBadProof where p
// shows neither.
func (p StateProof) Check(stateRoot, key Hash) (value Hash, present bool, err error) {
	if at := StateRoot(p.Cells, p.Mailboxes, p.Timers); at != stateRoot {
		return Hash{}, false, fmt.Errorf("%w: it leads to state root %s, not %s", ErrBadProof, at, stateRoot)
	}
	return p.Cell.Check(p.Cells, key)
}

// Encode returns the canonical bytes of p.
func (p StateProof) Encode() ([]byte, error) { return canon.Marshal(p) }

// DecodeStateProof is the inverse of Encode. All its errors are ErrBadProof. What it
// returns is well formed; what it is worth, Check says.
func DecodeStateProof(data []byte) (StateProof, error) {
	var p StateProof
	if err := canon.Unmarshal(data, &p); err != nil {
		return StateProof{}, fmt.Errorf("%w: %w", ErrBadProof, err)
	}
	if err := p.Cell.validate(); err != nil {
		return StateProof{}, err
	}
	return p, nil
}
