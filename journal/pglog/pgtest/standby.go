package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
)

// Standby starts a server that follows this one over the wire, until the test ends. A
// commit waits for it where Synchronous says so.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby, err := newServer("", s.bin, s.settings)
	check(t, err)
	t.Cleanup(func() { standby.stopServer("") })
	check(t, s.copyTo(standby.data()))
	check(t, s.sh(`touch "$1/standby.signal" && echo "primary_conninfo = '$2'" >>"$1/postgresql.auto.conf"`, standby.data(), "user=postgres host="+s.Dir))
	check(t, standby.run())
	check(t, s.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'"))
	return standby
}

// Synchronous has commits wait for a standby.
func (s *Server) Synchronous(t testing.TB) {
	t.Helper()
	s.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	s.Exec(t, "SELECT pg_reload_conf()")
	check(t, s.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
}

// CaughtUp returns when the standby of a server has all that this has.
func (s *Server) CaughtUp(t testing.TB) {
	t.Helper()
	check(t, s.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"))
}

// Lag has a standby fall behind: it follows nobody any more, and does not know.
func (s *Server) Lag(t testing.TB) {
	t.Helper()
	s.Exec(t, "ALTER SYSTEM SET primary_conninfo = ''")
	s.Exec(t, "SELECT pg_reload_conf()")
	check(t, s.until("SELECT count(*) = 0 FROM pg_stat_wal_receiver"))
}

// Promote makes a standby a server of its own.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = ''") // nobody follows it
	s.Exec(t, "SELECT pg_reload_conf()")
	s.Exec(t, "SELECT pg_promote()")
}

// Backup takes a base backup, and returns its directory.
func (s *Server) Backup(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(s.Dir, "backup")
	check(t, os.RemoveAll(dir))
	check(t, s.copyTo(dir))
	return dir
}

// Restore puts the server back to a backup: what came after it is gone.
func (s *Server) Restore(t testing.TB, backup string) {
	t.Helper()
	s.Stop()
	check(t, os.RemoveAll(s.data()))
	check(t, s.sh(`cp -a "$1" "$2"`, backup, s.data()))
	check(t, s.run())
}

// URLOf returns the URL of a database that is on several servers: whoever connects is led to
// the one that takes writes.
func URLOf(url string, servers ...*Server) string {
	at, _, _ := strings.Cut(url, "?")
	hosts := make([]string, len(servers))
	for i, s := range servers {
		hosts[i] = s.Dir
	}
	return at + "?user=postgres&target_session_attrs=read-write&host=" + strings.Join(hosts, ",")
}

// copyTo takes a base backup of a server that runs, by PostgreSQL's own functions for that: not all
// that ships a server ships pg_basebackup.
func (s *Server) copyTo(dir string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it has answered
	if _, err := conn.Exec(ctx, "SELECT pg_backup_start('a test', fast => true)"); err != nil {
		return err
	}
	// What goes meanwhile is no part of it.
	if err := s.sh(`mkdir -m 700 "$2" && cd "$1" && find . -path ./pg_wal/\* -o -name postmaster.pid -o -print0 |
		tar -c --null --no-recursion -T - --warning=no-file-changed --ignore-failed-read -f - 2>/dev/null | tar -x -f - -C "$2"`, s.data(), dir); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)").Scan(&label); err != nil {
		return err
	}
	return s.sh(`cp -a "$1/pg_wal/." "$2/pg_wal/" && printf %s "$3" >"$2/backup_label"`, s.data(), dir, label)
}

// sh runs a script as the user that runs the server.
func (s *Server) sh(script string, args ...string) error {
	who, err := credential()
	if err != nil {
		return err
	}
	if out, err := s.command(who, "sh", append([]string{"-c", script, "sh"}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("a PostgreSQL for tests: %s: %w\n%s", script, err, out)
	}
	return nil
}

// until returns when a question is answered with yes.
func (s *Server) until(question string) error {
	_, err := backoff.Retry(context.Background(), func() (struct{}, error) {
		err := s.exec("DO $$ BEGIN IF NOT (" + question + ") THEN RAISE 'not yet'; END IF; END $$")
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(20*time.Millisecond)), backoff.WithMaxElapsedTime(startPatience))
	if err != nil {
		return errors.Join(errors.New(question), err)
	}
	return nil
}
