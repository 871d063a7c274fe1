// Package pgtest starts PostgreSQL for tests, from what is installed: in a directory of its own, on a
// socket in there and no port, and durable as it comes, for a store on anything less is refused. A
// test process has one server, and a test a database of its own. It is a part of worldctl, and not an
// API.
//
// The server ends with the process that started it, however that ends: it is under a shell
// that waits for a pipe to be closed. What measures PostgreSQL has a server by Run.
package pgtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
)

// Binaries names the environment variable with the directory that postgres and initdb lie in.
// Where it is empty they are those of the newest version that Debian has installed.
const Binaries = "PG_BIN"

// startPatience is how long a server may take to accept connections, recovery included.
const startPatience = 5 * time.Minute

// Server is a PostgreSQL server of this process.
type Server struct {
	Dir      string // its socket lies here; its data is in data
	bin      string
	settings []string

	mu    sync.Mutex
	stdin io.Closer // of the shell that holds it; nil: it is stopped
	shell *exec.Cmd
}

// one is the server that the tests of a process share.
type one struct {
	sync.Once
	server *Server
	err    error
}

var (
	shared   one          //nolint:gochecknoglobals // a test process has one server
	database atomic.Int64 //nolint:gochecknoglobals // names databases
)

// ErrNone says that a test of PostgreSQL can not run here.
var ErrNone = errors.New("PostgreSQL is not installed: apt-get install postgresql, or say in " + Binaries + " where its binaries are")

// URL returns the URL of an empty database on the server that the tests of this process
// share. It skips the test where PostgreSQL is not installed.
func URL(t testing.TB) string {
	t.Helper()
	return Shared(t).URL(t)
}

// Shared returns the server shared by the tests of a package. Nobody may stop it.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Do(func() { shared.server, shared.err = Run(InMemory()) })
	check(t, shared.err)
	return shared.server
}

// Start starts a server for one test, with settings such as "fsync=off" beside those that
// PostgreSQL comes with. It skips the test where PostgreSQL is not installed.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := Run(InMemory(), settings...)
	check(t, err)
	t.Cleanup(s.Close)
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrNone) {
		t.Skip("a PostgreSQL for tests: " + err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// URL returns the URL of a new, empty database, which is there until the test ends.
func (s *Server) URL(t testing.TB) string {
	t.Helper()
	name, err := s.database()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.exec("DROP DATABASE " + name + " WITH (FORCE)") }) // a server may be gone, or read-only
	return s.url(name)
}

// Database returns the URL of a new, empty database, which is there until Close.
func (s *Server) Database() (string, error) {
	name, err := s.database()
	return s.url(name), err
}

func (s *Server) database() (string, error) {
	name := "t" + strconv.FormatInt(database.Add(1), 10)
	if err := s.exec("CREATE DATABASE " + name); err != nil {
		return "", fmt.Errorf("a PostgreSQL for tests: a database: %w", err)
	}
	return name, nil
}

func (s *Server) url(name string) string {
	return "postgres:///" + name + "?user=postgres&host=" + url.QueryEscape(s.Dir)
}

// Exec runs a statement as a superuser, in the database postgres.
func (s *Server) Exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	if err := s.exec(statement, args...); err != nil {
		t.Fatalf("a PostgreSQL for tests: %s: %v", statement, err)
	}
}

func (s *Server) exec(statement string, args ...any) error {
	ctx := context.Background() // of a test that may be over
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement, args...)
	return errors.Join(err, conn.Close(ctx))
}

// Crash stops the server at once, as a power cut of its process would, and starts it again:
// it recovers from its log.
func (s *Server) Crash(t testing.TB) {
	t.Helper()
	s.stopServer("keep\n")
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

// Close stops the server at once, and removes its data.
func (s *Server) Close() { s.stopServer("") }

// Stop stops the server at once. Its data stays until the test ends.
func (s *Server) Stop() { s.stopServer("keep\n") }

// binaries returns the directory with the newest installed postgres.
func binaries() (string, error) {
	if dir := os.Getenv(Binaries); dir != "" {
		return dir, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrNone
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })), nil
}

