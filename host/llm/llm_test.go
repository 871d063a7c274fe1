package llm

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

const secretKey = "sk-canary-0123456789"

const answer = `{"id":"chatcmpl-7","object":"chat.completion","model":"m-2026","choices":[
	{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello","score":12345678901234567890}}],
	"usage":{"prompt_tokens":1500,"completion_tokens":10,"total_tokens":1510}}`

func fromJSON(t testing.TB, text string) canon.Raw {
	t.Helper()
	raw, err := canon.FromJSON([]byte(text))
	require.NoError(t, err)
	return raw
}

// adapterFor returns an adapter of a server, with config that is added to what
// it has.
func adapterFor(t testing.TB, url, config string, effect manifest.Effect) host.Adapter {
	t.Helper()
	a, err := New(host.Setup{
		Kind: "model.chat", Effect: effect, Config: fromJSON(t, `{"base_url":"`+url+`/v1"`+config+`}`),
		Secret: func(reference string) (string, error) {
			if reference != "secret://KEY" {
				return "", &host.SecretError{Reference: reference, Err: host.ErrNoSecret}
			}
			return secretKey, nil
		},
	})
	require.NoError(t, err)
	return a
}

func callOf(t testing.TB, params string) host.Call {
	return host.Call{
		Permit:   receipt.Permit{Intent: receipt.Intent{Kind: "model.chat", Params: fromJSON(t, params)}, Attempt: 1},
		External: "worldkernel:w:abc",
	}
}

