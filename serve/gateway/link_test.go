package gateway_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
)

const needPerson = `  - {name: all tools need a person, when: 'intent.kind == "mcp.call"', decide: require_approval}
`

// linked has a run tell the links of what waits.
func linked() (links chan string, change func(*gateway.Config)) {
	links = make(chan string, 100)
	return links, func(c *gateway.Config) { c.Waits = func(_ receipt.Key, link string) { links <- link } }
}

// follow asks for a link as a browser does, with a decision if it posts, and returns status and page.
func (r *run) follow(method, link, decision string, header ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, link, strings.NewReader(url.Values{"do": {decision}, "reason": {"it is <fine>"}}.Encode()))
	require.NoError(r.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	page, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(page)
}

// A link shows one call and decides about it, once. Nothing else has anything decided: looking, another page, another
// host, or a link that was made up of others.
func TestALinkDecidesAboutOneCall(t *testing.T) {
	links, tells := linked()
	r := newStage(t, allowTools, needPerson).start(tells)
	c := r.connect("files")
	c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append","arguments":{"a":"<b>\u202ex"}}}`)
	one := <-links
	c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"append","arguments":{"other":2}}}`)
	two := <-links
	key := receipt.Key{}
	for _, e := range (view.Journal{Local: r.lw}).Ledger() {
		if strings.HasPrefix(e.Intent.Cell, "recorder/") && e.State == receipt.StateAwaitingApproval {
			key = e.Intent.Key
		}
	}
	require.NotZero(t, key)

	status, page := r.follow(http.MethodGet, one, "approve")
	require.Equal(t, http.StatusOK, status)
	for _, has := range []string{"append", "ada", "all tools need a person", "&lt;b&gt;&lt;U+202E&gt;x", "recorder/a", "1 call"} {
		require.Contains(t, page, has)
	}
	require.NotContains(t, page, "other")
	status, page = r.follow(http.MethodHead, one+"?do=approve", "approve")
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, page)
	at := strings.LastIndex(one, "/") + 1
	for _, of := range []struct {
		status       int
		method, link string
		decision     string
		header       []string
	}{
		{http.StatusForbidden, http.MethodPost, one, "approve", []string{"Origin", "http://127.0.0.1:1"}},
		{http.StatusForbidden, http.MethodPost, one, "approve", []string{"Sec-Fetch-Site", "cross-site"}},
		{http.StatusNotFound, http.MethodPost, one, "approve", []string{"Host", "evil.example"}},
		{http.StatusMethodNotAllowed, http.MethodPut, one, "approve", nil},
		{http.StatusBadRequest, http.MethodPost, one, "edit", nil},
		{http.StatusBadRequest, http.MethodPost, one, "", nil},
		{http.StatusBadRequest, http.MethodPost, one + "?do=approve", "approve" + strings.Repeat("x", 1<<20), nil},
		{http.StatusGone, http.MethodPost, one[:at], "approve", nil},
		{http.StatusGone, http.MethodPost, one[:at] + "A" + one[at+1:], "approve", nil},
		{http.StatusGone, http.MethodPost, one[:len(one)-4] + two[len(two)-4:], "approve", nil},
		{http.StatusGone, http.MethodPost, one[:at+40] + two[at+40:], "approve", nil},
		{http.StatusGone, http.MethodPost, one[:len(one)-8], "approve", nil},
		{http.StatusGone, http.MethodGet, one[:at] + key.String(), "", nil},
	} {
		status, page = r.follow(of.method, of.link, of.decision, of.header...)
		require.Equal(t, of.status, status, "%s %s: %s", of.method, of.link, page)
		require.NotContains(t, page, "append")
	}
	require.Equal(t, 2, r.states()[receipt.StateAwaitingApproval])
	require.Equal(t, []string{""}, c.calls())

	status, page = r.follow(http.MethodPost, one, "approve", "Origin", "http://"+strings.Split(one, "/")[2])
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, c.hear(), "done")
	require.Len(t, c.calls(), 1)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		status, page = r.follow(method, one, "deny")
		require.Equal(t, http.StatusGone, status)
		require.NotContains(t, page, "append")
	}
	status, page = r.follow(http.MethodPost, two, "deny")
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, c.hear(), "denied")
	require.Len(t, c.calls(), 1)
	j := view.Journal{Local: r.lw}
	for _, e := range j.Ledger() {
		in, err := j.Intent(&e)
		require.NoError(t, err)
		require.Len(t, in.Decisions, 1)
		require.Equal(t, "link", in.Decisions[0].Actor)
		require.Equal(t, "it is <fine>", in.Decisions[0].Reason)
	}
}
