package worldctl

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// servingTest is a `worldctl serve` under test.
type servingTest struct {
	t     *testing.T
	url   string
	token string
	log   <-chan string // its lines; closed at its end
	end   func() int    // interrupts it and returns its exit code
}

// startServe runs `worldctl serve` in this process, with the one token that it makes.
func startServe(t *testing.T, args ...string) *servingTest {
	t.Helper()
	stdout, stderr, interrupt := startVerb(t, append([]string{"serve"}, args...)...)
	s := &servingTest{t: t, log: linesFrom(stderr)}
	s.end = sync.OnceValue(func() int {
		code := interrupt()
		for line := range s.log {
			t.Log(line)
		}
		return code
	})
	t.Cleanup(func() { s.end() })
	s.token = strings.TrimPrefix(s.await("token: "), "token: ")
	s.url = <-linesFrom(stdout)
	return s
}

// startVerb runs worldctl in this process. interrupt ends it and returns its exit code.
func startVerb(t *testing.T, args ...string) (stdout, stderr io.Reader, interrupt func() int) {
	t.Helper()
	stdout, out := io.Pipe()
	stderr, said := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, released(), args, strings.NewReader(""), out, said)
		_ = out.Close()
		_ = said.Close()
		ended <- code
	}()
	return stdout, stderr, sync.OnceValue(func() int {
		stop()
		return <-ended
	})
}

// linesFrom reads lines, as many as any of these tests has, though nobody takes them.
func linesFrom(r io.Reader) <-chan string {
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for from := bufio.NewScanner(r); from.Scan(); {
			lines <- from.Text()
		}
	}()
	return lines
}

// await reads the log up to a line that has a text, and returns it.
func (s *servingTest) await(text string) string {
	s.t.Helper()
	for line := range s.log {
		if strings.Contains(line, text) {
			return line
		}
	}
	require.Fail(s.t, "the log has ended without "+text)
	return ""
}

func (s *servingTest) ask(method, path, body string) (status int, answer string) {
	s.t.Helper()
	res := s.open(s.t.Context(), method, path, body, "application/json")
	defer res.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, string(text)
}

func (s *servingTest) open(ctx context.Context, method, path, body, accept string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	return res
}

// count sends an event to the world of the template counter.
func (s *servingTest) count(world string) {
	s.t.Helper()
	status, answer := s.ask("POST", "/api/worlds/"+world+"/events", `{"event": "counter.added", "data": {"name": "tea", "by": 1}}`)
	require.Equal(s.t, http.StatusCreated, status, answer)
}

func newCounter(t *testing.T, id string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), id)
	code, _, said := inProcess(t.Context(), "init", dir, "--id", id)
	require.Equal(t, exitOK, code, said)
	return dir
}

// TestServedWorldsGoOnAtEveryInput: what comes over the API, and from another command,
// wakes a world that is idle.
func TestServedWorldsGoOnAtEveryInput(t *testing.T) {
	a, b := newCounter(t, "a"), newCounter(t, "b")
	s := startServe(t, a, b)
	for i, id := range []string{"a", "b", "a"} {
		ctx, stop := context.WithCancel(t.Context())
		res := s.open(ctx, "GET", "/api/worlds/"+id+"/records?kind=cell.stepped", "", "text/event-stream")
		require.Equal(t, http.StatusOK, res.StatusCode)
		if i == 1 {
			code, _, said := inProcess(t.Context(), "-w", b, "send", "counter.added", `{"name": "tea", "by": 1}`)
			require.Equal(t, exitOK, code, said)
		} else {
			s.count(id)
		}
		lines := bufio.NewScanner(res.Body)
		for steps := 0; steps < 1+i/2 && lines.Scan(); { // the third time the first step comes again
			if lines.Text() == "event: cell.stepped" {
				steps++
			}
		}
		require.NoError(t, lines.Err())
		stop()
		require.NoError(t, res.Body.Close())
	}
	require.Equal(t, exitInterrupted, s.end())
	for dir, n := range map[string]string{a: `"n":2`, b: `"n":1`} {
		require.True(t, verified(t, dir).OK)
		_, out, _ := inProcess(t.Context(), "-w", dir, "cell", "show", "counter/tea", "-o", "jsonl")
		require.Contains(t, out, n)
	}
}

func TestManualWorldsMoveByStepsOnly(t *testing.T) {
	s := startServe(t, "--manual", newCounter(t, "w"))
	s.count("w")
	code, said := s.ask("GET", "/api/worlds/w", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, said, `"time":0,`)
	require.Contains(t, said, `"events_pending":1`)
	_, said = s.ask("POST", "/api/worlds/w/step", `{"ticks": 1}`)
	require.Contains(t, said, `"time":1,`)
	require.Contains(t, said, `"events_pending":0`)
}