// Run starts a server below a directory that the server's user may enter (empty: the temporary
// directory); Close stops it.
func Run(dir string, settings ...string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	s, err := newServer(dir, bin, settings)
	if err != nil {
		return nil, err
	}
	if err := s.initialize(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	if err := s.run(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	return s, nil
}

// newServer makes the directory of a server that has no data yet.
func newServer(dir, bin string, settings []string) (*Server, error) {
	dir, err := os.MkdirTemp(dir, "pg") // short: a socket's path has 107 bytes
	if err != nil {
		return nil, fmt.Errorf("a PostgreSQL for tests: %w", err)
	}
	who, err := credential()
	if err == nil && who != nil {
		err = os.Chown(dir, int(who.Uid), int(who.Gid))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a PostgreSQL for tests: %w", err), os.RemoveAll(dir))
	}
	return &Server{Dir: dir, bin: bin, settings: settings}, nil
}

func (s *Server) initialize() error {
	who, err := credential()
	if err != nil {
		return err
	}
	initdb := s.command(who, filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--wal-segsize=4")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("a PostgreSQL for tests: initdb: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) command(who *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.Dir
	// A group of its own: who interrupts the tests leaves it to the shell.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true}
	return cmd
}

// credential returns who runs the server where this process is root, which PostgreSQL
// refuses; nil: this process may.
func credential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // there is none to change to
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("a PostgreSQL for tests: user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("a PostgreSQL for tests: root may not run PostgreSQL, and there is neither a user postgres nor nobody")
}

// hold runs a server until a line comes in, or the process that would send one has ended:
// then its directory goes, too. The server's children may outlive it by a moment, and still write there. The
// empty directory itself can stay where the server's user may not write beside it: stopServer removes it.
const hold = `dir=$1; shift
"$@" >>"$dir/log" 2>&1 &
if read -r line; then kill -QUIT $!; wait $!; else kill -QUIT $!; wait $!; cd /; for n in $(seq 600); do rm -rf "$dir" 2>/dev/null; [ -z "$(ls -A "$dir" 2>/dev/null)" ] && break; sleep 0.1; done; fi`

// Beside runs another program as the user that runs the server, until the test ends, and returns
// when it listens on a socket.
func (s *Server) Beside(t testing.TB, socket, name string, args ...string) {
	t.Helper()
	who, err := credential()
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command(who, name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = backoff.Retry(context.Background(), func() (struct{}, error) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, conn.Close()
	}, backoff.WithBackOff(backoff.NewConstantBackOff(20*time.Millisecond)), backoff.WithMaxElapsedTime(startPatience))
	if err != nil {
		t.Fatal(err)
	}
}

func (s *Server) run() error {
	who, err := credential()
	if err != nil {
		return err
	}
	args := []string{
		"-c", hold, "sh", s.Dir, filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.Dir,
		"-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "min_wal_size=16MB", "-c", "max_wal_size=128MB",
	}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	shell := s.command(who, "/bin/sh", args...)
	stdin, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		return fmt.Errorf("a PostgreSQL for tests: %w", err)
	}
	s.mu.Lock()
	s.stdin, s.shell = stdin, shell
	s.mu.Unlock()
	if err := s.await(); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
		s.stopServer("")
		return fmt.Errorf("a PostgreSQL for tests: the server does not start: %w\n%s", err, bytes.TrimSpace(log))
	}
	return nil
}

// await returns when the server accepts connections.
func (s *Server) await() error {
	_, err := backoff.Retry(context.Background(), func() (struct{}, error) {
		conn, err := pgx.Connect(context.Background(), s.url("postgres"))
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, conn.Close(context.Background())
	}, backoff.WithBackOff(backoff.NewConstantBackOff(20*time.Millisecond)), backoff.WithMaxElapsedTime(startPatience))
	return err
}

// remove removes the server's directory. The server's children may outlive it by a moment, and still write there.
func (s *Server) remove() error {
	_, err := backoff.Retry(context.Background(), func() (struct{}, error) { return struct{}{}, os.RemoveAll(s.Dir) },
		backoff.WithBackOff(backoff.NewConstantBackOff(100*time.Millisecond)), backoff.WithMaxElapsedTime(startPatience))
	return err
}

// stopServer stops the server; what is said to its shell decides whether the directory stays.
func (s *Server) stopServer(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shell != nil {
		if w, ok := s.stdin.(io.Writer); ok && line != "" {
			_, _ = io.WriteString(w, line)
		}
		_ = s.stdin.Close()
		_ = s.shell.Wait() // what a server says that was stopped at once is no news
		s.stdin, s.shell = nil, nil
	}
	if line == "" {
		_ = s.remove()
	}
}
