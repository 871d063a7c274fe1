package pglog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

const (
	framePage = 16  // frames that are read at once
	notePage  = 512 // notes
)

// End implements journal.Past. Whose claim has a key is refused a head with a wrong seal.
func (w *World) End(ctx context.Context) (journal.Head, error) {
	v, err := w.readStand(ctx)
	if err == nil && len(w.claim.Key) > 0 {
		err = w.checkSeal(v)
	}
	return v.head, err
}

// Records implements journal.Past. Each frame is checked with what was before it, and the last
// with the world's head: an error is a *DamageError that names the frame.
func (w *World) Records(ctx context.Context, after journal.Seq) iter.Seq2[journal.Linked, error] {
	return func(yield func(journal.Linked, error) bool) {
		end, err := w.End(ctx)
		if err == nil && after < end.ID {
			r := reading{world: w, after: after, next: after + 1, end: end, yield: yield}
			err = r.readRecords(ctx)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(journal.Linked{}, err)
		}
	}
}

// errTooLong says that something is not read, because nothing so long was put.
var errTooLong = errors.New("it is longer than what was put")

// errEnough says that whoever reads has stopped.
var errEnough = errors.New("enough")

// reading goes through the frames of a world.
type reading struct {
	world *World
	after journal.Seq
	next  journal.Seq   // that a frame has to begin with; the first may begin before
	root  *journal.Hash // the chain root before it; nil: not known yet
	end   journal.Head
	yield func(journal.Linked, error) bool
}

func (r *reading) readRecords(ctx context.Context) error {
	for r.next <= r.end.ID {
		page, err := r.world.frames(ctx, r.next, r.end.ID)
		if err != nil {
			return err
		}
		if len(page) == 0 || page[0].last < r.next {
			return r.world.damaged(errors.New("nothing is there"), "records from #%d to #%d", r.next, r.end.ID)
		}
		for i := range page {
			if err := r.open(&page[i]); err != nil {
				return err
			}
		}
	}
	if *r.root != r.end.Root {
		return r.world.damaged(errors.New("the world's head is another"), "the frame that ends with #%d", r.end.ID)
	}
	return nil
}

func (r *reading) open(f *frame) error {
	damaged := func(err error) error {
		return r.world.damaged(err, "frame #%d to #%d", f.first, f.last)
	}
	switch {
	case f.first != r.next && (r.root != nil || f.first > r.next):
		return damaged(fmt.Errorf("record #%d was to come", r.next))
	case r.root != nil && *r.root != f.was, r.root == nil && f.first == 1 && !f.was.IsZero():
		return damaged(errors.New("it does not follow from the frame before"))
	case f.last > r.end.ID:
		return damaged(fmt.Errorf("the world ends at #%d", r.end.ID))
	}
	root, whole, err := f.open(r.world.store.pack, func(l journal.Linked) bool {
		return l.ID <= r.after || r.yield(l, nil)
	})
	switch {
	case err != nil:
		return damaged(err)
	case !whole:
		return errEnough
	}
	r.next, r.root = f.last+1, &root
	return nil
}

func (w *World) damaged(err error, format string, args ...any) error {
	return &DamageError{World: w.id, What: fmt.Sprintf(format, args...), Err: err}
}

// frames reads some frames, from the one with a record on.
func (w *World) frames(ctx context.Context, from, end journal.Seq) ([]frame, error) {
	wid, err := w.number(ctx)
	if err != nil {
		return nil, err
	}
	page, err := all(ctx, w.store, sqlFrames, []any{wid, from, end, framePage, maxFrame}, func(r pgx.Rows, f *frame) error {
		var was []byte
		if err := r.Scan(&f.first, &f.last, &was, &f.body); err != nil {
			return err
		}
		if len(was) != len(f.was) {
			return w.damaged(fmt.Errorf("a chain root of %d bytes", len(was)), "frame #%d to #%d", f.first, f.last)
		}
		copy(f.was[:], was)
		return nil
	})
	return page, inWorld(w.id, err)
}

// Blob implements journal.Past.
func (w *World) Blob(h journal.Hash) ([]byte, error) {
	ctx := w.store.ctx
	wid, err := w.number(ctx)
	if err != nil {
		return nil, err
	}
	var redacted bool
	var body []byte
	err = w.insist(ctx, func(ctx context.Context) error {
		return w.store.row(ctx, sqlBlob, []any{wid, h[:], maxContent + 1}, &redacted, &body)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("pglog: content %s: %w", h, journal.ErrNotFound)
	case err != nil:
		return nil, err
	case redacted:
		return nil, fmt.Errorf("pglog: content %s: %w", h, journal.ErrRedacted)
	case body == nil:
		return nil, w.damaged(errTooLong, "content %s", h)
	}
	content, err := w.store.pack.unpack(body, maxContent)
	if err == nil && canon.Sum(content) != h {
		err = errors.New("its bytes have another hash")
	}
	if err != nil {
		return nil, w.damaged(err, "content %s", h)
	}
	return content, nil
}

// Notes implements journal.Past.
func (w *World) Notes(ctx context.Context, from, to journal.Seq) iter.Seq2[journal.Note, error] {
	return func(yield func(journal.Note, error) bool) {
		for {
			page, err := w.notes(ctx, from, to)
			if err != nil {
				yield(journal.Note{}, err)
				return
			}
			for _, n := range page {
				if !yield(n, nil) {
					return
				}
				from = n.Size + 1
			}
			if len(page) < notePage {
				return
			}
		}
	}
}

func (w *World) notes(ctx context.Context, from, to journal.Seq) ([]journal.Note, error) {
	wid, err := w.number(ctx)
	if err != nil {
		return nil, err
	}
	page, err := all(ctx, w.store, sqlNotes, []any{wid, bigint(from), bigint(to), notePage, maxSmall}, func(r pgx.Rows, n *journal.Note) error {
		err := r.Scan(&n.Size, &n.Text)
		if err == nil && n.Text == nil {
			err = w.damaged(errTooLong, "the note of #%d", n.Size)
		}
		return err
	})
	return page, inWorld(w.id, err)
}

// bigint is a number as PostgreSQL takes it: no record has a greater one.
func bigint(s journal.Seq) int64 { return int64(min(s, 1<<63-1)) }
