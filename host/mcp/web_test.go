//go:build unix

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// webServer is an MCP server over HTTP whose answers to calls of tools, which
// it counts, can be others.
type webServer struct {
	*httptest.Server
	calls  atomic.Int32
	old    atomic.Bool                      // it has sessions, which the protocol has given up
	onCall atomic.Pointer[http.HandlerFunc] // nil: the server's own
}

func serve(t testing.TB, options *mcp.StreamableHTTPOptions) *webServer {
	t.Helper()
	server := newTestServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
	w := &webServer{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Header.Get("Authorization") != "Bearer "+secretToken {
			http.Error(rw, "who are you?", http.StatusUnauthorized)
			return
		}
		if w.old.Load() && bytes.Contains(body, []byte(`"server/discover"`)) {
			http.Error(rw, "what?", http.StatusBadRequest)
			return
		}
		if r.Method == http.MethodGet {
			http.Error(rw, "no", http.StatusMethodNotAllowed)
			return
		}
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			w.calls.Add(1)
			if h := w.onCall.Load(); h != nil {
				(*h)(rw, r)
				return
			}
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *webServer) adapter(t testing.TB) host.Adapter {
	s := setupOf(t, `{"url":"`+w.URL+`","secret_headers":{"Authorization":"secret://TOKEN"}}`, manifest.Effect{})
	s.Secret = func(string) (string, error) { return "Bearer " + secretToken, nil }
	return adapterOf(t, s)
}

func TestHTTPCallIsExact(t *testing.T) {
	require.Nil(t, transport().Proxy)
	for name, options := range map[string]*mcp.StreamableHTTPOptions{"events": nil, "JSON": {JSONResponse: true}, "stateless": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, options)
			a := w.adapter(t)
			for range 3 {
				got, err := a.Perform(t.Context(), callOf(t, "echo", `{"n":12345678901234567890123,"f":1.0,"s":"<&>\n☃"}`))
				require.NoError(t, err)
				require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
				require.Equal(t, fromJSON(t, `{"f":1.0,"n":12345678901234567890123,"s":"<&>\n☃"}`), field(t, got.Payload, "structured", "arguments"))
				require.Equal(t, `"worldkernel:w:abc"`, at(t, got.Payload, "structured", "key"))
			}
			got, err := a.Perform(t.Context(), callOf(t, "refuse", `{}`))
			require.NoError(t, err)
			require.Equal(t, `"jsonrpc_-32602"`, at(t, got.Payload, "code"))
			require.EqualValues(t, 4, w.calls.Load())
		})
	}
}

func answerWith(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// largeAnswer answers with more than is read.
func largeAnswer(kind, before, part, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&m)
		answerWith(200, fmt.Sprintf(`%s{"jsonrpc":"2.0","id":%s,%q:"%s"}%s`, before, m.ID, part, strings.Repeat("x", maxMessageBytes), after), "Content-Type", kind)(w, r)
	}
}

