package receipt

import (
	"bytes"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Decoder decodes receipts one after the other: what one has in common with the one
// before, such as world and kind, is the same text. The zero value is ready; it is not
// safe for concurrent use.
type Decoder struct {
	world, kind, cap, keyID string // of the receipt before
	again                   []byte // scratch: what a receipt's bytes have to be
}

// Decode parses the canonical bytes of a receipt into r, which may keep parts of them. It
// checks form, not truth: see [Keyring.Verify].
func (d *Decoder) Decode(data []byte, r *Receipt) error {
	if err := d.readReceipt(data, r); err != nil {
		return err
	}
	if d.again = r.appendTo(d.again[:0]); !bytes.Equal(data, d.again) {
		return ErrNotCanonical
	}
	return r.checkForm()
}

// checkForm refuses what no receipt of today says.
func (r *Receipt) checkForm() error {
	if r.Version != ReceiptVersion {
		return ErrVersion
	}
	if !r.Status.Known() {
		return ErrStatus
	}
	return r.checkClass()
}

// readReceipt parses the fields of a receipt, in any order; whether they stand as they
// should is for the caller to compare. It is written by hand because every
// receipt takes this way when it comes in and when it is replayed; a test holds
// it equal to the library's reading.
func (d *Decoder) readReceipt(data []byte, r *Receipt) error {
	*r = Receipt{}
	in := canon.NewReader(data)
	for n := in.Map(); n > 0 && in.Err() == nil; n-- {
		name := in.TextBytes()
		if in.Err() == nil && !d.readField(string(name), in, r) {
			return ErrNotCanonical
		}
	}
	if err := in.Close(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	return nil
}

func (d *Decoder) readField(name string, in *canon.Reader, r *Receipt) bool {
	switch name {
	case "version":
		r.Version = in.Uint()
	case "world":
		r.World = shared(&d.world, in.TextBytes())
	case "key":
		return readBytes(in, r.Key.Hash[:])
	case "kind":
		r.Kind = shared(&d.kind, in.TextBytes())
	case "params_hash":
		return readBytes(in, r.ParamsHash[:])
	case "cap":
		r.Cap = shared(&d.cap, in.TextBytes())
	case "attempt":
		r.Attempt = in.Uint()
	case "nonce":
		return readBytes(in, r.Nonce[:])
	case "status":
		r.Status = statusOf(in.TextBytes())
	case "payload":
		r.Payload = in.Raw()
	case "cost":
		return r.Cost.Read(in)
	case "exact":
		r.Exact = in.Bool()
	case "started_at":
		return readTime(in, &r.StartedAt)
	case "finished_at":
		return readTime(in, &r.FinishedAt)
	case "outcome":
		r.Class = classOf(in.TextBytes())
	case "unsent":
		r.Unsent = in.Bool()
	case "external_ref":
		r.ExternalRef = in.Text()
	case "state_change":
		r.StateChange = new(StateChange)
		return r.StateChange.readStateChange(in)
	case "key_id":
		r.KeyID = shared(&d.keyID, in.TextBytes())
	case "hash":
		return readBytes(in, r.Hash[:])
	case "mac":
		return readBytes(in, r.MAC[:])
	default:
		return false
	}
	return true
}

// shared returns a text: the one before where that is the same.
func shared(before *string, text []byte) string {
	if *before != string(text) {
		*before = string(text)
	}
	return *before
}

// statusOf returns a status: of those that are known, the constant.
func statusOf(text []byte) Status {
	for _, s := range [...]Status{StatusOK, StatusError, StatusTimeout, StatusDenied, StatusRejected, StatusCancelled} {
		if string(s) == string(text) {
			return s
		}
	}
	return Status(text)
}

// classOf is statusOf for what an adapter makes of a failure.
func classOf(text []byte) Outcome {
	for _, o := range [...]Outcome{OutcomePermanentFailure, OutcomeRetryableFailure, OutcomeCompensatable, OutcomeInputRequired, OutcomeAccepted} {
		if string(o) == string(text) {
			return o
		}
	}
	return Outcome(text)
}

// Read reads what appendTo wrote, in any order; false: it holds something else.
func (c *Cost) Read(in *canon.Reader) bool {
	for n := in.Map(); n > 0 && in.Err() == nil; n-- {
		switch string(in.TextBytes()) {
		case "bytes":
			c.Bytes = in.Uint()
		case "calls":
			c.Calls = in.Uint()
		case "micros":
			c.Micros = in.Uint()
		case "tokens":
			c.Tokens = in.Uint()
		default:
			return false
		}
	}
	return true
}

func (s *StateChange) readStateChange(in *canon.Reader) bool {
	for n := in.Map(); n > 0 && in.Err() == nil; n-- {
		switch string(in.TextBytes()) {
		case "etag":
			s.ETag = in.Text()
		case "version":
			s.Version = in.Text()
		case "resource":
			s.Resource = in.Text()
		case "content_hash":
			if !readBytes(in, s.ContentHash[:]) {
				return false
			}
		case "external_ref":
			s.ExternalRef = in.Text()
		default:
			return false
		}
	}
	return true
}

// readBytes reads a byte string of exactly the length of to.
func readBytes(in *canon.Reader, to []byte) bool {
	b := in.Bytes()
	copy(to, b)
	return in.Err() != nil || len(b) == len(to)
}

func readTime(in *canon.Reader, to *int64) bool {
	n, large := in.Int()
	*to = n
	return large == nil
}
