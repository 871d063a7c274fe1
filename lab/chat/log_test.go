package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/chat"
)

// conversation is one of two turns with a call, and a second answer, as an API has its requests and answers.
type conversation struct{ ask1, answer1, ask2, answer2 string }

var conversations = map[string]conversation{
	"Messages": {
		`{"model":"m","max_tokens":9,"system":"s","messages":[{"role":"user","content":"hi"}]}`,
		`{"id":"m1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look"},{"type":"tool_use","id":"a","name":"look","input":{"q":1}}]}`,
		`{"model":"m","max_tokens":9,"system":"t","messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},
			{"role":"assistant","content":[{"type":"text","text":"I look"},{"type":"tool_use","id":"a","name":"look","input":{"q":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"fine"}]}]}`,
		`{"id":"m2","type":"message","role":"assistant","content":[{"type":"text","text":"bye"}]}`,
	},
	"Chat Completions": {
		`{"model":"m","tools":[{}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}`,
		`{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"I look","tool_calls":[{"id":"a","function":{"name":"look","arguments":"{\"q\":1}"}}]}}]}`,
		`{"model":"m","tools":[{}],"messages":[{"role":"system","content":"t"},{"role":"user","content":"hi"},
			{"role":"assistant","content":"I look","tool_calls":[{"id":"a","function":{"name":"look","arguments":"{\"q\": 1}"}}]},{"role":"tool","tool_call_id":"a","content":"fine"}]}`,
		`{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"bye"}}]}`,
	},
	"Responses": {
		`{"model":"m","input":"hi"}`,
		`{"id":"r1","object":"response","output":[{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"a","name":"look","arguments":"{\"q\":1}"}]}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","call_id":"a","name":"look","arguments":"{\"q\":1}"},{"type":"function_call_output","call_id":"a","output":"fine"}]}`,
		`{"id":"r2","object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"bye"}]}]}`,
	},
	"Responses that name the one before": {
		`{"model":"m","input":"hi"}`,
		`{"id":"r1","object":"response","output":[{"type":"function_call","call_id":"a","name":"look","arguments":"{\"q\":1}"}]}`,
		`{"model":"m","previous_response_id":"r1","input":[{"type":"function_call_output","call_id":"a","output":"fine"}]}`,
		`{"id":"r2","object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"bye"}]}]}`,
	},
}

func flat(s string) string { return strings.NewReplacer("\n", "", "\t", "").Replace(s) }

// TestALogOfAnAPIIsReadAsConversations: each call is found once, however often requests repeat it.
func TestALogOfAnAPIIsReadAsConversations(t *testing.T) {
	for name, c := range conversations {
		pair := func(ask, answer string) string {
			return `{"request":` + flat(ask) + `,"response":` + flat(answer) + `}`
		}
		text := func(ask, answer string) string {
			return fmt.Sprintf(`{"request_body":%q,"response_body":{"status_code":200,"body":%s}}`, flat(ask), flat(answer))
		}
		for form, log := range map[string]string{
			"lines":  pair(c.ask1, c.answer1) + "\n" + pair(c.ask2, c.answer2),
			"array":  "[" + pair(c.ask1, c.answer1) + "," + pair(c.ask2, c.answer2) + "]",
			"bodies": text(c.ask1, c.answer1) + "\n" + text(c.ask2, c.answer2),
			"alone":  flat(c.ask1) + "\n" + flat(c.answer1) + "\n" + c.ask2 + "\n" + c.answer2,
			"failed": pair(c.ask1, `{"type":"error","error":{"type":"overloaded_error"}}`) + pair(c.ask1, c.answer1) + pair(c.ask2, c.answer2),
		} {
			rec, err := chat.Read("f", []byte(log))
			require.NoError(t, err, "%s, %s", name, form)
			s := rec.Sums()
			require.Equal(t, []int{1, 1, 0}, []int{s.Runs, s.Calls, s.Lost}, "%s, %s: %+v", name, form, s)
		}
		rec, err := chat.Read("f", []byte(flat(c.answer1)+flat(c.answer1))) // answers alone: nobody knows what came of their calls
		require.NoError(t, err, name)
		require.Equal(t, []int{2, 2, 2}, []int{rec.Sums().Runs, rec.Sums().Calls, rec.Sums().Lost}, name)
		side := pair(strings.Replace(c.ask1, "hi", "title?", 1), strings.Replace(c.answer2, "bye", "Looking", 1)) // another conversation in between
		rec, err = chat.Read("f", []byte(pair(c.ask1, c.answer1)+side+pair(c.ask2, c.answer2)))
		require.NoError(t, err, name)
		require.Equal(t, []int{2, 1}, []int{rec.Sums().Runs, rec.Sums().Calls}, name)
	}
}

