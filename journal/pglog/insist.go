package pglog

import (
	"context"
	"errors"
	"fmt"
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
	ctx, cancel := context.WithTimeout(ctx, s.opts.Patience)
	defer cancel()
	pauses := newPauses()
	for {
		err := ask(ctx)
		if err == nil || errors.Is(err, pgx.ErrNoRows) || lasting(err) {
			return refusedBy(err)
		}
		if !pause(ctx, pauses) {
			return fmt.Errorf("pglog: no answer in %v: %w", s.opts.Patience, refusedBy(err))
		}
	}
}

// lasting reports whether asking again would be answered by the same.
func lasting(err error) bool {
	var refused *RefusedError
	var damaged *DamageError
	if errors.As(err, &refused) || errors.As(err, &damaged) {
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
