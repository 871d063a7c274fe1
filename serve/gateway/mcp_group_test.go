package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/gateway"
)

// group has a client of several servers: files and mail, which append to files of these names, one over HTTP, and one that
// does not start.
func (r *run) group(site *site) *client {
	r.t.Helper()
	file := func(name string) string { return filepath.Join(r.dir, "..", name) }
	return r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: []gateway.GroupServer{
			{Name: "files", Command: r.program(file("files"))},
			{Name: "the.mail", Command: r.program(file("mail"))},
			{Name: "web", URL: site.URL, Header: http.Header{"Authorization": {"Bearer sk-canary"}}},
			{Name: "dead", Command: r.program("", "/does/not/exist")},
		}}).Run(context.Background())
	})
}

func (r *run) callsIn(name string) []string {
	return (&client{file: filepath.Join(r.dir, "..", name)}).calls()
}

// ask asks something, and returns the answer.
func (c *client) ask(id int, method, params string) string {
	c.t.Helper()
	c.say(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	return c.hear()
}

// listed returns what the items of a list are called.
func listed(t *testing.T, answer, list, by string) (names []string) {
	t.Helper()
	var said struct {
		Result map[string]json.RawMessage `json:"result"`
	}
	var items []map[string]any
	require.NoError(t, json.Unmarshal([]byte(answer), &said), answer)
	require.NoError(t, json.Unmarshal(said.Result[list], &items), answer)
	for _, item := range items {
		names = append(names, fmt.Sprint(item[by]))
	}
	return names
}

// Several servers are one for the client, and each is itself for policies and the record. One that is not there, or dies, is
// named, and takes no other with it. What ran does not run again.
func TestSeveralServersAreOne(t *testing.T) {
	s := newStage(t, allowTools, allowTools+`  - {name: no letters, when: 'intent.kind == "mcp.call" && intent.params.server == "the.mail" && intent.params.tool == "fails"', decide: deny}
`)
	site := newSite(t)
	before := make(map[int]string)
	for n, config := range []func(*gateway.Config){again, again, func(c *gateway.Config) { c.Offline = true }} {
		r := s.start(config)
		c := r.group(site)
		hello := c.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		require.Contains(t, hello, `"name":"all"`)
		require.True(t, n == 2 || strings.Contains(hello, "the server dead has ended, or was not started"), hello)
		c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		require.Equal(t, []string{"files__append", "the_mail__append", "web__append"}, listed(t, c.ask(1, "tools/list", `{}`), "tools", "name"))
		for id, call := range []string{"files__append", "the_mail__append", "web__append", "the_mail__fails", "files__faults"} {
			answer := c.call(10+id, call, `{"a":1}`, use(call))
			require.Contains(t, answer, fmt.Sprintf(`"id":%d`, 10+id))
			require.True(t, n == 0 || before[id] == answer, "%s: %s", before[id], answer)
			before[id] = answer
		}
		require.Contains(t, before[3], "no letters")
		require.Contains(t, before[4], "unknown tool")
		require.Equal(t, []string{`append {"a":1}`, `faults {"a":1}`}, r.callsIn("files"))
		require.Equal(t, []string{`append {"a":1}`}, r.callsIn("mail"))
		require.Equal(t, []string{`append {"a":1}`}, site.calls())
		if n < 2 {
			answer := c.call(20, "dead__x", `{}`, `{}`)
			require.Contains(t, answer, "the server dead has ended, or was not started")
			require.Contains(t, answer, "was not made")
		}
		require.Contains(t, c.call(21, "nobody__x", `{}`, `{}`), "no server has")
		require.NoError(t, c.in.Close())
		require.NoError(t, <-c.ended)
		summary := r.stop()
		require.Equal(t, 5*min(n, 1), summary.ToolsServed)
	}
	s.notStored("canary")
	r := s.start()
	states, _ := r.answersOf()
	require.ElementsMatch(t, []receipt.State{receipt.StateCommitted, receipt.StateCommitted, receipt.StateCommitted, receipt.StateDenied, receipt.StateFailed}, states)
}

// A server that dies with a call is named, its call is in doubt, and the others go on. Two that ask the client at once get
// each its own answer.
func TestAServerOfSeveralDies(t *testing.T) {
	s := newStage(t)
	r := s.start()
	c := r.group(newSite(t))
	c.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	for id, server := range []string{"files", "the_mail"} {
		c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__asks"}}`, id+1, server)
		question := c.hear()
		require.Contains(t, question, "elicitation/create")
		require.Contains(t, question, fmt.Sprintf(`"id":%d,`, id+1), "the server's own id is another")
		require.Contains(t, c.hear(), `"content":[]`)
	}
	c.say(`{"jsonrpc":"2.0","id":2,"result":{"action":"decline"}}`)
	c.say(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`)
	c.say(`{"jsonrpc":"2.0","id":1,"result":{"action":"twice"}}`)
	answer := c.call(3, "files__dies", `{}`, `{}`)
	require.Contains(t, answer, "the server files has ended")
	require.Contains(t, answer, "exit status 3")
	require.Contains(t, answer, "Nobody can tell")
	require.Contains(t, c.call(4, "the_mail__append", `{}`, `{}`), "done")
	require.Contains(t, c.call(5, "files__append", `{}`, `{}`), "was not made")
	require.Equal(t, []string{"asks {}", `answer "q" {"action":"decline"}`, "append {}"}, r.callsIn("mail"))
	require.Equal(t, []string{"asks {}", `answer "q" {"action":"accept"}`, "dies {}"}, r.callsIn("files"))
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.ended)
	states, _ := r.answersOf()
	require.Contains(t, states, receipt.StateInDoubt)
}

// Pages of lists are those of all servers; names that are too long for models, and addresses, lead to whose they are.
func TestListsOfSeveralServersAreOne(t *testing.T) {
	s := newStage(t)
	r := s.start()
	long := strings.Repeat("long", 20)
	servers := make([]gateway.GroupServer, 2)
	for i := range servers {
		site := newSite(t)
		servers[i] = gateway.GroupServer{Name: fmt.Sprintf("s%d", i), URL: site.URL}
		site.answersBy(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct {
					Name, URI, Cursor string
					Ref               struct{ Name string }
				}
			}
			_ = json.Unmarshal(body, &m)
			at, result := fmt.Sprintf("s%d", i), `{}`
			switch m.Method {
			case "initialize":
				result = fmt.Sprintf(`{"protocolVersion":"2025-0%d-18","capabilities":{"prompts":{"x":%d}},"serverInfo":{"name":"t","version":"1"},"instructions":"I am %s"}`, 6-i, i, at)
			case "tools/list":
				result = `{"tools":[{"name":"` + long + `"}],"nextCursor":"more"}`
				if m.Params.Cursor != "" {
					result = `{"tools":[{"name":"` + m.Params.Cursor + `"}]}`
				} else if i == 1 {
					result = `{"tools":[{"name":"` + long + `"}]}`
				}
			case "prompts/list":
				result = `{"prompts":[{"name":"p"}]}`
			case "resources/list":
				result = `{"resources":[{"uri":"x://both"},{"uri":"x://` + at + `"}]}`
			case "resources/read":
				if m.Params.URI == "x://unlisted" && i == 0 {
					_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"not here"}}`, m.ID)
					return
				}
				result = `{"contents":"of ` + at + `"}`
			case "tools/call", "prompts/get":
				result = fmt.Sprintf(`{"content":[{"type":"text","text":"%s of %s"}]}`, m.Params.Name, at)
			case "completion/complete":
				result = fmt.Sprintf(`{"completion":"%s of %s"}`, m.Params.Ref.Name, at)
			case "notifications/initialized":
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		})
	}
	c := r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: servers}).Run(context.Background())
	})
	hello := c.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	for _, part := range []string{`"protocolVersion":"2025-05-18"`, `"prompts":{"x":1}`, `"listChanged":true`, `s0__*: I am s0\ns1__*: I am s1`} {
		require.Contains(t, hello, part)
	}
	page := c.ask(1, "tools/list", `{}`)
	names := listed(t, page, "tools", "name")
	require.Len(t, names, 2)
	require.NotEqual(t, names[0][len(names[0])-8:], names[1][len(names[1])-8:])
	for i, name := range names {
		require.LessOrEqual(t, len("mcp__all__"+name), 64)
		require.Contains(t, c.call(2, name, `{}`, `{}`), long+fmt.Sprintf(" of s%d", i))
	}
	var next struct{ Result struct{ NextCursor string } }
	require.NoError(t, json.Unmarshal([]byte(page), &next))
	params, err := json.Marshal(map[string]string{"cursor": next.Result.NextCursor})
	require.NoError(t, err)
	page = c.ask(3, "tools/list", string(params))
	require.Equal(t, []string{"s0__more"}, listed(t, page, "tools", "name"))
	require.NotContains(t, page, "nextCursor")
	require.Contains(t, c.ask(3, "tools/list", `{"cursor":"made up"}`), "of no list")
	require.Equal(t, []string{"s0__p", "s1__p"}, listed(t, c.ask(4, "prompts/list", `{}`), "prompts", "name"))
	require.Contains(t, c.ask(5, "prompts/get", `{"name":"s1__p"}`), "p of s1")
	require.Contains(t, c.ask(6, "completion/complete", `{"ref":{"type":"ref/prompt","name":"s1__p"},"argument":{"name":"a","value":""}}`), "p of s1")
	require.Equal(t, []string{"x://both", "x://s0", "x://s1"}, listed(t, c.ask(7, "resources/list", `{}`), "resources", "uri"))
	for id, uri := range []string{"x://both of s0", "x://s0 of s0", "x://s1 of s1", "x://unlisted of s1"} {
		uri, of, _ := strings.Cut(uri, " ")
		require.Contains(t, c.ask(10+id, "resources/read", `{"uri":"`+uri+`"}`), of)
	}
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.ended)
}

