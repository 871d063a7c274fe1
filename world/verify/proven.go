package verify

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// Proven is what a proof shows. Where it is not OK it shows nothing, and only
// Faults is set.
type Proven struct {
	OK      bool     `json:"ok"`
	Trusted bool     `json:"trusted"` // someone whom the caller believes has signed every checkpoint in it
	Signers []string `json:"signers"` // of the checkpoint, as checkpoint.FormatKey writes them
	Faults  []Fault  `json:"faults"`  // the place is the part of the proof

	Kind  ProofKind `json:"kind,omitempty"`
	Says  string    `json:"says,omitempty"` // all of it in a few words
	World string    `json:"world_id,omitempty"`

	Checkpoint *checkpoint.Checkpoint `json:"checkpoint,omitempty"`
	Older      *checkpoint.Checkpoint `json:"older,omitempty"`

	Record  *ProvenRecord    `json:"record,omitempty"`
	Receipt *receipt.Receipt `json:"receipt,omitempty"` // in the record; its hash is that of what it says
	Cell    *ProvenCell      `json:"cell,omitempty"`
}

// ProofKind says what a proof is of.
type ProofKind string

// The kinds of proofs.
const (
	ProofReceipt     ProofKind = "receipt"     // a record that is a receipt
	ProofRecord      ProofKind = "record"      // any other record, or one whose payload is not shown
	ProofCell        ProofKind = "cell"        // what a cell was at a snapshot, or that it was not there
	ProofConsistency ProofKind = "consistency" // of two heads: the older one is of the same history
)

// ProvenRecord is a record that is in the history that was signed.
type ProvenRecord struct {
	ID          journal.Seq   `json:"id"`
	Time        manifest.Tick `json:"time"`
	Kind        journal.Kind  `json:"kind"`
	CausedBy    journal.Seq   `json:"caused_by"`
	Payload     journal.Body  `json:"payload,omitempty"`
	PayloadHash journal.Hash  `json:"payload_hash,omitzero"` // where the payload is a blob
}

// ProvenCell is what a cell was when a snapshot was made.
type ProvenCell struct {
	Name     string          `json:"name"`
	Present  bool            `json:"present"`
	Snapshot string          `json:"snapshot"`
	At       journal.Seq     `json:"at"` // after this record
	Leaf     *world.CellLeaf `json:"leaf,omitempty"`
	State    journal.Data    `json:"state,omitempty"` // left out where it has none
}

// CheckProof says what a proof shows to somebody who believes the owners of some
// keys. It reads nothing but data. The error says that data is no proof (ErrNotProof)
// or that a key is none (checkpoint.ErrBadKey); what does not hold is in Faults.
func CheckProof(data []byte, trust []ed25519.PublicKey) (*Proven, error) {
	if err := checkKeys(trust); err != nil {
		return nil, err
	}
	p, err := DecodeProof(data)
	if err != nil {
		return nil, err
	}
	c := &proofCheck{proof: p, trust: trust, out: Proven{World: p.World}}
	c.heads()
	if p.Older != "" {
		c.consistency()
	} else {
		c.record()
	}
	if len(c.faults) > 0 {
		return &Proven{Signers: []string{}, Faults: c.faults}, nil
	}
	c.out.OK, c.out.Faults = true, []Fault{}
	return &c.out, nil
}

type proofCheck struct {
	proof  *Proof
	trust  []ed25519.PublicKey
	signed []ed25519.PublicKey // who signed a checkpoint in it
	faults []Fault
	out    Proven
}

func (c *proofCheck) fault(part, format string, args ...any) {
	c.faults = append(c.faults, Fault{Place: part, Message: fmt.Sprintf(format, args...)})
}

// heads opens the checkpoints. Every key that the proof lists must have signed one.
func (c *proofCheck) heads() {
	p := c.proof
	keys := slices.Clone(c.trust) // first: see openHeads
	for i, text := range p.Signers {
		id, key, err := checkpoint.ParseKey(text)
		switch {
		case err != nil:
			c.fault("signers", "%v", err)
		case id != p.World:
			c.fault("signers", "%s is a signer of world %s, and the proof is of %s", text, id, p.World)
		case slices.Contains(p.Signers[:i], text):
			c.fault("signers", "%s is there twice", text)
		}
		if err == nil {
			keys = append(keys, key)
		}
	}
	head, trusted := c.head("checkpoint", p.Checkpoint, keys)
	c.out.Checkpoint, c.out.Trusted, c.out.Signers = &head.Checkpoint, trusted, keyTexts(head.World, head.By)
	if p.Older != "" {
		older, trusted := c.head("older", p.Older, keys)
		c.out.Older, c.out.Trusted = &older.Checkpoint, c.out.Trusted && trusted
	}
	for _, text := range p.Signers {
		if _, key, err := checkpoint.ParseKey(text); err == nil && !trusts(c.signed, key) {
			c.fault("signers", "%s has signed no checkpoint in here", text)
		}
	}
}

// head opens a checkpoint, and reports whether somebody has signed it whom the
// caller believes.
func (c *proofCheck) head(part, note string, keys []ed25519.PublicKey) (s checkpoint.Signed, trusted bool) {
	s, err := checkpoint.Open([]byte(note), keys...)
	switch {
	case err != nil:
		c.fault(part, "%v", err)
		return s, false
	case s.World != c.proof.World:
		c.fault(part, "it is of world %s, and the proof is of %s", s.World, c.proof.World)
	case len(s.By) == 0:
		c.fault(part, "nobody has signed it who is listed in the proof or trusted")
	}
	c.signed = append(c.signed, s.By...)
	return s, slices.ContainsFunc(s.By, func(key ed25519.PublicKey) bool { return trusts(c.trust, key) })
}

