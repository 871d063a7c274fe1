package api_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/link"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// TestALinkTakesNoTokenAndDecidesOnce, and is a link to no other effect, of no other world, and after no other key.
func TestALinkTakesNoTokenAndDecidesOnce(t *testing.T) {
	lw := create(t, "w", asked...)
	s := serve(t, api.Config{Worlds: append(worlds(t, "elsewhere"), lw)})
	for _, to := range []string{"a", "b"} {
		ok[api.Submitted](s.post("/api/worlds/w/events", act(to, map[string]any{"effect": "tool.b", "param": to})))
	}
	s.post("/api/worlds/w/step", map[string]any{"ticks": 5})
	var waits []receipt.Entry
	lw.View(func(m *world.Moment) { waits = m.Undecided() })
	require.Len(t, waits, 2)
	ticket := link.Of(lw, &waits[0])
	follow := func(method, path, decision, origin string) (int, string) {
		t.Helper()
		req := s.request(method, path, []byte(url.Values{"do": {decision}}.Encode()))
		req.Header.Del("Authorization")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		a := s.do(req)
		return a.Status, string(a.Body)
	}
	at := "/decide/w/" + ticket
	status, page := follow(http.MethodGet, at, "", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "bot/a")
	require.NotContains(t, page, "bot/b")
	status, _ = follow(http.MethodPost, at, "approve", "http://evil.example")
	require.Equal(t, http.StatusForbidden, status)
	for _, path := range []string{"/decide/elsewhere/" + ticket, "/decide/none/" + ticket, "/decide/w/" + ticket[:20], "/decide/w/" + waits[0].Intent.Key.String()} {
		status, page = follow(http.MethodPost, path, "approve", "")
		require.Equal(t, http.StatusGone, status)
		require.NotContains(t, page, "bot/")
	}
	other := waits[0]
	other.Params = waits[1].Params
	require.NotEqual(t, ticket, link.Of(lw, &other), "it is bound to the params")
	lw.View(func(m *world.Moment) { require.Len(t, m.Undecided(), 2) })

	status, page = follow(http.MethodPost, at, "approve", s.http.URL)
	require.Equal(t, http.StatusOK, status, page)
	status, _ = follow(http.MethodPost, at, "deny", "")
	require.Equal(t, http.StatusGone, status)
	in, err := view.Journal{Local: lw}.Intent(&waits[0])
	require.NoError(t, err)
	require.Len(t, in.Decisions, 1)
	require.Equal(t, "link", in.Decisions[0].Actor)
}
