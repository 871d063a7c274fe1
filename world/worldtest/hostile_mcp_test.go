//go:build unix

package worldtest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// answersEnv names the file out of which this program answers calls, as an MCP server.
const answersEnv = "WORLDTEST_MCP_ANSWERS"

// theID stands in an answer for the id of the call.
const theID = `"@id"`

func TestMain(m *testing.M) {
	file := os.Getenv(answersEnv)
	if file == "" {
		os.Exit(m.Run())
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if answer := answerOf(in.Bytes(), func() []byte { answer, _ := os.ReadFile(file); return answer }); len(answer) > 0 {
			_, _ = os.Stdout.Write(append(answer, '\n'))
		}
	}
}

// answerOf returns what a server answers; call has what it answers to the call of a tool.
func answerOf(request []byte, call func() []byte) []byte {
	var msg struct {
		ID     json.RawMessage
		Method string
		Params struct{ ProtocolVersion string }
	}
	_ = json.Unmarshal(request, &msg)
	switch msg.Method {
	case "initialize":
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, msg.ID)
	case "tools/list":
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"find","inputSchema":{"type":"object"}}]}}`, msg.ID)
	case "tools/call":
		return bytes.ReplaceAll(call(), []byte(theID), msg.ID)
	case "server/discover":
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, msg.ID)
	}
	return nil
}

// hostileServer answers calls of its tool over HTTP and over standard streams with what it is given.
type hostileServer struct {
	web, program host.Adapter
	file         string
	events       string // line ends, where it answers with events; empty: it does not
	answer       []byte
}

func newHostileServer(t *testing.T) *hostileServer {
	s := &hostileServer{file: filepath.Join(t.TempDir(), "answer")}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := answerOf(body, func() []byte {
			if s.events != "" {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			return s.answer
		})
		if len(answer) == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = w.Write(answer)
	}))
	t.Cleanup(web.Close)
	self, err := os.Executable()
	require.NoError(t, err)
	s.web = adapterFor(t, map[string]any{"url": web.URL, "tool": "find"})
	s.program = adapterFor(t, map[string]any{"command": []string{self}, "env": map[string]string{answersEnv: s.file}, "tool": "find"})
	return s
}

func adapterFor(t *testing.T, config map[string]any) host.Adapter {
	data, err := canon.Marshal(config)
	require.NoError(t, err)
	a, err := mcp.New(host.Setup{Kind: "tool.find", Config: data, Dir: t.TempDir(), Effect: manifest.Effect{Class: manifest.ClassDestructive}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.(io.Closer).Close()) })
	return a
}

// hostileResults returns what tools have answered, and what takes the place of anything in it.
func hostileResults(t *testing.T) (said, wrong []any) {
	messages, wrong := hostileMessages(t)
	require.NoError(t, json.Unmarshal([]byte(`[
		{"result": {"content": [{"type": "text", "text": "fine"}]}},
		{"result": {"content": [{"type": "text", "text": "no such file"}], "isError": true}},
		{"result": {"content": [], "structuredContent": {"paid": true, "cents": 12345678901234567890}}},
		{"result": {"structuredContent": {"rows": [[1, 2.5, null], ["a", {}]]}, "_meta": {"x": 1}}},
		{"result": {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "resource_link", "uri": "file:///a", "name": "a"},
			{"type": "resource", "resource": {"uri": "file:///b", "text": "b"}, "annotations": {"audience": ["user"], "priority": 0.5}}]}},
		{"error": {"code": -32602, "message": "bad arguments", "data": {"at": "q"}}},
		{"error": {"code": -32000, "message": "the server is busy"}},
		{"result": {"content": [{"type": "text", "text": "both"}]}, "error": null}
	]`), &said))
	for _, m := range messages {
		if text, ok := m.(map[string]any)["content"].(string); ok && text != "" {
			said = append(said, map[string]any{"result": map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}})
		}
	}
	return said, wrong
}

// give has the server answer the next call with something that somebody has answered, changed at
// random, among what is no answer. It is an answer still: it has the id of the call.
func (s *hostileServer) give(t *testing.T, h *hostile, program bool) {
	answer := h.said[h.IntN(len(h.said))].(map[string]any)
	for range h.IntN(4) {
		if changed, ok := h.changed(answer, 0).(map[string]any); ok {
			answer = changed
		}
	}
	answer = h.changedEnvelope(answer)
	text, err := json.Marshal(answer)
	require.NoError(t, err)
	var lines []string
	for range h.IntN(3) {
		lines = append(lines, strays()[h.IntN(len(strays()))])
	}
	if program && h.IntN(4) == 0 && bytes.Contains(text, []byte(`"jsonrpc"`)) { // a message in several lines has its version
		text, err = json.MarshalIndent(answer, "", strings.Repeat(" ", h.IntN(3)))
		require.NoError(t, err)
	}
	lines = append(lines, string(text))
	s.events = ""
	switch {
	case program:
		s.answer = []byte(strings.Join(lines, "\n"))
		require.NoError(t, os.WriteFile(s.file, s.answer, 0o600))
	case h.IntN(2) == 0:
		s.answer = text
	default:
		s.events = []string{"\n", "\r\n", "\r"}[h.IntN(3)]
		for i, line := range lines {
			lines[i] = "data: " + strings.NewReplacer("\r", " ", "\n", " ").Replace(line)
			if h.IntN(4) == 0 {
				lines[i] = ": comment" + s.events + "retry: 1" + s.events + "event: message" + s.events + lines[i]
			}
		}
		s.answer = []byte(strings.Join(lines, s.events+s.events) + s.events + s.events)
	}
}

// changedEnvelope puts an answer into a response, as servers write it.
func (h *hostile) changedEnvelope(answer map[string]any) map[string]any {
	out := map[string]any{"jsonrpc": "2.0"}
	for name, v := range answer {
		if name == "result" || name == "error" {
			out[name] = v
		}
	}
	out["id"] = strings.Trim(theID, `"`)
	if h.IntN(20) == 0 && len(out) > 2 { // else it may be anything
		delete(out, "jsonrpc")
	}
	return out
}