func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// canned answers everything with one response.
func canned(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what is unread resets the connection
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func endless(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	for blanks := []byte(strings.Repeat(" ", 1<<20)); ; {
		if _, err := w.Write(blanks); err != nil {
			return
		}
	}
}

func at(t testing.TB, payload canon.Raw, path ...string) string {
	t.Helper()
	raw, err := canon.Lookup(payload, path...)
	require.NoError(t, err, "%v", payload)
	out, err := canon.ToJSON(raw)
	require.NoError(t, err)
	return string(out)
}

func TestAnErrorInThePlaceOfAnAnswerIsInThePayload(t *testing.T) {
	for broken, says := range map[string]string{
		strings.Replace(answer, `"finish_reason":"stop"`, `"finish_reason":"error","error":{"code":502,"message":"overloaded"}`, 1):        `{"code":502,"message":"overloaded"}`,
		strings.Replace(answer, `{`, `{"error":"the stream broke off",`, 1):                                                                `"the stream broke off"`,
		strings.Replace(`{"error":"so",`+answer[1:], `"finish_reason":"stop"`, `"finish_reason":null,"error":{"message":"overloaded"}`, 1): `{"message":"overloaded"}`,
	} {
		s := serve(t, canned(200, broken))
		got, err := adapterFor(t, s.URL, "", manifest.Effect{}).Perform(t.Context(), callOf(t, `{"messages":[]}`))
		require.NoError(t, err)
		require.JSONEq(t, says, at(t, got.Payload, "error"))
	}
}

func TestRequestIsWhatTheGateJudged(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/elsewhere")
	t.Setenv("OPENAI_ORG_ID", "org-environment")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Environment: 1")
	require.Nil(t, transport(true).Proxy, "nor a proxy")
	type seen struct {
		path, body string
		header     http.Header
	}
	requests := make(chan seen, 2)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- seen{r.URL.Path, string(body), r.Header}
		canned(200, answer)(w, r)
	})
	const config = `,"api_key":"secret://KEY","model":"m-1","price":{"prompt":3,"completion":7}`
	a := adapterFor(t, s.URL, config, manifest.Effect{})
	got, err := a.Perform(t.Context(), callOf(t, `{"messages":[{"role":"user","content":"<&> ☃"}],"temperature":0.1,"seed":9007199254740993,
		"top_k":1.0,"huge":123456789012345678901234567890}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status)
	require.Equal(t, `"hello"`, at(t, got.Payload, "message", "content"))
	require.Equal(t, `12345678901234567890`, at(t, got.Payload, "message", "score"))
	require.Equal(t, `"stop"`, at(t, got.Payload, "finish_reason"))
	require.Equal(t, `"m-2026"`, at(t, got.Payload, "model"))
	require.Equal(t, `1500`, at(t, got.Payload, "usage", "prompt_tokens"))
	require.Equal(t, "chatcmpl-7", got.ExternalRef)
	request := <-requests
	require.Equal(t, receipt.Cost{Tokens: 1510, Micros: 5, Bytes: uint64(len(request.body) + len(answer))}, got.Cost, "4.57 rounded up")
	require.Equal(t, "/v1/chat/completions", request.path)
	require.Equal(t, `["huge"]`, at(t, got.Payload, "ignored"))
	require.Equal(t, `{"seed":9007199254740993,"model":"m-1","top_k":1.0,`+ //nolint:testifylint // to the letter
		`"messages":[{"role":"user","content":"<&> ☃"}],"temperature":0.1}`, request.body)
	require.Equal(t, "Bearer "+secretKey, request.header.Get("Authorization"))
	require.Equal(t, "worldkernel:w:abc", request.header.Get("Idempotency-Key"))
	require.Equal(t, receipt.Key{}.TraceParent(1), request.header.Get("Traceparent"))
	for _, name := range []string{"X-Environment", "OpenAI-Organization", "Cookie"} {
		require.Empty(t, request.header.Get(name))
	}

	_, err = adapterFor(t, s.URL, "", manifest.Effect{}).Perform(t.Context(), callOf(t, `{"messages":[]}`))
	require.NoError(t, err)
	require.Empty(t, (<-requests).header.Get("Authorization"), "no api_key: none is sent")

	for base, want := range map[string]string{"": "/chat/completions", "/v1/": "/v1/chat/completions", "/v1?": "/v1/chat/completions"} {
		a, err := New(host.Setup{Config: fromJSON(t, `{"base_url":"`+s.URL+base+`"}`)})
		require.NoError(t, err)
		_, err = a.Perform(t.Context(), callOf(t, `{"messages":[]}`))
		require.NoError(t, err)
		require.Equal(t, want, (<-requests).path)
	}
}

// TestOnlyKnownNamesReachTheServer: what a server might take for model, tools or a
// bound is not sent, and the payload says so.
func TestOnlyKnownNamesReachTheServer(t *testing.T) {
	var body string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		canned(200, answer)(w, r)
	})
	a := adapterFor(t, s.URL, `,"model":"small"`, manifest.Effect{})
	for params, want := range map[string]struct{ sent, ignored string }{
		`{"Model":"big","MODEL":"big","mod\u0435l":"big","model ":"big","m\u043edel":"big"}`: {
			`{"model":"small"}`, `["MODEL","Model","model ","mod\u0435l","m\u043edel"]`,
		},
		`{"max_tokens":5,"MAX_TOKENS":500,"maxTokens":500,"max_output_tokens":500,"max_to\u212aens":500}`: {
			`{"model":"small","max_tokens":5}`, `["MAX_TOKENS","maxTokens","max_output_tokens","max_to\u212aens"]`,
		},
		`{"extra_body":{"model":"big"},"provider":{"order":["x"]},"route":"fallback","Stream":true,"tool\u017f":[]}`: {
			`{"model":"small"}`, `["Stream","extra_body","provider","route","tool\u017f"]`,
		},
		`{"tools":[{"type":"function","Type":"web_search","name":"rm","function":{"name":"a","Name":"rm","description":"d"}}]}`: {
			`{"model":"small","tools":[{"type":"function","function":{"name":"a","description":"d"}}]}`, `["tools"]`,
		},
		`{"tools":[{"type":"web_search","function":{"name":"a"},"server_url":"http://x"}]}`: {
			`{"model":"small","tools":[{"type":"web_search"}]}`, `["tools"]`,
		},
		`{"tools":[{"type":"custom","custom":{"name":"a"}}],"tool_choice":{"type":"custom","custom":{"name":"b"}}}`: {
			`{"model":"small","tools":[{"type":"custom","custom":{"name":"a"}}]}`, `["tool_choice"]`,
		},
		`{"tools":[{"type":"custom","custom":{"name":"a"}}],"tool_choice":{"type":"custom","custom":{"name":"a"},"function":{"name":"b"}}}`: {
			`{"model":"small","tools":[{"type":"custom","custom":{"name":"a"}}],"tool_choice":{"type":"custom","custom":{"name":"a"}}}`, `["tool_choice"]`,
		},
		`{"tool_choice":"web_search"}`:                       {`{"model":"small"}`, `["tool_choice"]`},
		`{"tool_choice":"none","tools":null,"n":1}`:          {`{"model":"small","tools":null,"tool_choice":"none","n":1}`, ""},
		`{"functions":null,"models":null,"temperature":0.5}`: {`{"model":"small","temperature":0.5}`, ""},
	} {
		got, err := a.Perform(t.Context(), callOf(t, params))
		require.NoError(t, err, params)
		require.Equal(t, receipt.StatusOK, got.Status, "%s %s", params, got.Payload)
		require.JSONEq(t, want.sent, body, params)
		if raw, err := canon.Lookup(got.Payload, "ignored"); want.ignored != "" {
			require.NoError(t, err, params)
			require.Equal(t, fromJSON(t, want.ignored), raw, params)
		} else {
			require.Error(t, err, params)
		}
	}
}

func TestNothingIsSentOfWhatIsRefused(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	got, err := adapterFor(t, s.URL, "", manifest.Effect{}).Perform(t.Context(), callOf(t, `{"stream":true}`))
	require.NoError(t, err)
	require.Equal(t, receipt.StatusError, got.Status)
	require.Empty(t, got.Class, "permanent")
	require.True(t, got.Unsent)
	require.Equal(t, `"param_not_allowed"`, at(t, got.Payload, "code"))

	got, err = adapterFor(t, s.URL, `,"api_key":"secret://OTHER"`, manifest.Effect{}).Perform(t.Context(), callOf(t, `{}`))
	require.NoError(t, err)
	require.True(t, got.Unsent)
	require.Empty(t, got.Class, "permanent")
	require.Equal(t, `"no_secret"`, at(t, got.Payload, "code"))
	require.Zero(t, asked.Load())

	_, err = New(host.Setup{Config: fromJSON(t, `{"base_url":"gopher://h"}`)})
	var denied *governance.CapError
	require.ErrorAs(t, err, &denied)
}

func TestAnsweredFailures(t *testing.T) {
	const providerSays = `{"error":{"message":"quota is used up","type":"insufficient_quota","code":null}}`
	for _, c := range []struct {
		name         string
		handler      http.HandlerFunc
		code, reason string
		retryable    bool // of an idempotent effect
		made         bool // and nobody can tell what came of it
		after        time.Duration
	}{
		{name: "401", handler: canned(401, `{"error":{"message":"bad key","code":"invalid_api_key"}}`), code: `"invalid_api_key"`, reason: "bad key"},
		{name: "400 as text", handler: canned(400, `nope`), code: `"http_400"`, reason: "Bad Request"},
		{name: "422 of another shape", handler: canned(422, `{"detail":"no messages"}`), code: `"http_422"`, reason: "no messages"},
		{name: "429", handler: canned(429, providerSays, "Retry-After", "17"), code: `"insufficient_quota"`, reason: "quota is used up", retryable: true, after: 17 * time.Second},
		{name: "429 of the past", handler: canned(429, providerSays, "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"), code: `"insufficient_quota"`, reason: "quota", retryable: true},
		{name: "500", handler: canned(500, `{"error":"model crashed"}`), code: `"http_500"`, reason: "model crashed", retryable: true},
		{name: "503, and the client is asked to retry", handler: canned(503, ``, "x-should-retry", "true"), code: `"http_503"`, reason: "503", retryable: true},
		{name: "redirect", handler: canned(307, ``, "Location", "/v1/elsewhere"), code: `"http_307"`, reason: "307"},
		{name: "not JSON", handler: canned(200, `<html>`), code: `"not_a_completion"`, reason: "not JSON"},
		{name: "error with status 200", handler: canned(200, `{"error":{"message":"overloaded"}}`), code: `"not_a_completion"`, reason: "overloaded"},
		{name: "no choices", handler: canned(200, `{"choices":[]}`), code: `"not_a_completion"`, reason: `without a completion: {\"choices\":[]}`},
		{name: "no message", handler: canned(200, `{"choices":[{"message":"hi"}]}`), code: `"not_a_completion"`},
		{name: "cut JSON", handler: canned(200, answer[:100]), code: `"not_a_completion"`},
		{name: "endless", handler: endless, code: `"too_large"`, made: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int32
			s := serve(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); c.handler(w, r) })
			for n, idempotent := range []bool{false, true} {
				a := adapterFor(t, s.URL, `,"api_key":"secret://KEY"`, manifest.Effect{Idempotent: idempotent})
				got, err := a.Perform(t.Context(), callOf(t, `{"messages":[]}`))
				require.NoError(t, err)
				require.Equal(t, receipt.StatusError, got.Status, "%v", got.Payload)
				refused := got.Class == receipt.OutcomeRetryableFailure || !c.made && c.code != `"not_a_completion"`
				require.Equal(t, refused, got.Exact, "what was refused used nothing; else nobody knows")
				require.False(t, got.Unsent)
				require.Equal(t, c.code, at(t, got.Payload, "code"))
				require.Contains(t, at(t, got.Payload, "error"), c.reason)
				require.NotContains(t, string(got.Payload), secretKey)
				switch {
				case c.made:
					require.Equal(t, receipt.OutcomeCompensatable, got.Class)
				case c.retryable && idempotent:
					require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
					require.Equal(t, c.after, got.RetryAfter)
				default:
					require.Empty(t, got.Class)
				}
				require.EqualValues(t, n+1, asked.Load(), "one request a call")
			}
		})
	}
}

