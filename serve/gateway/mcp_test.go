package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
)

// serverEnv has this program be a server of tools, which appends to the file that it names.
const serverEnv = "WORLDKERNEL_TEST_SERVER"

func TestMain(m *testing.M) {
	if file := os.Getenv(serverEnv); file != "" {
		toolServer(os.Stdin, os.Stdout, file)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// toolServer is a server with tools that are as good or bad as their names say. Each call is a line of the file.
func toolServer(in io.Reader, out io.Writer, file string) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Params struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
				Meta      json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			tasks := ""
			if _, err := os.Stat(file + ".tasks"); err == nil {
				tasks = `,"tasks":{}`
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}%s},"serverInfo":{"name":"t","version":"1"}}}`, m.ID, tasks)
		case "tools/list":
			description, _ := os.ReadFile(file + ".description")
			say(`{"result":{"tools":[{"name":"append","description":%q,"inputSchema":{"type":"object"}}]},"jsonrpc":"2.0","id":%s}`, description, m.ID)
		case "tools/call":
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, _ = fmt.Fprintf(f, "%s %s\n", m.Params.Name, m.Params.Arguments)
				_ = f.Close()
			}
			switch m.Params.Name {
			case "fails":
				say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}`, m.ID)
			case "faults":
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}`, m.ID)
			case "dies once":
				if os.Mkdir(file+".died", 0o700) == nil {
					os.Exit(3)
				}
				say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`, m.ID)
			case "dies":
				os.Exit(3)
			case "hangs":
			case "huge":
				say(`{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"%s"}]},"id":%s}`, strings.Repeat("x", 17<<20), m.ID)
			case "asks":
				say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}`)
				say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`)
				say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID)
			default:
				say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}],"structuredContent":{"n":1.0, "big":9007199254740993},"_meta":{"x":null}}}`, m.ID)
			}
		case "forge": // answers to calls that it never got
			for id := range 20 {
				say(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"forged"}]}}`, id)
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		case "":
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, _ = fmt.Fprintf(f, "answer %s %s\n", m.ID, m.Result)
				_ = f.Close()
			}
		default:
			if m.ID != nil {
				say(`{"jsonrpc":"2.0","id":%s,"result":{"method":%q}}`, m.ID, m.Method)
			}
		}
	}
}

// client is a client of a server that stands behind the gateway.
type client struct {
	t     *testing.T
	file  string // that the server appends to
	in    *io.PipeWriter
	lines chan string
	ended chan error
}

// connect starts a server as a client does, behind the gateway.
func (r *run) connect(name string, command ...string) *client {
	r.t.Helper()
	file := filepath.Join(r.dir, "..", "calls")
	return r.piped(file, func(in io.Reader, out io.Writer) error {
		return (&gateway.Bridge{URL: r.url("mcp", "/"+name), Server: r.program(file, command...), Client: in, Out: out}).Run(context.Background())
	})
}

// program returns the command of a server that appends to a file.
func (r *run) program(file string, command ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(r.t, err)
	if len(command) == 0 {
		command = []string{self}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), serverEnv+"="+file)
	return cmd
}

// piped returns the client of what runs between two pipes.
func (r *run) piped(file string, run func(in io.Reader, out io.Writer) error) *client {
	c := &client{t: r.t, file: file, lines: make(chan string, 1000), ended: make(chan error, 1)}
	var said *io.PipeReader
	var hears *io.PipeWriter
	var client *io.PipeReader
	client, c.in = io.Pipe()
	said, hears = io.Pipe()
	go func() {
		c.ended <- run(client, hears)
		_ = hears.Close()
	}()
	go func() {
		defer close(c.lines)
		lines := bufio.NewScanner(said)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			c.lines <- lines.Text()
		}
	}()
	r.t.Cleanup(func() { _ = c.in.Close() })
	return c
}

// say sends a line.
func (c *client) say(format string, args ...any) {
	c.t.Helper()
	_, err := fmt.Fprintf(c.in, format+"\n", args...)
	require.NoError(c.t, err)
}

