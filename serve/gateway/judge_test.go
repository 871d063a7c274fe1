package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// speaker is a provider of one API, in a stream or not.
type speaker struct {
	dialect, path string
	stream        bool
}

func speakers() map[string]speaker {
	out := make(map[string]speaker)
	for _, stream := range []bool{false, true} {
		for name, of := range map[string]speaker{
			"chat": {relay.OpenAI, chatPath, stream}, "responses": {relay.OpenAI, "/v1/responses", stream}, "messages": {relay.Anthropic, messagesPath, stream},
		} {
			out[fmt.Sprint(name, " stream ", stream)] = of
		}
	}
	return out
}

func quote(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// turns are items, messages or blocks of a conversation in the speaker's API.
func (p speaker) request(more ...string) string {
	return fmt.Sprintf(`{"model":"m","stream":%t,%q:[%s]}`, p.stream, p.name(), strings.Join(append([]string{`{"role":"user","content":"x"}`}, more...), ","))
}

func (p speaker) name() string {
	if strings.HasSuffix(p.path, "responses") {
		return "input"
	}
	return "messages"
}

// result tells the model what came of a call, in the next request.
func (p speaker) result(id, text string) string {
	switch {
	case p.dialect == relay.Anthropic:
		return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, id, text)
	case p.path == chatPath:
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, text)
	}
	return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, id, text)
}

