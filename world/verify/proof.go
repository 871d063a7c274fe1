package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// Proof is a file that proves one fact of a world to a stranger: a record, a receipt, a cell's
// state, or a common history of two heads. It is a JSON object; byte strings are standard base64,
// hashes of the Merkle tree too, others are hex, and "checkpoint" and "older" are the signed notes
// as package checkpoint writes them. There are three sorts:
//
//	a record   schema, world, record, bytes, [payload,] inclusion, checkpoint, signers
//	a cell     the same of a snapshot.created, and cell
//	two heads  schema, world, checkpoint, signers, older, consistency
//
// Nothing else may stand in it, every value has one form, and no key comes twice;
// the order of keys and white space are free.
//
// Whoever checks one computes that the record's leaf with "inclusion" gives the root
// in "checkpoint" (RFC 6962 section 2.1.1, the leaf's index is record - 1), or that
// the root in "older" with "consistency" does (section 2.1.2); that the payload has
// the hash in the record; that the leaf of a cell with "proof" gives the record's
// state root; and that signatures are those of keys that they believe.
type Proof struct {
	Schema string `json:"schema"` // ProofSchema
	World  string `json:"world"`  // its id at the checkpoint

	Record    journal.Seq      `json:"record,omitempty"`
	Bytes     []byte           `json:"bytes,omitempty"`    // of the record, as they are stored
	Payload   []byte           `json:"payload,omitempty"`  // where it is a blob; left out where it is not to be shown
	Inclusion tlog.RecordProof `json:"inclusion,omitzero"` // of tlog.ProveRecord

	Checkpoint string   `json:"checkpoint"`
	Signers    []string `json:"signers"` // public keys, as checkpoint.FormatKey writes them; each has signed a checkpoint in here

	Cell *ProofOfCell `json:"cell,omitempty"`

	Older       string         `json:"older,omitempty"`
	Consistency tlog.TreeProof `json:"consistency,omitzero"` // of tlog.ProveTree
}

// ProofOfCell leads from the state root of a snapshot to one cell.
type ProofOfCell struct {
	Name    string          `json:"name"`
	Present bool            `json:"present"`         // false: there is no such cell, nor leaf and state
	Leaf    *world.CellLeaf `json:"leaf,omitempty"`  // what the state root is of
	State   []byte          `json:"state,omitempty"` // canonical CBOR; left out where the cell has none
	Proof   []byte          `json:"proof"`           // of snapshot.StateProof
}

// ProofSchema is what a Proof says of its format.
const ProofSchema = "worldkernel/proof/v1"

// MaxProofBytes is the greatest size of a proof: of the largest payload or state that
// a manifest allows, and what stands around it.
const MaxProofBytes = 128 << 20

const maxSigners = 256

// ErrNotProof says that bytes are no proof, whatever it would be worth.
var ErrNotProof = errors.New("verify: not a proof")

// Encode returns the JSON of p, under the schema of this version. The errors are
// ErrNotProof, naming the part that is missing or too much.
func (p Proof) Encode() ([]byte, error) {
	p.Schema = ProofSchema
	if p.Signers == nil {
		p.Signers = []string{}
	}
	if err := p.shape(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("verify: proof: %w", err)
	}
	if len(data) > MaxProofBytes {
		return nil, errProofSize()
	}
	return data, nil
}

// DecodeProof is the inverse of Encode. All its errors are ErrNotProof. What the
// proof is worth, CheckProof says.
func DecodeProof(data []byte) (*Proof, error) {
	if len(data) > MaxProofBytes {
		return nil, errProofSize()
	}
	p := new(Proof)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields() // before the two are compared: it can have millions
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProof, canon.PlainJSON(err))
	}
	given, err := canon.FromJSON(data) // no key twice, and nothing behind it
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProof, err)
	}
	again, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProof, err)
	}
	read, err := canon.FromJSON(again)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotProof, err)
	}
	if other := canon.Changes(given, read); len(other) > 0 {
		return nil, fmt.Errorf("%w: %s: it is unknown, missing, or not written as it has to be", ErrNotProof, other[0].Path)
	}
	if err := p.shape(); err != nil {
		return nil, err
	}
	return p, nil
}

func errProofSize() error { return fmt.Errorf("%w: more than %d bytes", ErrNotProof, MaxProofBytes) }

// shape checks that a proof has the parts of its sort and no others.
func (p *Proof) shape() error {
	pair := p.Older != ""
	for _, x := range []struct {
		part string
		fits bool
	}{
		{"schema", p.Schema == ProofSchema},
		{"world", p.World != ""},
		{"record", (p.Record == 0) == pair},
		{"bytes", (len(p.Bytes) == 0) == pair},
		{"payload", len(p.Payload) == 0 || !pair},
		{"inclusion", (p.Inclusion == nil) == pair},
		{"checkpoint", p.Checkpoint != ""},
		{"signers", p.Signers != nil && len(p.Signers) <= maxSigners},
		{"cell", p.Cell == nil || !pair},
		{"consistency", (p.Consistency != nil) == pair},
	} {
		if !x.fits {
			return fmt.Errorf("%w: %s: it is missing, too much, or another version's", ErrNotProof, x.part)
		}
	}
	return nil
}
