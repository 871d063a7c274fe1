package journal

import (
	"encoding/json"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// KindOf returns the kind that bytes spell, without allocating for the frequent ones.
func KindOf(b []byte) string {
	switch Kind(b) {
	case KindAdvanced:
		return string(KindAdvanced)
	case KindSubmitted:
		return string(KindSubmitted)
	case KindFinished:
		return string(KindFinished)
	case KindStepped:
		return string(KindStepped)
	case KindEmitted:
		return string(KindEmitted)
	case KindIntent:
		return string(KindIntent)
	case KindStarted:
		return string(KindStarted)
	case KindTimer:
		return string(KindTimer)
	case KindFired:
		return string(KindFired)
	default:
		return string(b) // the rare ones
	}
}

// Record is one record of a journal, decoded.
type Record struct {
	ID       Seq
	Time     manifest.Tick
	Kind     Kind
	CausedBy Seq    // 0 for an input
	Payload  []byte // canonical; nil where Blob is set and has not been read
	Blob     Hash   // names the payload where it is kept as a blob
	BlobSize uint64 // bytes
}

// MaxInlineBytes is the size up to which a payload is part of its record.
// Larger ones are blobs, so that they can be redacted without breaking the
// chain.
const MaxInlineBytes = 4 << 10

// DecodeRecord parses the stored bytes of a record. The payload is part of data.
func DecodeRecord(data []byte) (Record, error) {
	e, err := canon.DecodeEnvelopeAs(data, KindOf)
	if err != nil {
		return Record{}, fmt.Errorf("journal: record: %w", err)
	}
	return recordOf(e)
}

func recordOf(e canon.Envelope) (Record, error) {
	r := Record{
		ID: Seq(e.ID), Time: manifest.Tick(e.Time), Kind: Kind(e.Kind),
		CausedBy: Seq(e.CausedBy), Payload: e.Payload, Blob: e.Blob, BlobSize: e.BlobSize,
	}
	if !r.Kind.Known() {
		return Record{}, fmt.Errorf("journal: record #%d: unknown kind %q: it was written by a later version", r.ID, e.Kind)
	}
	return r, nil
}

// Read reads a record of a journal, without a payload that is kept as a blob.
func Read(h interface{ Record(id Seq) ([]byte, error) }, id Seq) (Record, error) {
	data, err := h.Record(id)
	if err != nil {
		return Record{}, fmt.Errorf("journal: record #%d: %w", id, err)
	}
	return DecodeRecord(data)
}

// ReadBody reads the payload of a record of a journal.
func ReadBody(h History, id Seq) (Body, error) {
	rec, err := Read(h, id)
	if err != nil {
		return nil, err
	}
	return rec.LoadBody(h)
}

// UnitEnd returns the last record of what was written at once with a record, of a
// history that ends with head.
func UnitEnd(h History, at, head Seq) (Seq, error) {
	for ; at < head; at++ {
		rec, err := Read(h, at+1)
		if err != nil {
			return 0, err
		}
		if beginsUnit(rec.Kind) {
			break
		}
	}
	return at, nil
}

// beginsUnit reports whether a record is the first of what is written at once: an
// input, or the turn of a cell.
func beginsUnit(k Kind) bool {
	return k.Input() || k == KindStepped || k == KindFailed
}

// Load reads the payload of a record from blobs, if the record names a blob.
func (r *Record) Load(blobs Blobs) error {
	if r.Blob.IsZero() || r.Payload != nil {
		return nil
	}
	b, err := blobs.Blob(r.Blob)
	if err != nil {
		return fmt.Errorf("journal: record #%d: payload %s: %w", r.ID, r.Blob, err)
	}
	if canon.Sum(b) != r.Blob {
		return fmt.Errorf("journal: record #%d: payload %s: the blob's bytes have another hash", r.ID, r.Blob)
	}
	if uint64(len(b)) != r.BlobSize {
		return fmt.Errorf("journal: record #%d: payload %s has %d bytes, and the record says %d", r.ID, r.Blob, len(b), r.BlobSize)
	}
	r.Payload = b
	return nil
}

// LoadBody loads the payload and decodes it.
func (r *Record) LoadBody(blobs Blobs) (Body, error) {
	if err := r.Load(blobs); err != nil {
		return nil, err
	}
	return r.Body()
}

// Body decodes the payload into its kind's struct, a pointer such as *Stepped.
func (r *Record) Body() (Body, error) {
	if body := decodeFrequent(r.Kind, r.Payload); body != nil {
		return body, nil
	}
	body := newBody(r.Kind)
	if body == nil {
		return nil, fmt.Errorf("journal: record #%d: unknown kind %q", r.ID, r.Kind)
	}
	items := canon.NewReader(r.Payload)
	items.Array()
	if v := items.Uint(); items.Err() == nil && v != BodyVersion {
		return nil, fmt.Errorf("journal: record #%d: payload of %s has unknown version %d", r.ID, r.Kind, v)
	}
	if err := canon.Unmarshal(r.Payload, body); err != nil {
		return nil, fmt.Errorf("journal: record #%d: payload of %s: %w", r.ID, r.Kind, err)
	}
	return body, nil
}

// MarshalJSON prints a record as `tail -o json` and `export --format jsonl`
// do, without the raw bytes. The payload must have been loaded.
func (r *Record) MarshalJSON() ([]byte, error) {
	body, err := r.Body()
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		ID       Seq           `json:"id"`
		Time     manifest.Tick `json:"time"`
		Kind     Kind          `json:"kind"`
		CausedBy Seq           `json:"caused_by"`
		Payload  Body          `json:"payload"`
	}{r.ID, r.Time, r.Kind, r.CausedBy, body})
}
