package relay

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

func read(t *testing.T, dialect, path, body string, header ...string) *Asked {
	t.Helper()
	h := make(http.Header)
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	a, err := Read(dialect, http.MethodPost, path, h, []byte(body))
	require.NoError(t, err)
	return a
}

// What policies see of a request, in each dialect.
func TestWhatARequestAsksForIsRead(t *testing.T) {
	a := read(t, Anthropic, "/v1/messages?beta=true", `{"model":"m","max_tokens":7,"stream":true,"messages":[{"role":"user","content":"hi"}],
		"tools":[{"name":"Bash","input_schema":{}},{"type":"web_search_20250305","name":"web_search"}]}`)
	require.Equal(t, []string{"Bash"}, a.Tools)
	require.Equal(t, []string{"web_search_20250305"}, a.ServerTools)
	require.True(t, a.Stream)
	require.EqualValues(t, 7, a.MaxTokens)
	require.Equal(t, "hi", a.Prompt)

	a = read(t, OpenAI, "/v1/chat/completions", `{"model":"m","max_completion_tokens":8,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"tools":[{"type":"function","function":{"name":"f"}}]}`)
	require.Equal(t, []string{"f"}, a.Tools)
	require.EqualValues(t, 8, a.MaxTokens)
	require.Equal(t, "hi", a.Prompt)

	a = read(t, OpenAI, "/v1/responses", `{"model":"m","max_output_tokens":9,"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],
		"tools":[{"type":"namespace","name":"mcp__x","tools":[{"name":"echo"}]},{"type":"web_search"}]}`)
	require.Equal(t, []string{"mcp__x.echo"}, a.Tools)
	require.Equal(t, []string{"web_search"}, a.ServerTools)
	require.EqualValues(t, 9, a.MaxTokens)
	require.Equal(t, "hi", a.Prompt)

	for _, state := range []string{`"conversation":"c1"`, `"background":true`} {
		_, err := Read(OpenAI, http.MethodPost, "/v1/responses", nil, []byte(`{"model":"m","input":"x",`+state+`}`))
		require.ErrorContains(t, err, "send the input whole")
	}
}

// Results of tools, their order and what an agent is known to change make no other request; what the user or the model
// has said, the model and the system prompt of an unknown agent do.
func TestLineageIsWhatStaysTheSame(t *testing.T) {
	const path = "/v1/messages"
	claude := []string{"User-Agent", "claude-cli/2.1"}
	of := func(system, reminder, said, results string, header ...string) string {
		return read(t, Anthropic, path, `{"model":"m","system":"`+system+`","metadata":{"user_id":"`+reminder+`"},"messages":[
			{"role":"user","content":[{"type":"text","text":"<system-reminder>`+reminder+`"},{"type":"text","text":"do"}]},
			{"role":"assistant","content":[{"type":"text","text":"`+said+`","cache_control":{"type":"ephemeral"}}]},
			{"role":"user","content":[`+results+`]}]}`, header...).Key
	}
	const one, other = `{"type":"tool_result","tool_use_id":"a","content":"x"}`, `{"type":"tool_result","tool_use_id":"b","content":"y"}`
	key := of("s", "r", "ok", one+","+other, claude...)
	require.Equal(t, key, of("s2", "r2", "ok", other+","+one, claude...))
	require.NotEqual(t, key, of("s", "r", "no", one+","+other, claude...))
	require.NotEqual(t, key, of("s", "r", "ok", one, claude...))
	require.NotEqual(t, of("s", "r", "ok", one), of("s2", "r", "ok", one))
	require.NotEqual(t, of("s", "r", "ok", one), of("s", "r2", "ok", one))

	codex := []string{"Originator", "codex_exec"}
	item := func(id, date string) string {
		return read(t, OpenAI, "/v1/responses", `{"model":"m","prompt_cache_key":"`+id+`","client_metadata":{"turn":"`+id+`"},"input":[
			{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>`+date+`"}]},
			{"type":"message","id":"`+id+`","role":"user","content":[{"type":"input_text","text":"do"}]},
			{"type":"function_call","id":"`+id+`","call_id":"c","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"c","output":"`+id+`"}]}`, codex...).Key
	}
	require.Equal(t, item("1", "Monday"), item("2", "Friday"))
}

// What is held begins with what asks for a tool, however the stream is cut into pieces.
func TestAStreamIsHeldFromItsFirstTool(t *testing.T) {
	const text = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hi\"}}\n\n"
	const tool = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Bash\"}}\n\n" + text
	a := &Asked{form: formMessages}
	for size := 1; size < len(text+tool); size += 7 {
		r := newReading(a, true)
		most := 0
		for rest := []byte(text + tool); len(rest) > 0; {
			n := min(size, len(rest))
			flows, err := r.add(rest[:n])
			require.NoError(t, err)
			require.GreaterOrEqual(t, flows, most)
			most, rest = flows, rest[n:]
		}
		require.Equal(t, len(text), most)
		require.Equal(t, "Bash", r.readWhole(a, []byte(text+tool)).Calls[0].Name)
	}
	r := newReading(a, true)
	_, err := r.add(bytes.Repeat([]byte("x"), maxFrame+1))
	require.ErrorIs(t, err, errFrame)
}