// A server that is slow to start holds nobody up: its client hears of it when it is there.
func TestASlowServerOfSeveralComesLater(t *testing.T) {
	s := newStage(t)
	r := s.start()
	slow, fast := newSite(t), newSite(t)
	begun := make(chan struct{})
	slow.answersBy(func(w http.ResponseWriter, r *http.Request) {
		<-begun
		body, _ := io.ReadAll(r.Body)
		slow.serve(w, body)
	})
	c := r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: []gateway.GroupServer{
			{Name: "fast", URL: fast.URL}, {Name: "slow", URL: slow.URL},
		}}).With(100 * time.Millisecond).Run(context.Background())
	})
	c.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	require.Equal(t, []string{"fast__append"}, listed(t, c.ask(1, "tools/list", `{}`), "tools", "name"))
	close(begun)
	require.Contains(t, <-c.lines, "notifications/tools/list_changed")
	require.Equal(t, []string{"fast__append", "slow__append"}, listed(t, c.ask(2, "tools/list", `{}`), "tools", "name"))
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.ended)
}

// What a server of several says in the place of an answer, such as that it wants another password, its client reads.
func TestAServerOfSeveralSaysWhyItDoesNotAnswer(t *testing.T) {
	r, site := newStage(t).start(), newSite(t)
	site.answersBy(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) })
	c := r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: []gateway.GroupServer{{Name: "web", URL: site.URL}}}).Run(context.Background())
	})
	answer := c.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	require.Contains(t, answer, `"error"`)
	require.Contains(t, answer, "the server web has not answered: status 401")
	require.Contains(t, answer, "who are you?")
	require.NoError(t, c.in.Close())
}

