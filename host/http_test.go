package host

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// httpCBOR returns JSON, or a value of maps and lists, as canonical CBOR.
func httpCBOR(t testing.TB, v any) canon.Raw {
	t.Helper()
	text, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		text = string(b)
	}
	raw, err := canon.FromJSON([]byte(text))
	require.NoError(t, err)
	return raw
}

type m = map[string]any

// httpTrial is an http effect and the network that it meets. Connections are
// made to the servers in open only; any other that passes the guard fails the
// test, if it is not one of those expected, and is refused.
type httpTrial struct {
	config, params any
	idempotent     bool
	cap            manifest.Cap
	dns            func(name string) []string
	open, expected []string // host:port
	secrets        map[string]string
}

func (x *httpTrial) network(t *testing.T) *httpNetwork {
	n := newHTTPNetwork()
	n.resolver = fakeResolver(t, x.dns)
	n.dialling = func(addr netip.AddrPort) error {
		for _, o := range x.open {
			if at := netip.MustParseAddrPort(o); at == addr {
				require.True(t, at.Addr().IsLoopback())
				return nil
			}
		}
		for _, e := range x.expected {
			if netip.MustParseAddrPort(e) == addr {
				return errNoPacketLeaves
			}
		}
		t.Errorf("asked to connect to %s", addr)
		return errNoPacketLeaves
	}
	return n
}

var errNoPacketLeaves = fmt.Errorf("no packet leaves a test")

func (x *httpTrial) setup(t *testing.T) Setup {
	return Setup{
		Kind: "tool.http", Config: httpCBOR(t, x.config),
		Effect: manifest.Effect{Adapter: "http", Config: httpCBOR(t, x.config), Idempotent: x.idempotent},
		Secret: func(reference string) (string, error) {
			if value, ok := x.secrets[reference]; ok {
				return value, nil
			}
			return "", fmt.Errorf("%s: none", reference)
		},
	}
}

func (x *httpTrial) perform(ctx context.Context, t *testing.T) (Result, error) {
	t.Helper()
	a, err := newHTTP(x.network(t))(x.setup(t))
	require.NoError(t, err)
	call := Call{External: "worldkernel:town:abc", Cap: x.cap}
	if call.Cap.Type == "" {
		call.Cap.Type = manifest.CapAny
	}
	if x.params != nil {
		call.Permit.Params = httpCBOR(t, x.params)
	}
	return a.Perform(ctx, call)
}

// get performs and returns the result with its payload.
func (x *httpTrial) get(t *testing.T) (Result, m) {
	t.Helper()
	r, err := x.perform(t.Context(), t)
	require.NoError(t, err)
	v, err := canon.Decode(r.Payload)
	require.NoError(t, err)
	return r, v.(m)
}

// httpServer starts a server on a loopback port and returns its URL and address.
func httpServer(t *testing.T, h http.HandlerFunc) (base, addr string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, s.Listener.Addr().String()
}

// pathNumber returns what the path of a request is.
func pathNumber(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Path[1:])
	if err != nil {
		panic(err)
	}
	return n
}

// expiry is a context whose deadline passes when the test says so.
type expiry struct {
	context.Context
	over chan struct{}
}

func newExpiry() expiry { return expiry{context.Background(), make(chan struct{})} }

func (e expiry) Done() <-chan struct{} { return e.over }

