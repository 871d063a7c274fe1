package api_test

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
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

func TestMain(m *testing.M) {
	testlog.Begin()
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.FileBodyDecoder)
	m.Run()
}

// create makes a world of bots, with changes of its world.yaml, and opens it.
func create(t testing.TB, id string, changes ...string) *local.World {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../world/worldtest/testdata/bots")))
	file := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(changes...).Replace(string(text))), 0o600))
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: id}, local.Options{}))
	w, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() }) // some tests have its store fail
	return w
}

// document returns openapi.yaml, and what finds an operation in it.
func document(t testing.TB) (*openapi3.T, routers.Router) {
	t.Helper()
	doc, err := readDocument()
	require.NoError(t, err)
	router, err := newRouter()
	require.NoError(t, err)
	return doc, router
}

// readDocument and newRouter do so once: that takes longer than most tests.
var (
	readDocument = sync.OnceValues(func() (*openapi3.T, error) {
		doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
		if err != nil {
			return nil, err
		}
		return doc, doc.Validate(context.Background())
	})
	newRouter = sync.OnceValues(func() (routers.Router, error) {
		doc, err := readDocument()
		if err != nil {
			return nil, err
		}
		return gorillamux.NewRouter(doc)
	})
)

// served is a server under test, on loopback.
type served struct {
	t       testing.TB
	cfg     api.Config
	api     *api.Server
	http    *httptest.Server
	router  routers.Router
	secrets map[string]string // of tokens, by their names
}

// users are the tokens of every server under test: name, scopes and worlds.
var users = [][3]string{
	{"ada", "read,submit,approve,admin,work", "*"},
	{"hand", "work", "*"},
	{"reader", "read", "*"},
	{"submitter", "submit", "*"},
	{"calendar", "submit", "* ahead=5000"},
	{"approver", "approve", "*"},
	{"admin", "admin", "*"},
	{"other", "read,submit,approve,admin", "elsewhere"},
}

func serve(t testing.TB, cfg api.Config) *served {
	t.Helper()
	s := &served{t: t, secrets: make(map[string]string)}
	var file strings.Builder
	for _, u := range users {
		secret, hash := api.NewToken()
		s.secrets[u[0]] = secret
		fmt.Fprintf(&file, "%s %s %s %s\n", u[0], u[1], hash, u[2])
	}
	if cfg.Limits.Strangers == (api.Strangers{}) {
		cfg.Limits.Strangers.All = 1e6 // tests ask much
	}
	var err error
	if cfg.Tokens == nil {
		cfg.Tokens, err = api.ParseTokens([]byte(file.String()))
		require.NoError(t, err)
	}
	_, s.router = document(t)
	s.cfg = cfg
	s.start(cfg)
	if os.Getenv(throughEnv) != "" {
		return s.through()
	}
	return s
}

// throughEnv has every request of every test pass through a process that serves no world.
const throughEnv = "WORLDKERNEL_TEST_THROUGH"

// through is the same through a process that serves no world itself.
func (s *served) through() *served {
	front := *s
	cfg := s.cfg
	cfg.Worlds, cfg.Stores = nil, elsewhere{s.http.URL, s.cfg.Worlds}
	front.start(cfg)
	front.api = s.api // what tests look at is the owner's
	return &front
}

// elsewhere is where all worlds are.
type elsewhere struct {
	url    string
	worlds []*local.World
}

func (e elsewhere) Owner(context.Context, string) (string, error) { return e.url, nil }

func (e elsewhere) Worlds(_ context.Context, after string, only []string, most int) (all []api.Stored, away int, err error) {
	for _, w := range e.worlds { // which tests make in the order of their ids
		s := w.Status()
		if s.ID > after && len(all) < most && (only == nil || slices.Contains(only, s.ID)) {
			all = append(all, api.Stored{ID: s.ID, Head: s.Head, Owner: "one", Owed: 1})
		}
	}
	return all, 0, nil
}

func (s *served) start(cfg api.Config) {
	server, err := api.New(cfg)
	require.NoError(s.t, err)
	at := httptest.NewUnstartedServer(nil)
	at.Config = server.HTTPServer()
	at.Start()
	s.api, s.http = server, at
	s.t.Cleanup(func() {
		require.NoError(s.t, at.Config.Shutdown(context.Background()))
		at.Close()
		require.NoError(s.t, server.Close())
	})
}

// answer is what a server has answered, checked against its document.
type answer struct {
	t      testing.TB
	Status int
	Header http.Header
	Body   []byte
}

// request makes a request of the user ada. A body is JSON, unless it is bytes.
func (s *served) request(method, path string, body any) *http.Request {
	s.t.Helper()
	var content io.Reader
	mediaType := "application/json"
	switch b := body.(type) {
	case nil:
	case []byte:
		content, mediaType = bytes.NewReader(b), "application/x-ndjson"
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		require.NoError(s.t, err)
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, content)
	require.NoError(s.t, err)
	if content != nil {
		req.Header.Set("Content-Type", mediaType)
	}
	return s.as("ada", req)
}

func (s *served) as(user string, req *http.Request) *http.Request {
	req.Header.Set("Authorization", "Bearer "+s.secrets[user])
	return req
}

// do sends a request and checks the answer against the document.
func (s *served) do(req *http.Request) *answer {
	s.t.Helper()
	res, err := s.http.Client().Do(req)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, res.Body.Close()) }()
	body, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	s.check(req, res, body)
	return &answer{s.t, res.StatusCode, res.Header, body}
}

// check checks an answer against the document. What the document has no operation
// for is a problem, in the form of all others.
func (s *served) check(req *http.Request, res *http.Response, body []byte) {
	s.t.Helper()
	route, params, err := s.router.FindRoute(req)
	if err != nil {
		require.Contains(s.t, []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusMisdirectedRequest, http.StatusForbidden}, res.StatusCode)
		require.Equal(s.t, "application/problem+json", res.Header.Get("Content-Type"))
		return
	}
	stream := res.Header.Get("Content-Type") == "text/event-stream" // whose body has no end
	if stream {
		require.NotNil(s.t, route.Operation.Responses.Status(res.StatusCode).Value.Content["text/event-stream"])
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route, PathParams: params},
		Status:                 res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: stream},
	})
	require.NoError(s.t, err, "%s %s: %d %s", req.Method, req.URL, res.StatusCode, body)
}

func (s *served) get(path string) *answer { s.t.Helper(); return s.do(s.request("GET", path, nil)) }

func (s *served) post(path string, body any) *answer {
	s.t.Helper()
	return s.do(s.request("POST", path, body))
}

// ok parses an answer that went well.
func ok[T any](a *answer) T {
	a.t.Helper()
	require.Less(a.t, a.Status, 300, "%s", a.Body)
	var v T
	require.NoError(a.t, json.Unmarshal(a.Body, &v), "%s", a.Body)
	return v
}

// problem parses an answer that did not, of a status and with the name of a problem.
func (a *answer) problem(status int, name string) api.Problem {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, "%s", a.Body)
	var p api.Problem
	require.NoError(a.t, json.Unmarshal(a.Body, &p))
	require.Equal(a.t, "urn:worldkernel:problem:"+name, p.Type, "%s", a.Body)
	require.Equal(a.t, status, p.Status)
	return p
}

func wrap(w ...*local.World) []*local.World { return w }
