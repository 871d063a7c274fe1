package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// twins are two worlds of one birth, to which the same has happened.
func twins(t *testing.T) (a, b *local.World) {
	t.Helper()
	testlog.Skip(t, "a world is copied with its directory")
	a = worlds(t, "w")[0]
	dir := t.TempDir()
	require.NoError(t, a.Close())
	require.NoError(t, os.CopyFS(dir, os.DirFS(a.Dir())))
	require.NoError(t, os.Chmod(filepath.Join(dir, ".world", "keyring"), 0o600))
	for _, at := range []string{a.Dir(), dir} {
		w, err := local.Open(at, local.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = w.Close() })
		a, b = b, w
	}
	return a, b
}

// TestEveryRouteAnswersTheSameThroughAnotherProcess tries each route of the table in a few ways, on
// one of two twins at its owner and on the other through a process that serves no world.
func TestEveryRouteAnswersTheSameThroughAnotherProcess(t *testing.T) {
	a, b := twins(t)
	tokens := serve(t, api.Config{})
	at := serve(t, api.Config{Worlds: wrap(a), Tokens: tokens.cfg.Tokens})
	through := serve(t, api.Config{Worlds: wrap(b), Tokens: tokens.cfg.Tokens}).through()
	at.secrets, through.secrets = tokens.secrets, tokens.secrets
	same := func(method, path string, body any, headers ...string) *answer {
		t.Helper()
		var answers [2]*answer
		for i, s := range []*served{at, through} {
			req := s.request(method, path, body)
			for i := 0; i < len(headers); i += 2 {
				req.Header.Set(headers[i], headers[i+1])
			}
			answers[i] = s.do(req)
			answers[i].Header.Del("Date")
		}
		what := method + " " + path
		require.Equal(t, answers[0].Status, answers[1].Status, "%s: %s %s", what, answers[0].Body, answers[1].Body)
		require.Equal(t, string(answers[0].Body), string(answers[1].Body), what)
		require.Equal(t, answers[0].Header, answers[1].Header, what)
		return answers[0]
	}
	for i := range 5 {
		same("POST", "/api/worlds/w/events", act("a", map[string]any{"do": "emit", "to": "b"}, map[string]any{"do": "ask", "kind": "pay", "params": map[string]any{"n": i}}))
	}
	same("POST", "/api/worlds/w/step", nil)
	key := ok[struct{ Intents []struct{ Key string } }](same("GET", "/api/worlds/w/intents", nil)).Intents
	name := strings.Repeat("0", 64)
	if len(key) > 0 {
		name = key[0].Key
	}
	tried := 0
	for _, rt := range api.RoutesOf() {
		if !strings.HasPrefix(rt.Path, "/api/worlds/{id}") || strings.HasSuffix(rt.Path, "/verify") { // which tells how long it took
			continue
		}
		tried++
		for _, n := range []string{"3", "1000000", "x"} {
			path := strings.NewReplacer("{id}", "w", "{n}", n, "{key}", name, "{hash}", strings.Repeat("0", 64)).Replace(rt.Path)
			if rt.Method == http.MethodGet {
				same("GET", path, nil)
				same("GET", path+"?cell=bot/a", nil)
				same("GET", path+"?limit=2", nil, "Accept-Encoding", "gzip")
				continue
			}
			for _, body := range []any{nil, map[string]any{}, map[string]any{"reason": "because"}, "{", []byte("{}\n")} {
				same(rt.Method, path, body)
			}
		}
		same(rt.Method, strings.NewReplacer("{id}", "nowhere").Replace(rt.Path), nil)
		same("PUT", strings.NewReplacer("{id}", "w").Replace(rt.Path), nil)
	}
	require.Greater(t, tried, 50)
	require.Equal(t, a.Head(), b.Head(), "and did the same")
}

// moving is where a world is, which may change, or an error.
type moving struct {
	url   atomic.Pointer[string]
	asked atomic.Int64
	err   error
}

func (m *moving) Owner(context.Context, string) (string, error) {
	m.asked.Add(1)
	if url := m.url.Load(); url != nil {
		return *url, nil
	}
	return "", m.err
}

func (m *moving) Worlds(context.Context, string, []string, int) ([]api.Stored, int, error) {
	return nil, 0, m.err
}

func (m *moving) to(url string) { m.url.Store(&url) }

// front serves no world, and passes on.
func front(t *testing.T, back *served, e api.Stores, l api.Limits) *served {
	t.Helper()
	f := *back
	cfg := back.cfg
	cfg.Worlds, cfg.Stores, cfg.Limits = nil, e, l
	cfg.Limits.Strangers.All = 1e6
	f.start(cfg)
	return &f
}

