package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// hook asks as an agent's hook does, and returns why the tool is denied; empty: it is not.
func (r *run) hook(event, id, name, more string, nonce ...string) string {
	r.t.Helper()
	decision, reason := r.hookSays(event, id, name, more, nonce...)
	require.Equal(r.t, reason != "", decision == "deny")
	return reason
}

// hookSays returns the whole answer to a hook.
func (r *run) hookSays(event, id, name, more string, nonce ...string) (decision, reason string) {
	r.t.Helper()
	body := `{"hook_event_name":"` + event + `","tool_use_id":"` + id + `","tool_name":"` + name + `","cwd":"/"` + more + `}`
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url(gateway.Hooks, ""), strings.NewReader(body))
	require.NoError(r.t, err)
	req.Header.Set("X-Nonce", strings.Join(nonce, ""))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	require.Equal(r.t, http.StatusOK, resp.StatusCode, string(text))
	var answer struct {
		Output struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	require.NoError(r.t, json.Unmarshal(text, &answer))
	return answer.Output.Decision, answer.Output.Reason
}

const (
	list  = `,"tool_input":{"command":"ls"}`
	files = `,"tool_response":{"stdout":"a\nb","stderr":"","interrupted":false,"isImage":false}`
)

// told is a request with results in it.
func told(blocks string) string {
	return `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"one",` +
		`"name":"Bash","input":{}}]},{"role":"user","content":[` + blocks + `]}]}`
}

func resultOf(id, text string) string {
	return `{"type": "tool_result", "tool_use_id":"` + id + `","content":"` + text + `"}`
}

// A tool that has run is not run again after a restart: its hook is denied, and the model sees the recorded result; whether the model
// had seen it or not.
func TestAToolThatRanIsNotRunAgain(t *testing.T) {
	s := newStage(t)
	s.answers(http.StatusOK, "application/json", `{"model":"m","content":[]}`)
	r := s.start()
	require.Empty(t, r.hook("PreToolUse", "one", "Bash", list, "n"))
	require.Empty(t, r.hook("PreToolUse", "one", "Bash", list, "n"), "its answer was lost")
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", list, "other"), "permitted already")
	require.Empty(t, r.hook("PostToolUse", "one", "Bash", list+files))
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", list, "n"), "permitted already")
	// Of the last result the agent says that the cache may end with it; in the next request it does not.
	seen := told(strings.TrimSuffix(resultOf("one", "a\\nb"), "}") + `,"cache_control":{"type":"ephemeral"}}`)
	r.post(relay.Anthropic, messagesPath, seen)
	require.Equal(t, seen, string(*s.body.Load()))
	require.Empty(t, r.hook("PreToolUse", "two", "Bash", list))
	require.Empty(t, r.hook("PostToolUse", "two", "Bash", list+files))
	require.Equal(t, 2, r.stop().ToolCalls)
	for range 2 {
		r = s.start()
		require.Contains(t, r.hook("PreToolUse", "one", "Bash", list), "recorded result")
		require.Contains(t, r.hook("PreToolUse", "two", "Bash", list), "recorded result")
		r.post(relay.Anthropic, messagesPath, told(resultOf("one", "denied")))
		require.EqualValues(t, 1, s.paid.Load())
		summary := r.stop()
		require.Equal(t, 2, summary.ToolsServed)
		require.Zero(t, summary.ToolCalls)
	}
	r = s.start()
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", list), "recorded result")
	require.Contains(t, r.hook("PreToolUse", "two", "Bash", list), "recorded result")
	r.post(relay.Anthropic, messagesPath, seen)
	r.post(relay.Anthropic, messagesPath, told(resultOf("one", "denied")+","+resultOf("two", "denied")))
	require.Equal(t, told(resultOf("one", "a\\nb")+`,{"content":"a\nb","tool_use_id":"two","type":"tool_result"}`), string(*s.body.Load()))
}