// hear returns the next line that is no notification.
func (c *client) hear() string {
	c.t.Helper()
	for {
		select {
		case line, ok := <-c.lines:
			require.True(c.t, ok, "the connection has ended")
			if strings.Contains(line, `"id":`) {
				return line
			}
		case <-time.After(time.Minute):
			require.Fail(c.t, "no answer")
		}
	}
}

// call calls a tool, and returns the answer.
func (c *client) call(id int, tool, arguments, meta string) string {
	c.t.Helper()
	c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":%s}}`, id, tool, arguments, meta)
	return c.hear()
}

// calls are what the server was called for.
func (c *client) calls() (out []string) {
	data, _ := os.ReadFile(c.file)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func (c *client) hello() {
	c.t.Helper()
	c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	require.Contains(c.t, c.hear(), `"serverInfo"`)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// sameBytes says that a line came through as it was written.
func sameBytes(t *testing.T, want, got string) {
	t.Helper()
	require.Equal(t, []byte(want), []byte(got))
}

func use(id string) string { return fmt.Sprintf(`{"claudecode/toolUseId":%q}`, id) }

func again(c *gateway.Config) { c.Again = true }

// answersOf returns how each call of a tool stands, with what came of it.
func (r *run) answersOf() (states []receipt.State, texts []string) {
	j := view.Journal{Local: r.lw}
	for _, e := range j.Ledger() {
		if e.Intent.Kind != recorder.MCPCall {
			continue
		}
		states = append(states, e.State)
		a, err := j.AnswerTo(&e, 0)
		require.NoError(r.t, err)
		var answer recorder.ToolAnswer
		if a != nil && canon.UnmarshalTrusted(a.Payload, &answer) == nil {
			texts = append(texts, answer.Text+string(answer.Error))
		}
	}
	return states, texts
}

// A call of a tool is made once it is permitted, its answer comes back as the server wrote it, and is on record. All else
// passes both ways.
func TestCallsOfToolsAreIntents(t *testing.T) {
	s := newStage(t)
	r := s.start()
	c := r.connect("files")
	c.hello()
	c.say(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	require.Contains(t, c.hear(), `"name":"append"`)
	sameBytes(t, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"structuredContent":{"n":1.0, "big":9007199254740993},"_meta":{"x":null}}}`,
		c.call(1, "append", `{"b":1.0,"a":9007199254740993}`, `{}`))
	require.Contains(t, c.call(2, "fails", `{}`, `{}`), `"isError":true`)
	sameBytes(t, `{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"unknown tool"}}`, c.call(3, "faults", `{}`, `{}`))
	c.say(`{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"a"}}`)
	require.Contains(t, c.hear(), `"method":"resources/read"`)
	sameBytes(t, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}`, c.call(5, "asks", `{}`, `{}`))
	require.Contains(t, c.hear(), `"id":5,`)
	c.say(`{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`)
	c.say(`{"jsonrpc":"2.0","id":6,"method":"ping"}`)
	c.hear()
	require.Equal(t, []string{`append {"b":1.0,"a":9007199254740993}`, "fails {}", "faults {}", "asks {}", `answer "q" {"action":"accept"}`}, c.calls())
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.ended)
	states, texts := r.answersOf()
	require.Equal(t, []receipt.State{receipt.StateCommitted, receipt.StateFailed, receipt.StateFailed, receipt.StateCommitted}, states)
	require.Equal(t, []string{"done", "no", `{"code":-32602,"message":"unknown tool"}`, ""}, texts)
	summary := r.stop()
	require.Equal(t, 4, summary.ToolCalls)
	require.Equal(t, 4, summary.ToolRequests)
}

const allowTools = `  - {name: tools may be called, when: 'intent.kind == "mcp.call"', decide: allow}
`

// A denied call is not made, and the model is told why.
func TestADeniedToolIsNotCalled(t *testing.T) {
	s := newStage(t, allowTools, allowTools+`  - {name: never outside, when: 'intent.kind == "mcp.call" && intent.params.server == "files" && intent.params.arguments.path.startsWith("/etc")', decide: deny}
`)
	r := s.start()
	c := r.connect("files")
	answer := c.call(1, "append", `{"path":"/etc/passwd"}`, `{}`)
	require.Contains(t, answer, `"isError":true`)
	require.Contains(t, answer, "never outside")
	require.Contains(t, c.call(2, "append", `{"path":"/tmp"}`, `{}`), "done")
	require.Equal(t, []string{`append {"path":"/tmp"}`}, c.calls())
	require.Equal(t, 1, r.stop().Denied)
}

