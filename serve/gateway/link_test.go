package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
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
	for _, internal := range []string{"other", "incarnation", "tool_hash", "tool_use_id", "&#34;ask&#34;"} {
		require.NotContains(t, page, internal)
	}
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
		{http.StatusGone, http.MethodPost, one[:at] + string(one[at]^1) + one[at+1:], "approve", nil},
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

// A call that waits since before the agent was started again is told of anew: its link was that of a listener that is gone.
func TestALinkOfBeforeIsToldAgain(t *testing.T) {
	links, tells := linked()
	s := newStage(t, allowTools, needPerson)
	r := s.start(tells)
	r.connect("files").say(callOne)
	before := <-links
	r.stop()
	r = s.start(tells, again)
	link := <-links
	require.NotEqual(t, before, link)
	status, _ := r.follow(http.MethodPost, link, "deny")
	require.Equal(t, http.StatusOK, status)
}

const (
	opensLinks = `{"elicitation":{"form":{},"url":{}}}`
	hello      = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"c"}}}`
	callOne    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append","arguments":{"a":1}}}`
	noSession  = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}`
)

// offeredIn returns the link and the id of an offer.
func offeredIn(t *testing.T, line string) (link, id string) {
	t.Helper()
	var m struct {
		ID     string `json:"id"`
		Method string `json:"method"`
		Params struct {
			Mode string `json:"mode"`
			URL  string `json:"url"`
		} `json:"params"`
	}
	require.NoError(t, json.Unmarshal([]byte(line), &m), line)
	require.Equal(t, "elicitation/create", m.Method)
	require.Equal(t, "url", m.Params.Mode)
	return m.Params.URL, m.ID
}

// A client that opens links for its user gets that of a decision. Whatever it says to it decides nothing, and the server does
// not hear of it.
func TestAClientIsOfferedTheLinkOfADecision(t *testing.T) {
	s := newStage(t, allowTools, needPerson)
	r := s.start(offers)
	c := r.connect("files")
	c.say(hello, opensLinks)
	require.Contains(t, c.hear(), `"serverInfo"`)
	c.say(callOne)
	link, id := offeredIn(t, c.hear())
	for _, says := range []string{`"result":{"action":"accept","content":{"approve":true}}`, `"result":{"action":"decline"}`, `"error":{"code":-1,"message":"x"}`} {
		c.say(`{"jsonrpc":"2.0","id":%q,%s}`, id, says)
	}
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	require.Contains(t, c.hear(), `"id":2`)
	require.Equal(t, 1, r.states()[receipt.StateAwaitingApproval])
	status, _ := r.follow(http.MethodPost, link, "approve")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, c.hear(), "done")
	require.Equal(t, []string{`append {"a":1}`}, c.calls(), "the server hears of no answer")

	silent := r.connect("others?hold=1ms")
	silent.say(hello, `{"elicitation":{}}`)
	require.Contains(t, silent.hear(), `"serverInfo"`)
	silent.say(callOne)
	require.Contains(t, silent.hear(), "intent approve ")

	r.stop()
	program := s.start().connect("files?hold=1ms") // that is its own client could follow the link itself
	program.say(hello, opensLinks)
	require.Contains(t, program.hear(), `"serverInfo"`)
	program.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"append","arguments":{"a":2}}}`)
	require.Contains(t, program.hear(), "intent approve ")
}

func offers(c *gateway.Config) { c.Offers = true }

// Likewise over HTTP: the offer is in the stream of the call.
func TestOverHTTPAClientIsOfferedTheLink(t *testing.T) {
	r, files := newStage(t, allowTools, needPerson).start(offers), newSite(t)
	at := r.reach(files.URL)
	require.Contains(t, r.say(at, hello, opensLinks), `"serverInfo"`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(callOne))
	require.NoError(t, err)
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {"s1"}}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // it is read
	var lines []string
	for stream := bufio.NewScanner(resp.Body); stream.Scan(); {
		line, is := strings.CutPrefix(stream.Text(), "data: ")
		if !is {
			continue
		}
		if lines = append(lines, line); len(lines) == 1 {
			link, id := offeredIn(t, line)
			require.Empty(t, r.say(at, `{"jsonrpc":"2.0","id":%q,"result":{"action":"accept"}}`, id))
			status, _ := r.follow(http.MethodPost, link, "deny")
			require.Equal(t, http.StatusOK, status)
		}
	}
	require.Len(t, lines, 4)
	require.Contains(t, lines[1], "notifications/elicitation/complete")
	require.Contains(t, lines[2], "notifications/cancelled")
	require.Contains(t, lines[3], "denied")
	require.Equal(t, []string{""}, files.calls())
}

// A client without a session gets the offer as the answer, and makes the call again: it is one call, which the server gets
// as it was. A call in the midst of the server's own exchange is held.
func TestACallWithoutASessionIsAnsweredWithAnOffer(t *testing.T) {
	r, files := newStage(t, allowTools, needPerson).start(offers), newSite(t)
	at := r.reach(files.URL)
	meta := fmt.Sprintf(noSession, opensLinks)
	var asked struct {
		Result struct {
			ResultType    string                     `json:"resultType"`
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
			RequestState  string                     `json:"requestState"`
		} `json:"result"`
	}
	answer := r.callAt(at, 1, "append", `{"a":1}`, meta)
	require.NoError(t, json.Unmarshal([]byte(answer), &asked), answer)
	require.Equal(t, "input_required", asked.Result.ResultType)
	link, _ := offeredIn(t, string(asked.Result.InputRequests["approval"]))
	made := make(chan string)
	go func() {
		made <- r.say(at, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"append","arguments":{"a":1},"_meta":%s,"requestState":%q,"inputResponses":{"approval":{"action":"accept"}}}}`,
			meta, asked.Result.RequestState)
	}()
	status, _ := r.follow(http.MethodPost, link, "approve")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, <-made, "done")
	require.Equal(t, []string{`append {"a":1}`}, files.calls())
	states, _ := r.answersOf()
	require.Len(t, states, 1)

	links := make(chan string, 1)
	go func() {
		links <- r.say(at, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"append","arguments":{"a":3},"_meta":%s,"requestState":"the server's","inputResponses":{}}}`, meta)
	}()
	r.approve()
	require.Contains(t, <-links, "done")
}
