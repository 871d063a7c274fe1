//go:build unix

package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// taskServer answers as a server of 2025-11-25 with tasks does, written by hand. What
// the argument end of a call says becomes of its task; it is at work for some questions.
type taskServer struct {
	mu     sync.Mutex
	called map[string]int // by method
	params map[string]json.RawMessage
	tasks  map[string]string // what becomes of them
	polled map[string]int
	asking int           // calls that are to ask, see together
	all    chan struct{} // closed when these are enough
}

// polls are the questions about a task that such a server answers with working.
const polls = 2

func newTaskServer() *taskServer {
	return &taskServer{called: map[string]int{}, params: map[string]json.RawMessage{}, tasks: map[string]string{}, polled: map[string]int{}, all: make(chan struct{})}
}

// together waits until so many calls do.
func (s *taskServer) together(calls int) {
	s.mu.Lock()
	if s.asking++; s.asking == calls {
		close(s.all)
	}
	s.mu.Unlock()
	<-s.all
}

func (s *taskServer) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.called[method]
}

// answer answers a request; empty: there is none. elicit asks the client.
func (s *taskServer) answer(line []byte, elicit func(params string) (answer string)) string {
	var msg struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if json.Unmarshal(line, &msg) != nil || msg.ID == nil || msg.Method == "" {
		return ""
	}
	s.mu.Lock()
	s.called[msg.Method]++
	s.params[msg.Method] = msg.Params
	s.mu.Unlock()
	result, fault := s.result(msg.Method, msg.Params, elicit)
	if fault != "" {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, msg.ID, fault)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
}

func (s *taskServer) result(method string, params json.RawMessage, elicit func(string) string) (result, fault string) {
	const unknown = `{"code":-32602,"message":"Task not found"}`
	var p struct {
		Task      *struct{ TTL int }
		TaskID    string
		Arguments struct {
			End, Ask string
			Both     int // calls that are to be under way before any asks for the first time
		}
	}
	_ = json.Unmarshal(params, &p)
	s.mu.Lock()
	end, known := s.tasks[p.TaskID]
	s.mu.Unlock()
	switch method {
	case "initialize":
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"t","version":"1"}}`, ""
	case "tools/list":
		return `{"tools":[{"name":"long","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},` +
			`{"name":"either","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},` +
			`{"name":"short","inputSchema":{"type":"object"}}]}`, ""
	case "tools/call":
		if p.Arguments.Ask != "" {
			s.together(p.Arguments.Both)
			return `{"content":[],"structuredContent":{"answer":` + elicit(fmt.Sprintf(`{"message":%q}`, p.Arguments.Ask)) + `}}`, ""
		}
		if p.Task == nil {
			return `{"content":[{"type":"text","text":"at once"}]}`, ""
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		id := fmt.Sprintf("t-%d", len(s.tasks)+1)
		s.tasks[id] = p.Arguments.End
		return fmt.Sprintf(`{"task":{"taskId":%q,"status":"working","statusMessage":"begun","createdAt":"x","lastUpdatedAt":"x","ttl":1000,"pollInterval":50}}`, id), ""
	case "tasks/get", "tasks/cancel":
		if !known || end == "disappears" {
			return "", unknown
		}
		return s.status(p.TaskID, method == "tasks/cancel"), ""
	case "tasks/result":
		return s.collect(p.TaskID, end, elicit)
	}
	return "", `{"code":-32601,"message":"no such method"}`
}

func (s *taskServer) status(id string, cancel bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel {
		s.tasks[id] = "cancelled"
	}
	status := s.tasks[id]
	if status == "lost" { // with what came of it
		status = "completed"
	}
	s.polled[id]++
	about := id
	switch status {
	case "state of another":
		about, status = "t-0", "completed"
	case "result of another":
		status = "completed"
	}
	if status == "never" || s.polled[id] <= polls && !cancel && status != "cancelled" {
		status = "working"
	}
	if status == "cancelled" {
		return fmt.Sprintf(`{"taskId":%q,"status":%q,"createdAt":"x","lastUpdatedAt":"x","ttl":null,"pollInterval":1}`, about, status)
	}
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"statusMessage":"half","createdAt":"x","lastUpdatedAt":"x","ttl":null,"pollInterval":1}`, about, status)
}

func (s *taskServer) collect(id, end string, elicit func(string) string) (result, fault string) {
	switch end {
	case "input_required":
		answer := elicit(fmt.Sprintf(`{"message":"really?","requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean"}}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}}`, id))
		return `{"content":[],"structuredContent":{"answer":` + answer + `}}`, ""
	case "failed":
		return "", `{"code":-32603,"message":"it broke"}`
	case "lost":
		return "", `{"code":-32602,"message":"Task not found"}`
	case "result of another":
		id = "t-0"
	}
	return `{"content":[{"type":"text","text":"done"}],"structuredContent":{"n":12345678901234567890123},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"` + id + `"}}}`, ""
}

// runTasks is a taskServer on standard streams.
func runTasks(in io.Reader, out io.Writer) {
	s := newTaskServer()
	var mu sync.Mutex
	answers := map[string]chan string{} // by the ids of questions
	write := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(out, line+"\n")
	}
	elicit := func(params string) string {
		mu.Lock()
		id := fmt.Sprintf("q-%d", len(answers))
		answer := make(chan string, 1)
		answers[id] = answer
		mu.Unlock()
		write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"elicitation/create","params":%s}`, id, params))
		return <-answer
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := strings.Clone(lines.Text())
		var r struct {
			ID     any
			Result json.RawMessage
		}
		if json.Unmarshal([]byte(line), &r) == nil && r.Result != nil {
			mu.Lock()
			answers[r.ID.(string)] <- string(r.Result)
			mu.Unlock()
			continue
		}
		go func() {
			if answer := s.answer([]byte(line), elicit); answer != "" {
				write(answer)
			}
		}()
	}
}