// What waits for a person is held; then the model is told to call again, and an equal call joins what waits, which is made
// once.
func TestARepeatedToolJoinsTheOneThatWaits(t *testing.T) {
	s := newStage(t, allowTools, `  - {name: all tools need a person, when: 'intent.kind == "mcp.call"', decide: require_approval}
`)
	r := s.start()
	c := r.connect("files?hold=200ms")
	require.Contains(t, c.call(1, "append", `{"a":1}`, use("t1")), "intent approve ")
	require.Contains(t, c.call(2, "append", `{"a":1}`, use("t2")), "intent approve ")
	require.Equal(t, []string{""}, c.calls())
	waits := r.connect("files")
	waits.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"append","arguments":{"a":1},"_meta":{"claudecode/toolUseId":"t3"}}}`)
	r.approve()
	require.Contains(t, waits.hear(), "done")
	require.Equal(t, []string{`append {"a":1}`}, c.calls())
	states, _ := r.answersOf()
	require.Len(t, states, 1)
	require.Contains(t, c.call(4, "append", `{"a":1}`, use("t3")), "done", "the same call, not another one")
	require.Contains(t, c.call(5, "append", `{"a":1}`, use("t4")), "intent approve ", "another one")
}

// A started agent gets what the record has of its calls, and those are not made again; what is new is made.
func TestAStartedAgentsToolsAreAnsweredFromTheRecord(t *testing.T) {
	s := newStage(t)
	r := s.start()
	c := r.connect("files")
	one := c.call(1, "append", `{"a":1}`, use("t1"))
	two := c.call(2, "append", `{"a":2, "b":1}`, `{}`)
	c.call(3, "fails", `{}`, `{}`)
	require.Len(t, c.calls(), 3)
	r.stop()
	r = s.start(again)
	c = r.connect("files")
	require.Equal(t, one, c.call(1, "append", `{"a":1}`, use("t1")))
	require.Equal(t, two, c.call(2, "append", `{"b":1,"a":2}`, `{}`))
	require.Contains(t, c.call(3, "fails", `{}`, `{}`), `"isError":true`)
	require.Len(t, c.calls(), 3)
	c.call(4, "append", `{"a":1}`, use("t2"))
	c.call(5, "append", `{"b":1,"a":2}`, `{}`)
	require.Len(t, c.calls(), 5)
	summary := r.stop()
	require.Equal(t, 3, summary.ToolsServed)
	require.Equal(t, 2, summary.ToolCalls)
	r = s.start()
	c = r.connect("files")
	require.Equal(t, one, c.call(1, "append", `{"a":1}`, use("t1")), "the model's id is that of one call, whoever is started")
	c.call(2, "append", `{"b":1,"a":2}`, `{}`)
	require.Len(t, c.calls(), 6, "a new start of a client is no start of the same agent")
}

// A server that dies with a call has nobody who can tell whether it was made. The agent is told so, also when it is
// started again, and the call is not made again by itself.
func TestACallOfADeadServerIsInDoubt(t *testing.T) {
	s := newStage(t)
	r := s.start()
	c := r.connect("files")
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"dies","_meta":%s}}`, use("t1"))
	require.NoError(t, <-c.ended)
	require.Eventually(t, func() bool {
		states, _ := r.answersOf()
		return len(states) == 1 && states[0] == receipt.StateInDoubt
	}, time.Minute, 10*time.Millisecond)
	r.stop()
	r = s.start(again)
	c = r.connect("files")
	require.Contains(t, c.call(1, "dies", `{}`, use("t1")), "nobody can tell whether this call was made")
	require.Len(t, c.calls(), 1)
}

