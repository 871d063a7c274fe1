package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/worldkernel/worldkernel/journal"
)

// Why who only looks is refused.
var (
	ErrLooks     = errors.New("the world was opened to be looked at")
	ErrOvertaken = errors.New("a payload was redacted while the world was looked at")
)

// errParts says that the parts of an image could not be read: another may have taken its place.
var errParts = errors.New("its parts")

// lookTries is how often who looks begins anew because an owner has put another image meanwhile:
// it writes no more images than records.
const lookTries = 8

// OpenReadOnly opens a world whose journal lies in a log to be read, whoever owns it, as it is in this
// moment: what is appended later does not show. It owns nothing, and nobody notices. The copy that
// it reads is made for it in a directory that is not there yet, and that is the caller's to remove
// when the store is closed. Of dir, where there may be another copy in use, it reads what the log
// has acknowledged.
//
// Whatever would change the log is refused with ErrLooks. Where the owner redacts a payload
// meanwhile that what is read here needs, it is ErrOvertaken: see Overtaken.
func OpenReadOnly(dir, copied string, opts Options) (*Store, error) {
	return start("look at", copied, opts, func(s *Store) error { return s.lookFrom(dir) })
}

func (s *Store) lookFrom(dir string) error {
	s.opts.Log, s.opts.disk = &asOf{Past: s.opts.Log}, s.opts.FS // nobody believes the copy after a crash
	acknowledged, err := s.acknowledgedIn(dir)
	if err != nil {
		return err
	}
	if err := s.opts.FS.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for range lookTries {
		if s.owned, err = s.opts.Log.Own(context.Background()); err != nil {
			return err
		}
		if err := s.rewound(acknowledged); err != nil {
			return err
		}
		if err = s.makeCopy(); !errors.Is(err, errParts) {
			return err
		}
		s.restart()
	}
	return err
}

// looks reports whether the store is only looked at.
func (s *Store) looks() bool {
	_, looks := s.opts.Log.(*asOf)
	return looks
}

// Overtaken reports whether a payload was asked for that was redacted after OpenReadOnly: what was
// computed without it is nothing that the world ever was.
func (s *Store) Overtaken() bool {
	l, looks := s.opts.Log.(*asOf)
	return looks && l.overtaken.Load()
}

// asOf is a log as it was at a moment, for who owns nothing.
type asOf struct {
	journal.Past

	end       journal.Head
	kept      *journal.KeptImage
	overtaken atomic.Bool
}

// Own implements journal.Log: it says how the world stands from now on.
func (l *asOf) Own(ctx context.Context) (owned journal.Owned, err error) {
	if l.kept, err = l.Past.Kept(ctx); err != nil { // first: its head is durable
		return owned, err
	}
	l.end, err = l.Past.End(ctx)
	return journal.Owned{Head: l.end, Epoch: 1}, err
}

// End implements journal.Past.
func (l *asOf) End(context.Context) (journal.Head, error) { return l.end, nil }

// Kept implements journal.Past.
func (l *asOf) Kept(context.Context) (*journal.KeptImage, error) { return l.kept, nil }

// Records implements journal.Past.
func (l *asOf) Records(ctx context.Context, after journal.Seq) iter.Seq2[journal.Linked, error] {
	return func(yield func(journal.Linked, error) bool) {
		if after >= l.end.ID {
			return
		}
		for r, err := range l.Past.Records(ctx, after) {
			if !yield(r, err) || err != nil || r.ID == l.end.ID {
				return
			}
		}
	}
}

// Notes implements journal.Past.
func (l *asOf) Notes(ctx context.Context, from, to journal.Seq) iter.Seq2[journal.Note, error] {
	return l.Past.Notes(ctx, from, min(to, l.end.ID))
}

// Blob implements journal.Past.
func (l *asOf) Blob(h journal.Hash) ([]byte, error) {
	content, err := l.Past.Blob(h)
	if !errors.Is(err, journal.ErrRedacted) {
		return content, err
	}
	since, failed := l.redactedSince(h)
	if failed != nil {
		return nil, failed
	}
	if since {
		l.overtaken.Store(true)
		return nil, fmt.Errorf("content %s: %w", h, ErrOvertaken)
	}
	return nil, err
}

// redactedSince reports whether a record after the end says that a content is redacted. One that
// says so before it says more: then the world that is looked at has lived without it.
func (l *asOf) redactedSince(h journal.Hash) (bool, error) {
	for r, err := range l.Past.Records(context.Background(), l.end.ID) {
		if err != nil {
			return false, err
		}
		e, err := parseLinked(r, r.ID)
		if err != nil {
			return false, err
		}
		if journal.Kind(e.Kind) != journal.KindRedacted {
			continue
		}
		blob, err := redactionOf(e, l.Past)
		if err != nil || blob == h {
			return blob == h, err
		}
	}
	return false, nil
}

// Append implements journal.Log.
func (*asOf) Append(journal.Batch) (journal.Pending, error) { return nil, ErrLooks }

// Release implements journal.Log.
func (*asOf) Release(context.Context, journal.Wake) error { return nil }

// PutImage implements journal.Keep.
func (*asOf) PutImage(context.Context, *journal.KeptImage) error { return ErrLooks }

// PutNote implements journal.Keep.
func (*asOf) PutNote(context.Context, journal.Note) error { return ErrLooks }

// Redact implements journal.Keep.
func (*asOf) Redact(context.Context, journal.Hash) error { return ErrLooks }
