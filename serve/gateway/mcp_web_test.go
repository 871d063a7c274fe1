package gateway_test

import (
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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/gateway"
)

// site is a server of tools over HTTP. It answers as the server over stdio does, with a body or with a stream.
type site struct {
	*httptest.Server

	t      *testing.T
	file   string // that it appends to
	stream bool
	asked  atomic.Int64
	last   atomic.Pointer[http.Request]
	by     atomic.Pointer[http.HandlerFunc] // in its place
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, file: filepath.Join(t.TempDir(), "calls")}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("server/discover")) {
			w.WriteHeader(http.StatusBadRequest) // as servers of the protocol with sessions do
			return
		}
		s.last.Store(r.Clone(context.Background()))
		if by := s.by.Load(); by != nil {
			(*by)(w, r)
			return
		}
		s.serve(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) serve(w http.ResponseWriter, body []byte) {
	var said bytes.Buffer
	toolServer(bytes.NewReader(append(body, '\n')), &said, s.file)
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	switch {
	case bytes.Contains(body, []byte(`"initialize"`)):
		w.Header().Set("Mcp-Session-Id", "s1")
		w.Header().Set("Set-Cookie", "c=canary")
	case lines[0] == "":
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !s.stream && len(lines) == 1 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, lines[0])
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = io.WriteString(w, ": begins\r\n\r\n")
	for _, line := range lines {
		_, _ = io.WriteString(w, "event: message\r\ndata: "+line+"\r\n\r\n")
	}
}

func (s *site) answersBy(by http.HandlerFunc) { s.by.Store(&by) }

// calls are what the server was called for.
func (s *site) calls() []string { return (&client{file: s.file}).calls() }

// reach returns the address of a server behind the gateway.
func (r *run) reach(where string) string { return gateway.WebURL(r.url("mcp", ""), "files", where) }

type answer struct {
	StatusCode int
	Header     http.Header
}

// sendTo sends a server behind the gateway a request, and returns the answer, of a stream the messages.
func (r *run) sendTo(ctx context.Context, method, address, body string, header ...string) (said answer, text string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	require.NoError(r.t, err)
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer sk-canary"}, "Cookie": {"c=canary"},
		"Mcp-Session-Id": {"s1"}, "Mcp-Protocol-Version": {"2025-11-25"},
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return said, err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	said = answer{resp.StatusCode, resp.Header}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return said, err.Error()
	}
	return said, strings.TrimSpace(strings.NewReplacer("data: ", "", ":\n\n", "").Replace(string(all)))
}

func (r *run) say(address, format string, args ...any) string {
	r.t.Helper()
	_, text := r.sendTo(r.t.Context(), http.MethodPost, address, fmt.Sprintf(format, args...))
	return text
}

func (r *run) callAt(address string, id int, tool, arguments, meta string) string {
	r.t.Helper()
	return r.say(address, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":%s}}`, id, tool, arguments, meta)
}

// notStored says that no file of the world has a text.
func (s *stage) notStored(text string) {
	s.t.Helper()
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		stored, err := os.ReadFile(path)
		require.False(s.t, bytes.Contains(stored, []byte(text)), path)
		return err
	}))
}