func (e expiry) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestHTTPSendsWhatTheGateRead(t *testing.T) {
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != "POST" || r.URL.String() != "/v1/a/x%3By?k=1&q=a%26b" || !r.Close {
			w.WriteHeader(http.StatusTeapot)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("X-Internal", "not for cells")
		w.Header().Set("Request-Id", "r-7")
		fmt.Fprintf(w, `{"key": %q, "auth": %q, "type": %q, "agent": %q, "trace": %q, "body": %s, "big": 12345678901234567890}`,
			r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.UserAgent(),
			r.Header.Get("Traceparent"), body)
	})
	x := httpTrial{
		config: m{"url": base + "/v1?k=1", "method": "POST", "secret_headers": m{"Authorization": "Bearer secret://TOKEN"}},
		params: m{"path": "/b/../a/x;y", "query": m{"q": "a&b"}, "json": []int{1}},
		open:   []string{addr}, secrets: map[string]string{"secret://TOKEN": "s3cr3t"},
	}
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:3128")
	r, payload := x.get(t)
	require.Equal(t, receipt.StatusOK, r.Status, payload)
	got := payload["json"].(m)
	require.Equal(t, "worldkernel:town:abc", got["key"])
	require.Equal(t, "Bearer s3cr3t", got["auth"])
	require.Equal(t, "application/json", got["type"])
	require.Equal(t, "worldkernel", got["agent"])
	require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, got["trace"])
	require.Equal(t, "12345678901234567890", fmt.Sprint(got["big"]))
	require.Equal(t, m{"content-type": "application/json; charset=utf-8", "etag": `"1"`, "request-id": "r-7"}, payload["headers"])
	require.Equal(t, "r-7", r.ExternalRef)
	require.Positive(t, r.Cost.Bytes)
	require.Equal(t, &receipt.StateChange{Resource: base + "/v1/a/x%3By?k=1&q=a%26b", ETag: `"1"`, ExternalRef: "r-7"}, r.StateChange)
}

func TestHTTPStateChangeNamesWhatWasChanged(t *testing.T) {
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", "Mon, 05 Jan 2026 10:00:00 GMT")
		switch r.URL.Path {
		case "/made":
			w.Header().Set("Location", "/things/9?token=t")
			w.WriteHeader(http.StatusCreated)
		case "/elsewhere":
			w.Header().Set("Location", "http://evil.test/9")
			w.WriteHeader(http.StatusCreated)
		case "/failed":
			w.WriteHeader(http.StatusConflict)
		}
	})
	const at = "Mon, 05 Jan 2026 10:00:00 GMT"
	for path, c := range map[string]struct {
		method string
		want   *receipt.StateChange
	}{
		"/x?a=1&access_token=t&X-Amz-Signature=s&sig=s&b=2": {"PUT", &receipt.StateChange{Resource: base + "/x?a=1&b=2", ETag: `"1"`, Version: at}},
		"/made":      {"POST", &receipt.StateChange{Resource: base + "/things/9", ETag: `"1"`, Version: at, ExternalRef: "/things/9?token=t"}},
		"/elsewhere": {"POST", &receipt.StateChange{Resource: base + "/elsewhere", ETag: `"1"`, Version: at, ExternalRef: "http://evil.test/9"}},
		"/gone":      {"DELETE", &receipt.StateChange{Resource: base + "/gone", Version: httpGone}},
		"/patch":     {"PATCH", &receipt.StateChange{Resource: base + "/patch", ETag: `"1"`, Version: at}},
		"/failed":    {"POST", nil},
		"/read":      {"GET", nil},
	} {
		x := httpTrial{config: m{"url": base + path, "method": c.method}, open: []string{addr}}
		r, _ := x.get(t)
		require.Equal(t, c.want, r.StateChange, path)
	}
}

