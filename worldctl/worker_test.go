package worldctl

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// workSize is how many cells, effects of each, and moments at which workers are
// killed or stopped a test has. WORKER_MOMENTS=100 is the full size.
func workSize(t *testing.T) (cells, effects, moments int) {
	t.Helper()
	if text := os.Getenv("WORKER_MOMENTS"); text != "" {
		moments, err := strconv.Atoi(text)
		require.NoError(t, err)
		return 50, max(moments/5, 1), moments
	}
	if testing.Short() {
		return 10, 6, 6
	}
	return 20, 8, 16
}

// workerProcess is a worker in a process of its own.
type workerProcess struct {
	t       *testing.T
	server  string
	token   string // file
	dir     string
	cmd     *exec.Cmd
	stopped bool
}

func (h *workerProcess) start() {
	h.t.Helper()
	h.cmd = exec.Command("worldctl", "worker", "--server", h.server, "--token-file", h.token, "--dir", h.dir, "--workers", "2", "-q")
	h.cmd.Stderr = h.t.Output()
	require.NoError(h.t, h.cmd.Start())
}

func (h *workerProcess) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
	h.stopped = false
}

func (h *workerProcess) signal(s syscall.Signal) {
	h.t.Helper()
	require.NoError(h.t, h.cmd.Process.Signal(s))
	h.stopped = s == syscall.SIGSTOP
}

// end lets it end by itself.
func (h *workerProcess) end() {
	h.t.Helper()
	if h.stopped {
		h.signal(syscall.SIGCONT)
	}
	h.signal(syscall.SIGTERM)
	if err := h.cmd.Wait(); err != nil {
		require.EqualError(h.t, err, "signal: terminated", "it had not begun to listen to signals")
	}
}

// hands are the workers of a world.
func hands(t *testing.T, n int, server, token string) []*workerProcess {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	var all []*workerProcess
	for range n {
		h := &workerProcess{t: t, server: server, token: file, dir: filepath.Join(t.TempDir(), "hand")}
		h.start()
		t.Cleanup(h.kill)
		all = append(all, h)
	}
	return all
}

// shop is a world that is run and served by this process.
type shop struct {
	*sinkWorld
	lw    *local.World
	url   string
	token string
	close func()

	mu       sync.Mutex
	acquired map[string]bool // names of attempts that a worker was sent
}

func newShop(t *testing.T, w *sinkWorld, lease time.Duration) *shop {
	t.Helper()
	s := &shop{sinkWorld: w, acquired: make(map[string]bool)}
	lw, err := local.Open(w.dir, local.Options{Adapters: released().Adapters, Remote: true, Lease: lease, Grace: lease})
	require.NoError(t, err)
	s.lw = lw
	token, hash := api.NewToken()
	tokens, err := api.ParseTokens([]byte("hand work " + hash + " *\n"))
	require.NoError(t, err)
	server, err := api.New(api.Config{Worlds: []*local.World{lw}, Tokens: tokens})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	end, err := attend(ctx, lw, released())
	require.NoError(t, err)
	var driving sync.WaitGroup
	driving.Go(func() {
		if _, err := lw.Drive(ctx, local.Course{Stay: true}); ctx.Err() == nil {
			t.Errorf("the world: %v", err)
		}
	})
	inner := server.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/acquire") {
			w = &overheard{w, s}
		}
		inner.ServeHTTP(w, r)
	}))
	s.url, s.token = web.URL, token
	s.close = sync.OnceFunc(func() {
		web.CloseClientConnections()
		web.Close()
		require.NoError(t, server.Close())
		cancel()
		driving.Wait()
		end()
		require.NoError(t, lw.Close())
	})
	t.Cleanup(s.close)
	return s
}

// overheard takes note of the attempts that are handed out.
type overheard struct {
	http.ResponseWriter
	shop *shop
}

func (o *overheard) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o *overheard) Write(b []byte) (int, error) {
	var offers api.Offers
	if json.Unmarshal(b, &offers) == nil {
		o.shop.mu.Lock()
		for _, x := range offers.Offers {
			o.shop.acquired[attemptName(x.Key.String(), x.Attempt)] = true
		}
		o.shop.mu.Unlock()
	}
	return o.ResponseWriter.Write(b)
}

// progress waits until so many more effects are committed, and reports false where
// nothing can happen before a person has decided.
func (s *shop) progress(effects int) bool {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	for goal := s.lw.Status().Intents[receipt.StateCommitted] + effects; ; {
		head := s.lw.Head().ID
		switch now := s.lw.Status(); {
		case now.Intents[receipt.StateCommitted] >= goal:
			return true
		case now.Idle:
			return false
		}
		require.NoError(s.t, s.lw.Await(ctx, head), "%v", s.lw.Status().Intents)
	}
}

