package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestEveryPeerPerformsTheEffects has each do little. The work itself counts what was
// performed.
func TestEveryPeerPerformsTheEffects(t *testing.T) {
	for name := range peers() {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.NoError(t, answer(t.Context(), []string{"-peer", name, "-cells", "3", "-effects", "4"}, &out))
			var c cost
			require.NoError(t, json.Unmarshal([]byte(out.String()), &c))
			require.NotEmpty(t, c.Promise)
			if c.Skipped != "" {
				t.Skip(c.Skipped)
			}
			require.Positive(t, c.Wall)
			require.Positive(t, c.CPU)
		})
	}
}

// TestServerThatDoesNotSyncIsRefused has PostgreSQL commit without waiting for the disk.
func TestServerThatDoesNotSyncIsRefused(t *testing.T) {
	var w work
	err := w.in("", func() error {
		p, err := startPostgres(t.Context(), w.dir)
		if _, absent := errors.AsType[absentError](err); absent {
			t.Skip(err)
		}
		require.NoError(t, err)
		defer p.stop()
		require.NoError(t, p.durable(t.Context()))
		c, err := pgx.Connect(t.Context(), p.url)
		require.NoError(t, err)
		_, err = c.Exec(t.Context(), "ALTER ROLE bench SET synchronous_commit = off")
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
		require.EqualError(t, p.durable(t.Context()), "PostgreSQL is not durable: fsync is on, synchronous_commit is off")
		return nil
	})
	require.NoError(t, err)
	require.NoDirExists(t, w.dir)
}

// TestEffectsThatWereNotPerformedAreAnError has cells that do nothing.
func TestEffectsThatWereNotPerformedAreAnError(t *testing.T) {
	w := work{cells: 2, effects: 3}
	err := w.measure(t.Context(), withinProcess, func(ctx context.Context, _ int) error {
		_, err := w.Perform(ctx, 0)
		return err
	})
	require.EqualError(t, err, "2 effects were performed, not 6")
}

func TestUnknownPeerIsRefused(t *testing.T) {
	require.ErrorContains(t, answer(t.Context(), []string{"-peer", "cron"}, io.Discard), `"cron" is no peer`)
}
