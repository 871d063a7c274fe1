//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

const secretToken = "token-canary-0123456789"

// serverEnv makes the test program an MCP server on its standard streams.
const serverEnv = "WORLDKERNEL_TEST_SERVER"

func TestMain(m *testing.M) {
	mode := os.Getenv(serverEnv)
	if oddities[mode] != "" {
		runOdd(mode, os.Stdin, os.Stdout)
		return
	}
	switch mode {
	case "":
		os.Exit(m.Run())
	case "crash":
		fmt.Fprintln(os.Stderr, "no such database")
		os.Exit(1)
	case "deaf": // never reads, and does not end with its input
		<-time.After(time.Hour) // select {} would end it, as a deadlock
	case "late":
		<-time.After(silence + silence/8)
	case "old":
		runOld(os.Stdin, os.Stdout)
		return
	case "tasks":
		runTasks(os.Stdin, os.Stdout)
		return
	}
	if err := newTestServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

func newTestServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	no := false
	add := func(name string, hints *mcp.ToolAnnotations, do func(context.Context, *mcp.CallToolRequest) (any, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: "the tool " + name, Annotations: hints, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				v, err := do(ctx, r)
				if err != nil {
					return nil, err
				}
				if failed, ok := v.(*mcp.CallToolResult); ok {
					return failed, nil
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}, StructuredContent: v}, nil
			})
	}
	die := func(context.Context, *mcp.CallToolRequest) (any, error) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	hang := func(ctx context.Context, _ *mcp.CallToolRequest) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	add("echo", nil, func(_ context.Context, r *mcp.CallToolRequest) (any, error) {
		return map[string]any{"arguments": r.Params.Arguments, "key": r.Params.Meta[metaKey], "trace": r.Params.Meta["traceparent"]}, nil
	})
	add("surroundings", &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no}, func(context.Context, *mcp.CallToolRequest) (any, error) {
		dir, _ := os.Getwd()
		return map[string]any{"env": os.Environ(), "dir": dir, "pid": os.Getpid()}, nil
	})
	add("fail", nil, func(context.Context, *mcp.CallToolRequest) (any, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such file"}}}, nil
	})
	add("refuse", nil, func(context.Context, *mcp.CallToolRequest) (any, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "path is missing"}
	})
	add("spawn", nil, func(_ context.Context, r *mcp.CallToolRequest) (any, error) {
		child := exec.Command("/bin/sleep", "1000")
		if strings.Contains(string(r.Params.Arguments), "loud") {
			child.Stdout = os.Stdout // holds the pipe
		}
		err := child.Start()
		return map[string]any{"pid": child.Process.Pid}, err
	})
	add("die", nil, die)
	add("die-reading", &mcp.ToolAnnotations{ReadOnlyHint: true}, die)
	add("hang", nil, hang)
	add("ask", nil, func(_ context.Context, r *mcp.CallToolRequest) (any, error) {
		said, _ := r.Params.InputResponses["confirm"].(*mcp.ElicitResult)
		if said == nil {
			schema := json.RawMessage(`{"type":"object","properties":{"yes":{"type":"boolean"}}}`)
			return &mcp.CallToolResult{RequestState: "half", InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Mode: "form", Message: "really?", RequestedSchema: schema}}}, nil
		}
		return map[string]any{"action": said.Action, "content": said.Content, "state": r.Params.RequestState}, nil
	})
	add("hang-idempotent", &mcp.ToolAnnotations{IdempotentHint: true}, hang)
	return s
}

func fromJSON(t testing.TB, text string) canon.Raw {
	t.Helper()
	raw, err := canon.FromJSON([]byte(text))
	require.NoError(t, err)
	return raw
}

func setupOf(t testing.TB, config string, effect manifest.Effect) host.Setup {
	return host.Setup{
		Kind: "tool.call", Effect: effect, Config: fromJSON(t, config), Dir: t.TempDir(),
		Secret: func(reference string) (string, error) {
			if reference == "secret://NUL" {
				return secretToken + "\x00", nil
			}
			if reference != "secret://TOKEN" {
				return "", &host.SecretError{Reference: reference, Err: host.ErrNoSecret}
			}
			return secretToken, nil
		},
	}
}

// stdioConfig runs this program as a server.
func stdioConfig(t testing.TB, mode string) string {
	self, err := os.Executable()
	require.NoError(t, err)
	return `{"command":["` + self + `"],"env":{"` + serverEnv + `":"` + mode + `","TOKEN":"secret://TOKEN"}}`
}

func adapterOf(t testing.TB, s host.Setup) host.Adapter {
	t.Helper()
	a, err := New(s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.(io.Closer).Close()) })
	return a
}

