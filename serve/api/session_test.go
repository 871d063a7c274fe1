package api_test

import (
	"bufio"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
)

// sitting is a server that lets people in by codes, and its clock.
func sitting(t *testing.T) (s *served, sessions *api.Sessions, pass func(time.Duration)) {
	t.Helper()
	sessions = new(api.Sessions)
	var passed atomic.Int64
	began := time.Now() //nolint:forbidigo // some time
	sessions.SetClock(func() time.Time { return began.Add(time.Duration(passed.Load())) })
	s = serve(t, api.Config{Worlds: worlds(t, "w", "v"), Sessions: sessions})
	return s, sessions, func(d time.Duration) { passed.Add(int64(d)) }
}

var looking = api.TokenLine{Name: "lena", Scopes: []api.Scope{api.ScopeRead, api.ScopeSubmit}, Worlds: []string{"w"}}

// bearer makes a request with a token.
func (s *served) bearer(token, method, path string, body any) *answer {
	req := s.request(method, path, body)
	req.Header.Set("Authorization", "Bearer "+token)
	return s.do(req)
}

// A code is exchanged once, for a token with the rights that were asked for and no others.
func TestCodeIsExchangedOnce(t *testing.T) {
	s, sessions, _ := sitting(t)
	code, err := sessions.Invite(looking)
	require.NoError(t, err)
	got := ok[api.Session](s.post("/api/sessions", api.CodeRequest{Code: code}))
	require.Equal(t, []any{"lena", looking.Scopes, looking.Worlds}, []any{got.Name, got.Scopes, got.Worlds})
	require.Len(t, got.Dirs, 1, "of the worlds that the token is for")
	require.True(t, filepath.IsAbs(got.Dirs["w"]), got.Dirs["w"])
	require.NotContains(t, string(s.bearer(got.Token, http.MethodGet, "/api/whoami", nil).Body), got.Dirs["w"], "nor is it told again")

	require.Equal(t, http.StatusUnauthorized, s.post("/api/sessions", api.CodeRequest{Code: code}).Status, "somebody has used it")
	require.Equal(t, http.StatusUnauthorized, s.post("/api/sessions", api.CodeRequest{Code: got.Token}).Status)
	require.Equal(t, http.StatusUnauthorized, s.post("/api/sessions", map[string]any{"code": ""}).Status)
	require.Equal(t, http.StatusUnauthorized, s.bearer(code, http.MethodGet, "/api/worlds/w", nil).Status, "a code is no token")

	require.Equal(t, http.StatusOK, s.bearer(got.Token, http.MethodGet, "/api/worlds/w", nil).Status)
	require.Equal(t, http.StatusNotFound, s.bearer(got.Token, http.MethodGet, "/api/worlds/v", nil).Status)
	require.Equal(t, http.StatusForbidden, s.bearer(got.Token, http.MethodPost, "/api/worlds/w/step", map[string]any{}).Status)
	require.Equal(t, http.StatusCreated, s.bearer(got.Token, http.MethodPost, "/api/worlds/w/events", act("a")).Status)
}

// A code ends after a minute, and its token after a working day: what it follows, too.
func TestSessionsEnd(t *testing.T) {
	s, sessions, pass := sitting(t)
	code, err := sessions.Invite(looking)
	require.NoError(t, err)
	pass(api.CodeLife)
	require.Equal(t, http.StatusUnauthorized, s.post("/api/sessions", api.CodeRequest{Code: code}).Status)

	code, err = sessions.Invite(looking)
	require.NoError(t, err)
	pass(api.CodeLife - 1)
	got := ok[api.Session](s.post("/api/sessions", api.CodeRequest{Code: code}))
	pass(api.SessionLife - 1)
	req := s.request(http.MethodGet, "/api/worlds/w/records", nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+got.Token)
	res, err := s.http.Client().Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	require.Equal(t, http.StatusOK, res.StatusCode)
	lines := bufio.NewScanner(res.Body)
	require.True(t, lines.Scan())
	pass(1)
	require.Equal(t, http.StatusUnauthorized, s.bearer(got.Token, http.MethodGet, "/api/worlds/w", nil).Status)
	require.Equal(t, http.StatusCreated, s.post("/api/worlds/w/events", act("a")).Status)
	var last string
	for lines.Scan() { // until the server ends it
		last = last + lines.Text() + "\n"
	}
	require.NotContains(t, last, `"event.submitted"`)
}

