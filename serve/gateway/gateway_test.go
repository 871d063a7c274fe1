package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// stage is a world for agents, and a provider that counts.
type stage struct {
	t        *testing.T
	dir      string
	log      journal.Log // that its journal lies in; nil: its directory
	provider *httptest.Server
	answer   atomic.Pointer[http.HandlerFunc]
	paid     atomic.Int64
	last     atomic.Pointer[http.Request]
	body     atomic.Pointer[[]byte]
}

// newStage makes a world of the template, of which parts are replaced.
func newStage(t *testing.T, replace ...string) *stage {
	t.Helper()
	s := &stage{t: t, dir: filepath.Join(t.TempDir(), "w")}
	require.NoError(t, examples.Copy("gateway", s.dir))
	file := filepath.Join(s.dir, local.ManifestFile)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, string(text), replace[i])
	}
	text = []byte(strings.NewReplacer(replace...).Replace(string(text)))
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, local.Create(s.dir, local.CreateOptions{}, s.options(nil, nil)))
	s.provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.paid.Add(1)
		s.last.Store(r.Clone(context.Background()))
		s.body.Store(&body)
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(s.provider.Close)
	s.answers(http.StatusOK, "application/json", `{"model":"m","choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
	return s
}

func (s *stage) options(desk *relay.Desk, tools *outside.Callers) local.Options {
	opts := local.Options{
		Reducers: reducer.Registry{recorder.Name + "@" + recorder.Version: recorder.New},
		Adapters: map[string]host.Factory{"relay": relay.New(desk), "outside": outside.New(tools)},
	}
	if s.log != nil {
		opts.Log = func([]byte) (journal.Log, error) { return s.log, nil }
	}
	return opts
}

// answers has the provider answer all that comes likewise.
func (s *stage) answers(status int, kind, body string) {
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func (s *stage) answersBy(by http.HandlerFunc) { s.answer.Store(&by) }

// run is one start of an agent.
type run struct {
	*stage

	lw     *local.World
	desk   *relay.Desk
	g      *gateway.Gateway
	server *httptest.Server
	stop   func() gateway.Summary
}

// start opens the world, and begins an incarnation.
func (s *stage) start(change ...func(*gateway.Config)) *run {
	s.t.Helper()
	desk := new(relay.Desk)
	tools := new(outside.Callers)
	lw, err := local.Open(s.dir, s.options(desk, tools))
	require.NoError(s.t, err)
	cfg := gateway.Config{
		World: lw, Desk: desk, Tools: tools, Session: "a", Principal: "ada",
		Upstream: map[string]string{relay.OpenAI: s.provider.URL, relay.Anthropic: s.provider.URL},
	}
	server := httptest.NewUnstartedServer(nil)
	cfg.Address = server.Listener.Addr().String()
	for _, f := range change {
		f(&cfg)
	}
	g, err := gateway.Open(s.t.Context(), cfg)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var driving sync.WaitGroup
	driving.Go(func() { _, _ = lw.Drive(ctx, local.Course{Stay: true}) })
	server.Config.Handler = g
	server.Start()
	r := &run{stage: s, lw: lw, desk: desk, g: g, server: server}
	stopped := sync.OnceValue(func() gateway.Summary {
		summary, err := g.Close(context.Background(), 0)
		r.server.Close()
		cancel()
		driving.Wait()
		require.NoError(s.t, err)
		require.NoError(s.t, lw.Close())
		return summary
	})
	r.stop = stopped
	s.t.Cleanup(func() { stopped() })
	return r
}

func (r *run) url(dialect, path string) string {
	return r.g.URL(strings.TrimPrefix(r.server.URL, "http://"), dialect) + path
}

// post sends a request, and returns status and body of the answer.
func (r *run) post(dialect, path, body string, header ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url(dialect, path), strings.NewReader(body))
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer sk-canary")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(answer)
}

func ask(text string) string {
	return fmt.Sprintf(`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":%q}]}`, text)
}

const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages?beta=true"
)

const messagesStream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"I look\"}}\n\n" +
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{}}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n" +
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":7}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

const responsesStream = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n" +
	"event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"exec\",\"arguments\":\"{}\"}}\n\n" +
	"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":7}}}\n\n"