// say is an answer with a text and calls: each an id, a name and arguments.
func (p speaker) say(text string, calls ...[3]string) string {
	kind, usage := "end_turn", `"usage":{"prompt_tokens":1,"completion_tokens":1,"input_tokens":1,"output_tokens":1}`
	var parts, items []string
	for i, c := range calls {
		switch {
		case p.dialect == relay.Anthropic:
			kind = "tool_use"
			parts = append(parts, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, c[0], c[1], c[2]))
		case p.path == chatPath:
			kind = "tool_calls"
			parts = append(parts, fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, i, c[0], c[1], c[2]))
		default:
			parts = append(parts, fmt.Sprintf(`{"type":"function_call","id":"fc_%[1]s","call_id":%[1]q,"name":%q,"arguments":%q}`, c[0], c[1], c[2]))
		}
	}
	var out strings.Builder
	event := func(kind, format string, args ...any) {
		fmt.Fprintf(&out, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d%s}\n\n", kind, kind, strings.Count(out.String(), "\n\n"), fmt.Sprintf(format, args...))
	}
	switch {
	case p.dialect == relay.Anthropic && !p.stream:
		return fmt.Sprintf(`{"type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%q,%s}`,
			strings.Join(append([]string{fmt.Sprintf(`{"type":"text","text":%q}`, text)}, parts...), ","), kind, usage)
	case p.dialect == relay.Anthropic:
		event("message_start", `,"message":{"model":"m","content":[],%s}`, usage)
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":%q}`, text)
		event("content_block_stop", `,"index":0`)
		for i, c := range calls {
			event("content_block_start", `,"index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}`, i+1, c[0], c[1])
			half := len(c[2]) / 2
			event("content_block_delta", `,"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i+1, quote(c[2][:half]))
			event("content_block_delta", `,"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i+1, quote(c[2][half:]))
			event("content_block_stop", `,"index":%d`, i+1)
		}
		event("message_delta", `,"delta":{"stop_reason":%q},%s`, kind, usage)
		event("message_stop", "")
	case p.path == chatPath && !p.stream:
		return fmt.Sprintf(`{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q,"tool_calls":[%s]},"finish_reason":%q}],%s}`, text, strings.Join(parts, ","), kind, usage)
	case p.path == chatPath:
		chunk := func(delta string) {
			fmt.Fprintf(&out, "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		}
		chunk(fmt.Sprintf(`{"role":"assistant","content":%q}`, text))
		for i, c := range calls {
			half := len(c[2]) / 2
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`, i, c[0], c[1], quote(c[2][:half])))
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(c[2][half:])))
		}
		fmt.Fprintf(&out, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: {\"choices\":[],%s}\n\ndata: [DONE]\n\n", kind, usage)
	default:
		items = append([]string{fmt.Sprintf(`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":%q}]}`, text)}, parts...)
		whole := fmt.Sprintf(`{"id":"resp_1","model":"m","status":"completed","output":[%s],%s}`, strings.Join(items, ","), usage)
		if !p.stream {
			return whole
		}
		event("response.created", `,"response":{"id":"resp_1","output":[]}`)
		for i, item := range items {
			event("response.output_item.added", `,"output_index":%d,"item":%s`, i, item)
			if i == 0 {
				event("response.output_text.delta", `,"output_index":0,"delta":%q`, text)
			}
			event("response.output_item.done", `,"output_index":%d,"item":%s`, i, item)
		}
		event("response.completed", `,"response":%s`, whole)
	}
	return out.String()
}

// kind is the content type of the speaker's answers.
func (p speaker) kind() string {
	if p.stream {
		return "text/event-stream"
	}
	return "application/json"
}

// scripted has the provider say one thing after another.
func (s *stage) scripted(p speaker, answers ...string) {
	first := s.paid.Load()
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", p.kind())
		_, _ = io.WriteString(w, answers[min(int(s.paid.Load()-first), len(answers))-1])
	})
}

// judging is a gateway for an agent without hooks.
func judging(c *gateway.Config) { c.Answers = true }

func offline(c *gateway.Config) { c.Answers, c.Offline = true, true }

// noRm are the rules of the template and one that denies.
func noRm() []string {
	return []string{"'intent.kind == \"tool.call\"', decide: allow}", "'intent.kind == \"tool.call\"', decide: allow}\n" +
		`  - {name: no rm, when: 'intent.kind == "tool.call" && intent.params.tool == "Bash" && intent.params.arguments.command.startsWith("rm")', decide: deny}` + "\n" +
		`  - {name: pushes wait, when: 'intent.kind == "tool.call" && intent.params.tool == "Bash" && intent.params.arguments.command == "git push"', decide: require_approval}`}
}

// judged is a tool's intent, as the record has it.
type judged struct {
	recorder.ToolRequest

	State  receipt.State
	Result string
}

// uses are the intents of tools, in order.
func (r *run) uses() (out []judged) {
	var all []receipt.Entry
	r.lw.View(func(m *world.Moment) { all = m.Intents() })
	slices.SortFunc(all, func(a, b receipt.Entry) int { return int(a.Emitted) - int(b.Emitted) })
	j := view.Journal{Local: r.lw}
	for i := range all {
		if all[i].Intent.Kind != recorder.OwnTool {
			continue
		}
		found, err := j.Intent(&all[i])
		require.NoError(r.t, err)
		u := judged{State: all[i].State}
		u.ToolRequest, err = reducer.Decode[recorder.ToolRequest](found.Params)
		require.NoError(r.t, err)
		if answer, err := j.AnswerTo(&all[i], 0); err == nil && answer != nil {
			if a, err := reducer.Decode[recorder.ToolAnswer](answer.Payload); err == nil {
				u.Result = string(a.Result)
			}
		}
		out = append(out, u)
	}
	return out
}

const (
	ls = `{"command":"ls"}`
	rm = `{"command":"rm -rf /"}`
)

// The tools that an answer asks for are judged before the agent gets it, which then is byte for byte that of the provider; the next
// request tells what came of them. A restart and a replay give the same.
func TestToolsInAnswersAreJudged(t *testing.T) {
	for name, p := range speakers() {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, noRm()...)
			first, last := p.say("I look", [3]string{"c1", "Bash", ls}, [3]string{"c2", "grep", `{}`}), p.say("done")
			s.scripted(p, first, last)
			talk := func(r *run) {
				_, body := r.post(p.dialect, p.path, p.request())
				require.Equal(t, first, body)
				_, body = r.post(p.dialect, p.path, p.request(p.result("c1", "a b"), p.result("c2", "none")))
				require.Equal(t, last, body)
			}
			r := s.start(judging)
			talk(r)
			require.Eventually(t, func() bool { return len(r.uses()) == 2 && r.states()[receipt.StateCommitted] == 4 }, time.Minute, time.Millisecond)
			uses := r.uses()
			slices.SortFunc(uses, func(a, b judged) int { return strings.Compare(a.Tool, b.Tool) })
			require.Equal(t, []string{"Bash", "c1", `"a b"`, "grep", "c2", `"none"`},
				[]string{uses[0].Tool, uses[0].ToolUseID, uses[0].Result, uses[1].Tool, uses[1].ToolUseID, uses[1].Result})
			summary := r.stop()
			require.Equal(t, 2, summary.ToolCalls)
			require.Zero(t, summary.InDoubt)
			for _, again := range []func(*gateway.Config){judging, offline} {
				r = s.start(again)
				talk(r)
				require.Len(t, r.uses(), 2)
				summary := r.stop()
				require.Zero(t, summary.Left)
				require.Nil(t, summary.Divergence)
			}
			require.EqualValues(t, 2, s.paid.Load())
		})
	}
}

