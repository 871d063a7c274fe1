package api_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/serve/api"
)

func TestMistakesAreProblems(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{BodyBytes: 100, BulkBytes: 100, Page: 10, Ticks: 5}})
	const events = "/api/worlds/w/events"
	long := `{"event":"go","data":{"to":"` + strings.Repeat("x", 100) + `"}}`
	for name, x := range map[string]struct {
		method, path string
		body         any
		status       int
		problem      string
		field        string
	}{
		"unknown path":          {"GET", "/api/nothing", nil, 404, "not-found", ""},
		"root":                  {"GET", "/", nil, 404, "not-found", ""},
		"slash too many":        {"GET", "/api//worlds", nil, 404, "not-found", ""},
		"slash at the end":      {"GET", "/api/worlds/", nil, 404, "not-found", ""},
		"unknown world":         {"GET", "/api/worlds/v", nil, 404, "not-found", ""},
		"unknown parameter":     {"GET", "/api/worlds?most=1", nil, 400, "malformed", "most"},
		"parameter twice":       {"GET", "/api/worlds/w/cells?limit=1&limit=2", nil, 400, "malformed", "limit"},
		"no number":             {"GET", "/api/worlds/w/records?after=x", nil, 400, "malformed", "after"},
		"page too long":         {"GET", "/api/worlds/w/records?limit=11", nil, 400, "malformed", "limit"},
		"page of none":          {"GET", "/api/worlds/w/cells?limit=0", nil, 400, "malformed", "limit"},
		"unknown kind":          {"GET", "/api/worlds/w/records?kind=cell", nil, 400, "malformed", "kind"},
		"unknown state":         {"GET", "/api/worlds/w/intents?state=odd", nil, 400, "malformed", "state"},
		"no cell":               {"GET", "/api/worlds/w/records?cell=x", nil, 400, "malformed", "cell"},
		"no such record":        {"GET", "/api/worlds/w/records/99", nil, 404, "not-found", ""},
		"no record":             {"GET", "/api/worlds/w/records/0", nil, 404, "not-found", ""},
		"no key":                {"GET", "/api/worlds/w/intents/abc", nil, 404, "not-found", ""},
		"no such intent":        {"GET", "/api/worlds/w/intents/" + strings.Repeat("0", 64), nil, 404, "not-found", ""},
		"no flag":               {"GET", "/api/worlds/w/proposals?all=1", nil, 400, "malformed", "all"},
		"wrong method":          {"DELETE", "/api/worlds/w", nil, 405, "method", ""},
		"wrong method here":     {"GET", events, nil, 405, "method", ""},
		"no body":               {"POST", events, nil, 400, "malformed", "event"},
		"no JSON":               {"POST", events, "{", 400, "malformed", ""},
		"more than JSON":        {"POST", events, "{}{}", 400, "malformed", ""},
		"unknown field":         {"POST", events, `{"event":"go","day":1}`, 400, "malformed", ""},
		"field twice":           {"POST", events, `{"event":"go","event":"go"}`, 400, "malformed", ""},
		"wrong type":            {"POST", events, `{"event":1}`, 400, "malformed", "event"},
		"body too large":        {"POST", events, long, 413, "too-large", ""},
		"bulk too large":        {"POST", events, []byte(long), 413, "too-large", ""},
		"unknown event":         {"POST", events, `{"event":"unheard"}`, 422, "unknown-event", "event"},
		"bad data":              {"POST", events, `{"event":"go","data":{}}`, 422, "schema", "data"},
		"no route":              {"POST", events, `{"event":"lost"}`, 422, "no-route", "event"},
		"no key in the data":    {"POST", events, `{"event":"ping"}`, 422, "bad-key", "data"},
		"no cell to send to":    {"POST", events, `{"event":"ping","to":"x"}`, 400, "malformed", "to"},
		"no tick":               {"POST", "/api/worlds/w/step", `{"ticks":0}`, 400, "malformed", "ticks"},
		"too many ticks":        {"POST", "/api/worlds/w/step", `{"ticks":6}`, 400, "malformed", "ticks"},
		"fewer than no ticks":   {"POST", "/api/worlds/w/step", `{"ticks":-1}`, 400, "malformed", "ticks"},
		"no number of a shadow": {"POST", "/api/worlds/w/proposals/x/shadow", nil, 404, "not-found", ""},
	} {
		a := s.do(s.request(x.method, x.path, x.body))
		p := a.problem(x.status, x.problem)
		require.True(t, strings.HasPrefix(p.Field, x.field), "%s: %s", name, a.Body)
		require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"), name)
		require.NotEmpty(t, p.Title, name)
		require.NotEmpty(t, p.Detail, name)
		if x.status == http.StatusMethodNotAllowed {
			require.NotEmpty(t, a.Header.Get("Allow"), name)
		}
	}
	for _, mediaType := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
		req := s.request("POST", events, `{"event":"ping"}`)
		req.Header.Set("Content-Type", mediaType)
		s.do(req).problem(http.StatusUnsupportedMediaType, "media-type")
	}
	s.do(s.request("POST", "/api/worlds/w/events", `{"event":"ping","to":"bot/a"}`))
	s.do(s.request("POST", "/api/worlds/w/step", `{"ticks":3}`))
	s.post(events, map[string]any{"event": "ping", "to": "bot/a", "at": 2}).problem(http.StatusConflict, "tick-passed")
	for _, at := range []any{uint64(math.MaxUint64), uint64(manifest.MaxTick) + 1, "2261-12-31T23:59:59Z"} {
		if _, isTime := at.(string); isTime { // the last that there is
			ok[api.Submitted](s.post(events, map[string]any{"event": "ping", "to": "bot/a", "at": at}))
			continue
		}
		s.post(events, map[string]any{"event": "ping", "to": "bot/a", "at": at}).problem(http.StatusUnprocessableEntity, "no-such-tick")
		req := s.request("POST", events, fmt.Sprintf(`{"event":"ping","to":"bot/a","at":%d}`, at))
		req.Header.Set("Content-Type", "application/x-ndjson")
		require.EqualValues(t, 1, s.do(req).problem(http.StatusUnprocessableEntity, "no-such-tick").Line)
	}
	require.Contains(t, string(s.do(s.request("GET", "/api/worlds/w/records?after=18446744073709551615", nil)).Body), `"records":[]`)
	s.post(events, map[string]any{"event": "ping", "to": "bot/a", "in": "2562047h"}).problem(http.StatusUnprocessableEntity, "no-such-tick")
}