// closedPort returns the address of a port that nobody listens on.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String()
}

func TestUnsent(t *testing.T) {
	tls := httptest.NewTLSServer(canned(200, answer))
	t.Cleanup(tls.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never says hello
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // may be late: nothing answers, however long
	t.Cleanup(cancel)
	for _, c := range []struct {
		name, url string
		ctx       context.Context
		status    receipt.Status
	}{
		{"refused", closedPort(t), t.Context(), receipt.StatusError},
		{"TLS", tls.URL, t.Context(), receipt.StatusError},
		{"timeout before the request", "https://" + silent.Addr().String(), short, receipt.StatusTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := adapterFor(t, c.url, `,"api_key":"secret://KEY"`, manifest.Effect{}).Perform(c.ctx, callOf(t, `{}`))
			require.NoError(t, err)
			require.True(t, got.Unsent)
			require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
			require.Equal(t, c.status, got.Status)
			require.NotContains(t, string(got.Payload), secretKey)
		})
	}
}

func TestNobodyCanTell(t *testing.T) {
	arrived := make(chan struct{}, 1)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		hangs   bool
	}{
		{"no answer", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			arrived <- struct{}{}
			<-r.Context().Done()
		}, true},
		{"half an answer", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, answer[:50])
			_ = http.NewResponseController(w).Flush()
			arrived <- struct{}{}
			<-r.Context().Done()
		}, true},
		{"cut before the answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
		{"truncated", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
			_, _ = io.WriteString(w, answer[:50])
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int32
			s := serve(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); c.handler(w, r) })
			perform := func(idempotent bool) (host.Result, error) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.hangs {
					go func() { <-arrived; cancel() }()
				}
				a := adapterFor(t, s.URL, `,"api_key":"secret://KEY"`, manifest.Effect{Idempotent: idempotent})
				return a.Perform(ctx, callOf(t, `{}`))
			}
			_, err := perform(false)
			require.Error(t, err)
			require.NotContains(t, err.Error(), secretKey)
			got, err := perform(true)
			require.NoError(t, err)
			require.Equal(t, receipt.StatusTimeout, got.Status)
			require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
			require.False(t, got.Unsent)
			require.EqualValues(t, 2, asked.Load(), "one request a call")
		})
	}
}

