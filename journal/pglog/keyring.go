package pglog

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// Keyring returns the world's sealed keyring, or journal.ErrNotFound. Whoever reads owns nothing.
func (w *World) Keyring(ctx context.Context) (sealed []byte, err error) {
	wid, err := w.number(ctx)
	if err != nil {
		return nil, err
	}
	err = w.insist(ctx, func(ctx context.Context) error {
		return w.store.row(ctx, sqlKeyring, []any{wid, maxSmall}, &sealed)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, w.damaged(journal.ErrNotFound, "the keyring")
	}
	if err == nil && sealed == nil {
		err = w.damaged(errTooLong, "the keyring")
	}
	return sealed, err
}

// PutKeyring keeps a keyring in the place of the one before, durable on return. One that is not
// sealed is refused: whoever may read the database, or a backup of it, would have the keys.
func (w *World) PutKeyring(ctx context.Context, sealed []byte) error {
	if !receipt.Sealed(sealed) {
		return refuse(Unsealed, "world %s", w.id)
	}
	w.keeping.Lock()
	defer w.keeping.Unlock()
	return w.keep(ctx, sqlPutKeyring, []any{sealed}, new(int64))
}