// A call of a tool of a server over HTTP is made once it is permitted, its answer comes back as the server wrote it, and is
// on record. All else passes both ways, with the client's headers, which are not.
func TestCallsOverHTTPAreIntents(t *testing.T) {
	for name, stream := range map[string]bool{"a body": false, "a stream": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, allowTools, allowTools+`  - {name: never outside, when: 'intent.kind == "mcp.call" && intent.params.server == "files" && has(intent.params.arguments.path)', decide: deny}
`)
			r, files := s.start(), newSite(t)
			files.stream = stream
			at := r.reach(files.URL + "/mcp?key=canary")
			resp, text := r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"c"}}}`, "X-Unknown", "kept")
			require.Contains(t, text, `"serverInfo"`)
			require.Equal(t, "s1", resp.Header.Get("Mcp-Session-Id"))
			require.Equal(t, "kept", files.last.Load().Header.Get("X-Unknown"))
			resp, _ = r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			require.Equal(t, http.StatusAccepted, resp.StatusCode)
			require.Contains(t, r.say(at, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`), `"name":"append"`)
			want := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"structuredContent":{"n":1.0, "big":9007199254740993},"_meta":{"x":null}}}`
			sameBytes(t, want, r.callAt(at, 1, "append", `{"b":1.0,"a":9007199254740993}`, `{}`))
			for header, value := range map[string]string{"Authorization": "Bearer sk-canary", "Cookie": "c=canary", "Mcp-Session-Id": "s1", "Mcp-Protocol-Version": "2025-11-25"} {
				require.Equal(t, value, files.last.Load().Header.Get(header))
			}
			require.Equal(t, "/mcp?key=canary", files.last.Load().URL.RequestURI())
			require.Contains(t, r.callAt(at, 2, "fails", `{}`, `{}`), `"isError":true`)
			require.Contains(t, r.callAt(at, 3, "faults", `{}`, `{}`), `"unknown tool"`)
			require.Contains(t, r.callAt(at, 4, "append", `{"path":"/etc"}`, `{}`), "never outside")
			asks := r.callAt(at, 5, "asks", `{}`, `{}`)
			require.Contains(t, asks, `"elicitation/create"`)
			require.Contains(t, asks, `"id":5,`)
			r.say(at, `{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`)
			require.Contains(t, r.say(at, `{"jsonrpc":"2.0","id":6,"method":"ping"}`), `"id":6`)
			require.Equal(t, []string{`append {"b":1.0,"a":9007199254740993}`, "fails {}", "faults {}", "asks {}", `answer "q" {"action":"accept"}`}, files.calls())
			states, texts := r.answersOf()
			require.Equal(t, []receipt.State{receipt.StateCommitted, receipt.StateFailed, receipt.StateFailed, receipt.StateDenied, receipt.StateCommitted}, states)
			require.Equal(t, []string{"done", "no", `{"code":-32602,"message":"unknown tool"}`, ""}, append(texts[:3:3], texts[len(texts)-1]))
			require.Equal(t, 4, r.stop().ToolCalls)
			s.notStored("canary")
		})
	}
}

// A started agent gets what the record has, and the server is not asked; offline it is not asked at all.
func TestOverHTTPTheRecordAnswers(t *testing.T) {
	s, files := newStage(t), newSite(t)
	r := s.start()
	at := r.reach(files.URL)
	hello := r.say(at, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
	list := r.say(at, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	one := r.callAt(at, 1, "append", `{"a":1}`, use("t1"))
	r.stop()
	r = s.start(again)
	at = r.reach(files.URL)
	require.Equal(t, one, r.callAt(at, 1, "append", `{"a":1}`, use("t1")))
	require.Len(t, files.calls(), 1)
	r.callAt(at, 2, "append", `{"a":1}`, use("t2"))
	require.Len(t, files.calls(), 2)
	require.Equal(t, 1, r.stop().ToolsServed)

	before := files.asked.Load()
	r = s.start(func(c *gateway.Config) { c.Offline = true })
	at = r.reach(files.URL)
	require.JSONEq(t, hello, r.say(at, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`))
	require.JSONEq(t, list, r.say(at, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`))
	resp, _ := r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
	resp, _ = r.sendTo(t.Context(), http.MethodGet, at, "")
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	require.Equal(t, one, r.callAt(at, 1, "append", `{"a":1}`, use("t1")))
	require.Contains(t, r.callAt(at, 9, "append", `{"a":9}`, use("t9")), "never made before")
	require.Equal(t, "append", r.stop().Divergence.Tool)
	require.Equal(t, before, files.asked.Load())
}

// A client that goes and asks again under another id gets the answer of the call that it has asked for.
func TestOverHTTPWhoAsksAgainJoins(t *testing.T) {
	s, files := newStage(t), newSite(t)
	r := s.start()
	at := r.reach(files.URL)
	begun, goes := make(chan bool), make(chan bool)
	files.answersBy(func(w http.ResponseWriter, q *http.Request) {
		close(begun)
		<-goes
		body, _ := io.ReadAll(q.Body)
		files.serve(w, body)
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-begun; leave() }()
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"append","arguments":{"a":1}}}`
	_, text := r.sendTo(ctx, http.MethodPost, at, fmt.Sprintf(call, 1), "Mcp-Session-Id", "")
	require.Contains(t, text, "canceled")
	time.AfterFunc(100*time.Millisecond, func() { close(goes) })
	_, text = r.sendTo(t.Context(), http.MethodPost, at, fmt.Sprintf(call, 2), "Mcp-Session-Id", "")
	require.Contains(t, text, `"id":2,`)
	require.Contains(t, text, "done")
	require.Len(t, files.calls(), 1)
}

// A stream of a call that broke off is read on where the server has it, and its client gets one answer.
func TestOverHTTPABrokenStreamIsReadOn(t *testing.T) {
	s, files := newStage(t), newSite(t)
	r := s.start()
	at := r.reach(files.URL)
	var answer []byte
	var resumed string
	files.answersBy(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if q.Method == http.MethodPost {
			body, _ := io.ReadAll(q.Body)
			var said bytes.Buffer
			toolServer(bytes.NewReader(append(body, '\n')), &said, files.file)
			answer = bytes.TrimSpace(said.Bytes())
			_, _ = io.WriteString(w, "id: e1\nretry: 1\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\ndata: {\"half")
			return
		}
		resumed = q.Header.Get("Last-Event-Id") + q.Header.Get("Authorization")
		_, _ = fmt.Fprintf(w, "id: e2\ndata: %s\n\n", answer)
	})
	text := r.callAt(at, 1, "append", `{}`, `{}`)
	require.Contains(t, text, "notifications/progress")
	require.Contains(t, text, `"id":1,"result"`)
	require.NotContains(t, text, "e1")
	require.Len(t, files.calls(), 1)
	require.Equal(t, "e1Bearer sk-canary", resumed)
}

