package pglog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Between tries, where the server can not be reached, or does not do what it is asked.
const (
	firstPause = 10 * time.Millisecond
	longPause  = time.Second
)

// insist asks until it is answered, for as long as the store's patience lasts. What it asks may
// take effect twice. Answers are no error, pgx.ErrNoRows, and what will not change.
func (s *Store) insist(ctx context.Context, ask func(context.Context) error) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.opts.Patience)
	defer cancel()
	pauses := newPauses()
	for {
		err := ask(ctx)
		if err == nil || errors.Is(err, pgx.ErrNoRows) || lasting(err) {
			return refusedBy(err)
		}
		if !pause(ctx, pauses) {
			return fmt.Errorf("pglog: no answer in %v: %w", time.Since(began).Round(time.Millisecond), refusedBy(err))
		}
	}
}

// all insists on an answer, and returns what read makes of its rows.
func all[T any](ctx context.Context, s *Store, sql string, args []any, read func(r pgx.Rows, v *T) error) (out []T, err error) {
	err = s.insist(ctx, func(ctx context.Context) error {
		out = nil
		return s.rows(ctx, sql, args, func(r pgx.Rows) error {
			var v T
			err := read(r, &v)
			out = append(out, v)
			return err
		})
	})
	return out, err
}

// insist is that of the store, and names the world where a row of it is damaged.
func (w *World) insist(ctx context.Context, ask func(context.Context) error) error {
	return inWorld(w.id, w.store.insist(ctx, ask))
}

// inWorld names the world in which something is damaged, where it is not named yet.
func inWorld(id string, err error) error {
	if damaged, ok := errors.AsType[*DamageError](err); ok && damaged.World == "" {
		damaged.World = id
	}
	return err
}

// unreadable makes a *DamageError of what a column says where it can not say so: it is not asked
// for again.
func unreadable(err error) error {
	var column pgx.ScanArgError
	var said *pgconn.PgError
	switch {
	case errors.As(err, &column):
		return &DamageError{What: "column " + column.FieldName, Err: column.Err}
	case errors.As(err, &said) && (strings.HasPrefix(said.Code, "22") || said.Code == "0A000"): // data exception, of what is there; infinity is none since PostgreSQL 17
		return &DamageError{What: "a row", Err: err}
	}
	return err
}

// lasting reports whether asking again would be answered by the same.
func lasting(err error) bool {
	if errors.As(err, new(*RefusedError)) || errors.As(err, new(*DamageError)) {
		return true
	}
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return false // nothing was said: a connection was lost, or not made
	}
	if len(said.Code) != 5 {
		return false
	}
	switch said.Code[:2] {
	case "08", "40", "53", "57", "58", "55", "01":
		return false
	}
	return said.Code != "25006" // a standby may become the primary
}

func newPauses() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = firstPause, longPause
	return b
}

// pause waits, and returns false where nobody waits any longer.
func pause(ctx context.Context, pauses *backoff.ExponentialBackOff) bool {
	t := time.NewTimer(pauses.NextBackOff())
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