func TestWhoCannotBeAskedIsToldOf(t *testing.T) {
	back := serve(t, api.Config{Worlds: worlds(t, "w")})
	m := &moving{err: api.ErrNoWorld}
	f := front(t, back, m, api.Limits{Moving: 200 * time.Millisecond})
	f.get("/api/worlds/w").problem(http.StatusNotFound, "not-found")
	m.err = &api.NotNowError{Why: "it is away", Err: errors.New("a secret")}
	a := f.get("/api/worlds/w")
	require.Equal(t, "it is away", a.problem(http.StatusServiceUnavailable, "moving").Detail)
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	require.Greater(t, m.asked.Load(), int64(2), "it waits a while")
	m.err = errors.New("broken")
	f.get("/api/worlds/w").problem(http.StatusInternalServerError, "internal")
	m.to("::")
	f.get("/api/worlds/w").problem(http.StatusServiceUnavailable, "moving")

	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	m.to("http://" + gone.Addr().String())
	for _, method := range []string{"GET", "POST"} {
		a = f.do(f.request(method, map[string]string{"GET": "/api/worlds/w", "POST": "/api/worlds/w/events"}[method], act("a")))
		a.problem(http.StatusServiceUnavailable, "moving")
		require.Equal(t, "1", a.Header.Get("Retry-After"))
	}
	m.to(back.http.URL)
	require.Equal(t, http.StatusOK, f.get("/api/worlds/w").Status)
	f.do(f.as("other", f.request("GET", "/api/worlds/w", nil))).problem(http.StatusNotFound, "not-found")
	f.do(f.as("reader", f.request("POST", "/api/worlds/w/step", nil))).problem(http.StatusForbidden, "scope")
}

// TestARequestIsPassedOnOnce: two processes that take each other for the owner do not pass it to and
// fro, and the owner reads no body that it does not want.
func TestARequestIsPassedOnOnce(t *testing.T) {
	back := serve(t, api.Config{})
	one, other := &moving{}, &moving{}
	limits := api.Limits{Moving: 300 * time.Millisecond}
	a, b := front(t, back, one, limits), front(t, back, other, limits)
	one.to(b.http.URL)
	other.to(a.http.URL)
	a.get("/api/worlds/w").problem(http.StatusServiceUnavailable, "moving")
	require.Zero(t, other.asked.Load(), "b does not look for another")
	require.NotContains(t, a.get("/api/worlds/w").Header, "Worldkernel-Moving")

	owner := serve(t, api.Config{Worlds: worlds(t, "w"), Tokens: back.cfg.Tokens})
	asked := one.asked.Load()
	done := make(chan *answer, 1)
	go func() { done <- a.post("/api/worlds/w/events", act("a")) }()
	require.Eventually(t, func() bool { return one.asked.Load() > asked+1 }, time.Minute, time.Millisecond)
	one.to(owner.http.URL)
	require.Equal(t, http.StatusCreated, (<-done).Status, "it is asked anew with the same body")
}

// TestAnOwnerThatIsLostBeforeItsAnswer has who reads answered by the next, and who changes something
// told that nobody knows; one that is stopped is missed, too.
func TestAnOwnerThatIsLostBeforeItsAnswer(t *testing.T) {
	back := serve(t, api.Config{Worlds: worlds(t, "w")})
	for name, lose := range map[string]func(w http.ResponseWriter, r *http.Request){
		"cut":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"stopped": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			m := &moving{}
			lost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				m.to(back.http.URL)
				lose(w, r)
			}))
			defer lost.Close()
			f := front(t, back, m, api.Limits{})
			m.to(lost.URL)
			require.Equal(t, http.StatusOK, f.get("/api/worlds/w").Status)
			m.to(lost.URL)
			a := f.post("/api/worlds/w/events", act("a"))
			a.problem(http.StatusServiceUnavailable, "unanswered")
			require.Equal(t, "1", a.Header.Get("Retry-After"))
			m.to(lost.URL)
			f.post("/api/worlds/w/step", nil).problem(http.StatusServiceUnavailable, "unanswered")
		})
	}
	require.Equal(t, journal.Seq(1), back.cfg.Worlds[0].Head().ID)
}