// mute makes a world whose first effect nobody answers, which no world survives.
func mute(t *testing.T, id string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), id)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{
		"world.yaml": `world: mute
version: 1
reducers:
  asker: {engine: starlark, source: asker.star, grants: [any]}
events:
  asked: {}
effects:
  answer: {adapter: stub, config: {answers: answers.jsonl}}
caps:
  any: {type: any, params: {kinds: [answer]}}
policies:
  - {name: all, when: 'true', decide: allow}
routing:
  - {event: asked, reducer: asker, key: '"one"'}
`,
		"asker.star":    "def reduce(ctx, state, event):\n    if event.name == \"asked\":\n        ctx.effect(\"answer\", {})\n    return {}\n",
		"answers.jsonl": `{"kind": "other", "params": {}, "payload": null}` + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	code, _, said := inProcess(t.Context(), "init", dir, "--id", id)
	require.Equal(t, exitOK, code, said)
	return dir
}

func TestWorldThatCannotGoOnIsServedNoMoreAndTheOthersAre(t *testing.T) {
	s := startServe(t, mute(t, "mute"), newCounter(t, "w"))
	status, answer := s.ask("GET", "/healthz", "")
	require.Equal(t, http.StatusOK, status, answer)
	res := s.open(t.Context(), "GET", "/api/worlds/mute/records", "", "text/event-stream")
	status, answer = s.ask("POST", "/api/worlds/mute/events", `{"event": "asked"}`)
	require.Equal(t, http.StatusCreated, status, answer)
	said := s.await("the world has stopped")
	require.Contains(t, said, "level=ERROR")
	require.Contains(t, said, "world=mute")
	require.Contains(t, said, "add the answer to")
	_, err := io.Copy(io.Discard, res.Body)
	require.NoError(t, err, "who follows it is told the end")
	require.NoError(t, res.Body.Close())

	status, answer = s.ask("GET", "/healthz", "")
	require.Equal(t, http.StatusOK, status, "it is nobody else's 503")
	require.Contains(t, answer, "1 of the worlds cannot go on")
	status, answer = s.ask("GET", "/api/worlds/mute", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, answer, "urn:worldkernel:problem:ended")
	require.Contains(t, answer, "has no answer for cell asker/one")
	s.count("w")
	require.Equal(t, exitFailed, s.end(), "that is what became of it")
}

func TestServiceEndsWhenNoWorldCanGoOn(t *testing.T) {
	s := startServe(t, mute(t, "mute"))
	status, answer := s.ask("POST", "/api/worlds/mute/events", `{"event": "asked"}`)
	require.Equal(t, http.StatusCreated, status, answer)
	s.await("msg=ended") // though nobody ends it
	s.await("error: world mute: ")
	require.Equal(t, exitFailed, s.end())
}

func TestServeOpensAllWorldsOrNone(t *testing.T) {
	good, missing := newCounter(t, "good"), filepath.Join(t.TempDir(), "missing")
	code, out, said := inProcess(t.Context(), "serve", good, missing)
	require.Equal(t, exitUsage, code)
	require.Empty(t, out)
	require.Contains(t, said, missing+": no world here")
	require.Contains(t, said, "hint: worldctl init "+missing)
	require.True(t, verified(t, good).OK, "it was closed again")

	code, _, said = inProcess(t.Context(), "serve", good, good)
	require.Equal(t, exitConflict, code)
	require.Contains(t, said, "error: "+good+": ")
	code, _, said = inProcess(t.Context(), "-w", good, "serve", good)
	require.Equal(t, exitUsage, code, said)
	code, _, said = inProcess(t.Context(), "serve", good, "--addr", "nonsense")
	require.Equal(t, exitUsage, code, said)
}

func TestOtherMachinesAreServedWithATokenFileOnly(t *testing.T) {
	dir := newCounter(t, "w")
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		code, out, said := inProcess(t.Context(), "serve", dir, "--addr", addr)
		require.Equal(t, exitUsage, code, addr)
		require.Empty(t, out)
		require.Contains(t, said, "that takes a --token-file")
		require.NotContains(t, said, "wk_")
	}
}

