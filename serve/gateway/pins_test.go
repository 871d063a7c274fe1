package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// talk is a conversation of an agent in a dialect.
type talk struct {
	dialect, path string
	header        []string
	begin         string // %s: what changes each time
	said          string // a call; %d: which
	result        string // its result; %d: which, %s: what came of it, %s: of the last turn only
	mark, end     string
	answer        string
}

func (k *talk) body(day string, results ...string) string {
	mark := func(last bool) string {
		if last {
			return k.mark
		}
		return ""
	}
	text := fmt.Sprintf(k.begin, day, mark(len(results) == 0))
	for i, of := range results {
		text += "," + fmt.Sprintf(k.said, i) + "," + fmt.Sprintf(k.result, i, of, mark(i == len(results)-1))
	}
	return text + k.end
}

func talks() map[string]*talk {
	return map[string]*talk{
		"claude code": {
			dialect: relay.Anthropic, path: messagesPath, header: []string{"User-Agent", "claude-cli/2.1.332"},
			begin: `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"always"},{"type":"text","text":"git %[1]s","cache_control":{"type":"ephemeral"}}],` +
				`"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>%[1]s"},{"type":"text","text":"do it"%[2]s}]}`,
			said:   `{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{}}]}`,
			result: `{"role":"user","content":[{"tool_use_id":"t%d","type":"tool_result","content":"%s"%s}]}`,
			mark:   `,"cache_control":{"type":"ephemeral"}`, end: `]}`,
			answer: `{"model":"m","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1,"output_tokens":1}}`,
		},
		"codex": {
			dialect: relay.OpenAI, path: "/v1/responses", header: []string{"Originator", "codex_exec"},
			begin: `{"model":"m","instructions":"always","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"in %[1]s"}]},` +
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>%[1]s"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}%[2]s`,
			said:   `{"type":"function_call","call_id":"t%d","name":"exec","arguments":"{}"}`,
			result: `{"type":"function_call_output","call_id":"t%d","output":"%s"}%s`,
			end:    `]}`,
			answer: `{"model":"m","output":[],"usage":{"input_tokens":1,"output_tokens":1}}`,
		},
		"chat": {
			dialect: relay.OpenAI, path: chatPath,
			begin:  `{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"always"},{"role":"user","content":"do it"}%.0[1]s%[2]s`,
			said:   `{"role":"assistant","content":null,"tool_calls":[{"id":"t%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			result: `{"role":"tool","tool_call_id":"t%d","content":"%s"}%s`,
			end:    `]}`,
			answer: `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`,
		},
	}
}

// lastRequest returns the last request that the gate has judged.
func (r *run) lastRequest() (last recorder.Request) {
	r.t.Helper()
	var e receipt.Entry
	r.lw.View(func(m *world.Moment) {
		for _, of := range m.Intents() {
			if of.Intent.Kind == recorder.Call && of.Emitted > e.Emitted {
				e = of
			}
		}
	})
	in, err := view.Journal{Local: r.lw}.Intent(&e)
	require.NoError(r.t, err)
	require.NoError(r.t, canon.Unmarshal(in.Params, &last))
	return last
}

// The model sees one conversation though the agent was started again: what is on record is sent in the place of what has changed since,
// byte for byte as the first start would have sent it, and what it replaced is on record. A first start sends its own bytes.
func TestAStartedAgentGoesOnWithTheRecordedConversation(t *testing.T) {
	for name, k := range talks() {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.answers(http.StatusOK, "application/json", k.answer)
			r := s.start()
			sends := func(sent, want string) recorder.Request {
				t.Helper()
				paid := s.paid.Load()
				status, body := r.post(k.dialect, k.path, sent, k.header...)
				require.Equal(t, http.StatusOK, status, body)
				require.Equal(t, paid+1, s.paid.Load())
				require.Equal(t, want, string(*s.body.Load()))
				last := r.lastRequest()
				require.Equal(t, want, string(last.Body), "the receipt is about what was sent")
				return last
			}
			for n := range 3 { // with no, one and two results
				own := k.body("Monday", []string{"one", "two"}[:n]...)
				require.Empty(t, sends(own, own).Replaced)
			}
			r.stop()

			r = s.start()
			for n := range 3 {
				_, answer := r.post(k.dialect, k.path, k.body("Tuesday", []string{"one", "TWO"}[:n]...), k.header...)
				require.Equal(t, k.answer, answer)
			}
			require.EqualValues(t, 3, s.paid.Load())
			last := sends(k.body("Tuesday", "one", "TWO", "three"), k.body("Monday", "one", "two", "three"))
			var was strings.Builder
			for _, part := range last.Replaced {
				was.Write(part)
			}
			require.Contains(t, was.String(), "TWO")
			require.NotContains(t, was.String(), "three")
			require.Equal(t, strings.Contains(k.begin, "%[1]s"), strings.Contains(was.String(), "Tuesday"))
			sends(k.body("Tuesday", "one", "TWO", "three", "four"), k.body("Monday", "one", "two", "three", "four"))
			sends(k.body("Tuesday", "one", "cleared", "three", "four", "five"), k.body("Monday", "one", "cleared", "three", "four", "five"))
			require.Equal(t, 3, r.stop().Calls)

			r = s.start(func(c *gateway.Config) { c.Offline = true })
			_, answer := r.post(k.dialect, k.path, k.body("Friday", "one", "TWO", "three"), k.header...)
			require.Equal(t, k.answer, answer)
			require.Nil(t, r.stop().Divergence)
		})
	}
}

// What stands in another order than on record is left as it is: no result is lost or told twice.
func TestResultsInAnotherOrderAreNotReplaced(t *testing.T) {
	const begin = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	const a, b, more = `,{"role":"tool","tool_call_id":"a","content":"%d"}`, `,{"role":"tool","tool_call_id":"b","content":"%d"}`, `,{"role":"assistant","content":"a"},{"role":"user","content":"more"}]}`
	s := newStage(t)
	r := s.start()
	r.post(relay.OpenAI, chatPath, begin+fmt.Sprintf(a, 1)+fmt.Sprintf(b, 1)+"]}")
	r.stop()
	r = s.start()
	r.post(relay.OpenAI, chatPath, begin+fmt.Sprintf(b, 2)+fmt.Sprintf(a, 2)+"]}")
	require.EqualValues(t, 1, s.paid.Load())
	sent := begin + fmt.Sprintf(b, 2) + fmt.Sprintf(a, 2) + more
	r.post(relay.OpenAI, chatPath, sent)
	require.EqualValues(t, 2, s.paid.Load())
	require.Equal(t, sent, string(*s.body.Load()))
}