// TestAnAnswerThatIsCutOffDoesNotLookWhole.
func TestAnAnswerThatIsCutOffDoesNotLookWhole(t *testing.T) {
	back := serve(t, api.Config{})
	m := &moving{}
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer cut.Close()
	f := front(t, back, m, api.Limits{})
	m.to(cut.URL)
	res, err := http.DefaultClient.Do(f.request("GET", "/api/worlds/w", nil))
	if err == nil {
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	require.Error(t, err)
}

// TestAStreamIsPassedOn as it comes, and ends with its owner or with its follower.
func TestAStreamIsPassedOn(t *testing.T) {
	w := worlds(t, "w")[0]
	back := serve(t, api.Config{Worlds: wrap(w)})
	f := back.through()
	ctx, leave := context.WithCancel(t.Context())
	req := f.request("GET", "/api/worlds/w/records", nil).WithContext(ctx)
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(res.Body)
	for id := 1; id < 4; id++ {
		for lines.Scan() {
			if lines.Text() == fmt.Sprintf("id: %d", id) {
				break
			}
		}
		require.NoError(t, lines.Err())
		_, err := w.Submit(t.Context(), "go", act("a")["data"])
		require.NoError(t, err)
	}
	require.Equal(t, 1, back.api.Used("followers", "ada"), "it counts at the owner")
	leave()
	require.Eventually(t, func() bool { return back.api.Used("followers", "ada") == 0 }, time.Minute, time.Millisecond)
}

// TestWorldsAreListedInPages, those that are served here and those of a store.
func TestWorldsAreListedInPages(t *testing.T) {
	back := serve(t, api.Config{Worlds: worlds(t, "a", "b", "elsewhere")})
	for name, s := range map[string]*served{"here": back, "elsewhere": front(t, back, elsewhere{back.http.URL, back.cfg.Worlds}, api.Limits{})} {
		t.Run(name, func(t *testing.T) {
			var ids []string
			for path := "/api/worlds?limit=2"; path != ""; {
				page := ok[api.Worlds](s.get(path))
				require.LessOrEqual(t, len(page.Worlds), 2)
				for _, w := range page.Worlds {
					ids = append(ids, w.ID)
					require.Equal(t, journal.Seq(1), w.Head.ID)
					require.NotEmpty(t, w.Name)
					require.True(t, w.Open)
				}
				if path = ""; page.Next != nil {
					path = *page.Next
				}
			}
			require.Equal(t, []string{"a", "b", "elsewhere"}, ids)
			all := ok[api.Worlds](s.get("/api/worlds"))
			require.Len(t, all.Worlds, 3)
			require.Nil(t, all.Next)
			mine := ok[api.Worlds](s.do(s.as("other", s.request("GET", "/api/worlds", nil)))).Worlds
			require.Len(t, mine, 1, "of others nobody is told")
			s.get("/api/worlds?limit=0").problem(http.StatusBadRequest, "malformed")
		})
	}
}

// TestOnlyNamedHeadersPassBetweenProcesses, whatever a caller sends, and whatever it is that answers for the owner.
func TestOnlyNamedHeadersPassBetweenProcesses(t *testing.T) {
	back := serve(t, api.Config{})
	var got http.Header
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		for name, value := range map[string]string{
			"Content-Security-Policy": "script-src *", "Set-Cookie": "a=b", "X-Content-Type-Options": "off", "Refresh": "0;url=//evil",
			"Access-Control-Allow-Origin": "*", "Clear-Site-Data": `"*"`, "Server": "evil", "X-Other": "x",
			"Retry-After": "7", "Content-Type": "application/json", "Cache-Control": "no-store", "Etag": `"e"`,
		} {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(hostile.Close)
	m := &moving{}
	m.to(hostile.URL)
	f := front(t, back, m, api.Limits{})
	req := f.request("GET", "/api/worlds/w", nil)
	for name, value := range map[string]string{
		"Cookie": "a=b", "X-Forwarded-For": "1.2.3.4", "X-Other": "x", "Origin": "http://" + req.URL.Host, "Referer": "http://x/",
		"Idempotency-Key": "k", "Last-Event-Id": "3",
	} {
		req.Header.Set(name, value)
	}
	a, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, http.StatusOK, a.StatusCode)
	for _, name := range []string{"Set-Cookie", "Refresh", "Access-Control-Allow-Origin", "Clear-Site-Data", "Server", "X-Other"} {
		require.NotContains(t, a.Header, name)
	}
	require.Equal(t, []string{"default-src 'none'; frame-ancestors 'none'"}, a.Header.Values("Content-Security-Policy"))
	require.Equal(t, []string{"nosniff"}, a.Header.Values("X-Content-Type-Options"))
	for name, value := range map[string]string{"Retry-After": "7", "Content-Type": "application/json", "Cache-Control": "no-store", "Etag": `"e"`} {
		require.Equal(t, []string{value}, a.Header.Values(name))
	}
	for _, name := range []string{"Cookie", "X-Forwarded-For", "X-Other", "Origin", "Referer"} {
		require.NotContains(t, got, name)
	}
	for _, name := range []string{"Authorization", "Idempotency-Key", "Last-Event-Id"} {
		require.Equal(t, req.Header.Get(name), got.Get(name))
	}
}