// A call that worldctl died with before its cell had handled it is the one that the restarted agent makes: it is no second intent.
func TestACallThatWasNotHandledIsOneCall(t *testing.T) {
	s := newStage(t)
	other := s.start(func(c *gateway.Config) { c.Session = "other" })
	require.Empty(t, other.hook("PreToolUse", "one", "Bash", list))
	require.Empty(t, other.hook("PostToolUse", "one", "Bash", list+files))
	call, err := canon.Marshal(other.uses()[0].ToolRequest)
	require.NoError(t, err)
	other.stop()
	lw, err := local.Open(s.dir, s.options(new(relay.Desk), new(outside.Callers)))
	require.NoError(t, err)
	_, err = lw.SubmitEvent(t.Context(), world.Submission{Name: recorder.Called, Data: call, To: &reducer.Cell{Reducer: recorder.Name, Key: "a"}})
	require.NoError(t, err)
	require.NoError(t, lw.Close())

	driving, stop := context.WithCancel(t.Context())
	r := s.start(func(c *gateway.Config) {
		go func() { _, _ = c.World.Drive(driving, local.Course{Stay: true}) }()
	})
	require.Empty(t, r.hook("PreToolUse", "one", "Bash", list))
	require.Empty(t, r.hook("PostToolUse", "one", "Bash", list+files))
	require.Len(t, r.uses(), 2)
	stop()
}

// A tool that a policy denies does not run, and one that a person has to allow waits; the model that is told to ask again
// asks by another id, also after a restart.
func TestToolsAreJudged(t *testing.T) {
	s := newStage(t, "'intent.kind == \"tool.call\"', decide: allow}", "'intent.kind == \"tool.call\"', decide: allow}\n"+
		`  - {name: no rm, when: 'intent.kind == "tool.call" && intent.params.arguments.command.startsWith("rm")', decide: deny}`+"\n"+
		`  - {name: pushes wait, when: 'intent.kind == "tool.call" && intent.params.arguments.command == "git push"', decide: require_approval}`)
	r := s.start()
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", `,"tool_input":{"command":"rm -rf /"}`), "no rm")
	push := `,"tool_input":{"command":"git push"}`
	allowed := make(chan string)
	go func() { allowed <- r.hook("PreToolUse", "two", "Bash", push) }()
	r.approve()
	require.Empty(t, <-allowed)
	require.Empty(t, r.hook("PostToolUse", "two", "Bash", push+files))
	require.Equal(t, 1, r.stop().Denied)

	r = s.start()
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", `,"tool_input":{"command":"rm -rf /"}`), "no rm")
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.url(gateway.Hooks, ""), strings.NewReader(
			`{"hook_event_name":"PreToolUse","tool_use_id":"three","tool_name":"Bash"`+push+`}`))
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	require.Eventually(t, func() bool { return r.states()[receipt.StateAwaitingApproval] == 1 }, time.Minute, time.Millisecond)
	leave()
	r.stop()

	r = s.start()
	go func() { allowed <- r.hook("PreToolUse", "four", "Bash", push) }()
	r.approve()
	require.Empty(t, <-allowed)
	require.Empty(t, r.hook("PostToolUse", "four", "Bash", push+files))
	r.stop()
	r = s.start()
	require.Contains(t, r.hook("PreToolUse", "three", "Bash", push), "recorded result")
	require.Contains(t, r.hook("PreToolUse", "four", "Bash", push), "recorded result")
}

// A tool that waits for a person ends the agent where that is wanted, but not for a sub-agent's, and is the same call when the agent is
// started again, whatever was decided meanwhile.
func TestAToolThatWaitsIsDeferred(t *testing.T) {
	const bash = "'intent.kind == \"tool.call\"', decide: "
	s := newStage(t, bash+"allow}", bash+"require_approval}")
	defers := func(c *gateway.Config) { c.Defer = time.Millisecond }
	input := func(command string) string { return `,"tool_input":{"command":"` + command + `"}` }
	r := s.start(defers)
	for _, id := range []string{"one", "two"} {
		decision, _ := r.hookSays("PreToolUse", id, "Bash", input(id))
		require.Equal(t, "defer", decision)
	}
	require.Len(t, r.stop().Deferred, 2)

	r = s.start(defers)
	decision, _ := r.hookSays("PreToolUse", "one", "Bash", input("one"))
	require.Equal(t, "defer", decision, "nobody has decided")
	for _, how := range []journal.Resolution{journal.Approve, journal.Disapprove} {
		r.decide(how, map[journal.Resolution]string{journal.Approve: "one", journal.Disapprove: "two"}[how])
	}
	require.Empty(t, r.hook("PreToolUse", "one", "Bash", input("one")))
	require.Empty(t, r.hook("PostToolUse", "one", "Bash", input("one")+files))
	require.Contains(t, r.hook("PreToolUse", "two", "Bash", input("two")), "denied")
	require.Equal(t, []int{1, 1, 0}, []int{r.states()[receipt.StateCommitted], r.states()[receipt.StateDenied], r.states()[receipt.StateAwaitingApproval]})
	allowed := make(chan string)
	go func() { allowed <- r.hook("PreToolUse", "sub", "Bash", input("sub")+`,"agent_id":"a1"`) }()
	r.approve()
	require.Empty(t, <-allowed)
}