func callOf(t testing.TB, tool, arguments string) host.Call {
	return host.Call{
		Permit: receipt.Permit{
			Intent:  receipt.Intent{Kind: "tool.call", Params: fromJSON(t, `{"tool":"`+tool+`","arguments":`+arguments+`}`)},
			Attempt: 1,
		},
		External: "worldkernel:w:abc",
	}
}

func field(t testing.TB, payload canon.Raw, path ...string) canon.Raw {
	t.Helper()
	raw, err := canon.Lookup(payload, path...)
	require.NoError(t, err, "%s", payload)
	return raw
}

// at returns what is at path in a payload, as JSON.
func at(t testing.TB, payload canon.Raw, path ...string) string {
	t.Helper()
	out, err := canon.ToJSON(field(t, payload, path...))
	require.NoError(t, err)
	return string(out)
}

func TestCallIsExact(t *testing.T) {
	a := adapterOf(t, setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{}))
	got, err := a.Perform(t.Context(), callOf(t, "echo", `{"n":12345678901234567890123,"f":1.0,"s":"<&>☃"}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status)
	require.Equal(t, fromJSON(t, `{"f":1.0,"n":12345678901234567890123,"s":"<&>☃"}`), field(t, got.Payload, "structured", "arguments"))
	require.Equal(t, `"worldkernel:w:abc"`, at(t, got.Payload, "structured", "key"))
	require.Equal(t, `"`+receipt.Key{}.TraceParent(1)+`"`, at(t, got.Payload, "structured", "trace"))
	require.Equal(t, fromJSON(t, `[{"text":"echo","type":"text"}]`), field(t, got.Payload, "content"))
	require.Equal(t, `false`, at(t, got.Payload, "is_error"))
	require.NotZero(t, got.Cost.Bytes)
}

func TestProgramKnowsWhatConfigSays(t *testing.T) {
	t.Setenv("CANARY", "inherited")
	s := setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{})
	a := adapterOf(t, s)
	got, err := a.Perform(t.Context(), callOf(t, "surroundings", `{}`))
	require.NoError(t, err)
	var v struct {
		Env []string `json:"env"`
		Dir string   `json:"dir"`
	}
	require.NoError(t, json.Unmarshal([]byte(at(t, got.Payload, "structured")), &v))
	require.ElementsMatch(t, []string{"PATH=" + host.ProgramPath, "LANG=C.UTF-8", serverEnv + "=stdio", "TOKEN=" + secretToken}, v.Env)
	require.Equal(t, s.Dir, v.Dir)
}

func TestProgramThatMayNotStartDoesNot(t *testing.T) {
	s := setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{})
	asked := 0
	s.Program = func(path string, _ []string) error {
		asked++
		require.True(t, filepath.IsAbs(path))
		return errors.New("not here")
	}
	got, err := adapterOf(t, s).Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.NotEqual(t, receipt.StatusOK, got.Status)
	require.Contains(t, string(got.Payload), "not here")
	require.Equal(t, 1, asked)
}

func TestSessionIsShared(t *testing.T) {
	s := setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{})
	s.Shared = make(map[any]any)
	one, err := New(s)
	require.NoError(t, err)
	s.Config = fromJSON(t, strings.Replace(stdioConfig(t, "stdio"), "{", `{"tool":"surroundings",`, 1))
	two, err := New(s)
	require.NoError(t, err)
	pid := func(a host.Adapter) string {
		got, err := a.Perform(t.Context(), callOf(t, "surroundings", `{}`))
		require.NoError(t, err)
		return at(t, got.Payload, "structured", "pid")
	}
	first := make(chan host.Result, 10)
	call := callOf(t, "surroundings", `{}`)
	for i := range cap(first) {
		go func() {
			r, _ := []host.Adapter{one, two}[i%2].Perform(t.Context(), call)
			first <- r
		}()
	}
	server := at(t, (<-first).Payload, "structured", "pid")
	for range cap(first) - 1 {
		require.Equal(t, server, at(t, (<-first).Payload, "structured", "pid"))
	}
	require.NoError(t, one.(io.Closer).Close())
	require.NoError(t, one.(io.Closer).Close())
	require.Equal(t, server, pid(two), "the other needs it")
	require.NoError(t, two.(io.Closer).Close())
	got, err := two.Perform(t.Context(), callOf(t, "surroundings", `{}`))
	require.NoError(t, err)
	require.True(t, got.Unsent)
}

func TestToolsFailures(t *testing.T) {
	a := adapterOf(t, setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{Idempotent: true}))
	for _, c := range []struct {
		tool, params, code, reason string
		unsent                     bool
	}{
		{tool: "fail", reason: "no such file"},
		{tool: "refuse", code: `"jsonrpc_-32602"`, reason: "path is missing"},
		{tool: "rm", code: `"no_such_tool"`, reason: "rm", unsent: true},
		{tool: "", code: `"bad_params"`, unsent: true},
	} {
		got, err := a.Perform(t.Context(), callOf(t, c.tool, `{}`))
		require.NoError(t, err)
		require.Equal(t, receipt.StatusError, got.Status, c.tool)
		require.Empty(t, got.Class, "permanent: %s", c.tool)
		require.Equal(t, c.unsent, got.Unsent, c.tool)
		if c.code == "" {
			require.Equal(t, `true`, at(t, got.Payload, "is_error"))
			require.Contains(t, at(t, got.Payload, "content"), c.reason)
		} else {
			require.Equal(t, c.code, at(t, got.Payload, "code"))
			require.Contains(t, at(t, got.Payload, "error"), c.reason)
		}
	}
}

// TestServerKilledMidCall kills the server's program in the middle of calls.
func TestServerKilledMidCall(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		effect     manifest.Effect
		retryable  bool
	}{
		{"nobody can tell", "die", manifest.Effect{}, false},
		{"the effect is idempotent", "die", manifest.Effect{Idempotent: true}, true},
		{"the tool reads only", "die-reading", manifest.Effect{}, true},
		{"a person knows better than the server", "die-reading", manifest.Effect{Class: manifest.ClassWrite}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := adapterOf(t, setupOf(t, stdioConfig(t, "stdio"), c.effect))
			for range 2 {
				got, err := a.Perform(t.Context(), callOf(t, c.tool, `{}`))
				if !c.retryable {
					require.Error(t, err)
				} else {
					require.NoError(t, err)
					require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
					require.Equal(t, receipt.StatusTimeout, got.Status)
					require.False(t, got.Unsent)
				}
				got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
				require.NoError(t, err)
				require.Equal(t, receipt.StatusOK, got.Status, "the next call begins another session")
			}
		})
	}
}

// left performs a call that is not answered within a time in which it leaves.
func left(t *testing.T, a host.Adapter, call host.Call) (got host.Result, err error) {
	t.Helper()
	for within := 500 * time.Millisecond; within < time.Hour; within *= 4 {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		got, err = a.Perform(ctx, call)
		cancel()
		if err != nil || !got.Unsent {
			break
		}
	}
	return got, err
}

func TestDeadline(t *testing.T) {
	a := adapterOf(t, setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{}))
	before, err := a.Perform(t.Context(), callOf(t, "surroundings", `{}`))
	require.NoError(t, err)
	_, err = left(t, a, callOf(t, "hang", `{}`))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	got, err := left(t, a, callOf(t, "hang-idempotent", `{}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusTimeout, got.Status)
	require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
	require.False(t, got.Unsent)
	after, err := a.Perform(t.Context(), callOf(t, "surroundings", `{}`))
	require.NoError(t, err)
	require.Equal(t, at(t, before.Payload, "structured", "pid"), at(t, after.Payload, "structured", "pid"), "the session goes on")
}

func TestNothingLeavesAfterTheEnd(t *testing.T) {
	for name, a := range map[string]host.Adapter{
		"stdio": adapterOf(t, setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{})),
		"HTTP":  serve(t, nil).adapter(t),
	} {
		_, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			got, err := a.Perform(ctx, callOf(t, "echo", `{}`))
			require.NoError(t, err, name)
			require.True(t, got.Unsent, name)
			require.Equal(t, receipt.OutcomeRetryableFailure, got.Class, name)
		}
	}
}

