package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/gateway"
)

// A server that says of itself what nobody expects takes nobody with it, where its client knows tasks.
func TestOddListsOfToolsPass(t *testing.T) {
	r, files := newStage(t).start(), newSite(t)
	at := r.reach(files.URL)
	require.Contains(t, r.say(at, hello, knowsTasks), `"tasks":{"list":{}`)
	for _, result := range []string{
		`{"tools":[null,{"name":"a"}]}`, `{"tools":[1,"x",[]]}`, `{"tools":[{"name":"a","execution":1}]}`, `{"tools":null}`, `{"tools":{}}`, `{}`, `[]`, `1`,
	} {
		files.answersBy(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":5,"result":`+result+`}`)
		})
		require.Contains(t, r.say(at, `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`), `"result":`, result)
	}
}

// Tasks are bounded: what has ended and was told so makes room, and more than that are refused before anything is made. What its
// client has cancelled stays so, though the model's call is made again.
func TestTasksAreBounded(t *testing.T) {
	const most = 1000
	r := newStage(t, allowTools, needPerson).start()
	c := r.connect("files")
	c.say(hello, knowsTasks)
	c.hear()
	call := func(id int) {
		c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"append","arguments":{"a":%d},"_meta":%s,"task":{}}}`, id, id, use(fmt.Sprint(id)))
	}
	go func() {
		for id := range most {
			call(id)
		}
	}()
	var one taskSaid
	for range most {
		one = taskIn(t, c.hear(), "task")
	}
	call(most)
	require.Contains(t, c.hear(), "more than 1000 tasks")
	require.Equal(t, most, r.states()[receipt.StateAwaitingApproval])
	require.Equal(t, "cancelled", taskIn(t, c.askTask(9000, "tasks/cancel", one.ID), "").Status)
	call(most)
	require.Equal(t, "working", taskIn(t, c.hear(), "task").Status)
	require.Contains(t, c.askTask(9001, "tasks/get", one.ID), "no such task")
}

// A task that its client has cancelled stays so, though the model's call is made again.
func TestACancelledTaskStaysSo(t *testing.T) {
	r := newStage(t, allowTools, needPerson).start()
	c := r.connect("files")
	c.say(hello, knowsTasks)
	c.hear()
	var ids []string
	for id := range 2 {
		c.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"append","_meta":%s,"task":{}}}`, id, use("u"))
		ids = append(ids, taskIn(t, c.hear(), "task").ID)
		require.Contains(t, c.askTask(10+id, "tasks/cancel", ids[id]), []string{`"cancelled"`, "has ended"}[id])
	}
	require.Equal(t, ids[0], ids[1])
	require.Equal(t, "cancelled", taskIn(t, c.askTask(20, "tasks/get", ids[0]), "").Status)
}

// groupSite has several servers served as one over HTTP.
func (r *run) groupSite(servers ...gateway.GroupServer) (at string) {
	r.t.Helper()
	on, err := gateway.Listen("127.0.0.1:0")
	require.NoError(r.t, err)
	ctx, end := context.WithCancel(context.Background())
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		site := gateway.GroupSite{Name: "all", New: func() (*gateway.Group, error) {
			fresh := slices.Clone(servers)
			for i, of := range fresh {
				if of.Command != nil { // one that was not started
					cmd := *of.Command
					fresh[i].Command = &cmd
				}
			}
			return &gateway.Group{URL: r.url("mcp", ""), Name: "all", Servers: fresh}, nil
		}}
		ended <- site.Serve(ctx, on, func(url string) { address <- url })
	}()
	r.t.Cleanup(func() {
		end()
		require.NoError(r.t, <-ended)
	})
	return <-address
}