// Where all servers are slow, their client waits for the first.
func TestAGroupWaitsForItsFirstServer(t *testing.T) {
	r, slow := newStage(t).start(), newSite(t)
	slow.answersBy(func(w http.ResponseWriter, r *http.Request) {
		<-time.After(100 * time.Millisecond) // may be late: a slow server
		body, _ := io.ReadAll(r.Body)
		slow.serve(w, body)
	})
	c := r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: []gateway.GroupServer{{Name: "slow", URL: slow.URL}}}).With(time.Millisecond).Run(context.Background())
	})
	require.Contains(t, c.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`), `"serverInfo"`)
	require.Equal(t, []string{"slow__append"}, listed(t, c.ask(1, "tools/list", `{}`), "tools", "name"))
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.ended)
}

// Servers of a group whose names a client or a person takes for one another are refused.
func TestServersOfAGroupHaveNamesOfTheirOwn(t *testing.T) {
	for _, names := range [][]string{{"a.b", "a_b"}, {"A", "a"}, {"a-b", "a_b"}, {"a_", "a"}, {"a__b", "a_b"}, {"_"}} {
		var servers []gateway.GroupServer
		for _, name := range names {
			servers = append(servers, gateway.GroupServer{Name: name, URL: "http://127.0.0.1:1"})
		}
		require.ErrorContains(t, (&gateway.Group{Name: "all", Servers: servers}).Run(t.Context()), "needs another name", names)
	}
}

// A task is asked about where it is: the others do not know it, whatever they answer. What all servers of a group lack is said of each.
func TestATaskOfSeveralServersIsThatOfItsServer(t *testing.T) {
	r := newStage(t, allowTools, needPerson).start()
	file := func(name string) string { return filepath.Join(r.dir, "..", name) }
	c := r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: []gateway.GroupServer{
			{Name: "files", Command: r.program(file("files"))}, {Name: "mail", Command: r.program(file("mail"))}, {Name: "dead", Command: r.program("", "/does/not/exist")},
		}}).Run(context.Background())
	})
	c.say(hello, knowsTasks)
	require.Contains(t, c.hear(), `"list":{}`)
	for id, server := range []string{"files", "mail"} {
		c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__append","arguments":{},"task":{}}}`, id, server)
		one := taskIn(t, c.hear(), "task")
		require.Contains(t, c.askTask(10, "tasks/update", one.ID), `"result"`)
		require.Contains(t, c.askTask(11, "tasks/none", one.ID), `"code":-32601`)
		require.Equal(t, "cancelled", taskIn(t, c.askTask(12, "tasks/cancel", one.ID), "").Status)
		require.Contains(t, c.askTask(13, "tasks/cancel", one.ID), "the task has ended")
		require.Contains(t, c.askTask(14, "tasks/result", one.ID), "the task was cancelled")
		require.Contains(t, c.askTask(15, "tasks/get", "none"), "no such task")
	}
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.ended)
}

