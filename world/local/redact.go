package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// Why a blob is not redacted. Besides these there are world.ErrStillNeeded and,
// where it is redacted already, journal.ErrRedacted.
var (
	ErrNoPayload  = errors.New("no record has such a payload")
	ErrInline     = fmt.Errorf("its payload is part of the record: only what is larger than %d bytes can be redacted", journal.MaxInlineBytes)
	ErrSeveral    = errors.New("several payloads have this hash prefix")
	ErrOfManifest = errors.New("a manifest names it, and without it the world cannot be replayed")
)

// ErrBytesLeft says that a redaction is on the record, and that the bytes may be in the
// store until the world is opened the next time, which destroys them.
var ErrBytesLeft = errors.New("the redaction is on the record, its bytes go when the world is opened again")

// Redaction is the result of a redaction.
type Redaction struct {
	Blob    journal.Hash  `json:"blob"`
	Bytes   uint64        `json:"bytes"`
	Records []journal.Seq `json:"records"` // whose payload it was
	Record  journal.Seq   `json:"record"`  // that says so
}

// Payload names a payload: by what its hash begins with or, where Record is not 0,
// by its record.
type Payload struct {
	Prefix string
	Record journal.Seq
}

// Redact destroys a payload in the world of a directory. The record of it is
// durable before the bytes go; when Redact returns they are in no file of the
// store. A crash between is made up for by the next Open, and so is an error
// (ErrBytesLeft), unless damage of the store is in the way: verify names it.
func Redact(ctx context.Context, dir string, opts Options, p Payload, reason, actor string) (Redaction, error) {
	lw, err := Open(dir, opts)
	if err != nil {
		return Redaction{}, err
	}
	r, err := lw.redact(ctx, p, reason, actor)
	left := func(err error) error { return fmt.Errorf("%w: %w", ErrBytesLeft, err) }
	if closed := lw.Close(); err != nil {
		return Redaction{}, errors.Join(err, closed)
	} else if closed != nil {
		return Redaction{}, left(closed)
	}
	if known := lw.passphrase; known != nil {
		opts.Passphrase = func() ([]byte, error) { return known, nil }
	}
	lw, err = own(dir, opts) // which destroys the bytes
	if err != nil {
		return Redaction{}, left(err)
	}
	if damage := lw.store.BytesLeft(); damage != nil {
		return Redaction{}, left(errors.Join(damage, lw.abandon()))
	}
	return r, lw.abandon()
}

func (lw *World) redact(ctx context.Context, p Payload, reason, actor string) (r Redaction, err error) {
	err = lw.Update(func(*world.World) error {
		if r, err = lw.findPayload(p); err != nil {
			return err
		}
		for _, id := range r.Records {
			if err := lw.w.StillNeeds(id); err != nil {
				return fmt.Errorf("record #%d: %w", id, err)
			}
		}
		if err := lw.w.Checkpoint(); err != nil { // so that opening does not need it
			return err
		}
		b := journal.Redacted{Blob: r.Blob, Reason: reason, Actor: actor}
		return lw.store.Redact(r.Blob, func() error {
			r.Record, err = lw.w.Redact(ctx, b)
			return err
		})
	})
	return r, err
}

// payloadOf returns the hash of the payload of a record.
func (lw *World) payloadOf(id journal.Seq) (journal.Hash, error) {
	rec, err := journal.Read(lw.store, id)
	if errors.Is(err, journal.ErrNotFound) {
		err = fmt.Errorf("record #%d: %w", id, journal.ErrNotFound)
	}
	if err == nil && rec.Blob.IsZero() {
		err = fmt.Errorf("record #%d: %w", id, ErrInline)
	}
	return rec.Blob, err
}

// findPayload finds a payload, and refuses one that must stay.
func (lw *World) findPayload(p Payload) (Redaction, error) {
	prefix := p.Prefix
	if p.Record != 0 {
		blob, err := lw.payloadOf(p.Record)
		if err != nil {
			return Redaction{}, err
		}
		prefix = blob.String()
	}
	found, named := Redaction{}, journal.Seq(0)
	for s, err := range lw.store.Scan(0) {
		if err := cmp.Or(err, s.Err); err != nil {
			return Redaction{}, err
		}
		rec := s.Record
		switch {
		case rec.Blob.IsZero() || !strings.HasPrefix(rec.Blob.String(), prefix):
		case found.Blob.IsZero() || found.Blob == rec.Blob:
			found.Blob, found.Bytes = rec.Blob, rec.BlobSize
			found.Records = append(found.Records, rec.ID)
		default:
			return Redaction{}, fmt.Errorf("%s: %w: %s and %s", prefix, ErrSeveral, found.Blob, rec.Blob)
		}
		names, err := lw.names(&rec, prefix)
		if err != nil {
			return Redaction{}, err
		}
		if names {
			named = rec.ID
		}
	}
	if named != 0 {
		return Redaction{}, fmt.Errorf("%s: %w: that of record #%d", prefix, ErrOfManifest, named)
	}
	if found.Blob.IsZero() {
		return Redaction{}, fmt.Errorf("%s: %w", prefix, ErrNoPayload)
	}
	_, err := lw.store.Blob(found.Blob)
	return found, err
}

// names reports whether a record brings a manifest that is, or names, a
// blob whose hash begins with a prefix.
func (lw *World) names(rec *journal.Record, prefix string) (bool, error) {
	if !journal.BringsManifest(rec.Kind) {
		return false, nil
	}
	contents, err := contentsOf(lw.store, rec)
	return slices.ContainsFunc(contents, func(h journal.Hash) bool { return strings.HasPrefix(h.String(), prefix) }), err
}

// contentsOf returns the hashes of the manifest that a record brings into the
// world, and of all that it names; none for another record.
func contentsOf(all journal.Blobs, rec *journal.Record) ([]journal.Hash, error) {
	body, err := rec.Body()
	if err != nil {
		return nil, err
	}
	hash, brings := journal.ManifestOf(body)
	if !brings {
		return nil, nil
	}
	encoded, err := all.Blob(hash)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Decode(encoded)
	if err != nil {
		return nil, err
	}
	return append([]journal.Hash{hash}, m.Contents()...), nil
}