func TestServerDoesNotStart(t *testing.T) {
	for _, c := range []struct {
		name, config, reason string
		permanent            bool
	}{
		{"no such program", `{"command":"worldkernel-no-such-program"}`, "worldkernel-no-such-program", true},
		{"no such file", `{"command":"./server"}`, "", true},
		{"crash", stdioConfig(t, "crash"), "no such database", false},
		{"no such secret", `{"command":"/bin/true","env":{"A":"secret://OTHER"}}`, "no such secret", true},
		{"secret with a NUL", `{"command":"/bin/true","env":{"A":"secret://NUL"}}`, "secret://NUL", true},
		{"another language", `{"command":["/bin/echo","hello"]}`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := adapterOf(t, setupOf(t, c.config, manifest.Effect{})).Perform(t.Context(), callOf(t, "echo", `{}`))
			require.NoError(t, err)
			require.True(t, got.Unsent)
			require.Equal(t, receipt.StatusError, got.Status)
			require.Contains(t, at(t, got.Payload, "error"), c.reason)
			if c.permanent {
				require.Empty(t, got.Class)
			} else {
				require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
			}
		})
	}
	t.Run("deaf", func(t *testing.T) {
		a, err := New(setupOf(t, stdioConfig(t, "deaf"), manifest.Effect{}))
		require.NoError(t, err)
		var got host.Result
		for within := 50 * time.Millisecond; within < time.Hour && got.Status != receipt.StatusTimeout; within *= 4 { // which may be over before it has started
			ctx, cancel := context.WithTimeout(t.Context(), within)
			got, err = a.Perform(ctx, callOf(t, "echo", `{}`))
			cancel()
			require.NoError(t, err)
			require.True(t, got.Unsent)
		}
		require.Equal(t, receipt.StatusTimeout, got.Status)
		require.NoError(t, a.(io.Closer).Close(), "ends it though it does not end with its input")
	})
}