func TestHTTPAnswersAreReadInEachForm(t *testing.T) {
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", q.Get("type"))
		if coding := q.Get("coding"); coding != "" {
			w.Header().Set("Content-Encoding", coding)
		}
		w.Header().Set("X-Request-Id", r.Header.Get("Accept-Encoding"))
		if body := q.Get("body"); q.Get("coding") == "gzip" && body != "no gzip" {
			z := gzip.NewWriter(w)
			fmt.Fprint(z, body)
			_ = z.Close()
		} else {
			fmt.Fprint(w, body)
		}
	})
	ask := func(method, kind, coding, body string) (Result, map[string]any) {
		x := httpTrial{config: m{"url": base, "method": method, "max_bytes": 1000}, open: []string{addr}}
		x.params = m{"query": m{"type": kind, "coding": coding, "body": body}}
		return x.get(t)
	}
	for _, kind := range []string{"application/json", "application/json; charset=", "application/json;odata.metadata=minimal;;", "APPLICATION/JSON", "text/json", "application/vnd.api+json; v=1"} {
		_, payload := ask("POST", kind, "", `{"a":1}`)
		require.Contains(t, payload, "json", kind)
	}
	_, payload := ask("POST", "application/json", "gzip", `{"a":1}`)
	require.Contains(t, payload, "json")
	require.Equal(t, map[string]any{"content-type": "application/json", "x-request-id": "gzip"}, payload["headers"])
	_, payload = ask("PUT", "application/json", "", `{}`)
	require.NotContains(t, payload["headers"], "x-request-id", "the ETag of what is compressed is another")

	_, payload = ask("GET", "application/json", "br", "not read")
	require.Equal(t, "the body is encoded as br", payload["json_error"])
	require.Contains(t, payload["headers"], "content-encoding")
	_, payload = ask("GET", "text/plain", "gzip", "no gzip")
	require.Equal(t, "no gzip", payload["body"])
	require.Contains(t, payload["headers"], "content-encoding")
	r, payload := ask("GET", "text/plain", "gzip", strings.Repeat("a", 1001))
	require.Equal(t, "response_too_large", payload["code"], "what is small as it arrives")
	require.Equal(t, receipt.StatusError, r.Status)
}

func TestHTTPAnswersAreClassified(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", r.URL.Query().Get("after"))
		w.WriteHeader(pathNumber(r))
		fmt.Fprint(w, "why")
	})
	for _, c := range []struct {
		path       string
		idempotent bool
		class      receipt.Outcome
		after      time.Duration
	}{
		{"/400", true, "", 0},
		{"/404", true, "", 0},
		{"/302", true, "", 0},
		{"/500", true, receipt.OutcomeRetryableFailure, 0},
		{"/503?after=7", true, receipt.OutcomeRetryableFailure, 7 * time.Second},
		{"/429?after=7", true, receipt.OutcomeRetryableFailure, 7 * time.Second},
		{"/429?after=99999999999999999999", true, receipt.OutcomeRetryableFailure, time.Hour},
		{"/429?after=4294967296", true, receipt.OutcomeRetryableFailure, time.Hour},
		{"/429?after=1.5", true, receipt.OutcomeRetryableFailure, 2 * time.Second},
		{"/429?after=90s", true, receipt.OutcomeRetryableFailure, 90 * time.Second},
		{"/429?after=soon", true, receipt.OutcomeRetryableFailure, time.Minute},
		{"/429?after=-3", true, receipt.OutcomeRetryableFailure, time.Minute},
		{"/425", false, receipt.OutcomeRetryableFailure, 0},
		{"/408", false, "", 0},
		{"/429?after=Mon,%2005%20Jan%202026%2010:00:00%20GMT", true, receipt.OutcomeRetryableFailure, 0},
		{"/500", false, "", 0},
		{"/503?after=7", false, "", 0},
		{"/429?after=7", false, "", 0},
		{"/409", false, receipt.OutcomeCompensatable, 0},
		{"/409", true, receipt.OutcomeCompensatable, 0},
	} {
		x := httpTrial{config: m{"url": base + c.path, "method": "POST", "compensate_on": []int{409}, "retry_on": []int{409, 425}}, open: []string{addr}, idempotent: c.idempotent}
		r, payload := x.get(t)
		require.Equal(t, receipt.StatusError, r.Status, c.path)
		require.Equal(t, c.class, r.Class, c.path)
		require.Equal(t, c.after, r.RetryAfter, c.path)
		require.False(t, r.Unsent)
		require.Equal(t, "http_status", payload["code"])
		require.Equal(t, "why", payload["body"])
		require.Equal(t, c.path[1:4], fmt.Sprint(payload["status"]))
	}
	x := httpTrial{config: m{"url": base + "/503?after=" + url.QueryEscape(soon)}, open: []string{addr}, idempotent: true}
	r, _ := x.get(t)
	require.Greater(t, r.RetryAfter, 30*time.Minute)
	require.LessOrEqual(t, r.RetryAfter, time.Hour)
}