// What a server does to a call is on record as what it is, and its client gets what it can use.
func TestOverHTTPServersThatDoNotAnswer(t *testing.T) {
	elsewhere := newSite(t)
	big := strings.Repeat("x", 17<<20)
	for name, of := range map[string]struct {
		by     http.HandlerFunc
		status int
		text   string
		state  receipt.State
	}{
		"a session that has ended": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Www-Authenticate", "Bearer x")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32001,"message":"no session"}}`)
		}, http.StatusNotFound, "no session", receipt.StateFailed},
		"an error": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
			http.StatusOK, "nobody can tell whether this call was made", receipt.StateInDoubt,
		},
		"nothing":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, http.StatusOK, "nobody can tell", receipt.StateInDoubt},
		"no message": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }, http.StatusOK, "nobody can tell", receipt.StateInDoubt},
		"a batch": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `[{"jsonrpc":"2.0","id":1,"result":{}}]`)
		}, http.StatusOK, "nobody can tell", receipt.StateInDoubt},
		"elsewhere": {func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, elsewhere.URL, http.StatusTemporaryRedirect)
		}, http.StatusOK, "was not made", receipt.StateFailed},
		"large": {func(w http.ResponseWriter, q *http.Request) {
			var m struct{ ID json.RawMessage }
			_ = json.NewDecoder(q.Body).Decode(&m)
			_, _ = fmt.Fprintf(w, "{\"result\":\n%q,\n\"id\":%s}", big, m.ID)
		}, http.StatusOK, "the tool did its work", receipt.StateFailed},
		"large and no answer": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, big) }, http.StatusOK, "nobody can tell", receipt.StateInDoubt},
		"large and other's":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, "{\"result\":%q,\"id\":1}", big) }, http.StatusOK, "nobody can tell", receipt.StateInDoubt},
		"two in one":          {stream("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\rdata: {}\n\n"), http.StatusOK, "nobody can tell", receipt.StateInDoubt},
		"other's":             {stream("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":1}}\n\n"), http.StatusOK, "nobody can tell", receipt.StateInDoubt},
		"large event":         {stream("data: " + big + "\n\n"), http.StatusOK, "nobody can tell", receipt.StateInDoubt},
		"large field":         {stream("id: " + big + "\n\n"), http.StatusOK, "nobody can tell", receipt.StateInDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			s, files := newStage(t), newSite(t)
			r := s.start()
			at := r.reach(files.URL)
			files.answersBy(of.by)
			resp, text := r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append"}}`)
			require.Equal(t, of.status, resp.StatusCode)
			require.Contains(t, text, of.text)
			require.NotContains(t, text, "forged")
			require.Equal(t, of.status != http.StatusOK, resp.Header.Get("Www-Authenticate") != "")
			states, _ := r.answersOf()
			require.Equal(t, []receipt.State{of.state}, states)
			require.Zero(t, elsewhere.asked.Load())
		})
	}
	s, files := newStage(t), newSite(t)
	r := s.start()
	at := r.reach(files.URL)
	files.Close()
	require.Contains(t, r.callAt(at, 1, "append", `{}`, `{}`), "was not made")
}

func stream(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}
}