// TestServerIsTriedAgain begins a session after one could not be begun, with a
// program in the world's directory.
func TestServerIsTriedAgain(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	s := setupOf(t, `{"command":"./server","env":{"`+serverEnv+`":"stdio"}}`, manifest.Effect{})
	a := adapterOf(t, s)
	got, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.Equal(t, `"not_started"`, at(t, got.Payload, "code"))
	require.NoError(t, os.Symlink(self, filepath.Join(s.Dir, "server")))
	got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
}

// TestCloseEndsTheGroup starts a grandchild, which holds the pipe or does not,
// and a call that hangs.
func TestCloseEndsTheGroup(t *testing.T) {
	for _, child := range []string{`{"loud":1}`, `{}`} {
		a, err := New(setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{}))
		require.NoError(t, err)
		got, err := a.Perform(t.Context(), callOf(t, "spawn", child))
		require.NoError(t, err)
		var pid int
		require.NoError(t, json.Unmarshal([]byte(at(t, got.Payload, "structured", "pid")), &pid))
		require.NoError(t, syscall.Kill(pid, 0), "it runs")
		hung, hang := make(chan error), callOf(t, "hang", `{}`)
		go func() {
			r, err := a.Perform(t.Context(), hang)
			if err == nil && !r.Unsent {
				err = errors.New("it ended well")
			}
			hung <- err
		}()
		require.NoError(t, a.(io.Closer).Close())
		if err := <-hung; err != nil { // nil: Close came before the call
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Eventually(t, func() bool { return !running(pid) }, time.Minute, time.Millisecond)
	}
}

// running reports whether a process runs: one that has ended may still wait for
// whoever has inherited it to notice.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	return !strings.Contains(string(stat), ") Z ")
}

func TestWriteEndsWithItsCall(t *testing.T) {
	// The server hears nothing after the session has begun: SIGSTOP.
	a := adapterOf(t, setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{}))
	got, err := a.Perform(t.Context(), callOf(t, "surroundings", `{}`))
	require.NoError(t, err)
	var pid int
	require.NoError(t, json.Unmarshal([]byte(at(t, got.Payload, "structured", "pid")), &pid))
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	_, err = left(t, a, callOf(t, "echo", `{"large":"`+strings.Repeat("x", 1<<20)+`"}`))
	require.Error(t, err, "some of it left")
	got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status, "in another session: %s", got.Payload)
}

func TestDescribe(t *testing.T) {
	tools, err := Describe(t.Context(), setupOf(t, stdioConfig(t, "stdio"), manifest.Effect{}))
	require.NoError(t, err)
	got := map[string]Tool{}
	for _, tool := range tools {
		require.Equal(t, fromJSON(t, `{"type":"object"}`), tool.Schema)
		require.Equal(t, "the tool "+tool.Name, tool.Description)
		tool.Schema, tool.Description = nil, ""
		got[tool.Name] = tool
	}
	require.Equal(t, Tool{Name: "echo", Class: manifest.ClassDestructive}, got["echo"], "nothing said: the worst")
	require.Equal(t, Tool{Name: "surroundings", Class: manifest.ClassWrite, Idempotent: true}, got["surroundings"])
	require.Equal(t, Tool{Name: "die-reading", Class: manifest.ClassRead, Idempotent: true}, got["die-reading"])
	require.Equal(t, Tool{Name: "hang-idempotent", Class: manifest.ClassDestructive, Idempotent: true}, got["hang-idempotent"])
	require.Equal(t, "ask", tools[0].Name, "sorted")
}
