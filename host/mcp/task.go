package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// Tasks of the protocol of 2025-11-25: a server can accept a call and end it later.

const (
	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskCancel = "tasks/cancel"

	// relatedTask is where in _meta the requests of a server name the task that they
	// are about.
	relatedTask = "io.modelcontextprotocol/related-task"
)

// Where a task stands; a server may say more, which counts as working.
const (
	taskInputRequired = "input_required"
	taskCompleted     = "completed"
	taskFailed        = "failed"
	taskCancelled     = "cancelled"
)

const (
	taskTTL     = 24 * time.Hour      // how long a server is asked to keep a task, and asked about it at least
	maxTTL      = 30 * 24 * time.Hour // how long it is asked at most, however long it keeps it
	defaultPoll = time.Second         // between two questions, where the server does not say
	minPoll     = 50 * time.Millisecond
	maxPoll     = time.Minute
)

// Whether a tool runs as a task, by execution.taskSupport; else it must not.
const (
	taskRequired = "required"
	taskOptional = "optional"
)

// task is what a server says of one of its tasks.
type task struct {
	ID      string   `json:"taskId"`
	Status  string   `json:"status"`
	Message string   `json:"statusMessage"`
	Poll    *float64 `json:"pollInterval"` // milliseconds
	TTL     *float64 `json:"ttl"`          // likewise, since it was made; nil: the server keeps it for ever
}

// keeps is for how long a server is asked about a task since it was made.
func (t *task) keeps() time.Duration {
	if t.TTL == nil {
		return maxTTL
	}
	millis := min(max(*t.TTL, float64(taskTTL.Milliseconds())), float64(maxTTL.Milliseconds()))
	return time.Duration(millis) * time.Millisecond
}

// poll is how long to wait before the server is asked again.
func (t *task) poll() time.Duration {
	if t.Poll == nil {
		return defaultPoll
	}
	millis := min(max(*t.Poll, 0), float64(maxPoll.Milliseconds()))
	return max(time.Duration(millis)*time.Millisecond, minPoll)
}

// accepted is the result of an attempt that leaves a task at work, about which the server
// is asked until then; zero: the receipt before says that.
func (t *task) accepted(until time.Time) (host.Result, error) {
	message := t.Status
	if t.Message != "" {
		message += ": " + t.Message
	}
	if len(message) > receipt.MaxAcceptedMessage {
		message = message[:receipt.MaxAcceptedMessage]
	}
	a := receipt.Accepted{ID: t.ID, Message: strings.ToValidUTF8(message, "")}
	if !until.IsZero() {
		a.Until = until.UnixNano()
	}
	payload, err := a.Encode()
	if err != nil {
		return host.Result{}, fmt.Errorf("mcp: the server has begun a task that cannot be asked about: %w", err)
	}
	return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeAccepted, Payload: payload, RetryAfter: t.poll()}, nil
}

// begun returns the task that the answer to a call names, or nil.
func begun(result json.RawMessage) *task {
	var created struct {
		Task *task `json:"task"`
	}
	_ = json.Unmarshal(result, &created) // as far as it has this form
	return created.Task
}

// taskSupport is what a server says of tasks.
type taskSupport struct {
	calls, cancel bool
}

// noteTaskSupport takes what an answer to initialize says of tasks.
func (c *calls) noteTaskSupport(result json.RawMessage) {
	data, _ := canon.FromJSON(result) // what is none says nothing
	tasks := item(item(data, "capabilities"), "tasks")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks.calls = c.tasks.calls || canon.NewReader(item(item(item(tasks, "requests"), "tools"), "call")).Kind() == canon.KindMap
	c.tasks.cancel = c.tasks.cancel || canon.NewReader(item(tasks, "cancel")).Kind() == canon.KindMap
}

// runsAsTask reports whether a call is to be a task, which it must where the tool requires it.
func (c *calls) runsAsTask(support string, wanted bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tasks.calls && (support == taskRequired || wanted && support == taskOptional)
}

// cancelsTasks reports whether the server takes back tasks.
func (c *calls) cancelsTasks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tasks.cancel
}

// askAboutTask sends a request about a task, and returns the answer, which may be an error of the server.
func (s *session) askAboutTask(ctx context.Context, method, id string) (*message, error) {
	return s.ask(ctx, new(exchange), method, map[string]any{"taskId": id})
}

// errNoTask says that a server does not know a task, or not any more.
var errNoTask = errors.New("the server does not know the task")