const chatStream = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n" +
	"data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\n" +
	"data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}}]}\n\n" +
	"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n" +
	"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n"

// Whatever a provider answers, the agent gets these bytes, and they are on record.
func TestAnswersComeThroughByteForByte(t *testing.T) {
	for name, of := range map[string]struct{ dialect, path, kind, request, answer string }{
		"chat":             {relay.OpenAI, chatPath, "application/json", ask("x"), "{ \"model\": \"m\",\n\"choices\":[{\"message\":{\"content\":\"é\"}}], \"odd\": 1.0}\n"},
		"chat stream":      {relay.OpenAI, chatPath, "text/event-stream", `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`, chatStream},
		"responses stream": {relay.OpenAI, "/v1/responses", "text/event-stream", `{"model":"m","stream":true,"input":"x"}`, responsesStream},
		"messages stream":  {relay.Anthropic, messagesPath, "text/event-stream", `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`, messagesStream},
		"count of tokens":  {relay.Anthropic, "/v1/messages/count_tokens", "application/json", `{"model":"m","messages":[]}`, `{"input_tokens":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.answers(http.StatusOK, of.kind, of.answer)
			r := s.start()
			status, body := r.post(of.dialect, of.path, of.request, "X-Unknown", "kept")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, of.answer, body)
			require.Equal(t, "kept", s.last.Load().Header.Get("X-Unknown"))
			require.Equal(t, "Bearer sk-canary", s.last.Load().Header.Get("Authorization"))
			require.Equal(t, of.path, s.last.Load().URL.RequestURI())
			require.Equal(t, of.request, string(*s.body.Load()))
			summary := r.stop()
			require.Equal(t, 1, summary.Calls)
			if strings.Contains(name, "stream") {
				require.Equal(t, 1, summary.Tools)
				require.EqualValues(t, 16, summary.Tokens)
			}
			require.NoError(t, filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				stored, err := os.ReadFile(path)
				require.False(t, bytes.Contains(stored, []byte("sk-canary")), path)
				return err
			}))
		})
	}
}

// Sessions that ask the same at once each get their own answer, made with their own key.
func TestSessionsOfAWorldAskBesideEachOther(t *testing.T) {
	s := newStage(t)
	s.answersBy(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}]}`, r.Header.Get("Authorization"))
	})
	r := s.start()
	var asking sync.WaitGroup
	for i := range 8 {
		g, err := gateway.Open(t.Context(), gateway.Config{World: r.lw, Desk: r.desk, Session: fmt.Sprintf("s%d", i), Upstream: map[string]string{relay.OpenAI: s.provider.URL}})
		require.NoError(t, err)
		server := httptest.NewServer(g)
		t.Cleanup(server.Close)
		one := &run{stage: s, g: g, server: server}
		asking.Go(func() {
			key := fmt.Sprintf("Bearer sk-%d", i)
			status, body := one.post(relay.OpenAI, chatPath, ask("x"), "Authorization", key)
			if status != http.StatusOK || !strings.Contains(body, key) {
				t.Errorf("session %d got %d %s", i, status, body)
			}
			_, err := g.Close(context.Background(), 0)
			if err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
}

// An error of the provider comes through as it is, and what was asked is asked again after it.
func TestErrorsComeThroughAndAreNoAnswer(t *testing.T) {
	s := newStage(t)
	s.answers(http.StatusServiceUnavailable, "application/json", `{"error":{"message":"overloaded"}}`)
	r := s.start()
	status, body := r.post(relay.OpenAI, chatPath, ask("x"))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"error":{"message":"overloaded"}}`, body)
	s.answers(http.StatusOK, "application/json", `{"choices":[]}`)
	status, _ = r.post(relay.OpenAI, chatPath, ask("x"))
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 2, s.paid.Load())
}

// What an agent has asked before it was started again is answered from the record, though results,
// reminders and dates are other ones; what comes after it goes to the provider.
func TestAStartedAgentIsAnsweredFromTheRecord(t *testing.T) {
	s := newStage(t)
	const first = `{"model":"m","system":"today is %s","messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>%[1]s"},{"type":"text","text":"do it"}]}]}`
	const second = `{"model":"m","system":"today is %s","messages":[{"role":"user","content":"do it"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"%[1]s"}]}]}`
	claude := []string{"User-Agent", "claude-cli/2.1.332"}
	s.answers(http.StatusOK, "application/json", `{"model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}],"usage":{"input_tokens":1,"output_tokens":1}}`)
	r := s.start()
	_, one := r.post(relay.Anthropic, messagesPath, fmt.Sprintf(first, "Monday"), claude...)
	r.stop()
	require.EqualValues(t, 1, s.paid.Load())

	s.answers(http.StatusOK, "application/json", `{"model":"m","content":[{"type":"text","text":"another"}]}`)
	r = s.start()
	_, again := r.post(relay.Anthropic, messagesPath, fmt.Sprintf(first, "Tuesday"), claude...)
	require.Equal(t, one, again)
	require.EqualValues(t, 1, s.paid.Load())
	_, next := r.post(relay.Anthropic, messagesPath, fmt.Sprintf(second, "done"), claude...)
	require.Contains(t, next, "another")
	require.EqualValues(t, 2, s.paid.Load())
	summary := r.stop()
	require.Equal(t, 1, summary.Served)
	require.Equal(t, 1, summary.Calls)
	require.Zero(t, summary.Left)

	r = s.start(func(c *gateway.Config) { c.Offline = true })
	_, again = r.post(relay.Anthropic, messagesPath, fmt.Sprintf(first, "Friday"), claude...)
	require.Equal(t, one, again)
	_, again = r.post(relay.Anthropic, messagesPath, fmt.Sprintf(second, "something else"), claude...)
	require.Equal(t, next, again)
	require.EqualValues(t, 2, s.paid.Load())
}

