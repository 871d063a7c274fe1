package kill

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// member is one of the nodes, which is started again and again under its name.
type member struct {
	cluster *cluster
	name    string
	link    *link // to the database
	process *exec.Cmd
	ending  atomic.Bool    // because the test wants it
	heard   sync.WaitGroup // who reads what it says
}

// lastWords is how many of the last lines that a process has said are told where it ends by itself.
const lastWords = 40

// start starts the process, and returns when it serves: one that cannot reach its store then ends, and
// is for who looks after it to start again.
func (m *member) start() {
	k := m.cluster
	k.t.Helper()
	m.process = exec.Command(k.program, "serve", "--node", m.name, "--copies", filepath.Join(k.dir, m.name),
		"--lease", k.lease.String(), "--idle", "1h", "-o", "json")
	m.process.Env = append(os.Environ(), "WORLDCTL_STORE="+m.link.url(k.url), "WORLDCTL_PASSPHRASE=open", "HOME="+k.dir)
	stderr, err := m.process.StderrPipe()
	require.NoError(k.t, err)
	stdout, err := m.process.StdoutPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, m.process.Start())
	m.ending.Store(false)
	m.heard.Go(func() { m.listen(stderr) })
	says := bufio.NewReader(stdout)
	for line := ""; err == nil && !strings.Contains(line, `"url"`); {
		line, err = says.ReadString('\n')
	}
	m.heard.Go(func() { _, _ = io.Copy(io.Discard, says) })
}

// listen reads what the process says of the worlds that it owns.
func (m *member) listen(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var last []string
	for lines.Scan() {
		if last = append(last, lines.Text()); len(last) > 2*lastWords {
			last = slices.Delete(last, 0, lastWords)
		}
		var said struct {
			Msg, Level, World, Why string
			Epoch                  int
			Error                  any
		}
		if json.Unmarshal(lines.Bytes(), &said) != nil {
			continue
		}
		switch {
		case said.Msg == "owns a world":
			m.cluster.owns(m, said.World, said.Epoch)
		case said.Msg == "owns a world no more" && said.Error == nil && said.Why != "fenced" && said.Why != "failed":
			m.cluster.gives(m, said.World, said.Epoch)
		case said.Level == "ERROR" && os.Getenv("SAID") != "":
			m.cluster.t.Logf("%s: %s", m.name, lines.Text())
		}
	}
	if !m.ending.Load() {
		m.cluster.t.Errorf("%s ended by itself, and said last:\n%s", m.name, strings.Join(last, "\n"))
	}
}

// kill kills the process, if there is one, and what it has said is known then.
func (m *member) kill() {
	if m.process == nil {
		return
	}
	m.ending.Store(true)
	_ = m.process.Process.Kill()
	m.wait()
}

func (m *member) wait() {
	m.heard.Wait()
	_ = m.process.Wait() // it was killed
	m.process = nil
}

// end ends the process as who runs it would, and has it give its worlds up.
func (m *member) end() {
	m.cluster.t.Helper()
	m.ending.Store(true)
	require.NoError(m.cluster.t, m.process.Process.Signal(syscall.SIGTERM))
	m.wait()
}

func (m *member) stop() {
	m.cluster.t.Helper()
	require.NoError(m.cluster.t, m.process.Process.Signal(syscall.SIGSTOP))
}

func (m *member) goOn() {
	m.cluster.t.Helper()
	require.NoError(m.cluster.t, m.process.Process.Signal(syscall.SIGCONT))
}

// link passes connections of one process on to the database.
type link struct {
	server *pgtest.Server
	listen net.Listener
	gate   sync.RWMutex // held, to read, by who passes something on
	work   sync.WaitGroup

	mu    sync.Mutex
	away  bool // nothing comes through, and no connection lasts
	conns map[net.Conn]bool
	catch *caught // the next change of attempts; nil: none
}

// caught is a change of attempts that waits, and all with it that its process asks of the database.
type caught struct {
	came   chan struct{} // closed when it has
	let    chan struct{} // closed when it may arrive
	answer bool          // it arrives at once, and its answer waits
}

// changesAttempts is in each change of attempts.
const changesAttempts = "INTO worldkernel.attempt AS a"

func newLink(t *testing.T, server *pgtest.Server) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	x := &link{server: server, listen: l, conns: map[net.Conn]bool{}}
	x.work.Go(x.accept)
	t.Cleanup(func() {
		_ = l.Close()
		x.cut()
		x.work.Wait()
	})
	return x
}

// url leads to a database of the server through the link.
func (x *link) url(direct string) string {
	_, rest, _ := strings.Cut(direct, "postgres:///")
	name, _, _ := strings.Cut(rest, "?")
	return "postgres://postgres@" + x.listen.Addr().String() + "/" + name + "?sslmode=disable"
}

