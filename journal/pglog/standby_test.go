package pglog

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// cancelWaits cancels the waits for a standby of all sessions until it has cancelled some, or
// what waits has ended.
func cancelWaits(t *testing.T, url string, some int, ended <-chan struct{}) {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // a test's
	for some > 0 {
		var n int
		require.NoError(t, conn.QueryRow(ctx, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n))
		some -= n
		select {
		case <-ended:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestACancelledWaitForAStandbyIsNoAnswer has commits wait for a standby that is not there, and
// cancels the waits: the server then answers as if all were well, with a warning.
func TestACancelledWaitForAStandbyIsNoAnswer(t *testing.T) {
	ctx := t.Context()
	server := pgtest.Start(t)
	url := server.URL(t)
	require.NoError(t, Init(ctx, url))
	run(t, url, "CREATE TABLE control (n int)")
	s := open(t, url, Options{})
	require.NoError(t, s.Create(ctx, "w", testKey))
	w := s.World("w", Claim{Key: testKey})
	_, err := w.Own(ctx)
	require.NoError(t, err)
	var c chain
	require.NoError(t, appended(w, c.batch(1, 10, "me")))

	standbys := func(setting string) {
		server.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = "+setting)
		server.Exec(t, "SELECT pg_reload_conf()")
	}
	t.Cleanup(func() { standbys("''") }) // what clears up would wait for it
	standbys("'gone'")
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // a test's
	ended, believed := make(chan struct{}), error(nil)
	go func() {
		defer close(ended)
		_, believed = conn.Exec(ctx, "INSERT INTO control VALUES (1)")
	}()
	cancelWaits(t, url, 1000, ended)
	<-ended
	require.NoError(t, believed, "the control: who looks at no warning believes it")

	b := c.batch(2, 10, "me")
	p, err := w.Append(b)
	require.NoError(t, err)
	cancelWaits(t, url, 5, p.(*pending).done)
	require.False(t, p.Done(), "nobody but this server has it")
	standbys("''")
	require.NoError(t, p.Wait())
	got, err := readAll(t, w)
	require.NoError(t, err)
	require.Len(t, got, 3)
}