// What nobody has asked stops the agent while recorded answers are left, unless somebody has allowed it.
func TestADivergenceStops(t *testing.T) {
	s := newStage(t)
	r := s.start()
	r.post(relay.OpenAI, chatPath, ask("one"))
	r.stop()

	r = s.start(func(c *gateway.Config) { c.Offline = true })
	status, body := r.post(relay.OpenAI, chatPath, ask("other"))
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "never asked before")
	summary := r.stop()
	require.Equal(t, "other", summary.Divergence.Prompt)
	require.Equal(t, "/messages/0/content", summary.Divergence.Place)
	require.Equal(t, 1, summary.Left)
	require.EqualValues(t, 1, s.paid.Load())

	r = s.start()
	status, _ = r.post(relay.OpenAI, chatPath, ask("other"))
	require.Equal(t, http.StatusForbidden, status)
	r.stop()
	require.EqualValues(t, 1, s.paid.Load())

	r = s.start(func(c *gateway.Config) { c.Diverge = true })
	status, _ = r.post(relay.OpenAI, chatPath, ask("other"))
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 2, s.paid.Load())
}

// A client that goes and asks again gets what it has asked for: the provider is asked once. Two
// that ask for the same at once have two calls.
func TestARetryJoinsAndATwinDoesNot(t *testing.T) {
	s := newStage(t)
	came, goOn := make(chan struct{}, 8), make(chan struct{})
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		came <- struct{}{}
		<-goOn
		_, _ = io.WriteString(w, `{"choices":[]}`)
	})
	r := s.start()
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url(relay.OpenAI, chatPath), strings.NewReader(ask("x")))
	require.NoError(t, err)
	go func() {
		<-came
		leave()
	}()
	_, err = http.DefaultClient.Do(req) //nolint:bodyclose // there is none
	require.ErrorIs(t, err, context.Canceled)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			status, _ := r.post(relay.OpenAI, chatPath, ask("x"))
			require.Equal(t, http.StatusOK, status)
		})
	}
	<-came // that of the twin
	close(goOn)
	both.Wait()
	require.EqualValues(t, 2, s.paid.Load())
	require.Equal(t, 2, r.stop().Calls)
}