// Of equal calls the one that is known to be made answers an agent that is started again, before one that is in doubt.
func TestACommittedCallComesBeforeOneInDoubt(t *testing.T) {
	s := newStage(t)
	r := s.start()
	first := r.connect("files")
	first.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"dies once","arguments":{}}}`)
	require.NoError(t, <-first.ended)
	c := r.connect("files")
	require.Contains(t, c.call(2, "dies once", `{}`, `{}`), "nobody can tell")
	require.Contains(t, c.call(3, "dies once", `{}`, `{}`), "done")
	r.stop()
	c = s.start(again).connect("files")
	require.Contains(t, c.call(1, "dies once", `{}`, `{}`), "done")
	require.Contains(t, c.call(2, "dies once", `{}`, `{}`), "nobody can tell")
	require.Len(t, c.calls(), 2)
}

// Whatever a client writes, a server gets no call that was not judged, and answers of a server to calls that it did not get
// go nowhere.
func TestHostileMessagesDoNotPass(t *testing.T) {
	s := newStage(t, allowTools, "")
	r := s.start()
	c := r.connect("files")
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"append"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"append"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"append"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append"}}]`,
		`{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"append","Name":"other"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"append"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append","arguments":[]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}`,
		`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"append"}}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":7}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"x\":\r{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"append\"}}\r}",
		`{"jsonrpc":"2.0"} {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append"}}`,
		`nonsense`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append"}}`,
	} {
		c.say("%s", line)
		if strings.Contains(line, `"x":`) {
			continue // it passes, as one line: a response of which the server knows no request
		}
		answer := c.hear()
		require.True(t, strings.Contains(answer, `"error":`) || strings.Contains(answer, `"isError":true`), "%s: %s", line, answer)
	}
	c.say(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"append"}}`)
	c.say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"hangs"}}`)
	require.Contains(t, c.hear(), "denied")
	c.say(`{"jsonrpc":"2.0","id":"f","method":"forge"}`)
	require.Contains(t, c.hear(), `"id":"f"`)
	for _, line := range c.calls() {
		require.True(t, line == "" || strings.HasPrefix(line, "answer"), line)
	}
}

// An answer that is larger than is read is none, and the call was made. The connection goes on.
func TestAHugeAnswerOfATool(t *testing.T) {
	s := newStage(t)
	r := s.start()
	c := r.connect("files")
	require.Contains(t, c.call(1, "huge", `{}`, `{}`), "the tool did its work")
	require.Contains(t, c.call(2, "append", `{}`, `{}`), "done")
	c.say(`{"jsonrpc":"2.0","id":3,"method":"x","params":{"a":"%s"}}`, strings.Repeat("x", 17<<20))
	require.Contains(t, c.hear(), "larger than")
	c.say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"append","arguments":{"a":"%s"}}}`, strings.Repeat("x", 5<<20))
	require.Contains(t, c.hear(), "larger than")
}

// An id names one request at a time, and a call that its client takes back is not answered.
func TestIDsAndCancelledCalls(t *testing.T) {
	s := newStage(t)
	r := s.start()
	c := r.connect("files")
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hangs","arguments":{"n":1}}}`)
	require.Eventually(t, func() bool { return c.calls()[0] != "" }, time.Minute, 10*time.Millisecond)
	require.Contains(t, c.call(1, "append", `{}`, `{}`), "the id is that of another request")
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	require.Contains(t, c.call(2, "append", `{}`, `{}`), `"id":2`)
	require.Len(t, c.calls(), 2)
}

// Offline the record answers, and no server is started.
func TestOfflineNoServerIsStarted(t *testing.T) {
	s := newStage(t)
	r := s.start()
	c := r.connect("files")
	c.hello()
	c.say(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	list := c.hear()
	one := c.call(1, "append", `{"a":1}`, use("t1"))
	r.stop()
	r = s.start(func(c *gateway.Config) { c.Offline = true })
	c = r.connect("files", "/does/not/exist")
	c.hello()
	c.say(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	require.JSONEq(t, list, c.hear())
	require.Equal(t, one, c.call(1, "append", `{"a":1}`, use("t1")))
	require.Contains(t, c.call(2, "append", `{"a":2}`, use("t2")), "never made before")
	summary := r.stop()
	require.Equal(t, "append", summary.Divergence.Tool)
	require.Zero(t, summary.Left)
}
