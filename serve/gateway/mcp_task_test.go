package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/gateway"
)

const (
	knowsTasks = `{"tasks":{}}`
	newTasks   = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	callTask   = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"append","arguments":{"a":1},"task":{"ttl":60000}}}`
)

// taskSaid is a task as a client reads it, of both eras.
type taskSaid struct {
	ID         string          `json:"taskId"`
	Status     string          `json:"status"`
	Message    string          `json:"statusMessage"`
	Created    time.Time       `json:"createdAt"`
	Updated    time.Time       `json:"lastUpdatedAt"`
	Poll       int             `json:"pollInterval"`
	PollMs     int             `json:"pollIntervalMs"`
	ResultType string          `json:"resultType"`
	Result     json.RawMessage `json:"result"`
	Error      json.RawMessage `json:"error"`
}

// taskIn returns the task in an answer, where it is at a key or is the result.
func taskIn(t *testing.T, answer, key string) (said taskSaid) {
	t.Helper()
	var m struct {
		Result json.RawMessage `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &m), answer)
	if key != "" {
		of := make(map[string]json.RawMessage)
		require.NoError(t, json.Unmarshal(m.Result, &of), answer)
		m.Result = of[key]
	}
	require.NoError(t, json.Unmarshal(m.Result, &said), answer)
	return said
}

func (c *client) askTask(id int, method, task string) string {
	c.t.Helper()
	c.say(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"taskId":%q}}`, id, method, task)
	return c.hear()
}

// A client of the protocol with sessions that knows tasks is told that calls can be tasks. What it calls so is answered at once; it
// asks what became of the call, and a repeated call is the same task. The call is made once.
func TestACallThatWaitsIsATask(t *testing.T) {
	r := newStage(t, allowTools, needPerson).start()
	c := r.connect("files")
	c.say(hello, knowsTasks)
	require.Contains(t, c.hear(), `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
	c.say(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	require.Contains(t, c.hear(), `"execution":{"taskSupport":"optional"}`)

	c.say(callTask, 1)
	one := taskIn(t, c.hear(), "task")
	require.Equal(t, "working", one.Status)
	require.Contains(t, one.Message, "intent approve ")
	require.NotZero(t, one.Poll)
	require.WithinDuration(t, time.Now(), one.Created, time.Minute)
	require.Equal(t, one.ID, taskIn(t, c.askTask(2, "tasks/get", one.ID), "").ID)
	c.say(callTask, 3)
	require.Equal(t, one.ID, taskIn(t, c.hear(), "task").ID, "the repeated call joins")
	c.say(`{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":%q}}`, one.ID)
	r.approve()
	result := c.hear()
	require.Contains(t, result, `"id":4,`)
	require.Contains(t, result, `"text":"done"`)
	require.Contains(t, result, fmt.Sprintf(`"io.modelcontextprotocol/related-task":{"taskId":%q}`, one.ID))
	require.Equal(t, "completed", taskIn(t, c.askTask(5, "tasks/get", one.ID), "").Status)
	require.Contains(t, c.askTask(6, "tasks/cancel", one.ID), `"code":-32602`, "it has ended")
	require.Equal(t, []string{`append {"a":1}`}, c.calls())

	c.say(callTask, 7)
	two := taskIn(t, c.hear(), "task")
	require.NotEqual(t, one.ID, two.ID, "another call, since the first was answered")
	c.say(`{"jsonrpc":"2.0","id":8,"method":"tasks/list"}`)
	list := c.hear()
	require.Contains(t, list, one.ID)
	require.Contains(t, list, two.ID)
	require.Equal(t, "cancelled", taskIn(t, c.askTask(9, "tasks/cancel", two.ID), "").Status)
	require.Equal(t, "cancelled", taskIn(t, c.askTask(10, "tasks/get", two.ID), "").Status)
	require.Contains(t, c.askTask(11, "tasks/result", two.ID), "cancelled")
	require.Eventually(t, func() bool { return r.states()[receipt.StateDenied] == 1 }, time.Minute, time.Millisecond, "nobody is asked about it any more")
	require.Len(t, c.calls(), 1)

	other := r.connect("others")
	other.say(hello, knowsTasks)
	other.hear()
	require.Contains(t, other.askTask(1, "tasks/get", one.ID), "no such task", "it is a task of another server")
	require.Contains(t, other.askTask(2, "tasks/get", "theirs"), "no such task", "the server has said that it has none")

	require.NoError(t, os.WriteFile(other.file+".tasks", nil, 0o600))
	owns := r.connect("owns")
	require.Contains(t, owns.askTask(1, "tasks/get", "theirs"), `"method":"tasks/get"`, "it has not said whether it has any")
	owns.say(hello, knowsTasks)
	owns.hear()
	require.Contains(t, owns.askTask(2, "tasks/get", "theirs"), `"method":"tasks/get"`, "a task of the server is the server's")
}