// Where no server of a group is there, its client is told of each.
func TestAllServersThatAreNotThereAreNamed(t *testing.T) {
	r := newStage(t).start()
	c := r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: []gateway.GroupServer{
			{Name: "one", Command: r.program("", "/does/not/exist")}, {Name: "two", Command: r.program("", "/nor/this")},
		}}).Run(context.Background())
	})
	select {
	case err := <-c.ended:
		require.Fail(t, "it ends before its client has asked", err)
	case <-time.After(50 * time.Millisecond): // both have ended by then
	}
	answer := c.ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	require.Contains(t, answer, `"error"`)
	for _, part := range []string{"the server one has ended", "/does/not/exist", "the server two has ended", "/nor/this"} {
		require.Contains(t, answer, part)
	}
}

// A server that does not end though its client has gone holds nobody up: it is ended.
func TestAServerThatDoesNotEndIsEnded(t *testing.T) {
	r := newStage(t).start()
	c := r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: []gateway.GroupServer{
			{Name: "slow", Command: exec.Command("sleep", "300")},
		}}).Run(context.Background())
	})
	c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	require.NoError(t, c.in.Close())
	select {
	case err := <-c.ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for the server")
	}
}

// Several servers are one over HTTP, too: each client has a session, in which a request that is made again since its stream broke
// is not made twice. Who does not know the address finds nothing.
func TestSeveralServersAreOneOverHTTP(t *testing.T) {
	r := newStage(t).start()
	one, two := newSite(t), newSite(t)
	on, err := gateway.Listen("127.0.0.1:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		site := gateway.GroupSite{Name: "all", New: func() (*gateway.Group, error) {
			return &gateway.Group{URL: r.url("mcp", ""), Name: "all", Servers: []gateway.GroupServer{{Name: "one", URL: one.URL}, {Name: "two", URL: two.URL}}}, nil
		}}
		ended <- site.Serve(ctx, on, func(url string) { address <- url })
	}()
	at := <-address
	first, text := r.sendTo(ctx, http.MethodPost, at, fmt.Sprintf(hello, `{}`), "Mcp-Session-Id", "")
	require.Contains(t, text, `"serverInfo"`)
	session := first.Header.Get("Mcp-Session-Id")
	ask := func(ctx context.Context, id int, method, params string) string {
		_, text := r.sendTo(ctx, http.MethodPost, at, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), "Mcp-Session-Id", session)
		return text
	}
	require.Equal(t, []string{"one__append", "two__append"}, listed(t, ask(ctx, 1, "tools/list", `{}`), "tools", "name"))
	require.Contains(t, ask(ctx, 2, "tools/call", `{"name":"two__append","arguments":{"a":1}}`), "done")
	require.Equal(t, []string{`append {"a":1}`}, two.calls())

	reached, goOn := make(chan bool), make(chan bool)
	one.answersBy(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reached <- true
		<-goOn
		one.serve(w, body)
	})
	broken, breaks := context.WithCancel(ctx)
	go func() {
		<-reached
		breaks()
	}()
	ask(broken, 3, "tools/call", `{"name":"one__append","arguments":{},"_meta":{"x":1}}`)
	again := make(chan string, 1)
	go func() { again <- ask(ctx, 5, "tools/call", `{"name":"one__append","arguments":{},"_meta":{"x":2}}`) }()
	goOn <- true
	require.Contains(t, <-again, `"id":5,"result"`)
	require.Equal(t, []string{"append {}"}, one.calls())
	one.by.Store(nil)

	for origin, status := range origins {
		said, _ := r.sendTo(ctx, http.MethodPost, at, `{"jsonrpc":"2.0","id":8,"method":"ping"}`, "Mcp-Session-Id", session, "Origin", origin)
		require.Equal(t, status, said.StatusCode, origin)
	}
	for _, of := range []struct {
		method, at, session string
		status              int
	}{
		{http.MethodPost, at, "", http.StatusBadRequest},
		{http.MethodPost, at, "other", http.StatusNotFound},
		{http.MethodGet, at, "other", http.StatusNotFound},
		{http.MethodPost, at + "x", session, http.StatusNotFound},
		{http.MethodPut, at, session, http.StatusMethodNotAllowed},
		{http.MethodDelete, at, session, http.StatusOK},
		{http.MethodPost, at, session, http.StatusNotFound},
	} {
		said, _ := r.sendTo(ctx, of.method, of.at, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, "Mcp-Session-Id", of.session)
		require.Equal(t, of.status, said.StatusCode, of)
	}
	end()
	require.NoError(t, <-ended)
	_, err = gateway.Listen(":0")
	require.Error(t, err, "others could reach it")
}