// TestTokenIsPrintedOnceAndNeverLogged: not even where requests are.
func TestTokenIsPrintedOnceAndNeverLogged(t *testing.T) {
	s := startServe(t, "-v", newCounter(t, "w"))
	secret, right := s.token, strings.Repeat("x", 20)
	s.count("w")
	require.NotContains(t, s.await("msg=request"), secret)
	s.token = right
	status, _ := s.ask("GET", "/api/worlds", "")
	require.Equal(t, http.StatusUnauthorized, status)
	line := s.await("status=401")
	require.NotContains(t, line, right)
}

// process is a `worldctl serve` that is a process of its own, whose tokens are in a
// file.
func process(t *testing.T, args ...string) (*servingTest, *exec.Cmd) {
	t.Helper()
	raced(t)
	return processOf(t, exec.Command("worldctl", append([]string{"serve", "-o", "json"}, args...)...))
}

// processOf is the process of a command that begins to serve.
func processOf(t *testing.T, cmd *exec.Cmd) (*servingTest, *exec.Cmd) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var at serveAnswer
	require.NoError(t, json.NewDecoder(stdout).Decode(&at), "it is told at once")
	s := &servingTest{t: t, url: at.URL, log: linesFrom(stderr)}
	s.await(`"msg":"serving"`)
	return s, cmd
}

func newToken(t *testing.T, file, name, scopes string) string {
	t.Helper()
	code, out, said := inProcess(t.Context(), "token", "new", name, "--scope", scopes, "--file", file)
	require.Equal(t, exitOK, code, said)
	return strings.TrimSpace(out)
}

// TestSignalsOfServers: SIGHUP reads the tokens again, and a revoked one is worth
// nothing then, not even for what its bearer follows; SIGTERM is how servers end.
func TestSignalsOfServers(t *testing.T) {
	dir, file := newCounter(t, "w"), filepath.Join(t.TempDir(), "tokens")
	ada, bob := newToken(t, file, "ada", "read,submit"), newToken(t, file, "bob", "read")
	s, cmd := process(t, dir, "--token-file", file)
	s.token = bob
	res := s.open(t.Context(), "GET", "/api/worlds/w/records?after=1", "", "text/event-stream")
	require.Equal(t, http.StatusOK, res.StatusCode)
	code, _, said := inProcess(t.Context(), "token", "revoke", "bob", "--file", file)
	require.Equal(t, exitOK, code, said)
	eve := newToken(t, file, "eve", "read")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	s.await("the token file was read again")

	s.token = ada
	s.count("w")
	followed, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.NotContains(t, string(followed), "counter.added")
	for token, want := range map[string]int{bob: http.StatusUnauthorized, eve: http.StatusOK} {
		s.token = token
		status, _ := s.ask("GET", "/api/worlds", "")
		require.Equal(t, want, status)
	}
	require.NoError(t, os.WriteFile(file, []byte("nonsense\n"), 0o600))
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	s.await("the token file was not read")
	s.token = eve
	status, _ := s.ask("GET", "/api/worlds", "")
	require.Equal(t, http.StatusOK, status)

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	s.await(`"msg":"ended"`)
	for line := range s.log {
		t.Error(line)
	}
	require.NoError(t, cmd.Wait())
	require.True(t, verified(t, dir).OK)
}

func TestCtrlCOfServersIs130(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	newToken(t, file, "ada", "read")
	s, cmd := process(t, newCounter(t, "w"), "--token-file", file)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	s.await(`"msg":"ended"`)
	s.await("hint: what was done is durable")
	require.Error(t, cmd.Wait())
	require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
}

// TestDocsOfTheAPIWorkAsPrinted types what docs/api.md tells its readers to, in a
// fresh directory: the blocks of sh, and what it says of serving.
func TestDocsOfTheAPIWorkAsPrinted(t *testing.T) {
	for _, program := range []string{"curl", "sh", "mkfifo", "sha256sum"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not there")
		}
	}
	text, err := os.ReadFile("../docs/api.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	commands := regexp.MustCompile(`(?m)^    \$ (.*)$`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	require.NotEmpty(t, commands)
	script := []string{blocks[0][1]}
	for _, c := range commands {
		script = append(script, c[1])
	}
	for _, b := range blocks[1:] {
		script = append(script, b[1])
	}
	script = append(script, "kill -TERM $!", "wait $!")
	cmd := exec.CommandContext(t.Context(), "sh", "-eux", "-c", strings.Join(script, "\n"))
	cmd.Dir = t.TempDir()
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, said.String())
	for _, want := range []string{
		`{"ok":true}`, `"state":{"times":1,"total":2}`, `"accepted":2`, "event: event.submitted\n",
		`"statement":"worldkernel approval v1`, "worldkernel_events_submitted_total", fmt.Sprintf("%q:true", "ok"),
	} {
		require.Contains(t, string(out), want)
	}
}