func TestHTTPFailureBeforeTheRequestIsRetryable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	defer stranger.Close()
	plain, plainAddr := httpServer(t, http.NotFound)

	for name, x := range map[string]httpTrial{
		"refused connection":  {config: m{"url": "http://" + closed.Addr().String()}, open: []string{closed.Addr().String()}},
		"unknown certificate": {config: m{"url": stranger.URL}, open: []string{stranger.Listener.Addr().String()}},
		"no TLS":              {config: m{"url": strings.Replace(plain, "http:", "https:", 1)}, open: []string{plainAddr}},
		"no such name":        {config: m{"url": "http://nowhere.test"}},
	} {
		r, payload := x.get(t)
		require.Equal(t, receipt.StatusError, r.Status, name)
		require.Equal(t, receipt.OutcomeRetryableFailure, r.Class, name)
		require.True(t, r.Unsent, name)
		require.Equal(t, "unreachable", payload["code"], name)
	}
}

func TestHTTPTimeoutBeforeTheRequestIsRetryable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	ctx := newExpiry()
	var accepted sync.WaitGroup
	accepted.Go(func() { // says nothing, so that TLS never comes about
		c, err := l.Accept()
		if err == nil {
			defer func() { _ = c.Close() }()
			_, _ = c.Read(make([]byte, 1)) // the connection is there, and TLS begins
			close(ctx.over)
			_, _ = io.Copy(io.Discard, c)
		}
	})
	x := httpTrial{config: m{"url": "https://" + l.Addr().String(), "method": "POST"}, open: []string{l.Addr().String()}}
	r, err := x.perform(ctx, t)
	require.NoError(t, err)
	require.Equal(t, receipt.StatusTimeout, r.Status)
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
	require.True(t, r.Unsent)
	accepted.Wait() // the connection ends with the effect
}

func TestHTTPRequestWithoutAnswerIsInDoubt(t *testing.T) {
	var asked atomic.Int64
	var ctx expiry
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/silent":
			close(ctx.over)
			<-r.Context().Done()
		case "/closed":
			panic(http.ErrAbortHandler)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "ten bytes.")
		}
	})
	for path, status := range map[string]receipt.Status{
		"/silent": receipt.StatusTimeout, "/closed": receipt.StatusError, "/cut": receipt.StatusError,
	} {
		for _, method := range []string{"POST", "DELETE", "GET"} {
			asked.Store(0)
			x := httpTrial{config: m{"url": base + path, "method": method}, open: []string{addr}}
			ctx = newExpiry()
			_, err := x.perform(ctx, t)
			require.Error(t, err, path)
			require.Equal(t, int64(1), asked.Load(), "%s %s: net/http repeats what has an Idempotency-Key", method, path)

			x.idempotent = true
			ctx = newExpiry()
			r, err := x.perform(ctx, t)
			require.NoError(t, err, path)
			require.Equal(t, status, r.Status, path)
			require.Equal(t, receipt.OutcomeRetryableFailure, r.Class, path)
			require.False(t, r.Unsent, path)
			require.Equal(t, int64(2), asked.Load(), path)
		}
	}
}