// How far ahead a token may submit is in its line, or follows from what approvals have for time.
func TestATokenSubmitsNoFurtherAheadThanItMay(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	const events = "/api/worlds/w/events"
	send := func(user string, event map[string]any) *answer {
		return s.do(s.as(user, s.request("POST", events, event)))
	}
	at := func(tick any) map[string]any { return map[string]any{"event": "ping", "to": "bot/a", "at": tick} }
	ok[api.Submitted](send("submitter", at(1439)))
	ok[api.Submitted](send("calendar", at(5000)))
	ok[api.Submitted](send("ada", at(1_000_000)))
	send("submitter", at(1440)).problem(http.StatusForbidden, "too-far-ahead")
	send("submitter", map[string]any{"event": "ping", "to": "bot/a", "in": "24m"}).problem(http.StatusForbidden, "too-far-ahead")
	send("submitter", at("2026-01-01T01:00:00Z")).problem(http.StatusForbidden, "too-far-ahead")
	send("calendar", at(5001)).problem(http.StatusForbidden, "too-far-ahead")
	for _, key := range []string{"", "k"} {
		req := s.as("submitter", s.request("POST", events, `{"event":"ping","to":"bot/a","at":1439}`+"\n"+`{"event":"ping","to":"bot/a","at":1440}`))
		req.Header.Set("Content-Type", "application/x-ndjson")
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		p := s.do(req).problem(http.StatusForbidden, "too-far-ahead")
		require.EqualValues(t, 2, p.Line)
		require.EqualValues(t, 1, p.Bulk.Accepted)
	}
	require.Equal(t, "5000", ok[api.TokenLine](s.do(s.as("calendar", s.request("GET", "/api/whoami", nil)))).Ahead)
}

func TestFullMailboxAsksToComeAgain(t *testing.T) {
	w := create(t, "w", "version: 1", "version: 1\nlimits: {mailbox: 1}")
	s := serve(t, api.Config{Worlds: wrap(w)})
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	a := s.post("/api/worlds/w/events", act("a"))
	a.problem(http.StatusTooManyRequests, "mailbox-full")
	require.NotEmpty(t, a.Header.Get("Retry-After"))
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestLogTellsOfRequestsWithoutWhatIsInThem(t *testing.T) {
	log := new(lines)
	w := create(t, "w")
	s := serve(t, api.Config{Worlds: wrap(w), Log: slog.New(slog.NewTextHandler(log, nil))})
	s.post("/api/worlds/w/events", act("hush-hush"))
	require.NoError(t, w.Close())
	s.get("/api/worlds/w/records/1")
	a := s.post("/api/worlds/w/events", act("hush-hush"))
	require.GreaterOrEqual(t, a.Status, 500)
	require.NotContains(t, string(a.Body), w.Dir())
	require.NoError(t, s.http.Config.Shutdown(t.Context())) // then all lines are written
	text := log.String()
	require.Contains(t, text, "method=POST route=/api/worlds/{id}/events status=201")
	require.Contains(t, text, "token=ada")
	require.NotContains(t, text, "hush-hush")
	for _, secret := range s.secrets {
		require.NotContains(t, text, secret)
	}
}