func (x *link) accept() {
	for {
		client, err := x.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", filepath.Join(x.server.Dir, ".s.PGSQL.5432"))
		if err != nil || !x.keep(client, server) {
			_ = client.Close()
			continue
		}
		free, asked := new(atomic.Bool), new(atomic.Bool)
		x.work.Go(func() { x.pass(client, server, free, asked) })
		x.work.Go(func() { x.pass(server, client, free, asked) })
	}
}

// keep has two ends of a connection closed when the link is cut; false: it is.
func (x *link) keep(client, server net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.away {
		_ = server.Close()
		return false
	}
	x.conns[client], x.conns[server] = true, true
	return true
}

// pass passes on what one side says, while the gate is open, or while this connection is free of it. Asked says
// that what the server says next answers a change of attempts.
func (x *link) pass(from, to net.Conn, free, asked *atomic.Bool) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		switch {
		case err != nil:
		case bytes.Contains(b[:n], []byte(changesAttempts)):
			asked.Store(!x.hold(free, false))
		case asked.CompareAndSwap(true, false):
			x.hold(free, true)
		}
		exempt := free.Load()
		if !exempt {
			x.gate.RLock()
		}
		if err == nil {
			_, err = to.Write(b[:n])
		}
		if !exempt {
			x.gate.RUnlock()
		}
		if err != nil {
			_, _ = from.Close(), to.Close()
			x.mu.Lock()
			delete(x.conns, from)
			x.mu.Unlock()
			return
		}
	}
}

// cut closes all connections, and lets none be made until heal.
func (x *link) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.away = true
	for c := range x.conns {
		_ = c.Close()
	}
}

// hold closes the gate and waits, if this is what is to be caught. Then the connection is free of it.
func (x *link) hold(free *atomic.Bool, answer bool) bool {
	x.mu.Lock()
	c := x.catch
	if c == nil || c.answer != answer {
		x.mu.Unlock()
		return false
	}
	x.catch = nil
	x.mu.Unlock()
	x.gate.Lock()
	free.Store(true)
	close(c.came)
	<-c.let
	return true
}

// holdUp has the next change of attempts wait, or its answer, and everything with it; nil: none came in time.
func (x *link) holdUp(within time.Duration, answer bool) *caught {
	c := &caught{make(chan struct{}), make(chan struct{}), answer}
	x.mu.Lock()
	x.catch = c
	x.mu.Unlock()
	select {
	case <-c.came:
		return c
	case <-time.After(within):
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.catch == nil {
		<-c.came
		return c
	}
	x.catch = nil
	return nil
}

// stall has everything wait, and arrive with heal.
func (x *link) stall() { x.gate.Lock() }

func (x *link) heal() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.away {
		x.gate.Unlock()
	}
	x.away = false
}

// sink is the outside, which counts what is done there.
type sink struct {
	server *httptest.Server

	mu    sync.Mutex
	made  map[payment]int
	ended map[string]bool // cells that have paid all
	keys  map[string]bool // of payments
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{made: map[payment]int{}, ended: map[string]bool{}, keys: map[string]bool{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(s.server.Close)
	return s
}

func (s *sink) port() string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.server.URL, "http://"))
	return port
}

// take does what is asked for, and takes its time to say so.
func (s *sink) take(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/seen" {
		s.seen(w, r)
		return
	}
	var p payment
	if json.NewDecoder(r.Body).Decode(&p) != nil {
		return // it was cut
	}
	s.mu.Lock()
	if r.URL.Path == "/done" {
		s.ended[p.Cell] = true
	} else {
		s.made[p]++
		s.keys[unattempted(r.Header.Get("Idempotency-Key"))] = true
	}
	slow := time.Duration(len(s.made)%8) * 50 * time.Millisecond
	s.mu.Unlock()
	<-time.After(slow)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}")) // nobody may be there to read it
}

// seen tells a verifier whether a payment was made.
func (s *sink) seen(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.keys[unattempted(r.URL.Query().Get("key"))] {
		http.NotFound(w, r)
	}
}

func (s *sink) paid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.made)
}

func (s *sink) done() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ended)
}

// times is how many different payments of a cell were made.
func (s *sink) times(cell string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.made { // order cannot show: they are counted
		if p.Cell == cell {
			n++
		}
	}
	return n
}

// twice are the payments that were made more than once.
func (s *sink) twice() (all []payment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, n := range s.made { // order cannot show: there should be none
		if n > 1 {
			all = append(all, p)
		}
	}
	return all
}