// An answer that does not reach the client is given to who asks again, and the summary has it once.
func TestAnAnswerThatIsGivenTwiceIsCountedOnce(t *testing.T) {
	s := newStage(t)
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
	})
	r := s.start()
	req := httptest.NewRequest(http.MethodPost, r.url(relay.OpenAI, chatPath), strings.NewReader(ask("x")))
	r.g.ServeHTTP(lostWriter{httptest.NewRecorder()}, req)
	status, _ := r.post(relay.OpenAI, chatPath, ask("x"))
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 1, s.paid.Load())
	summary := r.stop()
	require.Equal(t, 1, summary.Calls)
	require.EqualValues(t, 7, summary.Tokens)
}

// lostWriter is a client that has gone when its answer comes.
type lostWriter struct{ *httptest.ResponseRecorder }

func (lostWriter) Write([]byte) (int, error) { return 0, net.ErrClosed }

// What asks for a tool reaches the agent when the whole answer is durable; text flows before.
func TestAToolIsHeldUntilTheAnswerIsDurable(t *testing.T) {
	s := newStage(t)
	text, tool, _ := strings.Cut(messagesStream, "event: content_block_start")
	goOn := make(chan struct{})
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
		_, _ = io.WriteString(w, "event: content_block_start"+tool[:len(tool)/2])
		w.(http.Flusher).Flush()
		<-goOn
		_, _ = io.WriteString(w, tool[len(tool)/2:])
	})
	r := s.start()
	resp, err := http.Post(r.url(relay.Anthropic, messagesPath), "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`))
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	got := make([]byte, len(text))
	_, err = io.ReadFull(resp.Body, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	require.Empty(t, r.states()[receipt.StateCommitted])
	close(goOn)
	rest := make([]byte, 1)
	_, err = io.ReadFull(resp.Body, rest)
	require.NoError(t, err)
	require.Equal(t, 1, r.states()[receipt.StateCommitted])
	after, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, messagesStream, string(got)+string(rest)+string(after))
}

func (r *run) states() (out map[receipt.State]int) {
	r.lw.View(func(m *world.Moment) { out = m.Status().Intents })
	return out
}

// An answer that is cut off ends as it came, without an end, and what asked for a tool in it never arrives; it is paid, and asked again.
func TestACutAnswerEndsUncleanly(t *testing.T) {
	s := newStage(t)
	text, tool, _ := strings.Cut(messagesStream, "event: content_block_start")
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text+"event: content_block_start"+tool[:len(tool)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	r := s.start()
	resp, err := http.Post(r.url(relay.Anthropic, messagesPath), "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`))
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	got, err := io.ReadAll(resp.Body)
	require.Error(t, err)
	require.Equal(t, text, string(got))
	summary := r.stop()
	require.Equal(t, 1, summary.Failed)
	require.Positive(t, summary.Tokens)
}

// An agent may go on from what it had of an answer that was cut off, so after a restart it gets that again, cut off.
func TestACutAnswerIsGivenAgain(t *testing.T) {
	s := newStage(t)
	text, _, _ := strings.Cut(messagesStream, "event: content_block_start")
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
		w.(http.Flusher).Flush()
		if s.paid.Load() == 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	})
	const first = `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`
	for _, change := range []func(*gateway.Config){judging, judging, offline} {
		r := s.start(change)
		resp, err := http.Post(r.url(relay.Anthropic, messagesPath), "application/json", strings.NewReader(first))
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.Error(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, text, string(got))
		status, _ := r.post(relay.Anthropic, messagesPath, first)
		require.Equal(t, http.StatusOK, status)
		status, _ = r.post(relay.Anthropic, messagesPath, strings.Replace(first, `}]`, `},{"role":"assistant","content":"I look"}]`, 1))
		require.Equal(t, http.StatusOK, status)
		require.Zero(t, r.stop().Left)
		require.EqualValues(t, 3, s.paid.Load())
	}
}

