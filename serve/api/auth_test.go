package api_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
)

// TestEveryRouteTakesItsScopeAndNoOther tries each route with every scope alone.
func TestEveryRouteTakesItsScopeAndNoOther(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	owner := map[api.Scope]string{api.ScopeRead: "reader", api.ScopeSubmit: "submitter", api.ScopeApprove: "approver", api.ScopeAdmin: "admin"}
	for _, rt := range api.RoutesOf() {
		path := strings.NewReplacer("{id}", "w", "{n}", "1", "{key}", strings.Repeat("0", 64)).Replace(rt.Path)
		bare := s.request(rt.Method, path, nil)
		bare.Header.Del("Authorization")
		if rt.Scope == "" {
			want := http.StatusOK
			if rt.Path == "/api/sessions" { // which takes a code
				want = http.StatusUnauthorized
			} else if strings.HasPrefix(rt.Path, "/decide/") { // which takes a link
				want = http.StatusGone
			}
			require.Equal(t, want, s.do(bare).Status)
			continue
		}
		a := s.do(bare)
		a.problem(http.StatusUnauthorized, "unauthorized")
		require.True(t, strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer"))
		for scope, user := range owner {
			if rt.Scope == "any" {
				want := http.StatusOK
				if rt.Path == "/api/sessions" { // which these tokens are none of
					want = http.StatusNotFound
				}
				require.Equal(t, want, s.do(s.as(user, s.request(rt.Method, path, nil))).Status)
				continue
			}
			a := s.do(s.as(user, s.request(rt.Method, path, nil)))
			if scope == rt.Scope {
				require.NotContains(t, []int{http.StatusUnauthorized}, a.Status, "%s %s with %s", rt.Method, path, scope)
				require.NotContains(t, string(a.Body), `"type":"urn:worldkernel:problem:scope"`, "%s %s with %s", rt.Method, path, scope)
				continue
			}
			p := a.problem(http.StatusForbidden, "scope")
			require.Contains(t, p.Detail, string(rt.Scope))
		}
	}
}

func TestTokenIsForItsWorldsOnly(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w", "elsewhere")})
	as := func(path string) *answer { return s.do(s.as("other", s.request("GET", path, nil))) }
	require.Equal(t, http.StatusOK, as("/api/worlds/elsewhere").Status)
	as("/api/worlds/w").problem(http.StatusNotFound, "not-found")
	list := ok[api.Worlds](as("/api/worlds")).Worlds
	require.Len(t, list, 1)
	require.Equal(t, "elsewhere", list[0].ID)
	as("/metrics").problem(http.StatusForbidden, "scope")
}

func TestWrongTokensAreRefused(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	stranger, _ := api.NewToken()
	for _, value := range []string{"", "Bearer", "Bearer ", "Bearer " + stranger, "Basic " + s.secrets["ada"], s.secrets["ada"], "Bearer ada"} {
		req := s.request("GET", "/api/worlds", nil)
		req.Header.Set("Authorization", value)
		a := s.do(req)
		a.problem(http.StatusUnauthorized, "unauthorized")
		require.NotContains(t, string(a.Body), stranger)
	}
	nobody, err := api.New(api.Config{Worlds: worlds(t, "v")})
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
}

func TestHostsAndOriginsOfOthersAreRefused(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), AllowedHosts: []string{"worlds.example", "worlds.example:8443"}})
	port := s.http.URL[strings.LastIndex(s.http.URL, ":"):]
	ask := func(host, origin string) *answer {
		req := s.request("GET", "/healthz", nil)
		req.Host = host
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		return s.do(req)
	}
	for _, host := range []string{"localhost" + port, "LOCALHOST" + port, "127.0.0.1" + port, "127.1.2.3" + port, "[::1]" + port, "worlds.example", "Worlds.Example:8443"} {
		require.Equal(t, http.StatusOK, ask(host, "").Status, host)
	}
	for _, host := range []string{"evil.example" + port, "localhost.evil.example" + port, "localhost", "localhost:1", "127.0.0.1.evil.example" + port, "worlds.example:1", "10.0.0.1" + port} {
		ask(host, "").problem(http.StatusMisdirectedRequest, "misdirected")
	}
	here := "127.0.0.1" + port
	for _, origin := range []string{"http://" + here, "https://worlds.example"} {
		require.Equal(t, http.StatusOK, ask(here, origin).Status, origin)
	}
	for _, origin := range []string{"null", "http://evil.example", "http://localhost:1", "::"} {
		a := ask(here, origin)
		a.problem(http.StatusForbidden, "origin")
		require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"))
	}
}

