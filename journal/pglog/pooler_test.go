package pglog

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// pooled starts PgBouncer in transaction mode before a server, with two connections to it, and
// returns the URL of a database through it.
func pooled(t *testing.T, server *pgtest.Server, direct string) string {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed: apt-get install pgbouncer")
	}
	dir, err := os.MkdirTemp("", "pb") //nolint:usetesting // short: a socket's path has 107 bytes
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	config := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
* = host=%s port=5432 user=postgres
[pgbouncer]
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
listen_addr =
unix_socket_dir = %s
listen_port = 5432
auth_type = any
ignore_startup_parameters = extra_float_digits
logfile = %s/log
`, server.Dir, dir, dir), 0o644))
	server.Beside(t, filepath.Join(dir, ".s.PGSQL.5432"), bin, "-q", config)
	return strings.Replace(direct, "host="+url.QueryEscape(server.Dir), "host="+url.QueryEscape(dir), 1)
}

// TestPostgresBehindAPoolerIsALog has a server's connection serve another client after every
// transaction: nothing that a session keeps would be there.
func TestPostgresBehindAPoolerIsALog(t *testing.T) {
	server := pgtest.Shared(t)
	direct := server.URL(t)
	through := pooled(t, server, direct)
	require.NoError(t, Init(t.Context(), through))
	one, two := open(t, through, Options{}), open(t, through, Options{})
	worlds := 0
	holdTo(t, func(t *testing.T) func() journal.Log {
		worlds++
		id := fmt.Sprintf("w%d", worlds)
		require.NoError(t, one.Create(t.Context(), id, testKey))
		next, other := one, two
		return func() journal.Log {
			next, other = other, next
			return next.World(id, Claim{Key: testKey, Take: true})
		}
	})
}