// strays returns lines that are no answers.
func strays() []string {
	return []string{
		"", "ready", "{", `{"level":30,"msg":"log","id":7}`, `[1`, `"id"`, "null", "\x1b[31mred", `{"jsonrpc":"2.0","id":`, `{"jsonrpc":"2.0","id":99999,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":5}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, `{"jsonrpc":"2.0","id":"a","method":"ping"}`, `{"jsonrpc":"2.0","id":5000,"method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":"b","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`, `{"jsonrpc":"2.0","method":7}`, `{"jsonrpc":"1.0","id":null,"error":{}}`,
	}
}

// perform calls the tool for an agent, and has what came of it.
func (s *hostileServer) perform(t *testing.T, h *hostile, p receipt.Permit) worldtest.Reply {
	program := h.IntN(2) == 0
	s.give(t, h, program)
	a := s.web
	if program {
		a = s.program
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := a.Perform(ctx, host.Call{Permit: p, External: "worldkernel:w:x"})
	if err != nil {
		h.Through("a call that was answered is in doubt (a program: %t): %v: %.500q", program, err, s.answer)
		return worldtest.Fail("in doubt")
	}
	if r.Unsent {
		h.Through("a call that was answered is said not to have left: %s", r.Payload)
	}
	return worldtest.Reply{Status: r.Status, Payload: r.Payload, Class: r.Class, Unsent: r.Unsent, Exact: r.Exact}
}

// Whatever a server of MCP answers, its answer is one, and the agent that called it ends its task and does the next one.
func TestNothingThatAnMCPServerSaysHaltsItsAgent(t *testing.T) {
	loaded, err := source.Load("testdata/agent/world.yaml")
	require.NoError(t, err)
	said, wrong := hostileResults(t)
	s := newHostileServer(t)
	calls := 0
	attack.Run(t, "hostile MCP server", func(a *attack.Attempt) {
		h := &hostile{Attempt: a, said: said, wrong: wrong}
		w := worldtest.New(t, *loaded.Manifest, loaded.Contents, worldtest.Options{Answer: func(p receipt.Permit) worldtest.Reply {
			if p.Kind != "model.ask" {
				calls++
				return s.perform(t, h, p)
			}
			params, err := canon.ToJSON(p.Params)
			require.NoError(t, err)
			requireSound(t, params)
			var x struct{ Messages []struct{ Role string } }
			require.NoError(t, json.Unmarshal(params, &x))
			if x.Messages[len(x.Messages)-1].Role == "tool" {
				return says("fine")
			}
			return says("", "tool_find", `{"q": "y"}`, "tool_find", `{"q": "z"}`)
		}})
		for range 2 {
			w.Submit("said", map[string]any{"text": "work"})
			w.Run()
			var x struct{ Status, Answer string }
			require.NoError(t, json.Unmarshal([]byte(w.State("agent/a")), &x))
			if x.Status != "done" || x.Answer != "fine" {
				a.Through("%.2000s", w.State("agent/a"))
			}
		}
		w.RequireReplay()
	})
	require.NotZero(t, calls)
	t.Logf("%d calls were answered", calls)
}