// A tool that is denied reaches no agent: the model is told so, with a result for each call of the answer, and the agent gets what it says
// to that. A restart and a replay give the same bytes, and pay nothing.
func TestADeniedToolInAnAnswerIsPutToTheModel(t *testing.T) {
	for name, p := range speakers() {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, noRm()...)
			s.scripted(p, p.say("I look", [3]string{"c1", "Bash", ls}, [3]string{"c2", "Bash", rm}), p.say("Sorry", [3]string{"c3", "Bash", ls}), p.say("done"))
			r := s.start(judging)
			status, got := r.post(p.dialect, p.path, p.request())
			require.Equal(t, http.StatusOK, status)
			require.EqualValues(t, 2, s.paid.Load())
			asked := string(*s.body.Load())
			require.Contains(t, asked, "not run, because")
			require.Contains(t, asked, "no rm")
			require.Contains(t, asked, `rm -rf /`)
			require.NotContains(t, got, "rm -rf")
			require.NotContains(t, got, `"c1"`)
			require.Contains(t, got, `"c3"`)
			if p.stream {
				p.requireOneStream(t, got)
			}
			_, _ = r.post(p.dialect, p.path, p.request(p.result("c3", "a b")))
			require.Eventually(t, func() bool {
				states := r.states() // three answers and the last call; the one that no agent got
				return states[receipt.StateCommitted] == 4 && states[receipt.StateFailed] == 1
			}, time.Minute, time.Millisecond)
			states := make(map[receipt.State]int)
			for _, u := range r.uses() {
				states[u.State]++
			}
			require.Equal(t, map[receipt.State]int{receipt.StateCommitted: 1, receipt.StateDenied: 1, receipt.StateFailed: 1}, states)
			summary := r.stop()
			require.Equal(t, 1, summary.Denied)
			require.Zero(t, summary.InDoubt)
			require.Equal(t, 2, summary.Requests)
			for _, again := range []func(*gateway.Config){judging, offline} {
				r = s.start(again)
				_, body := r.post(p.dialect, p.path, p.request())
				require.Equal(t, got, body)
				r.post(p.dialect, p.path, p.request(p.result("c3", "a b")))
				require.Len(t, r.uses(), 3, "none is asked for anew")
				summary := r.stop()
				require.Zero(t, summary.Left)
				require.Nil(t, summary.Divergence)
			}
			require.EqualValues(t, 3, s.paid.Load())
		})
	}
}

// requireOneStream holds that a stream has one beginning and one end, and that its numbers follow each other.
func (p speaker) requireOneStream(t *testing.T, stream string) {
	t.Helper()
	seen := make(map[string]int)
	blocks, sequence, texts := 0, 0, ""
	for frame := range strings.SplitSeq(strings.TrimSpace(stream), "\n\n") {
		_, data, _ := strings.Cut(frame, "data: ")
		var e struct {
			Type     string
			Index    int
			Output   int  `json:"output_index"`
			Sequence *int `json:"sequence_number"`
			Delta    json.RawMessage
			Response struct{ Output []json.RawMessage }
			Choices  []struct {
				Delta struct{ Role, Content string }
			}
		}
		if data == "[DONE]" {
			seen[data]++
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(data), &e), data)
		seen[e.Type]++
		if e.Sequence != nil && p.name() == "input" {
			require.Equal(t, sequence, *e.Sequence)
			sequence++
		}
		switch e.Type {
		case "content_block_start", "response.output_item.added":
			require.Equal(t, blocks, e.Index+e.Output)
			blocks++
		case "response.completed":
			require.Len(t, e.Response.Output, 3)
		}
		for _, c := range e.Choices {
			texts += c.Delta.Role + c.Delta.Content
		}
	}
	switch {
	case p.dialect == relay.Anthropic:
		require.Equal(t, []int{1, 1, 3}, []int{seen["message_start"], seen["message_stop"], blocks})
	case p.path == chatPath:
		require.Equal(t, 1, seen["[DONE]"])
		require.Equal(t, "assistantI lookSorry", texts)
	default:
		require.Equal(t, []int{1, 1, 3}, []int{seen["response.created"], seen["response.completed"], blocks})
	}
}