// A budget is never exceeded, however many ask at once, and its refusal is final.
func TestABudgetHoldsForAllThatAskAtOnce(t *testing.T) {
	s := newStage(t, "# budget: {tokens: 2000000, micros: 5000000}", "budget: {tokens: 5000}")
	r := s.start()
	var all sync.WaitGroup
	var allowed, refused atomic.Int64
	for i := range 64 {
		all.Go(func() {
			status, body := r.post(relay.OpenAI, chatPath, ask(fmt.Sprint(i)))
			switch status {
			case http.StatusOK:
				allowed.Add(1)
			case http.StatusForbidden:
				require.Contains(t, body, `"code":"insufficient_quota"`)
				require.Contains(t, body, "the budget of cell recorder/a has")
				refused.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 64, allowed.Load()+refused.Load())
	require.Equal(t, s.paid.Load(), allowed.Load())
	require.LessOrEqual(t, s.paid.Load()*7, int64(5000))
	require.Positive(t, allowed.Load())
	status, body := r.post(relay.Anthropic, messagesPath, strings.Replace(ask("x"), "100", "5000", 1))
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, `{"error":{"message":"worldkernel denied it: the budget of cell recorder/a has`)
	require.Contains(t, body, `"type":"billing_error"`)
	require.EqualValues(t, s.paid.Load()*75, r.stop().Micros)
}

// What a policy denies is never sent, and the agent is told why in the shape of its dialect.
func TestWhatAPolicyDeniesIsNotSent(t *testing.T) {
	s := newStage(t, `# - {name: no opus`, `- {name: no opus`)
	r := s.start()
	status, _ := r.post(relay.Anthropic, messagesPath, `{"model":"claude-opus-4-8","messages":[{"role":"user","content":"x"}]}`, "User-Agent", "claude-cli/2.1.332")
	require.Equal(t, http.StatusTooManyRequests, status, "the one that Claude Code does not ask again after")
	status, body := r.post(relay.Anthropic, "/messages", `{"model":"claude-opus-4-8","messages":[{"role":"user","content":"x"}]}`)
	require.Equal(t, http.StatusForbidden, status, "the one that the AI SDK and opencode do not ask again after")
	require.Contains(t, body, `"type":"error"`)
	require.Contains(t, body, `"type":"permission_error"`)
	require.Contains(t, body, "no opus")
	require.Zero(t, s.paid.Load())
	_, _ = r.post(relay.Anthropic, "/messages", ask("allowed"))
	require.Equal(t, "/v1/messages", s.last.Load().URL.Path, "whatever an SDK takes the address for")
	require.Equal(t, 2, r.stop().Denied)
	r = s.start(func(c *gateway.Config) { c.Offline = true })
	_, again := r.post(relay.Anthropic, messagesPath, `{"model":"claude-opus-4-8","messages":[{"role":"user","content":"x"}]}`)
	require.Equal(t, body, again, "the record has the denial")
	require.Nil(t, r.stop().Divergence)
}

// Nobody but the agent uses the gateway: another user has no token, a page names another host, and a request has bounds.
func TestTheGatewayIsForItsAgentAlone(t *testing.T) {
	s := newStage(t)
	r := s.start()
	get := func(url, hostname string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(ask("x")))
		require.NoError(t, err)
		if hostname != "" {
			req.Host = hostname
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusNotFound, get(r.server.URL+"/a/"+strings.Repeat("0", 48)+"/openai"+chatPath, ""))
	require.Equal(t, http.StatusNotFound, get(r.server.URL+"/", ""))
	require.Equal(t, http.StatusNotFound, get(r.url(relay.OpenAI, chatPath), "evil.example"))
	status, _ := r.post(relay.OpenAI, chatPath, ask(strings.Repeat("x", gateway.MaxBody)))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	status, _ = r.post(relay.OpenAI, chatPath, "no JSON")
	require.Equal(t, http.StatusBadRequest, status)
	require.Zero(t, s.paid.Load())
}

// origins are what pages that browsers have loaded say of themselves, and what they are answered.
var origins = map[string]int{
	"https://evil.example": http.StatusForbidden, "http://127.0.0.1.evil.example": http.StatusForbidden, "http://evil.example#@127.0.0.1": http.StatusForbidden,
	"null": http.StatusForbidden, "file://": http.StatusForbidden, "http://localhost:6274": http.StatusOK, "http://[::1]": http.StatusOK,
}

// A page of another site that has got hold of an address uses neither models nor tools.
func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	s := newStage(t)
	r, files := s.start(), newSite(t)
	for origin, want := range origins {
		status, _ := r.post(relay.OpenAI, chatPath, ask("x"), "Origin", origin)
		require.Equal(t, want, status, origin)
		said, _ := r.sendTo(t.Context(), http.MethodPost, r.reach(files.URL), `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Origin", origin)
		require.Equal(t, want, said.StatusCode, origin)
	}
	require.EqualValues(t, 2, files.asked.Load())
}

// A session that begins while a call of it is still under way waits for it: its answer is on record then, and not paid again.
func TestASessionBeginsWhenItsCallsAreSettled(t *testing.T) {
	s := newStage(t)
	came, goOn := make(chan struct{}, 2), make(chan struct{})
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		came <- struct{}{}
		<-goOn
		_, _ = io.WriteString(w, `{"choices":[]}`)
	})
	r := s.start()
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url(relay.OpenAI, chatPath), strings.NewReader(ask("x")))
	require.NoError(t, err)
	go func() {
		<-came
		leave()
	}()
	_, err = http.DefaultClient.Do(req) //nolint:bodyclose // there is none
	require.ErrorIs(t, err, context.Canceled)
	began := make(chan *gateway.Gateway)
	go func() {
		next, _ := gateway.Open(context.Background(), gateway.Config{World: r.lw, Desk: r.desk, Session: "a", Upstream: map[string]string{relay.OpenAI: s.provider.URL}})
		began <- next
	}()
	close(goOn)
	next := <-began
	require.NotNil(t, next)
	require.Equal(t, 1, next.Recorded())
	server := httptest.NewServer(next)
	t.Cleanup(server.Close)
	resp, err := http.Post(next.URL(strings.TrimPrefix(server.URL, "http://"), relay.OpenAI)+chatPath, "application/json", strings.NewReader(ask("x")))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	summary, err := next.Close(context.Background(), 0)
	require.NoError(t, err)
	require.Equal(t, 1, summary.Served)
	require.EqualValues(t, 1, s.paid.Load())
}

// A session whose cell has failed, since somebody has sent it what is no event of it, does not begin: it would answer nothing.
func TestASessionWhoseCellIsHaltedDoesNotBegin(t *testing.T) {
	s := newStage(t)
	r := s.start()
	cell := reducer.Cell{Reducer: recorder.Name, Key: "a"}
	data, err := reducer.Encode(recorder.Beginning{Incarnation: 7})
	require.NoError(t, err)
	_, err = r.lw.SubmitEvent(t.Context(), world.Submission{Name: recorder.Began, Data: data, To: &cell})
	require.NoError(t, err)
	require.Eventually(t, func() (halted bool) {
		r.lw.View(func(m *world.Moment) { halted = len(m.HaltedCells()) == 1 })
		return halted
	}, time.Minute, time.Millisecond)
	_, err = gateway.Open(t.Context(), gateway.Config{World: r.lw, Desk: r.desk, Session: "a"})
	require.ErrorIs(t, err, gateway.ErrHalted)
}

// What a person has to approve waits while its client goes, and the one that asks again gets its answer; also an agent that
// was started again, whoever comes first, it or the approval.
func TestWhatWaitsForAPersonIsJoined(t *testing.T) {
	s := newStage(t, "# - {name: long prompts need a person, when: 'intent.kind == \"model.call\" && intent.params.input_tokens > 200000'", "- {name: long prompts need a person, when: 'intent.params.input_tokens > 0'")
	r := s.start()
	r.leave(relay.OpenAI, chatPath, ask("one"))
	r.approve()
	status, _ := r.post(relay.OpenAI, chatPath, ask("one"), "X-Stainless-Retry-Count", "1")
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 1, s.paid.Load())
	r.leave(relay.OpenAI, chatPath, ask("two"))
	require.Equal(t, 1, r.stop().Waiting)

	r = s.start()
	r.post(relay.OpenAI, chatPath, ask("one"))
	r.approve()
	status, _ = r.post(relay.OpenAI, chatPath, ask("two"))
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 2, s.paid.Load())
	r.leave(relay.OpenAI, chatPath, ask("three"))
	r.stop()

	r = s.start()
	r.post(relay.OpenAI, chatPath, ask("one"))
	r.post(relay.OpenAI, chatPath, ask("two"))
	go r.approve()
	status, _ = r.post(relay.OpenAI, chatPath, ask("three"))
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 3, s.paid.Load())
	require.Zero(t, r.stop().Waiting)
}

// approve has a person approve the one call that waits.
func (r *run) approve() {
	var asked []receipt.Entry
	require.Eventually(r.t, func() bool {
		r.lw.View(func(m *world.Moment) {
			asked = slices.DeleteFunc(m.Intents(), func(e receipt.Entry) bool { return e.State != receipt.StateAwaitingApproval })
		})
		return len(asked) == 1
	}, time.Minute, time.Millisecond)
	e := &asked[0]
	_, err := view.Journal{Local: r.lw}.Decide(r.t.Context(), &journal.Resolved{Key: e.Intent.Key, How: journal.Approve, Params: e.Params, Actor: "ada"}, e)
	require.NoError(r.t, err)
}

// leave sends a request, and goes once it waits for a person.
func (r *run) leave(dialect, path, body string) {
	ctx, cancel := context.WithCancel(r.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url(dialect, path), strings.NewReader(body))
	require.NoError(r.t, err)
	req.Header.Set("User-Agent", "claude-cli/2.1")
	waiting := r.states()[receipt.StateAwaitingApproval]
	go func() {
		for r.states()[receipt.StateAwaitingApproval] == waiting {
			runtime.Gosched()
		}
		cancel()
	}()
	_, err = http.DefaultClient.Do(req) //nolint:bodyclose // there is none
	require.ErrorIs(r.t, err, context.Canceled)
}

// What may ask a model in a way that nothing here can judge or count is not passed on, and a bound that is none is refused.
func TestWhatCannotBeJudgedIsNotPassedOn(t *testing.T) {
	s := newStage(t)
	r := s.start()
	for _, of := range [][2]string{
		{relay.Anthropic, "/v1/messages/batches"},
		{relay.Anthropic, "/v1/complete"},
		{relay.Anthropic, "/v1/Messages"},
		{relay.Anthropic, "/v1/messages;a"},
		{relay.Anthropic, "/v1/messages%20"},
		{relay.OpenAI, "/v1/completions"},
		{relay.OpenAI, "/v1/embeddings"},
		{relay.OpenAI, "/v1/responses/compact"},
		{relay.OpenAI, "/v1/images/generations"},
		{relay.OpenAI, "/v1/audio/speech"},
	} {
		status, body := r.post(of[0], of[1], ask("x"))
		require.Equal(t, http.StatusBadRequest, status, of[1])
		require.Contains(t, body, "invalid_request_error")
	}
	for _, bound := range []string{`"max_tokens":1e30`, `"max_tokens":1.5`, `"max_tokens":"99"`, `"max_tokens":-5`, `"n":-1`} {
		status, _ := r.post(relay.OpenAI, chatPath, `{"model":"m",`+bound+`,"messages":[{"role":"user","content":"x"}]}`)
		require.Equal(t, http.StatusBadRequest, status, bound)
	}
	require.Zero(t, s.paid.Load())
	status, _ := r.post(relay.Anthropic, "/v1/messages/count_tokens", ask("x"))
	require.Equal(t, http.StatusOK, status)
}

// What is sent is what was judged: an agent that was started again, and says the same in other words, has sent what a person has approved.
func TestWhatIsSentIsWhatWasApproved(t *testing.T) {
	s := newStage(t, "# - {name: long prompts need a person, when: 'intent.kind == \"model.call\" && intent.params.input_tokens > 200000'", "- {name: long prompts need a person, when: 'intent.params.input_tokens > 0'")
	s.answers(http.StatusOK, "application/json", `{"model":"m","content":[]}`)
	of := func(day string) string {
		return `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>` + day + `"},{"type":"text","text":"do it"}]}]}`
	}
	r := s.start()
	r.leave(relay.Anthropic, messagesPath, of("Monday"))
	r.stop()
	r = s.start(func(c *gateway.Config) { c.Offline = true }) // asks nobody
	status, _ := r.post(relay.Anthropic, messagesPath, of("Friday"), "User-Agent", "claude-cli/2.1")
	require.Equal(t, http.StatusTooManyRequests, status)
	r.stop()
	r = s.start()
	r.approve()
	status, _ = r.post(relay.Anthropic, messagesPath, of("Friday"), "User-Agent", "claude-cli/2.1")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, of("Monday"), string(*s.body.Load()))
}