// decide has a person decide about the call of a tool.
func (r *run) decide(how journal.Resolution, id string) {
	r.t.Helper()
	j := view.Journal{Local: r.lw}
	for _, e := range j.Ledger() {
		if strings.HasSuffix(e.Intent.Tag, " "+id) {
			_, err := j.Decide(r.t.Context(), &journal.Resolved{Key: e.Intent.Key, How: how, Params: e.Params, Actor: "ada"}, &e)
			require.NoError(r.t, err)
			return
		}
	}
	require.Fail(r.t, "there is no call "+id)
}

// What runs is what was judged: where a person has approved other arguments, the agent's do not run.
func TestAToolRunsAsItWasApproved(t *testing.T) {
	s := newStage(t, "'intent.kind == \"tool.call\"', decide: allow}", "'intent.kind == \"tool.call\"', decide: require_approval}")
	r := s.start()
	denied := make(chan string)
	go func() { denied <- r.hook("PreToolUse", "one", "Bash", list) }()
	var waits []receipt.Entry
	require.Eventually(t, func() bool {
		r.lw.View(func(m *world.Moment) { waits = m.Intents() })
		return len(waits) == 1
	}, time.Minute, time.Millisecond)
	e := &waits[0]
	found, err := view.Journal{Local: r.lw}.Intent(e)
	require.NoError(t, err)
	params, err := reducer.Decode[recorder.ToolRequest](found.Params)
	require.NoError(t, err)
	params.Arguments, err = reducer.Encode(map[string]string{"command": "pwd"})
	require.NoError(t, err)
	edited, err := reducer.Encode(params)
	require.NoError(t, err)
	_, err = view.Journal{Local: r.lw}.Decide(t.Context(), &journal.Resolved{
		Key: e.Intent.Key, How: journal.Edit, Params: e.Params, Actor: "ada", Reason: "safer", Payload: edited,
	}, e)
	require.NoError(t, err)
	r.approve() // the edited one waits for a person again
	require.Contains(t, <-denied, "other arguments than were approved")
}

// A tool whose end nobody has told is in doubt: it does not run again by itself, but for one that only looks, and one whose file shows
// that it has not run.
func TestAToolThatNobodyToldOfIsInDoubt(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	write := func(name, content string) string {
		return `,"tool_input":{"file_path":"` + filepath.Join(dir, name) + `","content":"` + content + `"}`
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o600))
	r := s.start()
	require.Empty(t, r.hook("PreToolUse", "bash", "Bash", list))
	require.Empty(t, r.hook("PreToolUse", "read", "Read", list))
	require.Empty(t, r.hook("PreToolUse", "none", "Write", write("none", "new")))
	require.Empty(t, r.hook("PreToolUse", "same", "Write", write("old", "new")))
	gone := strings.ReplaceAll(write("gone", "new"), "content", "new_string")
	require.Empty(t, r.hook("PreToolUse", "gone", "Edit", gone))
	require.Contains(t, r.hook("PreToolUse", "odd", "Bash", `,"tool_input":{"a":1,"a":2}`), "does not take it")
	require.Empty(t, r.hook("PreToolUse", "odd", "Bash", `,"tool_input":{"a":1}`))
	require.Empty(t, r.hook("PostToolUse", "odd", "Bash", list+files))
	require.Empty(t, r.hook("PreToolUse", "done", "Write", write("done", "new")))
	require.Empty(t, r.hook("PreToolUse", "half", "Write", write("half", "new")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "done"), []byte("new"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "half"), []byte("ne"), 0o600))
	require.Equal(t, 7, r.stop().InDoubt)
	for range 2 {
		r = s.start()
		require.Contains(t, r.hook("PreToolUse", "bash", "Bash", list), "IN DOUBT")
		require.Empty(t, r.hook("PreToolUse", "read", "Read", list))
		require.Empty(t, r.hook("PreToolUse", "none", "Write", write("none", "new")))
		require.Empty(t, r.hook("PreToolUse", "same", "Write", write("old", "new")))
		require.Empty(t, r.hook("PreToolUse", "gone", "Edit", gone))
		require.Contains(t, r.hook("PreToolUse", "done", "Write", write("done", "new")), "took effect")
		require.Contains(t, r.hook("PreToolUse", "half", "Write", write("half", "new")), "IN DOUBT")
		r.stop()
	}
	r = s.start()
	require.Empty(t, r.hook("PreToolUse", "read", "Read", list))
	require.Empty(t, r.hook("PostToolUseFailure", "read", "Read", list+`,"error":"no such file"`))
	r.stop()
	r = s.start()
	require.Contains(t, r.hook("PreToolUse", "read", "Read", list), "recorded result")
}