// A model that asks for nothing else is asked again three times, and then the agent is stopped; also when it asks again, which costs nothing.
func TestAModelIsAskedAgainThreeTimes(t *testing.T) {
	for name, p := range speakers() {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, noRm()...)
			first := s.paid.Load()
			s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", p.kind())
				_, _ = io.WriteString(w, p.say("I remove", [3]string{fmt.Sprint("c", s.paid.Load()-first), "Bash", rm}))
			})
			for _, again := range []func(*gateway.Config){judging, judging, offline} {
				r := s.start(again)
				for range 2 {
					status, body := r.post(p.dialect, p.path, p.request())
					require.Equal(t, p.stream, status == http.StatusOK)
					require.Contains(t, body, "again and again")
					require.NotContains(t, body, "rm -rf")
				}
				require.EqualValues(t, 4, s.paid.Load())
				r.stop()
			}
		})
	}
}

// A call that a person has to allow holds its answer. Who goes and asks again gets it once it is allowed, also after a
// restart, and pays once.
func TestACallInAnAnswerWaitsForAPerson(t *testing.T) {
	p := speaker{relay.Anthropic, messagesPath, true}
	s := newStage(t, noRm()...)
	answer := p.say("I push", [3]string{"c1", "Bash", ls}, [3]string{"c2", "Bash", `{"command":"git push"}`})
	s.scripted(p, answer)
	r := s.start(judging)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url(p.dialect, p.path), strings.NewReader(p.request()))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		states := r.states()
		return states[receipt.StateAwaitingApproval] == 1 && states[receipt.StateInFlight] == 1
	}, time.Minute, time.Millisecond)
	leave()
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 1, r.stop().Waiting)

	r = s.start(judging)
	states := make(map[string]receipt.State)
	for _, u := range r.uses() {
		states[u.ToolUseID] = u.State
	}
	require.Equal(t, map[string]receipt.State{"c1": receipt.StateFailed, "c2": receipt.StateAwaitingApproval}, states, "nobody got the call that was permitted")
	got := make(chan string)
	go func() {
		_, body := r.post(p.dialect, p.path, p.request())
		got <- body
	}()
	r.approve()
	require.Equal(t, answer, <-got)
	require.EqualValues(t, 1, s.paid.Load())
	require.Equal(t, 2, r.states()[receipt.StateInFlight])
	require.Zero(t, r.stop().InDoubt)
}