// settleDoubts decides about what is in doubt. The workers have ended meanwhile, so
// that none of them is about to do what is said not to have happened.
func (s *shop) settleDoubts(all []*workerProcess, random *rand.Rand) (doubts int) {
	s.t.Helper()
	for _, h := range all {
		if random.IntN(2) == 0 {
			h.end()
		} else {
			h.kill()
		}
		h.stopped = false
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	for {
		// What was open goes to nobody, and waits until the workers are back.
		head := s.lw.Head().ID
		s.sink.settle()
		held := 0
		for _, in := range s.intents("--state", "in_flight") {
			if s.has(in) {
				held++
			}
		}
		if held == 0 {
			break
		}
		_ = s.lw.Await(ctx, head)
		require.NoError(s.t, ctx.Err())
	}
	for _, in := range s.intents("--state", "in_doubt") {
		require.True(s.t, s.has(in), "nobody has acquired it, and it is in doubt: %+v", in)
		doubts++
	}
	s.decide()
	for _, h := range all {
		h.start()
	}
	return doubts
}

// has reports whether a worker was sent the last attempt of an intent.
func (s *shop) has(in intentSeen) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acquired[attemptName(in.Key, in.Attempt)]
}

func attemptName(key string, attempt uint64) string { return fmt.Sprint(key, ":", attempt) }

// TestKilledAndStoppedWorkersDoNothingTwice is the promise of workers: at whatever
// moments they are killed or stopped, no effect happens twice, none is lost, and a
// person is asked only about what a worker had.
func TestKilledAndStoppedWorkersDoNothingTwice(t *testing.T) {
	t.Parallel()
	const lease = 400 * time.Millisecond
	cells, effects, moments := workSize(t)
	random := seeded(t)
	s := newShop(t, newSinkWorld(t, newSink(t, "-slow", "1", "-delay", "60ms"), cells, effects, 16, "external_key: per_attempt\n    timeout: 5s", ""), lease)
	all := hands(t, 3, s.url, s.token)
	var kills, stops, wakes, doubts, rounds int
	for i := 0; i < moments; {
		if !s.progress(random.IntN(max(cells*effects/moments, 1))) {
			if s.lw.Status().Intents[receipt.StateCommitted] == cells*effects {
				break
			}
			doubts += s.settleDoubts(all, random)
			rounds++
			continue
		}
		i++
		<-time.After(time.Duration(random.IntN(5000)) * time.Microsecond) // a random moment, not an event
		switch h := all[random.IntN(len(all))]; {
		case h.stopped:
			h.signal(syscall.SIGCONT)
			wakes++
		case random.IntN(2) == 0:
			h.kill()
			h.start()
			kills++
		default:
			h.signal(syscall.SIGSTOP)
			stops++
			if random.IntN(3) == 0 || all[0].stopped && all[1].stopped && all[2].stopped {
				<-time.After(time.Duration(random.IntN(int(2 * lease)))) // some sleep for longer than their lease
				h.signal(syscall.SIGCONT)
				wakes++
			}
		}
	}
	for _, h := range all {
		if h.stopped {
			h.signal(syscall.SIGCONT)
		}
	}
	for s.lw.Status().Intents[receipt.StateCommitted] < cells*effects {
		if !s.progress(cells * effects) {
			doubts += s.settleDoubts(all, random)
			rounds++
		}
	}
	for _, h := range all {
		h.end()
	}
	s.close()
	_, returned := attempts(t, s.dir)
	s.exact(false)
	t.Logf("%d effects, %d kills, %d stops, %d wakes: 0 twice, 0 lost; %d in doubt, decided in %d rounds; %d attempts given back",
		cells*effects, kills, stops, wakes, doubts, rounds, returned)
}

// TestAQueueWithoutAFenceRepeats is what the sink sees where a worker's lease is all
// that there is: it tells that the test above can fail.
func TestAQueueWithoutAFenceRepeats(t *testing.T) {
	s := newSink(t)
	const effects = 20
	put := func(n int) {
		res, err := http.Post("http://"+s.addr+"/put", "application/json", strings.NewReader(fmt.Sprintf(`{"n": %d}`, n)))
		if err != nil {
			t.Error(err)
			return
		}
		_ = res.Body.Close()
	}
	for n := range effects {
		stopped := make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() { // it has acquired n, and is stopped
			<-stopped
			put(n)
		})
		both.Go(func() { // the lease has run out: n is handed out again
			put(n)
			close(stopped)
		})
		both.Wait()
	}
	seen := make(map[int]int)
	for _, p := range s.puts() {
		seen[p.N]++
	}
	for n := range effects {
		require.Equal(t, 2, seen[n])
	}
}