// A tool whose recorded result was redacted has run, and does not run again.
func TestARedactedResultIsInDoubt(t *testing.T) {
	s := newStage(t)
	r := s.start()
	require.Empty(t, r.hook("PreToolUse", "one", "Bash", list))
	require.Empty(t, r.hook("PostToolUse", "one", "Bash", list+strings.Replace(files, `"a`, `"`+strings.Repeat("secret", 10_000), 1)))
	var ran []receipt.Entry
	r.lw.View(func(m *world.Moment) { ran = m.Intents() })
	r.stop()
	_, err := local.Redact(t.Context(), s.dir, s.options(new(relay.Desk), new(outside.Callers)), local.Payload{Record: journal.Seq(ran[0].Finished)}, "a secret", "ada")
	require.NoError(t, err)
	r = s.start()
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", list), "IN DOUBT")
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", list), "IN DOUBT", "its answer was lost")
}

// What no hook has told, since the agent's own rules did not let the tool run, the next request tells.
func TestWhatNoHookToldTheNextRequestTells(t *testing.T) {
	s := newStage(t)
	s.answers(http.StatusOK, "application/json", `{"model":"m","content":[]}`)
	r := s.start()
	require.Empty(t, r.hook("PreToolUse", "one", "Bash", list))
	r.post(relay.Anthropic, messagesPath, told(resultOf("one", "not allowed")))
	summary := r.stop()
	require.Equal(t, 1, summary.ToolCalls)
	require.Zero(t, summary.InDoubt)
	r = s.start()
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", list), "recorded result")
}

// Offline the record alone answers, and nothing is run.
func TestOfflineNoToolRuns(t *testing.T) {
	s := newStage(t)
	r := s.start()
	require.Empty(t, r.hook("PreToolUse", "one", "Bash", list))
	require.Empty(t, r.hook("PostToolUse", "one", "Bash", list+files))
	r.stop()
	r = s.start(func(c *gateway.Config) { c.Offline = true })
	require.Contains(t, r.hook("PreToolUse", "one", "Bash", list), "recorded result")
	require.Contains(t, r.hook("PreToolUse", "two", "Bash", list), "the record does not have this call")
	summary := r.stop()
	require.Equal(t, 1, summary.ToolsServed)
	require.Equal(t, "Bash", summary.Divergence.Tool)
}

// A hook that asks again while the first answer is on its way gets the same answer.
func TestAHookMayAskTwiceAtOnce(t *testing.T) {
	s := newStage(t)
	r := s.start()
	for n := range 40 {
		id := "call" + strings.Repeat("x", n)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { require.Empty(t, r.hook("PreToolUse", id, "Bash", list, "nonce")) })
		}
		both.Wait()
		require.Empty(t, r.hook("PostToolUse", id, "Bash", list+files))
	}
	require.Equal(t, 40, r.stop().ToolCalls)
}