// Where hooks or rules of a server judge a call, its answer comes through, and so it does where the world has no rules for calls.
func TestACallIsJudgedOnce(t *testing.T) {
	p := speaker{relay.Anthropic, messagesPath, true}
	s := newStage(t, noRm()...)
	answer := p.say("I look", [3]string{"c1", "Bash", rm})
	s.scripted(p, answer)
	claude := []string{"User-Agent", "claude-cli/2.1"}
	hooked := func(c *gateway.Config) { c.Answers, c.Hooked, c.Diverge = true, true, true }
	for name, change := range map[string]func(*gateway.Config){"hooked": hooked, "off": func(c *gateway.Config) { c.Session = "b" }} {
		r := s.start(change)
		_, body := r.post(p.dialect, p.path, p.request(), claude...)
		require.Equal(t, answer, body, name)
		require.Empty(t, r.uses())
		r.stop()
	}
	r := s.start(hooked)
	_, body := r.post(p.dialect, p.path, strings.Replace(p.request(), `"x"`, `"y"`, 1)) // a program that Claude Code has started
	require.NotContains(t, body, "rm -rf")
	r.stop()

	r = s.start(judging, func(c *gateway.Config) { c.Session = "c" })
	files := r.connect("files?hold=100ms")
	files.say(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	require.Contains(t, files.hear(), `"tools"`)
	answer = p.say("I write", [3]string{"c1", "mcp__files__append", ls})
	s.scripted(p, answer)
	_, body = r.post(p.dialect, p.path, p.request())
	require.Equal(t, answer, body)
	require.Len(t, r.uses(), 4)
	answer = p.say("I write", [3]string{"c1", "mcp__other__append", ls}) // no such server comes through the gateway
	s.scripted(p, answer)
	_, body = r.post(p.dialect, p.path, strings.Replace(p.request(), `"x"`, `"y"`, 1))
	require.Equal(t, answer, body)
	require.Len(t, r.uses(), 5)
	require.NoError(t, gateway.ComesThrough(r.url("mcp", ""), "other")) // now it does
	require.Error(t, gateway.ComesThrough(r.url("mcp", ""), strings.Repeat("n", 101)))
	_, body = r.post(p.dialect, p.path, strings.Replace(p.request(), `"x"`, `"z"`, 1))
	require.Equal(t, answer, body)
	require.Len(t, r.uses(), 5)
}

// What a policy sees of a call is what the agent runs: an id of earlier, members twice or in another case, and input that is no JSON hide nothing.
func TestNothingHidesACallInAnAnswer(t *testing.T) {
	p := speaker{relay.OpenAI, chatPath, false}
	s := newStage(t, noRm()...)
	r := s.start(judging)
	asks := 0
	post := func(answer string) string {
		s.scripted(p, answer, p.say("done"))
		asks++
		_, body := r.post(p.dialect, p.path, strings.Replace(p.request(), `"x"`, fmt.Sprintf(`"%d"`, asks), 1))
		return body
	}
	one := func(call string) string {
		return `{"choices":[{"message":{"tool_calls":[` + call + `]}}]}`
	}
	require.Contains(t, post(p.say("", [3]string{"c1", "Bash", ls})), ls[1:9])
	for name, answer := range map[string]string{
		"an id again":        p.say("", [3]string{"c1", "Bash", rm}),
		"no id":              p.say("", [3]string{"", "Bash", rm}),
		"a member twice":     one(`{"id":"a","function":{"name":"ls","arguments":"{}"},"function":{"name":"Bash","arguments":"{\"command\":\"rm x\"}"}}`),
		"an escaped member":  one(`{"id":"a","f\u0075nction":{"name":"Bash","arguments":"{\"command\":\"rm x\"}"}}`),
		"another case":       one(`{"id":"a","function":{"name":"Bash","arguments":"{\"command\":\"rm x\"}"},"Function":{"name":"ls","arguments":"{}"}}`),
		"arguments twice":    one(`{"id":"a","function":{"name":"Bash","arguments":"{\"command\":\"ls\",\"command\":\"rm x\"}"}}`),
		"no JSON":            one(`{"id":"a","function":{"name":"Bash","arguments":"rm x"}}`),
		"the second choice":  `{"choices":[{"message":{"content":"hi"}},{"message":{"tool_calls":[{"id":"a","function":{"name":"Bash","arguments":"{\"command\":\"rm x\"}"}}]}}]}`,
		"an old call":        `{"choices":[{"message":{"function_call":{"name":"Bash","arguments":"{\"command\":\"rm x\"}"}}}]}`,
		"too many":           p.say("", slices.Repeat([][3]string{{"c1", "Bash", ls}}, 257)...),
		"a broken answer":    `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"Bash","arguments":"{\"command\":\"rm x\"}"}}]}}]`,
		"another tool's end": p.say("", [3]string{"c1", "Bash", ls}, [3]string{"c1", "Bash", rm}),
	} {
		require.NotContains(t, post(answer), "Bash", name)
	}
	asks = 1000
	s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "rm x")
	})
	_, body := r.post(p.dialect, p.path, p.request())
	require.Contains(t, body, "cannot be judged")
}

// A call that was let through and has no result when the agent ends ill is in doubt; where the agent ends well it was its last word.
func TestALastCallIsNotInDoubt(t *testing.T) {
	p := speaker{relay.OpenAI, "/v1/responses", true}
	s := newStage(t, noRm()...)
	s.scripted(p, p.say("", [3]string{"c1", "final_answer", ls}))
	for code, doubts := range map[int]int{0: 0, 1: 1} {
		r := s.start(judging, func(c *gateway.Config) { c.Session = fmt.Sprint("s", code) })
		r.post(p.dialect, p.path, p.request())
		summary, err := r.g.Close(context.Background(), code)
		require.NoError(t, err)
		require.Equal(t, doubts, summary.InDoubt)
		r.stop()
	}
}

// Agents such as Codex run a call as soon as they have it whole. So an answer that was cut off behind a call ends before the first
// call, then and after a restart: nobody judged it.
func TestACutAnswerHasNoCalls(t *testing.T) {
	for name, p := range speakers() {
		if !p.stream {
			continue // no agent reads half of a JSON
		}
		t.Run(name, func(t *testing.T) {
			s := newStage(t, noRm()...)
			whole := p.say("I look", [3]string{"c1", "Bash", rm}, [3]string{"c2", "Bash", ls})
			s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", p.kind())
				_, _ = io.WriteString(w, whole[:len(whole)*9/10])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			})
			for _, change := range []func(*gateway.Config){judging, judging, offline} {
				r := s.start(change)
				resp, err := http.Post(r.url(p.dialect, p.path), "application/json", strings.NewReader(p.request()))
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.Error(t, err, "it looks whole")
				require.NoError(t, resp.Body.Close())
				require.Contains(t, string(got), "I look")
				require.NotContains(t, string(got), "Bash")
				require.NotContains(t, string(got), "c1")
				r.stop()
			}
		})
	}
}
