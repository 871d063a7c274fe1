package worldtest_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// recordings are of real agents, and not in this repository.
const recordings = "../../../shared/data/airline/runs.json"

// hostile is a model that says what others have said, changed at random; fair, it gives an answer.
type hostile struct {
	*attack.Attempt
	said  []any // messages
	wrong []any // what takes the place of anything
	fair  bool
}

// answer answers as the adapter llm and the tools do.
func (h *hostile) answer(t *testing.T) worldtest.Script {
	return func(p receipt.Permit) worldtest.Reply {
		if p.Kind != "model.ask" {
			return worldtest.OK(map[string]any{"sum": 1})
		}
		params, err := canon.ToJSON(p.Params)
		require.NoError(t, err)
		requireSound(t, params)
		if h.fair {
			return says("fine")
		}
		return worldtest.OK(h.answers())
	}
}

// hostileMessages returns what models have said, and what takes the place of anything in it.
func hostileMessages(t *testing.T) (said, wrong []any) {
	require.NoError(t, json.Unmarshal([]byte(`[
		{"role": "assistant", "content": "Hello."},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "tool_add", "arguments": "{\"a\": 1}"}}]},
		{"role": "assistant", "content": "", "reasoning_content": "let me see", "tool_calls": [
			{"id": "c1", "type": "function", "function": {"name": "tool_add", "arguments": "{\"a\": 1}"}},
			{"id": "c2", "index": 1, "type": "function", "function": {"name": "tool_find", "arguments": "{\"q\": \"x\"}"}, "extra_content": {"thought_signature": "s"}},
			{"id": "c3", "type": "function", "function": {"name": "ask_person", "arguments": "{\"question\": \"Which?\"}"}}]},
		{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]},
		{"role": "assistant", "content": null, "refusal": "no"},
		{"role": "assistant", "content": null, "function_call": {"name": "tool_add", "arguments": "{\"a\": 1}"}}
	]`), &said))
	require.NoError(t, json.Unmarshal([]byte(`[null, true, false, 0, -1, 0.5, 1e300, 12345678901234567890, "", " ", "\u0000", "c1", "[1]", "{", "null", "\"{}\"",
		"{\"a\": 1}], [{\"a\": 2}", "{\"a\": 1}, {\"b\": 2}", [], [null], [[]], [1, "a"], {}, {"0": {}}, {"a": {"b": []}}, "tool_add", "tool add", "ask_person",
		{"function": null}, {"function": "tool_add"}, {"function": {"name": 7}}, {"function": {"name": "tool_add", "arguments": [1]}},
		{"id": null, "function": {"name": "tool_add", "arguments": {"a": 1}}}, {"type": "custom", "custom": {"name": "x", "input": "y"}},
		{"type": "text"}, {"type": "text", "text": {"value": "v"}}, {"type": "refusal", "refusal": "no"}, {"message": "m"}, "length", "content_filter", "error", "STOP"]`), &wrong))
	wrong = append(wrong, strings.Repeat("x", 300<<10), strings.Repeat("[", 62)+strings.Repeat("]", 62), `{"a":`+strings.Repeat("[", 60)+strings.Repeat("]", 60)+"}",
		`{"a": `+strings.Repeat("7", 100_000)+"}", strings.Repeat(`{"a": 1e999}`, 3), slices.Repeat([]any{said[1].(map[string]any)["tool_calls"].([]any)[0]}, 70))
	if text, err := os.ReadFile(recordings); err == nil {
		var runs []struct{ Traj []map[string]any }
		require.NoError(t, json.Unmarshal(text, &runs))
		for _, run := range runs {
			for _, m := range run.Traj {
				if m["role"] == "assistant" {
					said = append(said, m)
				}
			}
		}
	} else {
		t.Logf("the recording is not here, so only messages made up are changed: %v", err)
	}
	return said, wrong
}

