package store

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
)

// Signed is a checkpoint that was signed: not an image, for which Checkpoint is,
// but the size and the root of the Merkle tree over the records.
type Signed struct {
	checkpoint.Checkpoint

	Note []byte // with its signatures, as package checkpoint writes it
}

// PutCheckpoint keeps a signed checkpoint for ever, in the place of one of the same
// size. It is durable on return, and so are the records that it is of: where there
// are fewer it is refused with journal.ErrNotFound. Neither root nor signatures are
// checked.
func (s *Store) PutCheckpoint(note []byte) error {
	c, err := checkpoint.Parse(note)
	if err == nil {
		err = s.putSigned(journal.Seq(c.Size), note)
	}
	if err != nil {
		return fmt.Errorf("store: signed checkpoint: %w", err)
	}
	return nil
}

func (s *Store) putSigned(at journal.Seq, note []byte) error {
	if err := s.failed(); err != nil {
		return err
	}
	if end := s.readable().ID; at > end {
		return fmt.Errorf("record #%d of %d: %w", at, end, journal.ErrNotFound)
	}
	if s.opts.Log != nil {
		return s.putNote(at, note)
	}
	if err := s.settle(); err != nil {
		return err
	}
	return s.putSealed(signedKey(at), note)
}

// Checkpoints yields the signed checkpoints whose sizes are from one to another,
// both included, ascending. An error, such as a *DamageError, ends it.
func (s *Store) Checkpoints(from, to journal.Seq) iter.Seq2[Signed, error] {
	if s.opts.Log != nil {
		return s.signedIn(from, to)
	}
	return func(yield func(Signed, error) bool) {
		it, err := s.iterate(signedKey(from), append(signedKey(to), 0))
		if err != nil {
			yield(Signed{}, fmt.Errorf("store: signed checkpoints: %w", err))
			return
		}
		defer func() { _ = it.Close() }() // its error is Error's
		for ok := it.First(); ok; ok = it.Next() {
			if c, err := signedAt(it.Iterator); !yield(c, err) || err != nil {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(Signed{}, fmt.Errorf("store: %w", &DamageError{What: "the signed checkpoints", Err: err}))
		}
	}
}

// LastCheckpoint returns the signed checkpoint of the greatest size, nil where there
// is none.
func (s *Store) LastCheckpoint() (*Signed, error) {
	if s.opts.Log != nil {
		return s.lastSigned()
	}
	it, err := s.iterate([]byte{signedPrefix}, []byte{signedPrefix + 1})
	if err != nil {
		return nil, fmt.Errorf("store: signed checkpoints: %w", err)
	}
	defer func() { _ = it.Close() }() // its error is Error's
	if !it.Last() {
		if err := it.Error(); err != nil {
			return nil, fmt.Errorf("store: %w", &DamageError{What: "the last signed checkpoint", Err: err})
		}
		return nil, nil
	}
	c, err := signedAt(it.Iterator)
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// signedAt returns the signed checkpoint at an iterator's place.
func signedAt(it *pebble.Iterator) (c Signed, err error) {
	body, err := openAt(it)
	if err == nil {
		c, err = parseSigned(it.Key(), body)
	}
	if err != nil {
		return Signed{}, fmt.Errorf("store: %w", err)
	}
	return c, nil
}

func signedKey(at journal.Seq) []byte { return numberKey(signedPrefix, at) }

// parseSigned makes a copy of what it is given.
func parseSigned(key, body []byte) (Signed, error) {
	if !hasNumber(key) {
		return Signed{}, damaged(key, errShape)
	}
	c, err := checkpoint.Parse(body)
	if err != nil || journal.Seq(c.Size) != recordID(key) {
		return Signed{}, damaged(key, errShape)
	}
	return Signed{Checkpoint: c, Note: bytes.Clone(body)}, nil
}