// serveTasks is a taskServer over HTTP.
func serveTasks(t testing.TB) (s *taskServer, url string) {
	s = newTaskServer()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := s.answer(body, nil)
		if answer == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s1")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(web.Close)
	return s, web.URL
}

// taskOn begins a task of the tool long, and returns the call that asks about it.
func taskOn(t testing.TB, a host.Adapter, end string) host.Call {
	t.Helper()
	call := callOf(t, "long", `{"end":"`+end+`"}`)
	got, err := a.Perform(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, receipt.OutcomeAccepted, got.Class, "%s", got.Payload)
	accepted, err := receipt.DecodeAccepted(got.Payload)
	require.NoError(t, err)
	require.Equal(t, "working: begun", accepted.Message)
	require.WithinDuration(t, time.Now().Add(taskTTL), time.Unix(0, accepted.Until), time.Hour)
	require.Equal(t, minPoll, got.RetryAfter)
	call.Permit.Attempt, call.Permit.Accepted = 2, accepted.ID
	return call
}

func ask(ctx context.Context, a host.Adapter, call host.Call) (host.Result, error) {
	return a.(host.Accepting).Ask(ctx, call)
}

func TestTaskIsAskedAboutUntilItEnds(t *testing.T) {
	s, url := serveTasks(t)
	for name, config := range map[string]string{"HTTP": `{"url":"` + url + `"}`, "streams": stdioConfig(t, "tasks")} {
		t.Run(name, func(t *testing.T) {
			a := adapterOf(t, setupOf(t, config, manifest.Effect{}))
			got, err := ask(t.Context(), a, taskOn(t, a, "completed"))
			require.NoError(t, err)
			require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
			require.Equal(t, `12345678901234567890123`, at(t, got.Payload, "structured", "n"))
			require.NotZero(t, got.Cost.Bytes)

			got, err = ask(t.Context(), a, taskOn(t, a, "failed"))
			require.NoError(t, err)
			require.Equal(t, receipt.StatusError, got.Status)
			require.Empty(t, got.Class)
			require.Equal(t, `"jsonrpc_-32603"`, at(t, got.Payload, "code"))

			got, err = ask(t.Context(), a, taskOn(t, a, "cancelled"))
			require.NoError(t, err)
			require.Empty(t, got.Class)
			require.Equal(t, `"task_cancelled"`, at(t, got.Payload, "code"))
			require.NotContains(t, at(t, got.Payload, "error"), "its cell")
		})
	}
	require.Equal(t, 3, s.count("tools/call"))
	require.Equal(t, 2, s.count("tasks/result"))
	require.Zero(t, s.count("tasks/cancel"))
	require.Contains(t, string(s.params["tools/call"]), `"task":{"ttl":86400000}`)
	require.Contains(t, string(s.params["tools/call"]), metaKey, "what the SDK writes is there, too")
}

func TestTaskThatIsGoneIsInDoubt(t *testing.T) {
	_, url := serveTasks(t)
	a := adapterOf(t, setupOf(t, `{"url":"`+url+`"}`, manifest.Effect{}))
	for _, end := range []string{"disappears", "lost"} { // lost: it had completed
		_, err := ask(t.Context(), a, taskOn(t, a, end))
		require.ErrorIs(t, err, errNoTask, end)
	}
}

// What a server says of another task is no answer: it is asked again.
func TestAnswerAboutAnotherTaskIsNone(t *testing.T) {
	_, url := serveTasks(t)
	a := adapterOf(t, setupOf(t, `{"url":"`+url+`"}`, manifest.Effect{}))
	for _, end := range []string{"state of another", "result of another"} {
		got, err := ask(t.Context(), a, taskOn(t, a, end))
		require.NoError(t, err)
		require.Equal(t, receipt.OutcomeRetryableFailure, got.Class, "%s: %s", end, got.Payload)
		require.Equal(t, `"not_asked"`, at(t, got.Payload, "code"))
	}
}

func TestServerThatCannotBeAskedIsAskedAgain(t *testing.T) {
	_, url := serveTasks(t)
	config := `{"url":"` + url + `"}`
	call := taskOn(t, adapterOf(t, setupOf(t, config, manifest.Effect{})), "completed")
	gone := httptest.NewServer(nil)
	gone.Close()
	got, err := ask(t.Context(), adapterOf(t, setupOf(t, `{"url":"`+gone.URL+`"}`, manifest.Effect{})), call)
	require.NoError(t, err)
	require.Equal(t, receipt.OutcomeRetryableFailure, got.Class)
	require.Equal(t, `"not_asked"`, at(t, got.Payload, "code"))
}

