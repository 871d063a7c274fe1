package pglog

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/worldkernel/worldkernel/journal"
)

// keep asks for a change that only the owner may make; it may take effect twice. Who is no longer
// the owner is answered with no row.
func (w *World) keep(ctx context.Context, sql string, args []any, into ...any) error {
	wid, token, err := w.owner()
	if err != nil {
		return err
	}
	args = append([]any{wid, token}, args...)
	err = w.insist(ctx, func(ctx context.Context) error { return w.store.row(ctx, sql, args, into...) })
	if errors.Is(err, pgx.ErrNoRows) {
		return journal.ErrFenced
	}
	return err
}

// PutNote implements journal.Keep.
func (w *World) PutNote(ctx context.Context, n journal.Note) error {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	if len(n.Text) > maxSmall {
		return fmt.Errorf("pglog: a note of %d bytes: %d are the most", len(n.Text), maxSmall)
	}
	text := append([]byte{}, n.Text...) // nil would be NULL
	return w.keep(ctx, sqlPutNote, []any{bigint(n.Size), text}, new(int64))
}

// Redact implements journal.Keep.
func (w *World) Redact(ctx context.Context, h journal.Hash) error {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.store.opts.Patience)
	defer cancel()
	for pauses := newPauses(); ; {
		at, err := w.End(ctx)
		if err != nil {
			return err
		}
		var there bool
		if err := w.keep(ctx, sqlRedact, []any{h[:], bigint(at.ID)}, &there); err != nil || there {
			return err
		}
		if !pause(ctx, pauses) {
			return fmt.Errorf("pglog: world %s: content %s: its head moves too fast to redact", w.id, h)
		}
	}
}

// PutImage implements journal.Keep. Its parts are put first, where no image leads to them, so
// that no append waits for them; then one statement puts the image in the place of the one
// before. What a process has left of one that it did not end goes with the next.
func (w *World) PutImage(ctx context.Context, img *journal.KeptImage) error {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	id, n, seal := newUUID(), int64(0), w.imageSeal(img)
	put := func(part []byte) error {
		seal.Write(part)
		n++
		return w.keep(ctx, sqlPutPart, []any{id, n, w.store.pack.pack(part)}, new(int64))
	}
	for part, err := range img.Parts {
		if err == nil && len(part) > journal.MaxKeptPart {
			err = fmt.Errorf("a part of %d bytes, and %d are the most", len(part), journal.MaxKeptPart)
		}
		if err == nil {
			err = put(part)
		}
		if err != nil {
			return fmt.Errorf("pglog: image at #%d: %w", img.Head.ID, err)
		}
	}
	var durable, whole bool
	args := []any{id, bigint(img.Head.ID), img.Head.Root[:], append([]byte{}, img.Tree...), n, seal.Sum(nil)}
	err := w.keep(ctx, sqlPutImage, args, &durable, &whole)
	switch {
	case err != nil:
		return err
	case !durable:
		return fmt.Errorf("pglog: image at #%d: its head is not durable", img.Head.ID)
	case !whole:
		return fmt.Errorf("pglog: image at #%d: a part is gone", img.Head.ID)
	}
	return nil
}

// Kept implements journal.Past. Whose claim has no key is refused: nobody else can tell whose image
// it is. Who does not own the world may find, when reading the parts, that
// another image has taken the place of this one: then that can be asked for.
func (w *World) Kept(ctx context.Context) (*journal.KeptImage, error) {
	if len(w.claim.Key) < minKey {
		return nil, refuse(NoKey, "the image of world %s", w.id)
	}
	wid, err := w.number(ctx)
	if err != nil {
		return nil, err
	}
	img := &journal.KeptImage{}
	var id pgtype.UUID
	var sum []byte
	var parts int64
	err = w.insist(ctx, func(ctx context.Context) error {
		return w.store.row(ctx, sqlImage, []any{wid, maxSmall}, &id, &img.Head.ID, &fixed{img.Head.Root[:]}, &img.Tree, &parts, &sum)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // as Past says: none was put
	}
	if err == nil && img.Tree == nil {
		err = w.damaged(errTooLong, "the tree of the image")
	}
	if err != nil {
		return nil, err
	}
	img.Parts = func(yield func([]byte, error) bool) {
		err := w.parts(ctx, wid, id, parts, sum, w.imageSeal(img), func(part []byte) bool { return yield(part, nil) })
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("pglog: image at #%d: %w", img.Head.ID, err))
		}
	}
	return img, nil
}

// parts reads the parts of an image in one statement, so that none is taken away meanwhile. However
// many they are, each comes within the store's patience.
func (w *World) parts(ctx context.Context, wid int64, id pgtype.UUID, parts int64, sum []byte, seal hash.Hash, yield func([]byte) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := w.store.opts.Patience
	silent := time.AfterFunc(patience, func() { cancel(fmt.Errorf("no answer in %v", patience)) })
	defer silent.Stop()
	conn, err := w.store.pool.Acquire(ctx)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, sqlParts, wid, id, maxPart+1)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer rows.Close()
	damaged := func(err error) error { return w.damaged(err, "image") }
	for ; rows.Next(); parts-- {
		silent.Stop()
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return damaged(err)
		}
		part, err := w.store.pack.unpack(body, maxPart)
		if err != nil {
			return damaged(err)
		}
		seal.Write(part)
		if !yield(part) {
			return errEnough
		}
		silent.Reset(patience)
	}
	switch {
	case rows.Err() != nil:
		return cmp.Or(context.Cause(ctx), rows.Err())
	case parts != 0:
		return damaged(errors.New("not all of its parts are there: it was replaced, or is damaged"))
	case !hmac.Equal(seal.Sum(nil), sum):
		return damaged(errors.New("it is not the one that was put"))
	}
	return nil
}

// imageSeal is what only who has the key can write beside an image; its parts follow.
func (w *World) imageSeal(img *journal.KeptImage) hash.Hash {
	mac := hmac.New(sha256.New, w.claim.Key)
	_, _ = fmt.Fprintf(mac, "worldkernel image 1\x00%s\x00", w.id) // a hash takes all
	b := binary.BigEndian.AppendUint64(nil, uint64(img.Head.ID))
	b = binary.BigEndian.AppendUint64(append(b, img.Head.Root[:]...), uint64(len(img.Tree)))
	mac.Write(append(b, img.Tree...))
	return mac
}
