package worldctl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// answersOf has one answer after another, and notes for which models.
type answersOf struct {
	*httptest.Server
	asked chan string
	calls atomic.Bool // what is offered a tool asks for Bash
}

func newAnswers(t *testing.T) *answersOf {
	a := &answersOf{asked: make(chan string, 100)}
	var paid atomic.Int64
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.asked <- string(body)
		if a.calls.Load() && strings.Contains(string(body), `"tools"`) {
			_, _ = fmt.Fprint(w, `{"choices":[{"message":{"content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"Bash","arguments":"{}"}}]}}]}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":"answer %d"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, paid.Add(1))
	}))
	t.Cleanup(a.Close)
	t.Setenv("OPENAI_BASE_URL", a.URL+"/v1")
	return a
}

// In a fork an agent is answered from the record up to a call, which is answered or asked otherwise; its world stays as it is.
// What it never asks for again, and what the world has no call of, is said, and no tool runs that nobody has named.
func TestAnAgentIsForked(t *testing.T) {
	provider := newAnswers(t)
	dir := t.TempDir()
	t.Chdir(dir)
	file := filepath.Join(dir, "answer")
	self, err := os.Executable()
	require.NoError(t, err)
	claude := filepath.Join(dir, "claude") // an agent with hooks
	require.NoError(t, os.Symlink(self, claude))
	typed := func(texts string, args ...string) (code int, said, answer string) {
		t.Helper()
		t.Setenv(askerEnv, texts+" "+file)
		_ = os.Remove(file)
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), released(), args, strings.NewReader(""), &stdout, &stderr)
		text, _ := os.ReadFile(file)
		return code, stdout.String() + stderr.String(), string(text)
	}
	code, said, _ := typed("one,two,three", "agent", "run", "--name", "a", "--", claude)
	require.Zero(t, code, said)
	require.Len(t, provider.asked, 3)
	_, before, _ := typed("", "tail", "-o", "jsonl", "-w", gatewayDir)
	require.NoError(t, os.WriteFile("other", []byte("something else"), 0o600))

	code, said, answer := typed("one,two", "agent", "fork", "a", "--at", "2", "--answer", "other", "-d", "given")
	require.Zero(t, code, said)
	require.Contains(t, answer, "something else")
	require.Contains(t, said, "2 requests, 1 made, 1 from the record; 0 tokens", "what somebody gives costs nothing")
	require.Len(t, provider.asked, 3)
	code, said, answer = typed("one,two", "agent", "resume", "-w", "given")
	require.Zero(t, code, said)
	require.Contains(t, answer, "something else", "it is on record")
	code, said, _ = typed("", "diff", "head", "given", "-w", gatewayDir)
	require.Equal(t, exitFailed, code, "they differ")
	require.Contains(t, said, "model.call")

	code, said, answer = typed("one,two,four", "agent", "fork", "--at", "2", "--model", "big", "-d", "asked")
	require.Zero(t, code, said)
	require.Contains(t, answer, "answer 5")
	require.Len(t, provider.asked, 5)
	for range 3 {
		require.Contains(t, <-provider.asked, `"model":"m"`)
	}
	for range 2 {
		require.Contains(t, <-provider.asked, `"model":"big"`)
	}
	code, said, _ = typed("one,two,four,more", "agent", "resume", "-w", "asked")
	require.Zero(t, code, said)
	require.Contains(t, said, "4 requests, 1 made, 3 from the record")
	require.Contains(t, <-provider.asked, `"model":"big"`, "the fork goes on as it has begun")

	owning, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- run(owning, released(), []string{"run", "-w", gatewayDir, "--until-idle=false"}, strings.NewReader(""), io.Discard, io.Discard)
	}()
	awaitOwner(gatewayDir)
	code, said, answer = typed("one,two", "agent", "fork", "a", "--at", "2", "--answer", "other", "-d", "owned")
	require.Zero(t, code, said)
	require.Contains(t, said, "before call 2 of a")
	require.Contains(t, answer, "something else", "another process owns the world")
	code, said, _ = typed("one", "agent", "fork", "a", "--at", "9", "-d", "x")
	require.NotZero(t, code)
	require.Contains(t, said, "has made 3 calls")
	stop()
	<-ended
	code, said, answer = typed("two,five", "agent", "fork", "--at", "2", "--answer", "other", "-d", "early")
	require.Zero(t, code, "call 2 is other, though call 1 is left: %s", said)
	require.Contains(t, answer, "answer 7")
	require.Contains(t, said, "1 recorded and not asked for")
	_, after, _ := typed("", "tail", "-o", "jsonl", "-w", gatewayDir)
	require.Equal(t, before, after, "the world does not change")

	code, said, _ = typed("one", "agent", "fork", "--at", "2", "-d", "short")
	require.Equal(t, exitFailed, code)
	require.Contains(t, said, "has not made the call again")
	for _, of := range []struct{ says, args string }{
		{"has made 3 calls", "--at 4 -d x"},
		{"needs --at CALL and -d DIR", "--at 2"},
		{"want one of", "--at 2 -d x --answer other --model m"},
		{"is not empty", "--at 2 -d " + dir},
		{"want an answer with choices", "--at 2 -d x --answer bad"},
	} {
		require.NoError(t, os.WriteFile("bad", []byte("{}"), 0o600))
		code, said, _ = typed("one", append([]string{"agent", "fork"}, strings.Fields(of.args)...)...)
		require.NotZero(t, code)
		require.Contains(t, said, of.says)
		require.NoDirExists(t, "x")
	}
}

// TestToolsAreDeniedInAForkUnlessNamed whatever the world permits: those of the agent's own, and those of servers.
func TestToolsAreDeniedInAForkUnlessNamed(t *testing.T) {
	provider := newAnswers(t)
	dir := t.TempDir()
	t.Chdir(dir)
	file := filepath.Join(dir, "answer")
	self, err := os.Executable()
	require.NoError(t, err)
	claude := filepath.Join(dir, "claude")
	require.NoError(t, os.Symlink(self, claude))
	typed := func(texts string, args ...string) (said, answer string) {
		t.Helper()
		t.Setenv(askerEnv, texts+" "+file)
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), released(), args, strings.NewReader(""), &stdout, &stderr)
		require.Zero(t, code, stderr.String())
		text, _ := os.ReadFile(file)
		return stdout.String() + stderr.String(), string(text)
	}
	typed("offers,hook:Bash", "agent", "run", "--name", "a", "--", claude)
	for _, of := range []struct {
		tool, args string
		denied     bool
	}{
		{"Bash", "", true}, {"Write", "", true}, {"Read", "", false}, {"Bash", "--tools Bash", false}, {"Write", "--tools Bash", true}, {"Write", "--tools *", false},
	} {
		fork := filepath.Join(t.TempDir(), "f")
		_, answer := typed("offers,hook:"+of.tool, append([]string{"agent", "fork", "--at", "1", "-d", fork}, strings.Fields(of.args)...)...)
		if of.denied {
			require.Contains(t, answer, "in this fork a tool.call only reads", of)
		} else {
			require.NotContains(t, answer, "deny", of)
		}
		text, _ := typed("", "status", "-w", fork)
		require.Contains(t, text, "committed")
	}
	typed("offers,hook:Bash,two", "agent", "run", "--name", "d", "--", claude)
	said, _ := typed("offers,two", "agent", "fork", "d", "--at", "2", "-d", filepath.Join(t.TempDir(), "f"))
	require.Contains(t, said, "1 effect under way at #", "its result came later, or never")
	typed("one,two", "agent", "run", "--name", "b", "--", self) // an agent without hooks
	provider.calls.Store(true)
	typed("offers,two", "agent", "run", "--name", "c", "--", self)
	for args, says := range map[string]string{
		"c --at 2": "would run again what answers before call 2 ask for: Bash", "c --at 2 --tools Write": ": Bash", "c --at 2 --tools Bash": "", "b --at 2": "",
		"c --at 1": "4 denied",
	} {
		t.Setenv(askerEnv, strings.NewReplacer("c --at 2", "offers,two ", "c --at 1", "offers ", "b --at 2", "one,two ").Replace(args[:8])+file)
		var stdout, stderr bytes.Buffer
		_ = os.Remove(file)
		fork := filepath.Join(t.TempDir(), "f")
		code := run(t.Context(), released(), append([]string{"agent", "fork", "-d", fork}, strings.Fields(args)...), strings.NewReader(""), &stdout, &stderr)
		text, _ := os.ReadFile(file)
		require.Equal(t, says == "", code == exitOK, "%s: %s", args, stderr.String())
		require.Contains(t, stderr.String()+string(text), says, args)
		if code == exitUsage {
			require.NoDirExists(t, fork)
		}
	}
}