// task asks where a task stands, or takes it back.
func (s *session) task(ctx context.Context, method, id string) (*task, error) {
	r, err := s.askAboutTask(ctx, method, id)
	if err != nil {
		return nil, err
	}
	switch {
	case r.fault != nil && (r.fault.Code == codeParams || r.fault.Code == codeNoMethod):
		return nil, fmt.Errorf("%w: %w", errNoTask, r.fault)
	case r.fault != nil:
		return nil, r.fault
	}
	t := new(task)
	_ = json.Unmarshal(r.result, t) // as far as it has this form
	if t.ID != id {
		return nil, fmt.Errorf("the server answers about task %q", t.ID)
	}
	return t, nil
}

// Ask asks what came of a task, until it has ended or ctx does.
func (a *adapter) Ask(ctx context.Context, call host.Call) (host.Result, error) {
	if _, err := governance.ParseMCP(a.setup.Config, call.Permit.Params); err != nil {
		return host.Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.life, cancel)()
	s, err := a.session(ctx)
	if err != nil {
		return cannotAsk(err), nil
	}
	r, err := s.await(ctx, &call.Permit)
	if errors.Is(err, errNoTask) {
		return r, fmt.Errorf("mcp: task %q: %w", call.Permit.Accepted, err)
	}
	if err != nil {
		if errors.Is(err, errEnded) || errors.Is(err, errSessionMissing) {
			a.drop(s)
		}
		return cannotAsk(err), nil
	}
	r.Cost.Bytes = uint64(len(r.Payload))
	return r, nil
}

// cannotAsk is the result of an attempt that could not ask. The next one may.
func cannotAsk(err error) host.Result {
	return retryable(receipt.StatusTimeout, "not_asked", err)
}

// await asks about a task until there is something to say of it. The error is errNoTask,
// or why the server cannot be asked.
func (s *session) await(ctx context.Context, p *receipt.Permit) (host.Result, error) {
	last := &task{ID: p.Accepted, Status: "working"}
	if p.Unwanted && s.calls.cancelsTasks() { // what comes of that shows below
		_, _ = s.askAboutTask(ctx, methodTaskCancel, p.Accepted)
	}
	for {
		t, err := s.task(ctx, methodTaskGet, p.Accepted)
		switch {
		case ctx.Err() != nil:
			return last.accepted(time.Time{})
		case err != nil:
			return host.Result{}, err
		}
		last = t
		switch t.Status {
		case taskCancelled:
			why := "the server has cancelled the task"
			if p.Unwanted {
				why = "its cell cancelled it, and " + why
			}
			if t.Message != "" {
				why += ": " + t.Message
			}
			return permanent(false, "task_cancelled", why), nil
		case taskCompleted, taskFailed, taskInputRequired:
			r, err := s.collect(ctx, t, p)
			if ctx.Err() != nil && (err != nil || r.Class == receipt.OutcomeAccepted) {
				return last.accepted(time.Time{})
			}
			return r, err
		}
		select {
		case <-time.After(t.poll()):
		case <-ctx.Done():
			return last.accepted(time.Time{})
		}
	}
}

// collect fetches the result of a task that has ended, or that asks a person.
func (s *session) collect(ctx context.Context, t *task, p *receipt.Permit) (host.Result, error) {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	x := &exchange{answers: p.Inputs, task: t.ID, stop: cancel}
	if err := s.calls.beginCall(ctx, x); err != nil {
		return host.Result{}, err
	}
	response, err := s.askAboutTask(waits, methodTaskResult, t.ID)
	asked, _ := s.calls.endCall(x, response != nil)
	if asked != nil { // it was cancelled, and the next attempt begins another task
		if s.calls.cancelsTasks() {
			_, _ = s.askAboutTask(ctx, methodTaskCancel, t.ID)
		}
		return needsInput(receipt.Question{Requests: map[string]receipt.InputRequest{methodElicit: *asked}}), nil
	}
	switch {
	case err != nil:
		return host.Result{}, err
	case response.fault == nil:
		if of := resultOf(response.result); of != "" && of != t.ID {
			return host.Result{}, fmt.Errorf("the server answers with the result of task %q", of)
		}
		return answered(response.result), nil
	case t.Status == taskFailed:
		return permanent(false, response.fault.name(), strings.TrimSpace(t.Message+" "+response.fault.Error())), nil
	case t.Status == taskInputRequired:
		return t.accepted(time.Time{})
	default: // it happened, and nobody can tell what came of it
		return host.Result{}, fmt.Errorf("%w any more, which it had completed: %w", errNoTask, response.fault)
	}
}

// resultOf returns the task that a result is of; empty: it does not say.
func resultOf(result json.RawMessage) string {
	raw, err := canon.FromJSON(result)
	if err != nil {
		return ""
	}
	return taskOf(raw)
}

// taskOf returns the task that a result or a request of the server is about; empty: it does not say.
func taskOf(said canon.Raw) string {
	return textOf(item(item(item(said, "_meta"), relatedTask), "taskId"))
}