func TestAskingEndsWithItsContext(t *testing.T) {
	s, url := serveTasks(t)
	a := adapterOf(t, setupOf(t, `{"url":"`+url+`"}`, manifest.Effect{}))
	call := taskOn(t, a, "never")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for s.count("tasks/get") < 2 {
			<-time.After(time.Millisecond)
		}
		cancel()
	}()
	got, err := ask(ctx, a, call)
	require.NoError(t, err)
	require.Equal(t, receipt.OutcomeAccepted, got.Class)
	accepted, err := receipt.DecodeAccepted(got.Payload)
	require.NoError(t, err)
	require.Equal(t, call.Permit.Accepted, accepted.ID)
}

func TestTaskThatNobodyWantsIsCancelled(t *testing.T) {
	s, url := serveTasks(t)
	a := adapterOf(t, setupOf(t, `{"url":"`+url+`"}`, manifest.Effect{}))
	call := taskOn(t, a, "never")
	call.Permit.Unwanted = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := ask(ctx, a, call)
	require.NoError(t, err)
	require.Equal(t, `"task_cancelled"`, at(t, got.Payload, "code"))
	require.Equal(t, `"its cell cancelled it, and the server has cancelled the task"`, at(t, got.Payload, "error"), "the server says no more")
	require.Equal(t, 1, s.count("tasks/cancel"))
}

// A tool that can be a task is one where the config says so, and one that cannot never is.
func TestToolsThatNeedNotBeTasks(t *testing.T) {
	s, url := serveTasks(t)
	for config, tools := range map[string]map[string]bool{
		`{"url":"` + url + `"}`:             {"either": false, "short": false},
		`{"url":"` + url + `","task":true}`: {"either": true, "short": false},
	} {
		a := adapterOf(t, setupOf(t, config, manifest.Effect{}))
		for tool, isTask := range tools {
			got, err := a.Perform(t.Context(), callOf(t, tool, `{}`))
			require.NoError(t, err)
			require.Equal(t, isTask, got.Class == receipt.OutcomeAccepted, tool)
		}
	}
	require.Equal(t, 4, s.count("tools/call"))
}

func TestTaskThatAsksGetsTheAnswerAsAnotherTask(t *testing.T) {
	a := adapterOf(t, setupOf(t, stdioConfig(t, "tasks"), manifest.Effect{}))
	call := taskOn(t, a, "input_required")
	got, err := ask(t.Context(), a, call)
	require.NoError(t, err)
	require.Equal(t, receipt.OutcomeInputRequired, got.Class, "%s", got.Payload)

	answered := taskOn(t, a, "input_required")
	require.NotEqual(t, call.Permit.Accepted, answered.Permit.Accepted)
	answered.Permit.Inputs = []receipt.Input{{Question: got.Payload, Answer: fromJSON(t, `{"yes":true}`)}}
	got, err = ask(t.Context(), a, answered)
	require.NoError(t, err)
	require.Equal(t, receipt.StatusOK, got.Status, "%s", got.Payload)
	require.Equal(t, `{"yes":true}`, at(t, got.Payload, "structured", "answer", "content"))
}

// A task is at work whatever form the server gives to how long that may take.
func TestATaskIsReadInWhateverForm(t *testing.T) {
	began := begun([]byte(`{"task":{"taskId":"t","status":"working","statusMessage":5,"pollInterval":"5s","ttl":1e999}}`))
	require.NotNil(t, began)
	require.Equal(t, "t working", began.ID+" "+began.Status)
	require.Nil(t, begun([]byte(`{"task":null}`)))
	require.Nil(t, begun([]byte(`[]`)))
}

func TestWhatAServerSaysOfATaskIsBounded(t *testing.T) {
	long := strings.Repeat("x", receipt.MaxAcceptedID+1)
	_, err := (&task{ID: long}).accepted(time.Time{})
	require.ErrorIs(t, err, receipt.ErrAccepted)
	_, err = (&task{}).accepted(time.Time{})
	require.ErrorIs(t, err, receipt.ErrAccepted)
	r, err := (&task{ID: "t", Message: strings.Repeat("é", receipt.MaxAcceptedMessage)}).accepted(time.Time{})
	require.NoError(t, err)
	require.Less(t, len(r.Payload), receipt.MaxAcceptedMessage+100)
	for millis, want := range map[float64]time.Duration{-1: taskTTL, 1000: taskTTL, 2 * 86_400_000: 2 * taskTTL, 1e300: maxTTL} {
		require.Equal(t, want, (&task{TTL: &millis}).keeps())
	}
	require.Equal(t, maxTTL, new(task).keeps(), "it keeps it for ever")
	for millis, want := range map[float64]time.Duration{-1: minPoll, 0: minPoll, 5000: 5 * time.Second, 1e300: maxPoll} {
		require.Equal(t, want, (&task{Poll: &millis}).poll())
	}
	require.Equal(t, defaultPoll, new(task).poll())
}
