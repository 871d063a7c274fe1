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
)

// Standby starts a server that follows this one over the wire, until the test ends. A
// commit waits for it where Synchronous says so.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby, err := newServer("", s.bin, s.settings)
	check(t, err)
	t.Cleanup(func() { standby.end("") })
	check(t, s.copyTo(standby.data(), "-R", "-X", "stream"))
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

// Backup takes a base backup, and returns where it lies.
func (s *Server) Backup(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(s.Dir, "backup")
	check(t, os.RemoveAll(dir))
	check(t, s.copyTo(dir, "-X", "fetch"))
	return dir
}

// Restore puts the server back to a backup: what came after it is gone.
func (s *Server) Restore(t testing.TB, backup string) {
	t.Helper()
	s.Stop()
	check(t, os.RemoveAll(s.data()))
	who, err := credential()
	check(t, err)
	if out, err := s.command(who, "cp", "-a", backup, s.data()).CombinedOutput(); err != nil {
		t.Fatalf("a PostgreSQL for tests: %v\n%s", err, out)
	}
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

func (s *Server) copyTo(dir string, options ...string) error {
	who, err := credential()
	if err != nil {
		return err
	}
	args := append([]string{"-D", dir, "-h", s.Dir, "-U", "postgres", "-c", "fast", "--no-sync"}, options...)
	if out, err := s.command(who, filepath.Join(s.bin, "pg_basebackup"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("a PostgreSQL for tests: pg_basebackup: %w\n%s", err, out)
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