// TestConnectionsAreNotKept holds net/http to sending each request once: with
// an Idempotency-Key it would send it again on a kept connection that broke.
func TestConnectionsAreNotKept(t *testing.T) {
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(canned(200, answer))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	a := adapterFor(t, s.URL, "", manifest.Effect{})
	for range 3 {
		_, err := a.Perform(t.Context(), callOf(t, `{}`))
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, connections.Load())
}

func TestBadKeyIsNotShown(t *testing.T) {
	s := serve(t, canned(200, answer))
	a, err := New(host.Setup{
		Config: fromJSON(t, `{"base_url":"`+s.URL+`","api_key":"secret://KEY"}`),
		Secret: func(string) (string, error) { return "sk-canary\nsecond line", nil },
	})
	require.NoError(t, err)
	got, err := a.Perform(t.Context(), callOf(t, `{}`))
	require.NotContains(t, fmt.Sprintf("%s %v", got.Payload, err), "canary")
}

// What an answer that is none is cut to holds no part of a key: nobody who looks for the key would find it.
func TestWhatIsCutOfAnAnswerLeavesNoPartOfAKey(t *testing.T) {
	s := serve(t, canned(403, `{"x":"`+strings.Repeat("x", 183)+secretKey+`"}`))
	p, err := host.NewPerformers(host.Config{
		Manifest: &manifest.Manifest{Effects: map[string]manifest.Effect{"model.chat": {Adapter: "llm", Config: fromJSON(t, `{"base_url":"`+s.URL+`","api_key":"secret://KEY"}`)}}},
		Adapters: map[string]host.Factory{"llm": New}, Secrets: func(string) (string, error) { return secretKey, nil },
	})
	require.NoError(t, err)
	got, err := p.Perform(t.Context(), callOf(t, `{}`))
	require.NoError(t, err)
	require.Contains(t, string(got.Payload), "xxx")
	require.NotContains(t, string(got.Payload), "sk-")
}