// Who cancels a request and makes it again is not given what never comes; the same id is that of another request then, and one
// whose answer nobody has fetched holds no id.
func TestARequestOfSeveralServersIsCancelledOverHTTP(t *testing.T) {
	r, one := newStage(t).start(), newSite(t)
	at := r.groupSite(gateway.GroupServer{Name: "one", URL: one.URL})
	first, _ := r.sendTo(t.Context(), http.MethodPost, at, fmt.Sprintf(hello, `{}`), "Mcp-Session-Id", "")
	session := first.Header.Get("Mcp-Session-Id")
	ask := func(ctx context.Context, format string, args ...any) (int, string) {
		said, text := r.sendTo(ctx, http.MethodPost, at, fmt.Sprintf(format, args...), "Mcp-Session-Id", session)
		return said.StatusCode, text
	}
	const append1 = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"one__append"}}`
	reached, goOn := make(chan bool), make(chan bool)
	one.answersBy(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "tools/call") {
			reached <- true
			<-goOn
		}
		one.serve(w, body)
	})
	status := make(chan int, 1)
	go func() {
		code, _ := ask(t.Context(), append1, 1)
		status <- code
	}()
	<-reached
	_, _ = ask(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	require.Equal(t, http.StatusAccepted, <-status)
	goOn <- true
	one.by.Store(nil)
	_, text := ask(t.Context(), append1, 3)
	require.Contains(t, text, "done")

	broken, breaks := context.WithCancel(t.Context())
	one.answersBy(func(w http.ResponseWriter, r *http.Request) {
		breaks()
		<-time.After(50 * time.Millisecond) // its client has gone by then
		body, _ := io.ReadAll(r.Body)
		one.serve(w, body)
	})
	_, _ = ask(broken, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	require.Eventually(t, func() bool {
		_, text := ask(t.Context(), `{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"one__p"}}`)
		return strings.Contains(text, `"result"`)
	}, time.Minute, time.Millisecond)
}

// Sessions whose clients have gone without a word make room for others, and those that are used do not.
func TestSessionsThatAreLeftMakeRoom(t *testing.T) {
	r, one := newStage(t).start(), newSite(t)
	at := r.groupSite(gateway.GroupServer{Name: "one", URL: one.URL})
	begin := func() string {
		said, text := r.sendTo(t.Context(), http.MethodPost, at, fmt.Sprintf(hello, `{}`), "Mcp-Session-Id", "")
		require.Equal(t, http.StatusOK, said.StatusCode, text)
		return said.Header.Get("Mcp-Session-Id")
	}
	used, left := begin(), begin()
	ping := func(session string) int {
		said, _ := r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, "Mcp-Session-Id", session)
		return said.StatusCode
	}
	for range 63 {
		begin()
		require.Equal(t, http.StatusOK, ping(used))
	}
	require.Equal(t, http.StatusNotFound, ping(left))
}

// What a server of several says while it is asked reaches a client that listens to nothing but the answer, before it.
func TestWhatAServerOfSeveralAsksComesWithTheAnswer(t *testing.T) {
	r := newStage(t).start()
	at := r.groupSite(gateway.GroupServer{Name: "one", Command: r.program(filepath.Join(t.TempDir(), "calls"))})
	first, _ := r.sendTo(t.Context(), http.MethodPost, at, fmt.Sprintf(hello, `{}`), "Mcp-Session-Id", "")
	_, text := r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__asks"}}`, "Mcp-Session-Id", first.Header.Get("Mcp-Session-Id"))
	require.Regexp(t, `(?s)"elicitation/create".*notifications/progress.*"id":1,"result"`, text)
}

// A server over HTTP of several is listened to before it is asked anything: what it says to nobody is lost.
func TestAServerOfSeveralIsListenedToBeforeItIsAsked(t *testing.T) {
	r, files := newStage(t).start(), newSite(t)
	var listened atomic.Bool
	files.answersBy(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		switch {
		case q.Method == http.MethodGet:
			listened.Store(true)
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.Contains(string(body), "notifications/initialized"):
			<-time.After(50 * time.Millisecond) // the next one comes meanwhile
			w.WriteHeader(http.StatusAccepted)
		case strings.Contains(string(body), "prompts/get") && !listened.Load():
			w.WriteHeader(http.StatusInternalServerError)
		default:
			files.serve(w, body)
		}
	})
	c := r.group(files)
	c.hello()
	require.Contains(t, c.ask(1, "prompts/get", `{"name":"web__p"}`), `"result"`)
}

// Over HTTP as well the client of servers that are not there is told so of each, and of a message that is too long.
func TestSeveralServersThatAreNotThereAreNamedOverHTTP(t *testing.T) {
	r := newStage(t).start()
	at := r.groupSite(gateway.GroupServer{Name: "one", Command: r.program("", "/does/not/exist")}, gateway.GroupServer{Name: "two", Command: r.program("", "/nor/this")})
	for range 5 {
		_, text := r.sendTo(t.Context(), http.MethodPost, at, fmt.Sprintf(hello, `{}`), "Mcp-Session-Id", "")
		require.Contains(t, text, "the server one has ended")
		require.Contains(t, text, "the server two has ended")
	}
	c := r.group(newSite(t))
	c.say(`{"jsonrpc":"2.0","id":7,"method":"x","params":{"p":"%s"}}`, strings.Repeat("x", 17<<20))
	require.Contains(t, c.hear(), `"id":7,"error"`)
}

