package pgtest

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestADatabaseATest(t *testing.T) {
	ctx := t.Context()
	for range 2 {
		conn, err := pgx.Connect(ctx, URL(t))
		require.NoError(t, err)
		_, err = conn.Exec(ctx, "CREATE TABLE t (n int)")
		require.NoError(t, err)
		require.NoError(t, conn.Close(ctx))
	}
}

func TestACrashLosesNothingThatWasCommitted(t *testing.T) {
	ctx := t.Context()
	s := Start(t)
	url := s.URL(t)
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "CREATE TABLE t AS SELECT 7 AS n")
	require.NoError(t, err)
	s.Crash(t)
	require.Error(t, conn.Ping(ctx), "the connection is gone")
	conn, err = pgx.Connect(ctx, url)
	require.NoError(t, err)
	var n int
	require.NoError(t, conn.QueryRow(ctx, "SELECT n FROM t").Scan(&n))
	require.Equal(t, 7, n)
}

func TestNothingIsLeftBehind(t *testing.T) {
	var dirs []string
	t.Run("inner", func(t *testing.T) {
		dirs = append(dirs, Start(t).Dir)
		stopped := Start(t)
		stopped.Stop()
		dirs = append(dirs, stopped.Dir)
	})
	for _, dir := range dirs {
		_, err := os.Stat(dir)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}
