package node_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// TestWorldsGoOnAfterTheDatabaseWasAway, was full, or took nobody: the node says that it is not well, and
// then all goes on by itself. GONE says for how many seconds it is so beyond what is needed to be told; after
// 30 a world that had something to write has stopped, and is opened again.
func TestWorldsGoOnAfterTheDatabaseWasAway(t *testing.T) {
	gone := time.Duration(number(t, "GONE", 0)) * time.Second
	for name, fault := range map[string]func(t *testing.T) (at *pgtest.Server, begin, end func()){
		"away":    away,
		"refuses": refuses,
		"full":    full,
	} {
		t.Run(name, func(t *testing.T) {
			server, begin, end := fault(t)
			one := run(t, createAt(t, server.URL(t), 2), "one", time.Hour)
			one.owns(2)
			add := func(ctx context.Context) error {
				for _, w := range one.service.Worlds() {
					if _, err := w.Local.Submit(ctx, "counter.added", map[string]any{"name": "tea", "by": 1}); err != nil {
						return err
					}
				}
				return nil
			}
			require.NoError(t, add(t.Context()))
			begin()
			asked, enough := make(chan error, 1), make(chan struct{})
			go func() { // until one waits, and may be told that nobody knows
				var err error
				for err == nil {
					select {
					case <-enough:
						asked <- nil
						return
					default:
						err = add(t.Context())
					}
				}
				asked <- err
			}()
			well := func() bool { return one.status("/healthz") == http.StatusOK }
			require.Eventually(t, func() bool { return !well() }, 3*time.Minute, 20*time.Millisecond)
			select {
			case <-t.Context().Done():
			case <-time.After(gone):
			}
			end()
			close(enough)
			t.Log("while it was so:", <-asked)
			require.Eventually(t, func() bool { return well() && len(one.worlds()) == 2 && add(t.Context()) == nil }, 3*time.Minute, 20*time.Millisecond)
		})
	}
}

func away(t *testing.T) (server *pgtest.Server, begin, end func()) {
	s := pgtest.Start(t)
	return s, s.Stop, func() { s.Crash(t) }
}

// refuses is as after a password was changed.
func refuses(t *testing.T) (server *pgtest.Server, begin, end func()) {
	s := pgtest.Start(t)
	file := filepath.Join(s.Dir, "data", "pg_hba.conf")
	rules, err := os.ReadFile(file)
	require.NoError(t, err)
	conn, err := pgx.Connect(context.Background(), s.URL(t)) // which is there already
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	put := func(text []byte) {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		_, err := conn.Exec(context.Background(), "SELECT pg_reload_conf(), pg_sleep(1)")
		require.NoError(t, err)
	}
	return s, func() {
		put([]byte("local all all reject\n"))
		_, err := conn.Exec(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'worldkernel'")
		require.NoError(t, err)
	}, func() { put(rules) }
}

// full is a disk on which nothing more goes.
func full(t *testing.T) (server *pgtest.Server, begin, end func()) {
	mount, err := os.MkdirTemp("", "full") //nolint:usetesting // short: a socket's path has 107 bytes
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(mount) })
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=160m,mode=777"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	s, err := pgtest.Run(mount)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	ballast := filepath.Join(mount, "ballast")
	return s, func() {
		var fs syscall.Statfs_t
		require.NoError(t, syscall.Statfs(mount, &fs))
		require.NoError(t, os.WriteFile(ballast, make([]byte, int(fs.Bavail)*int(fs.Bsize)), 0o600))
	}, func() { require.NoError(t, os.Remove(ballast)) }
}