// Who begins a session is remembered for as long as there are few of these, and whoever is forgotten is not taken for another client.
func TestAClientThatIsForgottenIsNotTakenForAnother(t *testing.T) {
	r, files := newStage(t, allowTools, needPerson).start(), newSite(t)
	at, n := r.reach(files.URL), 0
	files.answersBy(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		if n++; strings.Contains(string(body), "initialize") {
			w.Header().Set("Mcp-Session-Id", fmt.Sprint("n", n))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"capabilities":{},"tools":[{"name":"a"}]}}`)
	})
	begin := func(can string) string {
		said, _ := r.sendTo(t.Context(), http.MethodPost, at, fmt.Sprintf(hello, can), "Mcp-Session-Id", "")
		return said.Header.Get("Mcp-Session-Id")
	}
	knows := func(session string) bool {
		_, text := r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","id":0,"method":"tools/list"}`, "Mcp-Session-Id", session)
		return strings.Contains(text, "taskSupport")
	}
	var sessions []string
	for range 10_050 {
		sessions = append(sessions, begin(`{}`))
	}
	last := begin(knowsTasks)
	require.True(t, knows(last), "the last is remembered")
	for _, session := range sessions[:100] {
		require.False(t, knows(session))
	}
	require.False(t, knows("of before"))
	r.sendTo(t.Context(), http.MethodDelete, at, "", "Mcp-Session-Id", last)
	require.False(t, knows(last), "it has ended")
}

// A result of several lines is one line for who gets it in a stream, or over stdio.
func TestAResultOfSeveralLinesIsOneMessage(t *testing.T) {
	r, files := newStage(t).start(), newSite(t)
	at := r.reach(files.URL)
	files.answersBy(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":{\ndata:   \"content\":[]\ndata: }}\n\n", m.ID)
	})
	lines := strings.Split(r.callAt(at, 1, "append", `{}`, `{}`), "\n")
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, lines[len(lines)-1])
}

// A server over HTTP of several that starts anew knows no session of before: its client, which cannot know, goes on.
func TestAServerOfSeveralThatStartsAnewIsReachedAgain(t *testing.T) {
	r, files := newStage(t).start(), newSite(t)
	var session, begun atomic.Int64
	files.answersBy(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), `"initialize"`):
			begun.Add(1)
			files.serve(w, body)
			return
		case r.Header.Get("Mcp-Session-Id") != fmt.Sprint("s", session.Load()):
			w.WriteHeader(http.StatusNotFound)
			return
		}
		files.serve(w, body)
	})
	by := files.by.Load()
	files.answersBy(func(w http.ResponseWriter, r *http.Request) { (*by)(&named{w, &session}, r) })
	c := r.piped("", func(in io.Reader, out io.Writer) error {
		return (&gateway.Group{URL: r.url("mcp", ""), Name: "all", Client: in, Out: out, Servers: []gateway.GroupServer{{Name: "files", URL: files.URL}}}).Run(context.Background())
	})
	c.say(hello, `{}`)
	require.Contains(t, c.hear(), `"serverInfo"`)
	require.Contains(t, c.call(1, "files__append", `{"n":1}`, `{}`), "done")
	session.Add(1)
	require.Contains(t, c.call(2, "files__append", `{"n":2}`, `{}`), "done")
	require.Contains(t, c.ask(3, "tools/list", `{}`), "files__append")
	require.Equal(t, []string{`append {"n":1}`, `append {"n":2}`}, files.calls())
	require.EqualValues(t, 2, begun.Load())
	require.NoError(t, c.in.Close())
	require.NoError(t, <-c.ended)
}

// named has the session of answers be the one that counts.
type named struct {
	http.ResponseWriter
	session *atomic.Int64
}

func (n *named) Write(p []byte) (int, error) {
	if n.Header().Get("Mcp-Session-Id") != "" {
		n.Header().Set("Mcp-Session-Id", fmt.Sprint("s", n.session.Load()))
	}
	return n.ResponseWriter.Write(p)
}
