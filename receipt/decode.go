package receipt

import (
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// read parses the fields of a receipt, in any order; whether they stand as they
// should is for the caller to compare. It is written by hand because every
// receipt takes this way when it comes in and when it is replayed; a test holds
// it equal to the library's reading.
func read(data []byte) (*Receipt, error) {
	r := new(Receipt)
	in := canon.NewReader(data)
	for n := in.Map(); n > 0 && in.Err() == nil; n-- {
		name := in.TextBytes()
		if in.Err() == nil && !r.readField(string(name), in) {
			return nil, ErrNotCanonical
		}
	}
	if err := in.Close(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	return r, nil
}

func (r *Receipt) readField(name string, in *canon.Reader) bool {
	switch name {
	case "version":
		r.Version = in.Uint()
	case "world":
		r.World = in.Text()
	case "key":
		return readBytes(in, r.Key.Hash[:])
	case "kind":
		r.Kind = in.Text()
	case "params_hash":
		return readBytes(in, r.ParamsHash[:])
	case "cap":
		r.Cap = in.Text()
	case "attempt":
		r.Attempt = in.Uint()
	case "nonce":
		return readBytes(in, r.Nonce[:])
	case "status":
		r.Status = Status(in.Text())
	case "payload":
		r.Payload = in.Raw()
	case "cost":
		return r.Cost.read(in)
	case "exact":
		r.Exact = in.Bool()
	case "started_at":
		return readTime(in, &r.StartedAt)
	case "finished_at":
		return readTime(in, &r.FinishedAt)
	case "outcome":
		r.Class = Outcome(in.Text())
	case "unsent":
		r.Unsent = in.Bool()
	case "external_ref":
		r.ExternalRef = in.Text()
	case "state_change":
		r.StateChange = new(StateChange)
		return r.StateChange.read(in)
	case "key_id":
		r.KeyID = in.Text()
	case "hash":
		return readBytes(in, r.Hash[:])
	case "mac":
		return readBytes(in, r.MAC[:])
	default:
		return false
	}
	return true
}

func (c *Cost) read(in *canon.Reader) bool {
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

func (s *StateChange) read(in *canon.Reader) bool {
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