func (c *proofCheck) consistency() {
	p, newer, older := c.proof, c.out.Checkpoint, c.out.Older
	if newer.Size == 0 || older.Size == 0 {
		return // one is no checkpoint
	}
	err := tlog.CheckTree(p.Consistency, int64(newer.Size), tlog.Hash(newer.Root), int64(older.Size), tlog.Hash(older.Root))
	if err != nil {
		c.fault("consistency", "it does not lead from the older checkpoint to the other: %v", err)
	}
	c.out.Kind = ProofConsistency
	c.out.Says = fmt.Sprintf("the %d records of world %s that were signed first are the first of the %d that were signed then",
		older.Size, p.World, newer.Size)
}

// record checks that a record is in the history, and what is shown of it.
func (c *proofCheck) record() {
	p, size := c.proof, c.out.Checkpoint.Size
	switch {
	case size == 0: // there is no checkpoint
	case uint64(p.Record) > size:
		c.fault("record", "it is #%d, and the checkpoint is of %d records", p.Record, size)
	default:
		err := tlog.CheckRecord(p.Inclusion, int64(size), tlog.Hash(c.out.Checkpoint.Root), int64(p.Record-1), tlog.RecordHash(p.Bytes))
		if err != nil {
			c.fault("inclusion", "it does not lead from the record to the root of the checkpoint: %v", err)
		}
	}
	rec, err := journal.DecodeRecord(p.Bytes)
	if err != nil {
		c.fault("bytes", "%v", err)
		return
	}
	if rec.ID != p.Record {
		c.fault("record", "it is #%d, and the bytes are those of #%d", p.Record, rec.ID)
	}
	c.out.Kind = ProofRecord
	c.out.Record = &ProvenRecord{ID: rec.ID, Time: rec.Time, Kind: rec.Kind, CausedBy: rec.CausedBy, PayloadHash: rec.Blob}
	c.out.Says = fmt.Sprintf("world %s has record #%d, %s at tick %d, in the %d records that were signed", p.World, rec.ID, rec.Kind, rec.Time, size)
	body := c.payload(&rec)
	c.out.Record.Payload = body
	switch b := body.(type) {
	case *journal.Finished:
		c.receipt(b.Receipt)
	case *journal.Late:
		c.receipt(b.Receipt)
	}
	if p.Cell != nil {
		made, ok := body.(*journal.SnapshotCreated)
		if !ok {
			c.fault("cell", "the record is no snapshot.created")
			return
		}
		c.cell(made)
	}
}

// payload returns what a record says, nil where that is not shown.
func (c *proofCheck) payload(rec *journal.Record) journal.Body {
	switch p := c.proof; {
	case rec.Blob.IsZero():
		if len(p.Payload) > 0 {
			c.fault("payload", "the record holds its own")
		}
	case len(p.Payload) == 0:
		c.out.Says += "; its payload is not shown"
		return nil
	case uint64(len(p.Payload)) != rec.BlobSize || canon.Sum(p.Payload) != rec.Blob:
		c.fault("payload", "it is not the one that the record names")
		return nil
	default:
		rec.Payload = p.Payload
	}
	body, err := rec.Body()
	if err != nil {
		c.fault("payload", "%v", err)
		return nil
	}
	return body
}

func (c *proofCheck) receipt(data []byte) {
	r, err := receipt.Decode(data)
	if err == nil {
		err = checkHash(r)
	}
	if err != nil {
		c.fault("receipt", "%v", err)
		return
	}
	c.out.Kind, c.out.Receipt = ProofReceipt, r
	c.out.Says += fmt.Sprintf(": the receipt of intent %s, %s, attempt %d: %s", r.Key, r.Kind, r.Attempt, r.Status)
}

// cell checks what a snapshot says of a cell.
func (c *proofCheck) cell(made *journal.SnapshotCreated) {
	p := c.proof.Cell
	c.out.Kind = ProofCell
	c.out.Cell = &ProvenCell{Name: p.Name, Present: p.Present, Snapshot: made.Name, At: made.At, Leaf: p.Leaf, State: p.State}
	if _, err := reducer.ParseCell(p.Name); err != nil {
		c.fault("cell/name", "%v", err)
	}
	proof, err := snapshot.DecodeStateProof(p.Proof)
	if err != nil {
		c.fault("cell/proof", "%v", err)
		return
	}
	value, present, err := proof.Check(made.StateRoot, canon.Sum([]byte(p.Name)))
	if err != nil {
		c.fault("cell/proof", "%v", err)
		return
	}
	if present != p.Present {
		c.fault("cell/present", "it is %t, and the snapshot says the opposite", p.Present)
	}
	if (p.Leaf != nil) != present {
		c.fault("cell/leaf", "a cell has one, and none has none")
		return
	}
	if !present {
		if len(p.State) > 0 {
			c.fault("cell/state", "there is no cell")
		}
		c.out.Says += fmt.Sprintf(": there was no cell %s after record #%d", p.Name, made.At)
		return
	}
	if p.Leaf.Hash() != value {
		c.fault("cell/leaf", "it is not the one that the snapshot names")
	}
	c.state(p)
	c.out.Says += fmt.Sprintf(": cell %s after record #%d, which had taken %d steps", p.Name, made.At, p.Leaf.N)
}

func (c *proofCheck) state(p *ProofOfCell) {
	switch {
	case len(p.State) == 0:
		if !p.Leaf.State.IsZero() {
			c.fault("cell/state", "it is missing")
		}
	case canon.Sum(p.State) != p.Leaf.State:
		c.fault("cell/state", "it is not the one that the leaf names")
	default:
		if err := canon.Valid(p.State); err != nil {
			c.fault("cell/state", "%v", err)
		}
	}
}
