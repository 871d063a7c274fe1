package worldtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// said is what an agent asks its model.
type said struct {
	Messages []struct {
		Role      string `json:"role"`
		Content   any    `json:"content"`
		ToolCall  string `json:"tool_call_id"`
		ToolCalls []any  `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name, Description string
			Parameters        map[string]any
		} `json:"function"`
	} `json:"tools"`
}

// ended is what the tests look at of an agent's state.
type ended struct {
	Status, Answer, Reason string
	Turns, Tokens, Ended   int
	Estimated              int
	Messages               []struct {
		Role    string
		Content any
	}
}

// agent is an agent whose model says one thing after the other, and whose tools give
// what is scripted. asked gets all that the model was asked.
func agent(t *testing.T, model []worldtest.Reply, tool func(receipt.Permit) worldtest.Reply) (w *worldtest.World, asked *[]said) {
	asked = new([]said)
	seen := make(map[string]worldtest.Reply) // the outside is asked again after a crash
	return worldtest.Load(t, "testdata/agent", worldtest.Options{Answer: func(p receipt.Permit) worldtest.Reply {
		if p.Kind != "model.ask" {
			return tool(p)
		}
		id := fmt.Sprint(p.Step, p.Attempt)
		if r, ok := seen[id]; ok {
			return r
		}
		var x said
		text, err := canon.ToJSON(p.Params)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &x))
		*asked = append(*asked, x)
		require.LessOrEqual(t, len(*asked), len(model), "the model is asked too often")
		seen[id] = model[len(*asked)-1]
		return seen[id]
	}}), asked
}

// says is a model that says something; calls are pairs of tool and arguments.
func says(text string, calls ...string) worldtest.Reply {
	message := map[string]any{"role": "assistant", "content": text}
	var list []any
	for i := 0; i < len(calls); i += 2 {
		list = append(list, map[string]any{
			"id": fmt.Sprint("c", i/2), "type": "function", "function": map[string]any{"name": calls[i], "arguments": calls[i+1]},
		})
	}
	if list != nil {
		message["tool_calls"] = list
	}
	return worldtest.OK(map[string]any{"message": message, "usage": map[string]any{"total_tokens": 100}})
}

func state(t *testing.T, w *worldtest.World) (x ended) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(w.State("agent/a")), &x))
	w.RequireReplay()
	return x
}

func noTool(t *testing.T) func(receipt.Permit) worldtest.Reply {
	return func(p receipt.Permit) worldtest.Reply { t.Errorf("%s was asked for", p.Kind); return worldtest.OK(nil) }
}

func TestAnAgentAnswers(t *testing.T) {
	w, asked := agent(t, []worldtest.Reply{says("Hello."), says("Again.")}, noTool(t))
	w.Submit("said", map[string]any{"text": "hi"})
	w.Run()
	x := state(t, w)
	require.Equal(t, ended{Status: "done", Answer: "Hello.", Turns: 1, Tokens: 100, Ended: 1, Messages: x.Messages}, x)
	require.Equal(t, "system", (*asked)[0].Messages[0].Role)
	require.Equal(t, "You help.", (*asked)[0].Messages[0].Content)
	names := make([]string, 0, 3)
	for _, tool := range (*asked)[0].Tools {
		names = append(names, tool.Function.Name)
	}
	require.Equal(t, []string{"tool_add", "tool_find", "tool_price", "ask_person"}, names, "and not what is not listed")
	require.Equal(t, "Finds.", (*asked)[0].Tools[1].Function.Description)
	require.Equal(t, map[string]any{"type": "object", "properties": map[string]any{"q": map[string]any{"type": "string"}}}, (*asked)[0].Tools[1].Function.Parameters)

	w.Submit("said", map[string]any{"text": "and now?"})
	w.Run()
	require.Equal(t, 2, state(t, w).Ended)
	require.Len(t, (*asked)[1].Messages, 4, "with what was said before")
}

func TestAnAgentsToolsRunSideBySideAndTellTheModel(t *testing.T) {
	w, asked := agent(t, []worldtest.Reply{
		says("", "tool_add", `{"a": 1}`, "tool_find", `{"q": "x"}`, "tool_add", `{"a": "one"}`, "tool_find", `{"x": 1}`,
			"rm", `{}`, "tool_add", `{`, "tool_add", `{"a": 3}`, "tool_add", `{"a": 4}`),
		says("Done."),
	}, func(p receipt.Permit) worldtest.Reply {
		params, err := canon.ToJSON(p.Params)
		require.NoError(t, err)
		switch string(params) {
		case `{"a":3}`:
			return worldtest.Fail(map[string]any{"code": "broken"})
		case `{"a":4}`:
			return worldtest.OK(strings.Repeat("é", 100))
		case `{"arguments":{"q":"x"}}`:
			return worldtest.OK(map[string]any{"content": []any{map[string]any{"type": "text", "text": "found"}}, "is_error": false})
		}
		return worldtest.OK(map[string]any{"sum": 1})
	})
	w.Submit("said", map[string]any{"text": "work"})
	w.Step(1)
	w.Crash()
	w.Run()
	require.Equal(t, "done", state(t, w).Status)
	var results []string
	for i, m := range (*asked)[1].Messages[3:] {
		require.Equal(t, fmt.Sprint("c", i), m.ToolCall)
		results = append(results, m.Content.(string))
	}
	require.Equal(t, []string{
		`{"sum":1}`, "found",
		`denied: {"code":"bad_params","reason":"p` + " … (cut)",
		`denied: {"code":"no_policy","reason":"no` + " … (cut)",
		"error: there is no tool rm; there are: tool_add, tool_find, tool_price", "error: the arguments are no JSON object",
		`error: {"code":"broken"}`, strings.Repeat("é", 20) + " … (cut)",
	}, results)
}

func TestAnAgentStopsAtItsLimits(t *testing.T) {
	call := says("", "tool_add", `{"a": 1}`)
	ok := func(receipt.Permit) worldtest.Reply { return worldtest.OK(nil) }
	w, _ := agent(t, []worldtest.Reply{call, call, call, call, says("Fresh.")}, ok)
	w.Submit("said", map[string]any{"text": "for ever"})
	w.Run()
	x := state(t, w)
	require.Equal(t, []any{"stopped", "the limit of 4 turns is reached", 4, 1}, []any{x.Status, x.Reason, x.Turns, x.Ended})
	w.Submit("said", map[string]any{"text": "go on"})
	w.Run()
	require.Equal(t, "Fresh.", state(t, w).Answer)

	dear := worldtest.OK(map[string]any{"message": map[string]any{"content": "", "tool_calls": []any{
		map[string]any{"id": "1", "function": map[string]any{"name": "tool_add", "arguments": `{"a": 1}`}},
	}}, "usage": map[string]any{"total_tokens": 1000}})
	w, _ = agent(t, []worldtest.Reply{dear}, ok)
	w.Submit("said", map[string]any{"text": "dear"})
	w.Run()
	require.Equal(t, "the limit of 1000 tokens is reached", state(t, w).Reason)
}

func TestAnAgentSurvivesItsModel(t *testing.T) {
	broken := worldtest.Fail(map[string]any{"code": "http_500"})
	w, asked := agent(t, []worldtest.Reply{broken, says("Better.")}, noTool(t))
	w.Submit("said", map[string]any{"text": "hi"})
	w.Run()
	require.Equal(t, "Better.", state(t, w).Answer)
	require.Len(t, *asked, 2)

	w, _ = agent(t, []worldtest.Reply{broken, worldtest.OK("no completion"), says("Later.")}, noTool(t))
	w.Submit("said", map[string]any{"text": "hi"})
	w.Run()
	x := state(t, w)
	require.Equal(t, []any{"failed", `the model: no completion`, 1}, []any{x.Status, x.Reason, x.Ended})
	w.Submit("said", map[string]any{"text": "now?"})
	w.Run()
	require.Equal(t, "Later.", state(t, w).Answer)
}

func TestAnAgentAsksAPersonAndIsTold(t *testing.T) {
	w, asked := agent(t, []worldtest.Reply{
		says("", "ask_person", `{"question": "Which?"}`, "tool_add", `{"a": 1}`), says("The red one, then."),
	}, func(receipt.Permit) worldtest.Reply { return worldtest.OK(2) })
	w.Submit("said", map[string]any{"text": "buy it"})
	w.Run()
	require.Equal(t, "asking", state(t, w).Status)
	w.Submit("said", map[string]any{"text": "red"})
	w.Run()
	require.Equal(t, "The red one, then.", state(t, w).Answer)
	last := (*asked)[1].Messages
	require.Equal(t, []any{"red", "2"}, []any{last[3].Content, last[4].Content})
}

func TestWhatIsSaidWhileAnAgentWorksIsHeard(t *testing.T) {
	w, asked := agent(t, []worldtest.Reply{says("First."), says("Second.")}, noTool(t))
	w.Submit("said", map[string]any{"text": "one"})
	w.Submit("said", map[string]any{"text": "two"})
	w.Run()
	x := state(t, w)
	require.Equal(t, []any{"Second.", 1}, []any{x.Answer, x.Ended}, "it ends once nobody has anything to add")
	require.Equal(t, "two", (*asked)[1].Messages[3].Content)
}

func TestAnAgentsContextIsShortened(t *testing.T) {
	call := says("", "tool_add", `{"a": 1}`)
	w, asked := agent(t, []worldtest.Reply{call, call, says("Short.")}, func(receipt.Permit) worldtest.Reply { return worldtest.OK(1) })
	w.Submit("said", map[string]any{"text": "long", "keep": 2})
	w.Run()
	require.Len(t, (*asked)[1].Messages, 4)
	var roles []string
	for _, m := range (*asked)[2].Messages {
		roles = append(roles, m.Role)
	}
	require.Equal(t, []string{"system", "user", "assistant", "tool"}, roles, "the task, and no result without its call")
	require.Equal(t, "long", (*asked)[2].Messages[1].Content)
	require.Equal(t, "Short.", state(t, w).Answer)
}

// What a model may say at once, and all of it together, is within the gas that a reducer has by default.
func TestAConversationThatGrowsTooLongStopsItsAgent(t *testing.T) {
	long := says(strings.Repeat("so, ", 60<<10), "tool_add", `{"a": 1}`)
	w, _ := agent(t, []worldtest.Reply{long, long, long, long, long, long, long, long}, func(receipt.Permit) worldtest.Reply {
		return worldtest.OK(1)
	})
	for range 3 {
		w.Submit("said", map[string]any{"text": strings.Repeat("on ", 50<<10)})
		w.Run()
	}
	x := state(t, w)
	require.Equal(t, "stopped", x.Status)
	require.Regexp(t, `^the conversation has \d+ bytes, more than 1048576`, x.Reason)
}

func TestTokensAreEstimatedWhereAServerCannotBeRight(t *testing.T) {
	for name, usage := range map[string]any{
		"missing":       nil,
		"empty":         map[string]any{},
		"zero":          map[string]any{"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
		"negative":      map[string]any{"prompt_tokens": -5, "completion_tokens": 2, "total_tokens": -3},
		"a float":       map[string]any{"prompt_tokens": 3.5, "completion_tokens": 2, "total_tokens": 5.5},
		"absurd":        map[string]any{"total_tokens": 1_000_000_000_000},
		"half":          map[string]any{"input_tokens": 3},
		"no map":        []any{1, 2},
		"text":          map[string]any{"total_tokens": "12"},
		"total of less": map[string]any{"total_tokens": nil, "prompt_tokens": true},
	} {
		answer := worldtest.OK(map[string]any{"message": map[string]any{"content": "Hello."}, "finish_reason": "stop", "usage": usage})
		w, _ := agent(t, []worldtest.Reply{answer}, noTool(t))
		w.Submit("said", map[string]any{"text": "hi"})
		w.Run()
		x := state(t, w)
		require.Equal(t, "done", x.Status, name)
		require.Equal(t, x.Estimated, x.Tokens, name)
		require.Greater(t, x.Tokens, 50, "%s: what was asked, with its tools", name)
		require.Less(t, x.Tokens, 1000, name)
	}
	for name, usage := range map[string]any{
		"total":     map[string]any{"total_tokens": 100},
		"parts":     map[string]any{"prompt_tokens": 60, "completion_tokens": 40},
		"Anthropic": map[string]any{"input_tokens": 10, "output_tokens": 40, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20},
		"Responses": map[string]any{"input_tokens": 60, "output_tokens": 40, "total_tokens": 100},
		"Gemini":    map[string]any{"promptTokenCount": 60, "candidatesTokenCount": 40, "totalTokenCount": 100},
		"Ollama":    map[string]any{"prompt_eval_count": 60, "eval_count": 40},
	} {
		answer := worldtest.OK(map[string]any{"message": map[string]any{"content": "Hello."}, "finish_reason": "stop", "usage": usage})
		w, _ := agent(t, []worldtest.Reply{answer}, noTool(t))
		w.Submit("said", map[string]any{"text": "hi"})
		w.Run()
		x := state(t, w)
		require.Equal(t, []int{100, 0}, []int{x.Tokens, x.Estimated}, name)
	}
}

func TestATaskIsNotDoneWithoutAWholeAnswer(t *testing.T) {
	call := []any{map[string]any{"id": "1", "function": map[string]any{"name": "tool_add", "arguments": `{"a": 1}`}}}
	for _, of := range []struct {
		payload                map[string]any
		status, answer, reason string
	}{
		{map[string]any{"message": map[string]any{"refusal": "I won't."}}, "failed", "", "the model refuses: I won't."},
		{map[string]any{"message": map[string]any{"content": []any{map[string]any{"type": "refusal", "refusal": "No."}}}}, "failed", "", "the model refuses: No."},
		{map[string]any{"message": map[string]any{"content": "half of"}, "finish_reason": "length"}, "stopped", "half of", "the model's message was cut: finish_reason is length"},
		{map[string]any{"message": map[string]any{"content": nil, "tool_calls": call}, "finish_reason": "length"}, "stopped", "", "the model's message was cut: finish_reason is length"},
		{map[string]any{"message": map[string]any{"content": "a"}, "finish_reason": "content_filter"}, "failed", "a", "the model gave no answer: finish_reason is content_filter"},
		{map[string]any{"message": map[string]any{"content": "a"}, "error": map[string]any{"code": 502, "message": "overloaded"}}, "failed", "a", "the model: overloaded"},
		{map[string]any{"message": map[string]any{"function_call": map[string]any{"name": "tool_add"}}}, "failed", "", "the model called a function as function_call, which is not done any more: tools are called by tool_calls"},
		{map[string]any{"message": map[string]any{"content": "let me see"}, "finish_reason": "tool_calls"}, "failed", "let me see", "the model called nothing, though finish_reason is tool_calls"},
		{map[string]any{"message": map[string]any{"content": "let me see", "tool_calls": []any{}}, "finish_reason": "TOOL_USE"}, "failed", "let me see", "the model called nothing, though finish_reason is TOOL_USE"},
		{map[string]any{"message": map[string]any{"content": []any{map[string]any{"type": "text", "text": "see"}, map[string]any{"type": "tool_use", "name": "tool_add"}}}, "finish_reason": "stop"}, "failed", `see{"name":"tool_add","type":"tool_use"}`, "the model called tools in its content: tools are called by tool_calls"},
		{map[string]any{"message": map[string]any{"content": []any{nil, map[string]any{"type": "text", "text": nil}}}, "finish_reason": "stop"}, "failed", "", "the model gave an empty answer"},
		{map[string]any{"message": map[string]any{"content": " \n"}, "finish_reason": "stop"}, "failed", " \n", "the model gave an empty answer"},
		{map[string]any{"message": map[string]any{}}, "failed", "", "the model gave an empty answer"},
		{map[string]any{"message": map[string]any{"content": []any{map[string]any{"type": "text", "text": "in "}, map[string]any{"type": "text", "text": "parts"}}}}, "done", "in parts", ""},
		{map[string]any{"message": map[string]any{"content": "so"}, "finish_reason": "STOP"}, "done", "so", ""},
	} {
		w, asked := agent(t, []worldtest.Reply{worldtest.OK(of.payload), says("Better.")}, noTool(t))
		w.Submit("said", map[string]any{"text": "hi"})
		w.Run()
		var x struct{ Status, Answer, Reason string }
		require.NoError(t, json.Unmarshal([]byte(w.State("agent/a")), &x))
		require.Equal(t, []string{of.status, of.answer, of.reason}, []string{x.Status, x.Answer, x.Reason})
		w.Submit("said", map[string]any{"text": "and now?"})
		w.Run()
		require.Contains(t, w.State("agent/a"), `"answer":"Better."`, "%v", of.payload)
		require.Len(t, *asked, 2)
		w.RequireReplay()
	}
}

func TestWhatAMessageHasBesidesGoesBackToTheModel(t *testing.T) {
	first := worldtest.OK(map[string]any{"message": map[string]any{"role": "assistant", "content": nil, "reasoning_content": "let me see", "tool_calls": []any{
		map[string]any{"id": "1", "index": 0, "extra": "signature", "type": "function", "function": map[string]any{"name": "tool_add", "arguments": `{ "a": 1 }`}},
	}}})
	var back []string
	w := worldtest.Load(t, "testdata/agent", worldtest.Options{Answer: func(p receipt.Permit) worldtest.Reply {
		if p.Kind != "model.ask" {
			return worldtest.OK(1)
		}
		text, err := canon.ToJSON(p.Params)
		require.NoError(t, err)
		if back = append(back, string(text)); len(back) == 1 {
			return first
		}
		return says("Fine.")
	}})
	w.Submit("said", map[string]any{"text": "hi"})
	w.Run()
	require.Equal(t, "Fine.", state(t, w).Answer)
	for _, came := range []string{`"reasoning_content":"let me see"`, `"extra":"signature"`, `"index":0`, `"arguments":"{ \"a\": 1 }"`} {
		require.Contains(t, back[len(back)-1], came)
	}
}

// To a model a tool over HTTP is its arguments and its answer.
func TestAToolOverHTTPIsItsArgumentsAndItsBody(t *testing.T) {
	for body, told := range map[string]map[string]any{
		`{"price":3}`:                   {"status": 200, "headers": map[string]any{"content-type": "application/json"}, "json": map[string]any{"price": 3}},
		"three":                         {"status": 200, "headers": map[string]any{}, "body": "three"},
		"":                              {"status": 204, "headers": map[string]any{}},
		"error: 404 Not Found: no such": {"status": 404, "headers": map[string]any{}, "body": "no such", "code": "http_status", "error": "404 Not Found"},
	} {
		var params string
		w, asked := agent(t, []worldtest.Reply{says("", "tool_price", `{"of": "tea"}`), says("Done.")}, func(p receipt.Permit) worldtest.Reply {
			text, err := canon.ToJSON(p.Params)
			require.NoError(t, err)
			if params = string(text); told["error"] != nil {
				return worldtest.Fail(told)
			}
			return worldtest.OK(told)
		})
		w.Submit("said", map[string]any{"text": "price?"})
		w.Run()
		require.JSONEq(t, `{"json":{"of":"tea"}}`, params)
		last := (*asked)[1].Messages
		require.Equal(t, body, last[len(last)-1].Content)
		require.Equal(t, map[string]any{"type": "object", "properties": map[string]any{"of": map[string]any{"type": "string"}}}, (*asked)[0].Tools[2].Function.Parameters)
	}
}
