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
		Content   string `json:"content"`
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
	Messages               []struct{ Role, Content string }
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
	require.Equal(t, []string{"tool_add", "tool_find", "ask_person"}, names, "and not what is not listed")
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
		results = append(results, m.Content)
	}
	require.Equal(t, []string{
		`{"sum":1}`, "found",
		`denied: {"code":"bad_params","reason":"p` + " … (cut)",
		`denied: {"code":"no_policy","reason":"no` + " … (cut)",
		"error: there is no tool rm; there are: tool_add, tool_find", "error: the arguments are no JSON object",
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
	require.Equal(t, []string{"red", "2"}, []string{last[3].Content, last[4].Content})
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