// TestKilledServerAndWorkersLoseNothing kills the server, too.
func TestKilledServerAndWorkersLoseNothing(t *testing.T) {
	t.Parallel()
	const cells, effects, kills = 6, 5, 4
	random := seeded(t)
	w := newSinkWorld(t, newSink(t), cells, effects, 8, "external_key: per_attempt\n    timeout: 5s", "")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	tokens := filepath.Join(t.TempDir(), "tokens")
	token := strings.TrimSpace(string(worldctl(t, nil, "token", "new", "hand", "--scope", "work", "--file", tokens)))
	var server *exec.Cmd
	serve := func() {
		server = exec.Command("worldctl", "-w", w.dir, "serve", "--remote-workers", "--addr", addr, "--token-file", tokens, "-q")
		server.Stderr = t.Output()
		out, err := server.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, server.Start())
		require.True(t, bufio.NewScanner(out).Scan(), "it says where it is")
	}
	serve()
	t.Cleanup(func() { _ = server.Process.Kill() })
	all := hands(t, 2, "http://"+addr, token)
	idle := func() bool {
		var status struct {
			Idle bool `json:"idle"`
		}
		out, err := exec.Command("worldctl", "-w", w.dir, "status", "-o", "json").Output()
		return err == nil && json.Unmarshal(out, &status) == nil && status.Idle
	}
	decide := func() (doubts int) {
		for _, h := range all {
			h.end()
		}
		doubts = len(w.intents("--state", "in_doubt"))
		w.decide()
		for _, h := range all {
			h.start()
		}
		return doubts
	}
	for range kills {
		more := len(w.sink.arrived) + 1 + random.IntN(cells*effects/kills)
		require.Eventually(t, func() bool { return len(w.sink.arrived) >= more || idle() }, 10*time.Minute, 10*time.Millisecond)
		if len(w.sink.arrived) < more {
			decide()
		}
		if h := all[random.IntN(2)]; random.IntN(2) == 0 {
			h.kill()
			h.start()
		}
		require.NoError(t, server.Process.Kill())
		_ = server.Wait()
		serve()
	}
	for {
		require.Eventually(t, idle, 10*time.Minute, 10*time.Millisecond)
		if decide() == 0 {
			break
		}
	}
	for _, h := range all {
		h.end()
	}
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
	w.exact(false)
}

func TestAWorkerSaysWhatItNeeds(t *testing.T) {
	t.Setenv("WORLDCTL_TOKEN", "")
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	require.NoError(t, os.WriteFile(open, []byte("wk_x\n"), 0o644))
	for _, args := range [][]string{
		{}, {"--server", "http://127.0.0.1:1"}, {"--server", "http://127.0.0.1:1", "-w", dir}, {"--server", "http://127.0.0.1:1", "--workers", "-1"},
	} {
		code, _, said := inProcess(t.Context(), append([]string{"worker", "--dir", dir}, args...)...)
		require.Equal(t, exitUsage, code, said)
		require.Contains(t, said, "hint: ")
	}
	code, _, said := inProcess(t.Context(), "worker", "--dir", dir, "--server", "http://127.0.0.1:1", "--token-file", open)
	require.Equal(t, exitFailed, code, said)
	require.Contains(t, said, "chmod 600")
	require.NoDirExists(t, filepath.Join(dir, ".worker"))
}

func TestCtrlCEndsAWorkerCleanly(t *testing.T) {
	w := newSinkWorld(t, newSink(t), 2, 2, 8, "external_key: per_attempt", "")
	s := newShop(t, w, time.Minute)
	t.Setenv("WORLDCTL_TOKEN", s.token)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var said string
	go func() {
		code, _, text := inProcess(ctx, "worker", "--dir", t.TempDir(), "--server", s.url)
		said = text
		ended <- code
	}()
	require.True(t, s.progress(4))
	interrupt()
	require.Equal(t, exitInterrupted, <-ended)
	require.Contains(t, said, "working for a world")
	require.Contains(t, said, "hint: what it has and the server has not is handed in by the next worker in ")
	require.NotContains(t, said, s.token)
	require.Empty(t, w.intents("--state", "in_doubt"))

	code, _, text := inProcess(t.Context(), "worker", "--dir", t.TempDir(), "--server", s.url, "--world-id", "elsewhere")
	require.Equal(t, exitFailed, code, text)
	require.Contains(t, text, "hint: ")
	s.close()
	s.exact(false)
}