func TestCostIsExactAndBounded(t *testing.T) {
	const most = `{"usage":{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}}`
	for _, c := range []struct {
		usage          string
		price          governance.LLMPrice
		tokens, micros uint64
	}{
		{`{"usage":{"prompt_tokens":1000,"completion_tokens":0,"total_tokens":1000}}`, governance.LLMPrice{Prompt: 3}, 1000, 3},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":1}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, 2, 1},
		{`{"usage":{"prompt_tokens":-5,"total_tokens":1.5}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, math.MaxUint64, 0},
		{`{"usage":{"total_tokens":-5}}`, governance.LLMPrice{}, math.MaxUint64, 0},
		{`{"usage":{"total_tokens":1.5}}`, governance.LLMPrice{}, math.MaxUint64, 0},
		{`{"usage":{"total_tokens":"1000"}}`, governance.LLMPrice{}, math.MaxUint64, 0},
		{`{}`, governance.LLMPrice{Prompt: 3, Completion: 7}, 0, 0},
		{`{"usage":{"input_tokens":1000,"output_tokens":1000}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, 2000, 10},
		{`{"usage":{"prompt_tokens":1000,"completion_tokens":1000,"total_tokens":1}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, 2000, 10},
		{`{"usage":{"prompt_tokens":1000,"completion_tokens":-1000}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, math.MaxUint64, 0},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1e30}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, math.MaxUint64, 1},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":99999999999999999999999}}`, governance.LLMPrice{}, math.MaxUint64, 0},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":-99999999999999999999999}}`, governance.LLMPrice{}, math.MaxUint64, 0},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":-1e30}}`, governance.LLMPrice{}, math.MaxUint64, 0},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":"1"}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, math.MaxUint64, 0},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":[1]}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, math.MaxUint64, 0},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":99999999999999999999999}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, math.MaxUint64, 129127208515966862},
		{`{"usage":{"total_tokens":1000}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, 1000, 0},
		{`{"usage":{"prompt_tokens":10,"total_tokens":1000}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, 1000, 0},
		{`{"usage":"NaN"}`, governance.LLMPrice{Prompt: 3, Completion: 7}, 0, 0},
		{`{"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, governance.LLMPrice{Prompt: 3, Completion: 7}, 0, 0},
		{most, governance.LLMPrice{Prompt: 3, Completion: 7}, math.MaxUint64, 184467440737095517},
		{most, governance.LLMPrice{Prompt: math.MaxUint64, Completion: 7}, math.MaxUint64, math.MaxUint64},
	} {
		tokens, micros := cost(fromJSON(t, c.usage), c.price)
		require.Equal(t, c.tokens, tokens, c.usage)
		require.Equal(t, c.micros, micros, c.usage)
	}
}

// A call that may be made again comes on the connection of the one before; what may not
// has one of its own. Nobody makes a call again but who has a permit for it.
func TestConnectionsAreKeptForWhatMayBeRepeated(t *testing.T) {
	var mu sync.Mutex
	var all []string
	calls := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.RemoteAddr)
		n := len(all)
		mu.Unlock()
		if n == 3 {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				err = conn.Close() // without an answer
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
		canned(200, answer)(w, r)
	})
	const config = `,"model":"m"`
	a := adapterFor(t, s.URL, config, manifest.Effect{Idempotent: true})
	for range 2 {
		got, err := a.Perform(t.Context(), callOf(t, `{"messages":[]}`))
		require.NoError(t, err)
		require.Equal(t, receipt.StatusOK, got.Status)
	}
	got, err := a.Perform(t.Context(), callOf(t, `{"messages":[]}`))
	require.NoError(t, err)
	require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
	require.False(t, got.Unsent, "it had it")
	from := calls()
	require.Len(t, from, 3, "net/http would have sent it again")
	require.Equal(t, from[0], from[1])
	require.Equal(t, from[0], from[2])

	a = adapterFor(t, s.URL, config, manifest.Effect{})
	for range 2 {
		_, err := a.Perform(t.Context(), callOf(t, `{"messages":[]}`))
		require.NoError(t, err)
	}
	from = calls()
	require.NotEqual(t, from[3], from[4])
}