// An answer whose usage cannot be costs what it may at most; where usage is not said, it is estimated.
func TestAnImpossibleUsageIsTheGreatest(t *testing.T) {
	for text, want := range map[string]uint64{
		`-5`: maxTokens, `1.5`: maxTokens, `"1000"`: maxTokens, `1e300`: maxTokens, `18446744073709551616`: maxTokens,
		`1000`: 1000, `null`: 0, `0`: 0,
	} {
		for form, body := range map[form]string{
			formChat:      `{"choices":[],"usage":{"prompt_tokens":` + text + `,"completion_tokens":1}}`,
			formResponses: `{"output":[],"usage":{"input_tokens":` + text + `,"output_tokens":1}}`,
			formMessages:  `{"content":[],"usage":{"input_tokens":` + text + `,"output_tokens":1}}`,
		} {
			a := &Asked{form: form}
			usage := newReading(a, false).readWhole(a, []byte(body)).Usage
			require.Equal(t, want+1, usage.Tokens(), body)
			require.False(t, usage.Estimated, body)
			require.Equal(t, want < maxTokens, usage.Believable() > 0, body)
			if form != formMessages && want == maxTokens {
				total := `{"usage":{"prompt_tokens":1,"input_tokens":1,"total_tokens":` + text + `}}`
				require.GreaterOrEqual(t, newReading(a, false).readWhole(a, []byte(total)).Usage.Tokens(), uint64(maxTokens), total)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, path := range []string{"/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1/models"} {
		f.Add(path, []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]},{"role":"assistant","content":"y"}],"tools":[{"type":"function","function":{"name":"f"}}]}`))
		f.Add(path, []byte(`{"model":"m","input":[{"type":"function_call","call_id":"c"},{"type":"function_call_output","call_id":"c"}],"stream":true}`))
	}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		for _, dialect := range []string{OpenAI, Anthropic} {
			a, err := Read(dialect, http.MethodPost, path, nil, body)
			if err != nil {
				continue
			}
			again, err := Read(dialect, http.MethodPost, path, nil, body)
			require.NoError(t, err)
			require.Equal(t, a.Key, again.Key)
			require.LessOrEqual(t, len(a.Prompt), maxPrompt+len("…"))
		}
	})
}

func FuzzReading(f *testing.F) {
	f.Add(byte(1), 3, []byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\"}}]}}]}\n\ndata: [DONE]\n\n"))
	f.Add(byte(2), 5, []byte("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":\"c\"}}\n\n"))
	f.Add(byte(2), 5, []byte("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"f\xa7_call\",\"call_id\":\"c\"}}\n\n"))
	f.Add(byte(3), 7, []byte("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":-1}}}\r\n\r\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":1e99}}\n\n"))
	f.Fuzz(func(t *testing.T, of byte, size int, body []byte) {
		a := &Asked{form: form(of % 4)}
		for _, stream := range []bool{true, false} {
			r := newReading(a, stream)
			flowed := 0
			for rest := body; len(rest) > 0; {
				n := max(1, min(size, len(rest)))
				flows, err := r.add(rest[:n])
				if err != nil {
					return
				}
				require.GreaterOrEqual(t, flows, flowed)
				require.LessOrEqual(t, flows, len(body))
				flowed, rest = flows, rest[n:]
			}
			_, err := canon.Marshal(r.readWhole(a, body))
			require.NoError(t, err)
		}
	})
}

// FuzzSaid holds that whatever a provider answers is read the same in each way: what it asks for can be answered, and goes on as one stream.
func FuzzSaid(f *testing.F) {
	f.Add(byte(1), "text/event-stream", []byte("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"x\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\ndata: [DONE]\n\n"))
	f.Add(byte(1), "", []byte(`{"choices":[{"message":{"function_call":{"name":"f","arguments":"x"},"tool_calls":[{"id":"a","custom":{"name":"g","input":"y"}}]}}]}`))
	f.Add(byte(2), "text/event-stream", []byte("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"local_shell_call\",\"call_id\":\"c\",\"action\":{\"command\":[\"ls\"]}}}\r\n\r\n"))
	f.Add(byte(3), "text/event-stream", []byte("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"partial_json\":\"{}\"}}\n\n"))
	f.Fuzz(func(t *testing.T, of byte, kind string, body []byte) {
		a := &Asked{form: form(of % 4)}
		a.Body = []byte(`{"model":"m","store":false,"messages":[{"role":"user"}],"input":"x"}`)
		answer := &recorder.Answer{Status: http.StatusOK, Header: map[string]string{"content-type": kind}, Body: body}
		s, err := ReadSaid(a, answer)
		if err != nil {
			return
		}
		require.LessOrEqual(t, s.Flows, len(body))
		for _, c := range s.Calls {
			require.True(t, json.Valid(c.Arguments), "%s", c.Arguments)
		}
		if again, err := s.Again(a, make([]string, len(s.Calls))); err == nil && a.form != formOther {
			require.True(t, json.Valid(again), "%s", again)
		}
		if kind == "text/event-stream" {
			on := GoOn(body[:s.Flows], body)
			answer.Body = append(bytes.Clone(body[:s.Flows]), on...)
			_, err = ReadSaid(a, answer)
			require.NoError(t, err)
		}
	})
}