// TestALogThatIsNotUnderstoodNamesItsLine and gives no world without its calls.
func TestALogThatIsNotUnderstoodNamesItsLine(t *testing.T) {
	c := conversations["Messages"]
	ok := `{"request":` + flat(c.ask1) + `,"response":` + flat(c.answer1) + "}\n"
	for line, want := range map[string]string{
		`{"request":{"model":"m","contents":[]},"response":{}}`:                                                                                            "f:2: run 1: request: want a request of",
		`{"request":` + flat(c.ask1) + `,"response":{"candidates":[]}}`:                                                                                    "f:2: run 1: response: want an answer of",
		`{"request":` + flat(c.ask1) + `,"response":"data: {}"}`:                                                                                           "f:2: run 1: response: ",
		`{"request":` + strings.ReplaceAll(flat(c.ask2), "tool_use", "toolUse") + `,"response":null}`:                                                      "f:2: run 1, message 1: request: content[1]: blocks of type",
		`{"request":` + flat(c.ask1) + `,"response":` + strings.ReplaceAll(flat(c.answer1), `"tool_use"`, `"function_use"`) + `}`:                          "f:2: run 1: response: content[2]: blocks of type",
		`{"request":` + flat(c.ask1) + `,"response":{"choices":[{"message":{"role":"assistant","content":"x"}},{"message":{"tool_calls":[{"id":"1"}]}}]}}`: "f:2: run 1: response: choices: calls in any but the first",
		`{"model":"m","input":[{"type":"item_reference","id":"x"}]}`:                                                                                       "f:2: run 1, message 0: request: items of type",
		`{"model":"m","previous_response_id":"r0","input":[{"type":"function_call_output","call_id":"q","output":"x"}]}`:                                   "f:2: run 1, message 0: an answer has no call",
		`{"event":"x"}`:               "f:2: run 1: want a request, an answer or both",
		`{"request":{},"request":{}}`: "f:2: run 1: canon: $: duplicate key",
	} {
		_, err := chat.Read("f", []byte(ok+line))
		require.ErrorContains(t, err, want, line)
	}
}

// FuzzRead: what is read does not crash, is read equally each time, and each call is a tool's that the world knows.
func FuzzRead(f *testing.F) {
	for _, c := range conversations {
		f.Add([]byte(c.ask1 + c.answer1 + c.ask2 + c.answer2))
		f.Add([]byte(`[{"request":` + c.ask1 + `,"response":` + c.answer1 + `}]`))
	}
	f.Add([]byte(claudeTranscript))
	f.Add([]byte(codexTranscript))
	f.Add([]byte(inspectLog(inspectSample)))
	f.Add(archive(f, archived{"samples/a_epoch_2.json", inspectSample, 93}))
	f.Add(archive(f, archived{"samples/a_epoch_2.json", inspectSample, 8}))
	f.Add([]byte(`[{"id":3,"messages":[{"role":"assistant","content":[{"type":"mcp_tool_use","id":"1","name":"look","input":{}}]}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := chat.Read("f", data)
		if err != nil {
			var fault *chat.Error
			require.ErrorAs(t, err, &fault)
			return
		}
		again, err := chat.Read("f", data)
		require.NoError(t, err)
		require.Equal(t, rec, again)
		s := rec.Sums()
		require.Positive(t, s.Runs)
		require.LessOrEqual(t, s.Failed+s.Lost, s.Calls)
	})
}