func TestHTTPBodyIsNeverCut(t *testing.T) {
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "fail" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write(make([]byte, pathNumber(r)))
	})
	for _, c := range []struct {
		path  string
		limit int // 0: the default
		fits  bool
	}{
		{"/10", 10, true},
		{"/11", 10, false},
		{fmt.Sprintf("/%d", defaultAnswerBytes), 0, true},
		{fmt.Sprintf("/%d", defaultAnswerBytes+1), 0, false},
	} {
		x := httpTrial{config: m{"url": base + c.path, "method": "PUT", "max_bytes": c.limit}, open: []string{addr}, idempotent: true}
		r, payload := x.get(t)
		require.Equal(t, c.fits, r.Status == receipt.StatusOK, c.path)
		require.NotNil(t, r.StateChange, "it happened all the same")
		require.Equal(t, !c.fits, payload["code"] == "response_too_large", c.path)
		require.Equal(t, c.fits, payload["body"] != nil, c.path)
		require.Equal(t, !c.fits, r.Class == receipt.OutcomeCompensatable, "the next answer will be as large, and something is left behind")
	}
	x := httpTrial{config: m{"url": base + "/11?fail", "max_bytes": 10}, open: []string{addr}, idempotent: true}
	r, payload := x.get(t)
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
	require.Equal(t, "response_too_large", payload["code"])
}

func TestHTTPBodyIsGivenAsWhatItIs(t *testing.T) {
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, r.URL.Query().Get("body"))
	})
	for _, c := range []struct {
		media, body string
		want        m
	}{
		{"application/json", `{"a": [1, 2.5]}`, m{"json": m{"a": []any{int64(1), 2.5}}}},
		{"application/problem+json", `null`, m{"json": nil}},
		{"application/json", ``, m{}},
		{"application/json", `<html>`, m{"body": "<html>", "json_error": true}},
		{"application/json", `{"a": 1, "a": 2}`, m{"body": `{"a": 1, "a": 2}`, "json_error": true}},
		{"application/json", "\xff", m{"body": []byte("\xff"), "json_error": true}},
		{"text/plain", `{"a": 1}`, m{"body": `{"a": 1}`}},
		{"image/png", "\x89PNG\xff", m{"body": []byte("\x89PNG\xff")}},
	} {
		q := url.Values{"type": {c.media}, "body": {c.body}}
		x := httpTrial{config: m{"url": base + "/?" + q.Encode()}, open: []string{addr}}
		r, payload := x.get(t)
		require.Equal(t, receipt.StatusOK, r.Status, c.body)
		delete(payload, "headers")
		delete(payload, "status")
		if payload["json_error"] != nil {
			payload["json_error"] = true
		}
		require.Equal(t, c.want, payload, "%s %q", c.media, c.body)
	}
}

func TestHTTPSecretsStayOutOfFailures(t *testing.T) {
	base, _ := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("asked without its secret") })
	for name, secrets := range map[string]map[string]string{
		"absent":    nil,
		"malformed": {"secret://TOKEN": "hunter2\r\nX-Evil: 1"},
	} {
		x := httpTrial{config: m{"url": base, "secret_headers": m{"A": "secret://TOKEN"}}, secrets: secrets, idempotent: true}
		r, payload := x.get(t)
		require.Equal(t, receipt.StatusError, r.Status, name)
		require.Empty(t, r.Class, name)
		require.True(t, r.Unsent, name)
		require.NotContains(t, payload["error"], "hunter2")
	}
}

func TestHTTPConfigIsCheckedBeforeAnyCall(t *testing.T) {
	for config, good := range map[string]bool{
		`{}`: true, `{"method": "POST"}`: true, `{"url": "http://a.test/b", "method": "PUT"}`: true,
		`{"url": "ftp://a.test/b"}`: false, `{"url": "http://0x7f.1"}`: false, `{"url": null}`: false, `{"method": "TRACE"}`: false,
		`{"secret_headers": {"a": "b"}}`: false, `{"proxy": "http://b.test"}`: false,
	} {
		_, err := newHTTP(newHTTPNetwork())(Setup{Config: httpCBOR(t, config)})
		require.Equal(t, good, err == nil, "%s: %v", config, err)
	}
}