// TestOtherPeoplesPagesTakeNobodysRate: what a browser sends for them is refused, and does
// not count as a request of whoever looks at them.
func TestOtherPeoplesPagesTakeNobodysRate(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) })
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Page: page, Limits: api.Limits{Wait: impatient, Strangers: api.Strangers{All: 100, Address: 2}}})
	for _, path := range []string{"/healthz", "/api/worlds", "/ui/"} {
		for range 30 {
			req := s.request("GET", path, nil)
			req.Header.Del("Authorization")
			req.Header.Set("Origin", "http://evil.example")
			s.do(req).problem(http.StatusForbidden, "origin")
			req.Header.Del("Origin")
			req.Host = "evil.example"
			s.do(req).problem(http.StatusMisdirectedRequest, "misdirected")
		}
		req := s.request("GET", path, nil)
		req.Header.Del("Authorization")
		res, err := s.http.Client().Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.NotEqual(t, http.StatusTooManyRequests, res.StatusCode, path)
	}
}

// TestEveryAnswerIsHardened, whatever it is.
func TestEveryAnswerIsHardened(t *testing.T) {
	s := lived(t)
	for _, path := range []string{"/healthz", "/api/worlds", "/api/worlds/w/records", "/nothing", "/api/worlds/w/columns", "/ui/", "/metrics"} {
		for _, host := range []string{"", "evil.example"} {
			req := s.request("GET", path, nil)
			req.Host = host
			a := s.do(req)
			require.Contains(t, a.Header.Get("Content-Security-Policy"), "default-src 'none'", "%s %s", path, host)
			require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
		}
	}
}

func TestTokenFileIsItsOwnersAlone(t *testing.T) {
	secret, hash := api.NewToken()
	require.True(t, strings.HasPrefix(secret, "wk_"))
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(secret))), hash)
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("# who may\n\nada read "+hash+" *\n"), 0o600))
	_, err := api.ReadTokens(file)
	require.NoError(t, err)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o610} {
		require.NoError(t, os.Chmod(file, mode))
		_, err := api.ReadTokens(file)
		require.ErrorIs(t, err, api.ErrExposedTokens, mode)
	}
	_, err = api.ReadTokens(filepath.Dir(file))
	require.Error(t, err)
	_, err = api.ReadTokens(file + ".not")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTokenFileFaultsNameTheLine(t *testing.T) {
	hash, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for text, want := range map[string]string{
		"ada read " + hash:                                  "line 1: 3 words",
		"\nada read,write " + hash + " *":                   `line 2: "write" is not a scope`,
		"ada read abc *":                                    "line 1: want the SHA-256",
		"ada read " + hash + " *,w":                         "line 1: \"*,w\" does not say which worlds",
		"ada read " + hash + " *\nada read " + other + " *": `line 2: the name "ada" is there twice`,
		"ada read " + hash + " *\neve read " + hash + " *":  "line 2: eve has the token of ada",
		"verifier/http read " + hash + " *":                 "is the name of a verifier",
		"ada\x01 read " + hash + " *":                       "line 1: the name",
		"ada read " + hash + " w,":                          "line 1",
		"# a comment\nada , " + hash + " *":                 `line 2: "" is not a scope`,
		strings.Repeat("x", 70000) + " read " + hash + " *": "line 1",
		manyTokens(1001):                                    "line 1001: more than 1000 tokens",
	} {
		_, err := api.ParseTokens([]byte(text))
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, api.ErrExposedTokens)
	}
}

func manyTokens(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "user%d read %064x *\n", i, i)
	}
	return out.String()
}

func FuzzParseTokens(f *testing.F) {
	f.Add([]byte("ada read,admin " + strings.Repeat("ab", 32) + " *\n# x\n"))
	f.Add([]byte("eve submit " + strings.Repeat("0", 64) + " a,b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tokens, err := api.ParseTokens(data)
		require.Equal(t, err == nil, tokens != nil)
	})
}

// TestATokenFileIsChangedOrAsItWas adds and revokes tokens.
func TestATokenFileIsChangedOrAsItWas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	line := func(name string) string {
		_, hash := api.NewToken()
		return api.TokenLine{Name: name, Scopes: []api.Scope{api.ScopeRead, api.ScopeWork}}.Text(hash)
	}
	require.NoError(t, api.AddToken(file, line("ada")))
	require.NoError(t, api.AddToken(file, line("bob")))
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	var clash *api.ClashError
	require.ErrorAs(t, api.AddToken(file, line("ada")), &clash)
	require.ErrorIs(t, api.RevokeToken(file, "eve"), api.ErrNoToken)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, api.RevokeToken(file, "ada"))
	tokens, err := api.ReadTokens(file)
	require.NoError(t, err)
	require.Equal(t, []api.TokenLine{{Name: "bob", Scopes: []api.Scope{api.ScopeRead, api.ScopeWork}}}, tokens.Lines())
	require.NoError(t, os.Chmod(file, 0o644))
	require.ErrorIs(t, api.AddToken(file, line("eve")), api.ErrExposedTokens)
}