// A call that nobody has to approve is a task as well where its client wants that. An equal one beside it is another call.
func TestATaskThatNobodyApproves(t *testing.T) {
	r := newStage(t).start()
	c := r.connect("files")
	c.say(hello, knowsTasks)
	c.hear()
	c.say(callTask, 1)
	one := taskIn(t, c.hear(), "task")
	c.say(callTask, 2)
	two := taskIn(t, c.hear(), "task")
	require.NotEqual(t, one.ID, two.ID)
	require.Contains(t, c.askTask(3, "tasks/result", one.ID), "done")
	require.Contains(t, c.askTask(4, "tasks/result", two.ID), "done")
	require.Len(t, c.calls(), 2)
	c.say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"fails","task":{}}}`)
	failed := taskIn(t, c.hear(), "task")
	require.Contains(t, c.askTask(6, "tasks/result", failed.ID), `"isError":true`)
	require.Equal(t, "failed", taskIn(t, c.askTask(7, "tasks/get", failed.ID), "").Status)
	require.Equal(t, 3, r.stop().ToolCalls)
}

// A client that knows no tasks gets none, and is told of none.
func TestWhoKnowsNoTasksGetsNone(t *testing.T) {
	r := newStage(t, allowTools, needPerson).start()
	c := r.connect("files?hold=1ms")
	c.hello()
	c.say(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	require.NotContains(t, c.hear(), "taskSupport")
	require.Contains(t, c.call(1, "append", `{"a":1}`, fmt.Sprintf(noSession, `{}`)), "intent approve ")
}

// In the protocol without sessions a call becomes a task once it waits for longer than its client does, over either way in.
func TestACallWithoutASessionBecomesATask(t *testing.T) {
	r := newStage(t, allowTools, needPerson).start()
	c := r.connect("files?hold=1ms")
	meta := fmt.Sprintf(noSession, newTasks)
	ask := func(method, id string) taskSaid {
		c.say(`{"jsonrpc":"2.0","id":9,"method":%q,"params":{"taskId":%q,"_meta":%s}}`, method, id, meta)
		return taskIn(t, c.hear(), "")
	}
	one := taskIn(t, c.call(1, "append", `{"a":1}`, meta), "")
	require.Equal(t, "task", one.ResultType)
	require.Equal(t, "working", one.Status)
	require.NotZero(t, one.PollMs)
	require.Equal(t, one.ID, taskIn(t, c.call(2, "append", `{"a":1}`, meta), "").ID, "the repeated call joins")
	require.Equal(t, "complete", ask("tasks/get", one.ID).ResultType)
	require.Equal(t, "complete", ask("tasks/update", one.ID).ResultType)
	r.approve()
	require.Eventually(t, func() bool { return ask("tasks/get", one.ID).Status == "completed" }, time.Minute, time.Millisecond)
	require.Contains(t, string(ask("tasks/get", one.ID).Result), "done")
	require.Equal(t, []string{`append {"a":1}`}, c.calls())

	for _, method := range []string{"tasks/list", "tasks/result"} { // only the protocol with sessions has them
		c.say(`{"jsonrpc":"2.0","id":9,"method":%q,"params":{"taskId":%q,"_meta":%s}}`, method, one.ID, meta)
		require.Contains(t, c.hear(), `{"method":"`+method, "the server answers")
	}

	faults := taskIn(t, c.call(3, "faults", `{}`, meta), "")
	r.approve()
	require.Eventually(t, func() bool { return ask("tasks/get", faults.ID).Status == "failed" }, time.Minute, time.Millisecond)
	require.Contains(t, string(ask("tasks/get", faults.ID).Error), "unknown tool")
}

// Likewise over HTTP; and a server that has tasks of its own keeps them.
// Of two clients of a server over HTTP each is judged by what it has said itself, whichever has begun first.
func TestEachSessionOverHTTPHasItsOwnClient(t *testing.T) {
	r, files := newStage(t).start(), newSite(t)
	at := r.reach(files.URL)
	files.answersBy(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		if !bytes.Contains(body, []byte("initialize")) {
			files.serve(w, body)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", map[bool]string{true: "knows", false: "does not"}[bytes.Contains(body, []byte(knowsTasks))])
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"tools":{}},"serverInfo":{"name":"t"}}}`)
	})
	for _, order := range [][]string{{knowsTasks, "{}"}, {"{}", knowsTasks}} {
		for _, can := range order {
			r.sendTo(t.Context(), http.MethodPost, at, fmt.Sprintf(hello, can), "Mcp-Session-Id", "")
		}
		for session, knows := range map[string]bool{"knows": true, "does not": false} {
			_, text := r.sendTo(t.Context(), http.MethodPost, at, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", session)
			require.Contains(t, text, "append")
			require.Equal(t, knows, strings.Contains(text, `"taskSupport":"optional"`), "%s after %s", session, order)
		}
	}
}

func TestTasksOverHTTP(t *testing.T) {
	r, files := newStage(t, allowTools, needPerson).start(), newSite(t)
	at := r.reach(files.URL)
	require.Contains(t, r.say(at, hello, knowsTasks), `"tasks":{"list":{}`)
	require.Contains(t, r.say(at, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), `"taskSupport":"optional"`)
	one := taskIn(t, r.say(at, callTask, 2), "task")
	result := make(chan string)
	go func() {
		result <- r.say(at, `{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":%q}}`, one.ID)
	}()
	r.approve()
	require.Contains(t, <-result, "done")
	require.Equal(t, []string{`append {"a":1}`}, files.calls())

	files.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"tasks":{"requests":{}}},"serverInfo":{"name":"t"}}}`)
	})
	own := gateway.WebURL(r.url("mcp", ""), "own", files.URL)
	sameBytes(t, `{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"tasks":{"requests":{}}},"serverInfo":{"name":"t"}}}`, r.say(own, hello, knowsTasks))
}