func TestHTTPFailures(t *testing.T) {
	const half = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":"
	retry, left := receipt.OutcomeRetryableFailure, receipt.OutcomeCompensatable
	for _, c := range []struct {
		name       string
		handler    http.HandlerFunc
		code       string          // empty: nobody can tell
		class      receipt.Outcome // of echo
		idempotent receipt.Outcome // of a tool that the server says is idempotent
	}{
		{"400", answerWith(400, "nope"), `"http_400"`, "", ""},
		{"401", answerWith(401, "nope"), `"http_401"`, "", ""},
		{"an error of none", answerWith(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`, "Content-Type", "application/json"), `"jsonrpc_-32600"`, "", ""},
		{"429", answerWith(429, "nope"), `"http_429"`, "", retry},
		{"500", answerWith(500, "nope"), `"http_500"`, "", retry},
		{"503", answerWith(503, "nope"), `"http_503"`, "", retry},
		{"redirect", answerWith(307, "", "Location", "/elsewhere"), `"http_307"`, "", ""},
		{"cut before the answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", "", retry},
		{"cut in the answer", answerWith(200, half, "Content-Type", "text/event-stream"), "", "", retry},
		{"truncated", answerWith(200, "{", "Content-Type", "application/json", "Content-Length", "100"), "", "", retry},
		{"not JSON", answerWith(200, "<html>", "Content-Type", "application/json"), "", "", retry},
		{"HTML", answerWith(200, "<html>", "Content-Type", "text/html"), "", "", retry},
		{"over-size", largeAnswer(typeJSON, "", "result", ""), `"too_large"`, left, left},
		{"over-size event", largeAnswer(typeEvents, "data: ", "result", "\n\n"), `"too_large"`, left, left},
		{"over-size event, of the server's own", largeAnswer(typeEvents, "data: ", "method", "\n\n"), "", "", retry},
		{"over-size, of none", answerWith(200, strings.Repeat(" ", maxMessageBytes+1)+"{}", "Content-Type", "application/json"), "", "", retry},
		{"over-size event, of none", answerWith(200, "data: "+strings.Repeat(" ", maxMessageBytes+1)+"{}\n\n", "Content-Type", "text/event-stream"), "", "", retry},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := serve(t, nil)
			a := w.adapter(t)
			w.onCall.Store(&c.handler)
			got, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
			if c.code == "" {
				require.Error(t, err)
				require.NotContains(t, err.Error(), secretToken)
			} else {
				require.NoError(t, err)
				require.Equal(t, c.code, at(t, got.Payload, "code"))
				require.Equal(t, receipt.StatusError, got.Status)
				require.Equal(t, c.class, got.Class)
				require.False(t, got.Unsent)
				require.NotContains(t, string(got.Payload), secretToken)
			}
			got, err = a.Perform(t.Context(), callOf(t, "surroundings", `{}`))
			require.NoError(t, err)
			require.Equal(t, c.idempotent, got.Class)
			require.False(t, got.Unsent)
			require.EqualValues(t, 2, w.calls.Load(), "one request a call")
			w.onCall.Store(nil)
			got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
			require.NoError(t, err)
			require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
		})
	}
}

// TestWhatIsCutOfAnAnswerLeavesNoPartOfASecret: who looks for secrets would not find it.
func TestWhatIsCutOfAnAnswerLeavesNoPartOfASecret(t *testing.T) {
	w := serve(t, nil)
	secrets := func(string) (string, error) { return "Bearer " + secretToken, nil }
	s := setupOf(t, `{"url":"`+w.URL+`","secret_headers":{"Authorization":"secret://TOKEN"}}`, manifest.Effect{})
	performers, err := host.NewPerformers(host.Config{
		Manifest: &manifest.Manifest{Effects: map[string]manifest.Effect{"k": {Adapter: "mcp", Config: s.Config}}},
		Adapters: map[string]host.Factory{"mcp": New}, Secrets: secrets,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, performers.Close()) })
	for _, status := range []int{200, 403} {
		for n := range 3 {
			h := answerWith(status, strings.Repeat("x", 180+5*n)+"Bearer "+secretToken, "Content-Type", "application/json")
			w.onCall.Store(&h)
			call := callOf(t, "echo", `{}`)
			call.Permit.Kind = "k"
			got, err := performers.Perform(t.Context(), call)
			said := fmt.Sprintf("%s %v", got.Payload, err)
			require.Contains(t, said, "xxx")
			require.NotContains(t, said, "Bear")
		}
	}
}

func TestHTTPTimeout(t *testing.T) {
	w := serve(t, nil)
	a := w.adapter(t)
	arrived := make(chan struct{})
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	w.onCall.Store(&hang)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := a.Perform(ctx, callOf(t, "echo", `{}`))
	require.ErrorIs(t, err, context.Canceled)

	hung, call := make(chan error), callOf(t, "echo", `{}`)
	go func() {
		_, err := a.Perform(t.Context(), call)
		hung <- err
	}()
	<-arrived
	require.NoError(t, a.(io.Closer).Close(), "Close cuts calls")
	require.Error(t, <-hung)
}

func TestHTTPUnsent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	refused := adapterOf(t, setupOf(t, `{"url":"http://`+l.Addr().String()+`"}`, manifest.Effect{}))
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	untrusted := adapterOf(t, setupOf(t, `{"url":"`+tls.URL+`"}`, manifest.Effect{}))
	w := serve(t, nil)
	stranger := adapterOf(t, setupOf(t, `{"url":"`+w.URL+`"}`, manifest.Effect{}))
	for name, a := range map[string]host.Adapter{"refused": refused, "TLS": untrusted, "401 before the session": stranger} {
		got, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
		require.NoError(t, err, name)
		require.True(t, got.Unsent, name)
		require.Equal(t, receipt.OutcomeRetryableFailure, got.Class, name)
		require.Equal(t, receipt.StatusError, got.Status, name)
	}

	// The server goes away within a session.
	a := w.adapter(t)
	got, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status)
	w.Close()
	got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.True(t, got.Unsent, "%s", got.Payload)
}

// TestHTTPSessionForgotten restarts the server: it knows the session no more,
// and says so before it does anything.
func TestHTTPSessionForgotten(t *testing.T) {
	w := serve(t, nil)
	w.old.Store(true)
	a := w.adapter(t)
	forgotten := answerWith(404, "session not found")
	got, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status)
	w.onCall.Store(&forgotten)
	got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.Equal(t, `"session_missing"`, at(t, got.Payload, "code"))
	require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
	require.False(t, got.Unsent)
	w.onCall.Store(nil)
	got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status)
}

// TestCallThatASessionWasLostForIsMadeInAnother: the server did not take it, and says so with 404.
func TestCallThatASessionWasLostForIsMadeInAnother(t *testing.T) {
	for name, of := range map[string]struct {
		body string
		code string // empty: the call is made again
	}{
		"400 of none":      {`400 {"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`, ""},
		"400 as text":      {"400 Unknown Session", ""},
		"400 of its own":   {`400 {"jsonrpc":"2.0","error":{"code":-32602,"message":"no such session in the arguments"},"id":ID}`, `"jsonrpc_-32602"`},
		"400 else":         {"400 no such argument", `"http_400"`},
		"text":             {"session not found", ""},
		"nothing":          {"", ""},
		"error of none":    {`{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`, ""},
		"error of another": {`{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"}}`, ""},
		"its own answer":   {`{"jsonrpc":"2.0","error":{"code":-32602,"message":"no such tool"},"id":ID}`, `"jsonrpc_-32602"`},
		"its own, of none": {`{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":ID}`, ""},
		"of another":       {`{"jsonrpc":"2.0","error":{"code":-32602,"message":"no such tool"},"id":ID000}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			w.old.Store(true)
			a := w.adapter(t)
			got, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
			require.NoError(t, err)
			require.Equal(t, receipt.StatusOK, got.Status)
			forgets := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				var msg struct{ ID json.RawMessage }
				_ = json.NewDecoder(r.Body).Decode(&msg)
				w.onCall.Store(nil)
				status, body := 404, of.body
				if rest, ok := strings.CutPrefix(body, "400 "); ok {
					status, body = 400, rest
				}
				answerWith(status, strings.NewReplacer("ID provided", "ID provided", "ID", string(msg.ID)).Replace(body), "Content-Type", "application/json")(rw, r)
			})
			w.onCall.Store(&forgets)
			got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
			require.NoError(t, err)
			if of.code == "" {
				require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
				require.EqualValues(t, 3, w.calls.Load())
			} else {
				require.Equal(t, of.code, at(t, got.Payload, "code"))
				require.EqualValues(t, 2, w.calls.Load())
			}
		})
	}
}

// TestACallThatIsNotAnsweredEndsNoOther: of two calls at once a server answers one with what is no answer, and the other after that.
func TestACallThatIsNotAnsweredEndsNoOther(t *testing.T) {
	bad := map[string]struct {
		answer http.HandlerFunc
		code   string // empty: nobody can tell
		says   string
	}{
		"HTML":            {answerWith(200, "<html>", "Content-Type", "text/html"), "", "<html>"},
		"no message":      {answerWith(200, `{"error":"log in"}`, "Content-Type", "application/json"), "", "log in"},
		"nothing":         {answerWith(200, ""), "", "no message"},
		"no content":      {answerWith(206, "", "Content-Type", "text/event-stream"), "", ""},
		"cut":             {answerWith(200, "{", "Content-Type", "application/json", "Content-Length", "100"), "", "broke off"},
		"over-size":       {largeAnswer(typeJSON, "", "result", ""), "too_large", ""},
		"goes on never":   {answerWith(200, "id: 1\nretry: 1\ndata: \n\n", "Content-Type", "text/event-stream"), "", "405 Method Not Allowed"},
		"of a session":    {answerWith(200, "", sessionHeader, "another"), "", ""},
		"to somewhere":    {answerWith(307, "", "Location", "/elsewhere"), "http_307", "307 Temporary Redirect"},
		"not implemented": {answerWith(501, "no"), "http_501", ""},
	}
	for _, status := range []int{400, 401, 403, 410, 422, 429, 500} {
		code := fmt.Sprintf("http_%d", status)
		bad[code] = struct {
			answer http.HandlerFunc
			code   string
			says   string
		}{answerWith(status, "no", "Content-Type", "text/plain"), code, ""}
	}
	for name, of := range bad {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			w.old.Store(true)
			a := w.adapter(t)
			_, err := a.Perform(t.Context(), callOf(t, "echo", `{}`)) // there is a session
			require.NoError(t, err)
			arrived, over := make(chan struct{}), make(chan struct{})
			var first atomic.Bool
			both := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				var msg struct{ ID json.RawMessage }
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				_ = json.Unmarshal(body, &msg)
				if first.CompareAndSwap(false, true) {
					close(arrived)
					<-over
					answerWith(200, `{"jsonrpc":"2.0","id":`+string(msg.ID)+`,"result":{"content":[{"type":"text","text":"fine"}]}}`, "Content-Type", "application/json")(rw, r)
					return
				}
				of.answer(rw, r)
			})
			w.onCall.Store(&both)
			answered, call := make(chan host.Result, 1), callOf(t, "echo", `{}`)
			go func() {
				got, _ := a.Perform(t.Context(), call)
				answered <- got
			}()
			<-arrived
			refused, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
			close(over)
			if of.code == "" {
				require.ErrorContains(t, err, of.says)
			} else {
				require.NoError(t, err)
				require.Equal(t, strconv.Quote(of.code), at(t, refused.Payload, "code"))
				require.Contains(t, string(refused.Payload), of.says)
			}
			got := <-answered
			require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
		})
	}
}

// TestAnswerToAnotherRequestIsNone: whoever gets it, nobody can tell what came of the call, and those
// beside it are answered.
func TestAnswerToAnotherRequestIsNone(t *testing.T) {
	const evil = `{"jsonrpc":"2.0","id":ID000,"result":{"content":[{"type":"text","text":"evil"}]}}`
	fine := strings.NewReplacer("ID000", "ID", "evil", "fine").Replace(evil)
	for name, of := range map[string]struct {
		status     int
		kind, body string
		code       string // empty: nobody can tell
		ok         bool
	}{
		"a body":          {200, "application/json", evil, "", false},
		"events":          {200, "text/event-stream", "data: " + evil + "\n\n", "", false},
		"an error":        {400, "application/json", `{"jsonrpc":"2.0","id":ID000,"error":{"code":-32602,"message":"evil"}}`, "http_400", false},
		"and to this one": {200, "application/json", evil + "\n" + fine, "", true},
		"events, both":    {200, "text/event-stream", "data: " + evil + "\n\ndata: " + fine + "\n\n", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			w.old.Store(true)
			a := w.adapter(t)
			_, err := a.Perform(t.Context(), callOf(t, "echo", `{}`)) // there is a session
			require.NoError(t, err)
			answers := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				var msg struct{ ID json.RawMessage }
				_ = json.NewDecoder(r.Body).Decode(&msg)
				answerWith(of.status, strings.ReplaceAll(of.body, "ID", string(msg.ID)), "Content-Type", of.kind)(rw, r)
			})
			w.onCall.Store(&answers)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, err := a.Perform(ctx, callOf(t, "echo", `{}`))
			require.NotContains(t, string(got.Payload), "evil")
			switch {
			case of.ok:
				require.NoError(t, err)
				require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
			case of.code != "":
				require.NoError(t, err)
				require.Equal(t, strconv.Quote(of.code), at(t, got.Payload, "code"))
			default:
				require.Error(t, err)
				require.NoError(t, ctx.Err(), "at once")
			}
			w.onCall.Store(nil)
			got, err = a.Perform(t.Context(), callOf(t, "echo", `{}`))
			require.NoError(t, err)
			require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
		})
	}
}

// TestAnswersOverHTTPThatLookOddAreRead: of any line ends, among what is no answer, under a text for an id.
func TestAnswersOverHTTPThatLookOddAreRead(t *testing.T) {
	const result = `"result":{"content":[{"type":"text","text":"fine"}]}`
	const events, plain = "text/event-stream", "application/json"
	for name, of := range map[string][2]string{
		"CR":                {events, "event: message\rdata: {\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}\r\r"},
		"CRLF":              {events, "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}\r\n\r\n"},
		"BOM":               {events, "\ufeffdata: {\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}\n\n"},
		"comments":          {events, ": ping\n\n:\nretry: 100\n\ndata\n\ndata:{\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}\nfoo\n\n"},
		"several lines":     {events, "data: {\"jsonrpc\":\ndata: \"2.0\",\ndata:\ndata: \"id\":ID,\ndata: " + result + "}\n\n"},
		"empty data":        {events, "id:\ndata:\n\ndata: \n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}\n\n"},
		"other events":      {"Text/Event-Stream; charset=", "event: ping\ndata: {}\n\ndata: hello\n\ndata: [1\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}\n\n"},
		"no empty line":     {events, "data: {\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}"},
		"null for an id":    {plain, "{\"jsonrpc\":\"2.0\",\"id\":null," + result + "}"},
		"no id":             {plain, "{\"jsonrpc\":\"2.0\"," + result + "}"},
		"JSON as events":    {events, "{\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}\n"},
		"text id in events": {events, "data: {\"jsonrpc\":\"2.0\",\"id\":\"ID\"," + result + "}\n\n"},
		"text id":           {plain, "{\"jsonrpc\":\"2.0\",\"id\":\"ID\"," + result + "}"},
		"BOM before JSON":   {"application/json; charset=", "\ufeff\n{\"jsonrpc\":\"2.0\",\n\"id\":ID," + result + "}\n"},
		"a batch":           {plain, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},{\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}]"},
		"much beside it":    {events, strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":\""+strings.Repeat("x", 1<<20)+"\"}}\n\n", maxMessageBytes>>20) + "data: {\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}\n\n"},
		"JSON as text":      {"text/plain", "{\"jsonrpc\":\"2.0\",\"id\":ID," + result + "}"},
	} {
		t.Run(name, func(t *testing.T) {
			w := serve(t, nil)
			odd := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				var msg struct{ ID json.RawMessage }
				_ = json.NewDecoder(r.Body).Decode(&msg)
				answerWith(200, strings.ReplaceAll(of[1], "ID", string(msg.ID)), "Content-Type", of[0])(rw, r)
			})
			w.onCall.Store(&odd)
			a := w.adapter(t)
			for range 2 {
				got, err := a.Perform(t.Context(), callOf(t, "echo", `{}`))
				require.NoError(t, err)
				require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
				require.JSONEq(t, `[{"type":"text","text":"fine"}]`, at(t, got.Payload, "content"))
			}
		})
	}
}

// TestToolIsNamedOnceWhereverTheServerReadsIt: the protocol has it in a header,
// too, which config could set to another.
func TestToolIsNamedOnceWhereverTheServerReadsIt(t *testing.T) {
	w := serve(t, &mcp.StreamableHTTPOptions{Stateless: true})
	var names []string
	inner := w.Config.Handler
	w.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == methodCall {
			names = append(names, r.Header.Values("Mcp-Name")...)
		}
		inner.ServeHTTP(rw, r)
	})
	got, err := w.adapter(t).Perform(t.Context(), callOf(t, "echo", `{"name":"refuse"}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
	require.Equal(t, []string{"echo"}, names)
	for _, name := range []string{"Mcp-Name", "mcp_name", "MCP-Method", "Mcp-Session-Id", "Accept", "Content_Type", "Host", "X-HTTP-Method-Override"} {
		s := setupOf(t, `{"url":"`+w.URL+`","headers":{"`+name+`":"refuse"},"secret_headers":{"Authorization":"secret://TOKEN"}}`, manifest.Effect{})
		s.Secret = func(string) (string, error) { return "Bearer " + secretToken, nil }
		got, err := adapterOf(t, s).Perform(t.Context(), callOf(t, "echo", `{}`))
		require.NoError(t, err)
		require.True(t, got.Unsent, name)
		require.Contains(t, at(t, got.Payload, "error"), name)
	}
	require.Len(t, names, 1)
}

// A tool says which of its arguments stand in headers. What no header can have stands in none.
func TestArgumentsThatStandInHeaders(t *testing.T) {
	const schema = `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"B"},"c":{"type":"integer","x-mcp-header":"C"},` +
		`"d":{"type":"boolean","x-mcp-header":"D"},"e":{"type":"integer","x-mcp-header":"E"},"f":{"properties":{"g":{"type":"string","x-mcp-header":"F-G"}}},` +
		`"j":{"type":"string","x-mcp-header":"J"},"k":{},"l":{"type":"string","x-mcp-header":"L"},"m":{"type":"string","x-mcp-header":"M"}}}`
	arguments := fromJSON(t, `{"a":"plain","b":"☃","c":-7,"d":true,"e":1.5,"f":{"g":" x"},"h":"h","j":null,"k":"k","l":""}`)
	want := map[string]string{"A": "plain", "B": "=?base64?4piD?=", "C": "-7", "D": "true", "F-G": "=?base64?IHg=?=", "L": ""}
	for schema, want := range map[string]map[string]string{schema: want, `null`: {}, `7`: {}, `{"properties":[]}`: {}, `{"properties":{"a":null}}`: {}} {
		decoded, err := canon.Decode(fromJSON(t, schema))
		require.NoError(t, err)
		got := make(map[string]string)
		require.NoError(t, headersOf(decoded, arguments, got, make(map[string]bool)))
		require.Equal(t, want, got)
	}
}

// A tool whose annotations no header can follow is not called without sessions; which is told.
func TestAToolWithWrongHeadersIsNotCalled(t *testing.T) {
	for schema, why := range map[string]string{
		`{"properties":{"a":{"type":"string","x-mcp-header":"bad name"}}}`:                                                                    "no name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                                            "no name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":7}}}`:                                                                             "no name of a header",
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                                                           "no text, integer or boolean",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"integer","x-mcp-header":"a"}}}}}`:            "another argument",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":["string"]},"c":{"type":"boolean","x-mcp-header":"C"}},"x":"y"}`: "",
	} {
		called := false
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var asked struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(body, &asked)
			result := `{"supportedVersions":["` + withoutSessions + `"]}`
			switch asked.Method {
			case "tools/list":
				result = `{"tools":[{"name":"echo","inputSchema":` + schema + `}]}`
			case methodCall:
				called, result = true, `{"content":[]}`
			}
			w.Header().Set("Content-Type", typeJSON)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, result)
		}))
		got, err := adapterOf(t, setupOf(t, `{"url":"`+site.URL+`"}`, manifest.Effect{})).Perform(t.Context(), callOf(t, "echo", `{}`))
		require.NoError(t, err)
		site.Close()
		require.Equal(t, why == "", called, schema)
		if why != "" {
			require.True(t, got.Unsent)
			require.Contains(t, at(t, got.Payload, "error"), why)
		}
	}
}

// A header of an argument that is empty is sent: the server compares the two.
func TestArgumentThatIsEmptyStandsInItsHeader(t *testing.T) {
	var got []http.Header
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
		w.Header().Set("Content-Type", typeJSON)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["`+withoutSessions+`"]}}`)
	}))
	t.Cleanup(site.Close)
	sv := newServer(setupOf(t, `{"url":"`+site.URL+`"}`, manifest.Effect{}), &governance.MCPTarget{})
	var err error
	sv.target.URL, err = url.Parse(site.URL)
	require.NoError(t, err)
	c := newClient(newCalls())
	c.link = sv.web(c)
	require.NoError(t, c.begin(t.Context()))
	_, _ = c.ask(t.Context(), &exchange{headers: map[string]string{"A": ""}}, methodCall, map[string]any{"name": "t"})
	require.Len(t, got, 2)
	require.Equal(t, []string{""}, got[1].Values("Mcp-Param-A"))
}
