package worldctl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// put is one request as the sink logs it. Key is the idempotency key.
type put struct {
	Cell string `json:"cell"`
	N    int    `json:"n"`
	Key  string `json:"key"`
}

// sinkMain is the program sink: an HTTP server on loopback that logs and syncs
// every request before it answers. It prints its address, then a line for each
// request. GET /settle answers when no other connection is open: then everything
// that was sent is in the log.
func sinkMain() {
	addr := flag.String("addr", "127.0.0.1:0", "")
	file := flag.String("log", "", "")
	slow := flag.Uint64("slow", 0, "delay every Nth answer")
	delay := flag.Duration("delay", 0, "")
	deaf := flag.Bool("deaf", false, "do nothing and answer nothing")
	flag.Parse()
	log, err := os.OpenFile(*file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if err := cutTorn(*file); err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())

	var requests atomic.Uint64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /put", func(w http.ResponseWriter, r *http.Request) {
		if *deaf {
			<-r.Context().Done()
			return
		}
		var p put
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.Key = r.Header.Get("Idempotency-Key")
		line, err := json.Marshal(p)
		if err == nil {
			_, err = log.Write(append(line, '\n'))
		}
		if err == nil {
			err = log.Sync()
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Key)
		if *slow > 0 && requests.Add(1)%*slow == 0 {
			time.Sleep(*delay) //nolint:forbidigo // it is slow
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"n": %d}`, p.N)
	})
	var open connections
	mux.HandleFunc("GET /settle", func(http.ResponseWriter, *http.Request) { open.alone() })
	server := http.Server{Handler: mux, ConnState: open.changed}
	panic(server.Serve(listener))
}

// cutTorn takes the end of a line away that a killed sink began: a write stops
// between two pages then. What is not in the log whole was not answered.
func cutTorn(log string) error {
	data, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	return os.Truncate(log, int64(bytes.LastIndexByte(data, '\n')+1))
}

// connections counts those that are open.
type connections struct {
	mu   sync.Mutex
	n    int
	less *sync.Cond
}

func (c *connections) changed(_ net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s {
	case http.StateNew: // told before the next connection is accepted
		c.n++
	case http.StateClosed:
		c.n--
		if c.less != nil {
			c.less.Broadcast()
		}
	}
}

// alone returns when one connection is open: the caller's.
func (c *connections) alone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.less == nil {
		c.less = sync.NewCond(&c.mu)
	}
	for c.n > 1 {
		c.less.Wait()
	}
}

// sink is a sink in a process of its own, and its log, which outlives it.
type sink struct {
	t       *testing.T
	addr    string
	log     string
	args    []string
	cmd     *exec.Cmd
	drained chan struct{}
	arrived chan struct{} // for each request
}

// newSink starts a sink; args are its flags besides -addr and -log.
func newSink(t *testing.T, args ...string) *sink {
	t.Helper()
	s := &sink{
		t: t, addr: "127.0.0.1:0", log: filepath.Join(t.TempDir(), "sink.jsonl"), args: args,
		arrived: make(chan struct{}, 1<<16),
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *sink) start() {
	s.t.Helper()
	s.cmd = exec.Command("sink", append([]string{"-addr", s.addr, "-log", s.log}, s.args...)...)
	s.cmd.Stderr = s.t.Output()
	out, err := s.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	said := bufio.NewScanner(out)
	require.True(s.t, said.Scan(), "the sink says where it listens")
	s.addr = said.Text() // a killed one comes back where it was
	s.drained = make(chan struct{})
	go func() {
		defer close(s.drained)
		for said.Scan() {
			s.arrived <- struct{}{}
		}
	}()
}

// kill ends the sink with SIGKILL.
func (s *sink) kill() {
	_ = s.cmd.Process.Kill()
	<-s.drained
	_ = s.cmd.Wait()
}

func (s *sink) port() string {
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(s.t, err)
	return port
}

// settle returns when all that was sent to the sink is in its log. Nobody may
// go on sending.
func (s *sink) settle() {
	s.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + s.addr + "/settle")
	require.NoError(s.t, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, res.Body.Close())
}

// puts returns what is in the log.
func (s *sink) puts() []put {
	s.t.Helper()
	data, err := os.ReadFile(s.log)
	require.NoError(s.t, err)
	return jsonLines[put](s.t, data)
}

// await returns when so many more requests have come, or when a process has
// ended before, and with what.
func (s *sink) await(requests int, done <-chan error) (ended bool, err error) {
	for range requests {
		select {
		case <-s.arrived:
		case err := <-done:
			return true, err
		}
	}
	return false, nil
}
