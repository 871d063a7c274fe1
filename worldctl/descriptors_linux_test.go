package worldctl

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openOf counts the descriptors of a process.
func openOf(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	return len(entries)
}

// TestNoDescriptorLeftIsAnErrorOfOneRequest takes all descriptors of a server of two
// worlds, by connections that it was told to let in: what needs one is refused, or
// waits where it writes, and both worlds go on.
func TestNoDescriptorLeftIsAnErrorOfOneRequest(t *testing.T) {
	raced(t)
	const limit = 150
	a, b, tokens := newCounter(t, "a"), newCounter(t, "b"), filepath.Join(t.TempDir(), "tokens")
	secret := newToken(t, tokens, "ada", "read,submit")
	s, cmd := processOf(t, exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec worldctl "$@"`, limit), "sh", "serve", "-o", "json",
		a, b, "--token-file", tokens, "--limit", "connections=1000", "--limit", "connections.unknown=1000"))
	s.token = secret
	s.count("a") // over a connection that stays open
	var crowd []net.Conn
	free := func() {
		for _, conn := range crowd {
			require.NoError(t, conn.Close())
		}
		crowd = nil
	}
	fill := func() {
		for range 2 * limit {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			require.NoError(t, err)
			crowd = append(crowd, conn)
		}
		require.Eventually(t, func() bool { return openOf(t, cmd.Process.Pid) >= limit }, time.Minute, time.Millisecond)
	}
	many := func(world string, events int) (status int, answer string) {
		var lines strings.Builder
		for i := range events {
			fmt.Fprintf(&lines, `{"event": "counter.added", "data": {"name": "k%d", "by": 1}}`+"\n", i%500)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/worlds/"+world+"/events", strings.NewReader(lines.String()))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+s.token)
		req.Header.Set("Content-Type", "application/x-ndjson")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close() //nolint:errcheck // it was only read
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(text)
	}
	fill()
	status, answer := many("b", 25_000) // which takes a file
	require.Equal(t, http.StatusServiceUnavailable, status, answer)
	require.Contains(t, answer, "urn:worldkernel:problem:no-descriptors")
	s.count("a")
	s.count("b")
	asked := make(chan int, 1) // another process, which has its command carried out here
	go func() {
		other := exec.Command("worldctl", "-w", a, "send", "counter.added", `{"name": "tea", "by": 1}`)
		_ = other.Run()
		asked <- other.ProcessState.ExitCode()
	}()
	written := make(chan string, 1) // more than a log holds
	go func() {
		said := ""
		for range 4 {
			if status, answer := many("a", 4000); status != http.StatusCreated {
				said = answer
			}
		}
		written <- said
	}()
	time.Sleep(time.Second) //nolint:forbidigo // that this is long enough for them to begin is not relied on
	free()
	require.Empty(t, <-written)
	require.Equal(t, exitOK, <-asked)
	status, answer = many("b", 25_000)
	require.Equal(t, http.StatusCreated, status, answer)
	s.count("a")
	status, answer = s.ask("GET", "/healthz", "")
	require.Equal(t, http.StatusOK, status, answer)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	require.True(t, verified(t, a).OK)
	require.True(t, verified(t, b).OK)
}

// TestTooFewDescriptorsAreAnErrorAtOnce has verbs begin with every limit below the fewest that do,
// on a world whose store has tables: each says so, and ends.
func TestTooFewDescriptorsAreAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	dir := newCounter(t, "a")
	with := func(limit int, verb ...string) (int, string) {
		cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec worldctl "$@"`, limit), "sh", "-w", dir}, verb...)...)
		said, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(said)
	}
	for range 40 { // each leaves tables
		code, _, said := inProcess(t.Context(), "-w", dir, "send", "counter.added", `{"name": "tea", "by": 1}`)
		require.Equal(t, exitOK, code, said)
		code, _, said = inProcess(t.Context(), "-w", dir, "run")
		require.Equal(t, exitOK, code, said)
	}
	for limit := 8; limit < fewestDescriptors; limit += 23 {
		for _, verb := range []string{"status", "run", "verify", "replay", "serve"} {
			code, said := with(limit, verb)
			require.Equal(t, exitFailed, code, "%d %s: %s", limit, verb, said)
			require.Contains(t, said, "hint: ulimit -n")
		}
	}
	for _, verb := range [][]string{{"status"}, {"run"}, {"replay"}, {"verify"}, {"snapshot", "create", "now"}} {
		code, said := with(fewestDescriptors, verb...)
		require.Equal(t, exitOK, code, said)
	}
}

// TestEffectsWaitForDescriptors asks for many more programs at once than there are descriptors
// for, with as many workers as the process has by itself, and with too many: each is run once.
func TestEffectsWaitForDescriptors(t *testing.T) {
	raced(t)
	const asked = 300
	for _, workers := range []string{"0", "64"} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"world.yaml": `world: pays
seed: 1
clock: {epoch: 2026-01-01T00:00:00Z, tick: 1s}
reducers:
  c: {engine: starlark, source: c.star, grants: [p]}
events:
  e.pay:
routing:
  - {event: e.pay, reducer: c, key: event.data.k}
effects:
  bank.pay: {adapter: exec, config: {program: ./pay.sh}}
caps:
  p: {type: exec, params: {programs: [./pay.sh], args: ["*"]}}
policies:
  - {name: pay, when: 'intent.kind == "bank.pay"', decide: allow}
`,
			"c.star": "def reduce(ctx, state, event):\n    if event.name == \"e.pay\":\n        ctx.effect(\"bank.pay\", event.data)\n    return state\n",
			"pay.sh": "#!/bin/sh\nread p\necho \"$p\" >>paid.log\nsleep 0.1\necho '{}'\n",
		} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700)) //nolint:gosec // one of them is run
		}
		var events strings.Builder
		for i := range asked {
			fmt.Fprintf(&events, `{"event": "e.pay", "data": {"k": "k%d"}}`+"\n", i)
		}
		worldctl(t, nil, "init", dir)
		worldctl(t, strings.NewReader(events.String()), "-w", dir, "send", "-")
		cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec worldctl "$@"`, fewestDescriptors), "sh", "-w", dir, "run", "--workers", workers)
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), fmt.Sprintf("%d committed, 0 failed", asked))
		paid, err := os.ReadFile(filepath.Join(dir, "paid.log"))
		require.NoError(t, err)
		lines := strings.Fields(string(paid))
		slices.Sort(lines)
		require.Len(t, slices.Compact(lines), asked, "each")
		require.Len(t, strings.Fields(string(paid)), asked, "once")
	}
}