// Who leaves ends the session: its token lets nobody in, and others stay. A token of a file is
// no session.
func TestSessionEndsWhenSomebodyLeaves(t *testing.T) {
	s, sessions, _ := sitting(t)
	enter := func() string {
		code, err := sessions.Invite(looking)
		require.NoError(t, err)
		return ok[api.Session](s.post("/api/sessions", api.CodeRequest{Code: code})).Token
	}
	mine, other := enter(), enter()
	require.Equal(t, http.StatusNoContent, s.bearer(mine, http.MethodDelete, "/api/sessions", nil).Status)
	require.Equal(t, http.StatusUnauthorized, s.bearer(mine, http.MethodGet, "/api/worlds/w", nil).Status)
	require.Equal(t, http.StatusUnauthorized, s.bearer(mine, http.MethodDelete, "/api/sessions", nil).Status)
	require.Equal(t, http.StatusOK, s.bearer(other, http.MethodGet, "/api/worlds/w", nil).Status)
	s.bearer(s.secrets["ada"], http.MethodDelete, "/api/sessions", nil).problem(http.StatusNotFound, "not-found")
	require.Equal(t, http.StatusOK, s.get("/api/worlds/w").Status)
}

func TestInvitationsAreLinesOfATokenFile(t *testing.T) {
	sessions := new(api.Sessions)
	for _, line := range []api.TokenLine{
		{Name: "", Scopes: looking.Scopes},
		{Name: "lena", Scopes: []api.Scope{"root"}},
		{Name: "lena"},
		{Name: "le na", Scopes: looking.Scopes},
	} {
		_, err := sessions.Invite(line)
		require.Error(t, err, "%v", line)
	}
}

// Sessions are bounded: the oldest goes.
func TestSessionsAreBounded(t *testing.T) {
	s, sessions, _ := sitting(t)
	first, err := sessions.Invite(looking)
	require.NoError(t, err)
	kept := ok[api.Session](s.post("/api/sessions", api.CodeRequest{Code: first}))
	for range 64 {
		code, err := sessions.Invite(looking)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, s.post("/api/sessions", api.CodeRequest{Code: code}).Status)
	}
	require.Equal(t, http.StatusUnauthorized, s.bearer(kept.Token, http.MethodGet, "/api/worlds", nil).Status)
}

// The page is everybody's, but no other host's, and what is not of the page is not there.
func TestPageIsServedBelowUI(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("page" + r.URL.Path)) })
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Page: page})
	get := func(path, host string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http.URL+path, http.NoBody)
		require.NoError(t, err)
		if host != "" {
			req.Host = host
		}
		res, err := s.http.Client().Do(req)
		require.NoError(t, err)
		defer func() { require.NoError(t, res.Body.Close()) }()
		var text strings.Builder
		_, err = bufio.NewReader(res.Body).WriteTo(&text)
		require.NoError(t, err)
		return res.StatusCode, text.String()
	}
	for _, path := range []string{"/", "/ui", "/ui/"} {
		status, text := get(path, "")
		require.Equal(t, http.StatusOK, status, path)
		require.Equal(t, "page/", text, path)
	}
	_, text := get("/ui/app.js", "")
	require.Equal(t, "page/app.js", text)
	status, _ := get("/ui/", "evil.example")
	require.Equal(t, http.StatusMisdirectedRequest, status)
	status, _ = get("/uix", "")
	require.Equal(t, http.StatusNotFound, status)
}