// A server cannot answer a call that it did not get, nor list tools that nobody has compared, on whatever stream.
func TestOverHTTPAnswersThatNobodyAskedForGoNowhere(t *testing.T) {
	s := newStage(t, allowTools, `  - {name: all tools need a person, when: 'intent.kind == "mcp.call"', decide: require_approval}
`)
	r, files := s.start(), newSite(t)
	at := r.reach(files.URL)
	answered := make(chan string, 1)
	go func() { answered <- r.callAt(at, 1, "append", `{}`, `{}`) }()
	require.Eventually(t, func() bool { states, _ := r.answersOf(); return len(states) == 1 }, time.Minute, 10*time.Millisecond)
	forged := "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":1}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{\"forged\":1}}\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"result\":{\"forged\":1}}\n\ndata: [{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":1}}]\n\n" +
		"event: endpoint\ndata: http://forged/\n\nnonsense\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\nid: 7\nretry: 5\ndata:\n\n"
	files.answersBy(stream(forged))
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		_, text := r.sendTo(t.Context(), method, at, `{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`, "Last-Event-Id", "x")
		require.NotContains(t, text, "forged")
		require.Contains(t, text, "notifications/message")
		require.Contains(t, text, "id: 7\nretry: 5")
		require.Equal(t, "x", files.last.Load().Header.Get("Last-Event-Id"))
	}
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"result":{"forged":1}}`, ` [{"jsonrpc":"2.0","id":3,"result":{"forged":1}}]`} {
		files.answersBy(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json-x")
			_, _ = io.WriteString(w, body)
		})
		for _, asked := range []string{`{"jsonrpc":"2.0","id":3,"method":"prompts/list"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`} {
			resp, text := r.sendTo(t.Context(), http.MethodPost, at, asked)
			require.NotContains(t, text, "forged")
			require.Equal(t, http.StatusBadGateway, resp.StatusCode)
		}
	}
	files.by.Store(nil)
	r.approve()
	require.Contains(t, <-answered, "done")
}

// Whatever a client sends, a server gets no call that was not judged.
func TestOverHTTPHostileMessagesDoNotPass(t *testing.T) {
	s := newStage(t, allowTools, "")
	r, files := s.start(), newSite(t)
	at := r.reach(files.URL)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append"}}`
	utf7 := `{"jsonrpc":"2.0","id":1,"method":"ping","x":"+ACIALAAi-method+ACIAOgAi-tools/call"}`
	for _, of := range []struct {
		body   string
		header []string
	}{
		{call, nil},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"append"}}`, nil},
		{"[" + call + "]", nil},
		{call + call, nil},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, nil},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":"append"}}`, []string{"Mcp-Method", "tools/call"}},
		{utf7, []string{"Content-Type", "application/json; charset=utf-7"}},
		{call, []string{"Content-Type", "text/plain"}},
		{call, []string{"Content-Encoding", "gzip"}},
		{call, []string{"Upgrade", "websocket"}},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":"` + strings.Repeat("x", 17<<20) + `"}`, nil},
	} {
		before := files.asked.Load()
		resp, text := r.sendTo(t.Context(), http.MethodPost, at, of.body, of.header...)
		if resp.StatusCode == http.StatusOK {
			require.Contains(t, text, "denied")
		}
		require.Equal(t, before, files.asked.Load(), "%.100s", of.body)
	}
	require.Equal(t, []string{""}, files.calls())
	for _, where := range []string{"/nobody", "/file/file:///etc/passwd", "/files/https:///x", "/" + files.URL, "//" + files.URL} {
		resp, _ := r.sendTo(t.Context(), http.MethodPost, r.url("mcp", where), call)
		require.GreaterOrEqual(t, resp.StatusCode, http.StatusBadRequest)
	}
	resp, _ := r.sendTo(t.Context(), http.MethodGet, at, call, "X-Http-Method-Override", "POST")
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
	body, err := io.ReadAll(files.last.Load().Body)
	require.NoError(t, err)
	require.Empty(t, body)
}

// A call that its client takes back is not waited for, and the server is told; a redirect within the server is followed; ids name
// one request of a session at a time.
func TestOverHTTPCancelledCallsAndIDs(t *testing.T) {
	s, files := newStage(t), newSite(t)
	r := s.start()
	at := r.reach(files.URL + "/mcp")
	begun, told := make(chan bool, 1), make(chan bool, 1)
	files.answersBy(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		switch {
		case q.URL.Path == "/mcp":
			http.Redirect(w, q, "/mcp/", http.StatusPermanentRedirect)
		case bytes.Contains(body, []byte("hangs")):
			begun <- true
			<-q.Context().Done()
		case bytes.Contains(body, []byte("cancelled")):
			told <- true
		default:
			files.serve(w, body)
		}
	})
	ended := make(chan string, 1)
	go func() { ended <- r.callAt(at, 1, "hangs", `{}`, `{}`) }()
	<-begun
	require.Contains(t, r.callAt(at, 1, "append", `{}`, `{}`), "the id is that of another request")
	_, text := r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append"}}`, "Mcp-Session-Id", "other")
	require.Contains(t, text, "done")
	r.say(at, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	require.Empty(t, <-ended)
	require.True(t, <-told)
}