// answers returns the payload of the adapter llm.
func (h *hostile) answers() map[string]any {
	pick := func(of ...any) any { return of[h.IntN(len(of))] }
	payload := map[string]any{
		"message":       pick(h.said...),
		"finish_reason": pick("stop", "stop", "tool_calls", nil),
		"usage":         map[string]any{"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
	}
	for range h.IntN(4) {
		payload = h.changed(payload, 0).(map[string]any)
	}
	if h.IntN(20) == 0 {
		payload["error"] = pick(h.wrong...)
	}
	return payload
}

// changed returns a copy of a value in which one thing is another.
func (h *hostile) changed(v any, depth int) any {
	if depth > 0 && h.IntN(4) == 0 {
		return h.wrong[h.IntN(len(h.wrong))]
	}
	switch v := v.(type) {
	case map[string]any:
		return h.changedMap(v, depth)
	case []any:
		out := slices.Clone(v)
		if len(out) == 0 || h.IntN(4) == 0 {
			return append(out, h.wrong[h.IntN(len(h.wrong))])
		}
		i := h.IntN(len(out))
		out[i] = h.changed(out[i], depth+1)
		return out
	case string:
		if len(v) > 0 {
			i := h.IntN(len(v))
			return strings.ToValidUTF8(v[:i]+string(rune(h.IntN(128)))+v[i+1:], "?")
		}
	}
	return h.wrong[h.IntN(len(h.wrong))]
}

func (h *hostile) changedMap(v map[string]any, depth int) any {
	out := make(map[string]any, len(v))
	names := make([]string, 0, len(v))
	for name, x := range v {
		out[name], names = x, append(names, name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		names = append(names, "new")
	}
	name := names[h.IntN(len(names))]
	switch h.IntN(6) {
	case 0:
		delete(out, name)
	case 1:
		out[[]string{"id", "type", "content", "tool_calls", "refusal", "function_call", "new"}[h.IntN(7)]] = h.wrong[h.IntN(len(h.wrong))]
	default:
		out[name] = h.changed(out[name], depth+1)
	}
	return out
}

// requireSound requires of what a model is asked that a strict server takes it: calls that are calls, each with an
// id of its own, and a result behind each.
func requireSound(t *testing.T, params []byte) {
	var x struct {
		Messages []struct {
			Role      string
			ToolCall  string `json:"tool_call_id"`
			Content   json.RawMessage
			ToolCalls []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	require.NoError(t, json.Unmarshal(params, &x), "%s", params)
	ids := map[string]bool{}
	var open []string
	for _, m := range x.Messages {
		if m.Role == "tool" {
			require.Contains(t, open, m.ToolCall, "%s", params)
			open = slices.DeleteFunc(open, func(id string) bool { return id == m.ToolCall })
			continue
		}
		require.Empty(t, open, "a call has no result: %s", params)
		if content := m.Content; len(m.ToolCalls) == 0 || string(content) != "null" {
			var parts []struct{ Type string }
			if json.Unmarshal(content, new(string)) != nil || string(content) == "null" {
				require.NoError(t, json.Unmarshal(content, &parts), "%s", params)
			}
		}
		for _, call := range m.ToolCalls {
			require.NotEmpty(t, call.ID)
			require.False(t, ids[call.ID], "two calls have the id %q: %s", call.ID, params)
			require.Equal(t, "function", call.Type)
			require.NotEmpty(t, call.Function.Name)
			require.NoError(t, json.Unmarshal([]byte(call.Function.Arguments), new(map[string]any)), "%s", params)
			ids[call.ID], open = true, append(open, call.ID)
		}
	}
	require.Empty(t, open)
}

// Whatever a model says, its agent ends its task with an answer or a reason, and does the next one.
func TestNothingThatAModelSaysHaltsItsAgent(t *testing.T) {
	loaded, err := source.Load("testdata/agent/world.yaml")
	require.NoError(t, err)
	said, wrong := hostileMessages(t)
	attack.Run(t, "hostile model", func(a *attack.Attempt) {
		h := &hostile{Attempt: a, said: said, wrong: wrong}
		w := worldtest.New(t, *loaded.Manifest, loaded.Contents, worldtest.Options{Answer: h.answer(t)})
		for range 3 {
			w.Submit("said", map[string]any{"text": "work"}) // or the answer to what a person was asked
			w.Run()
		}
		h.fair = true
		for range 2 {
			w.Submit("said", map[string]any{"text": "and now?"})
			w.Run()
		}
		var x struct{ Status, Answer string }
		require.NoError(t, json.Unmarshal([]byte(w.State("agent/a")), &x))
		w.RequireReplay()
		if x.Status != "done" || x.Answer != "fine" {
			a.Through("%.2000s", w.State("agent/a"))
		}
	})
}
