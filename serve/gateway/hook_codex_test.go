package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/serve/gateway"
)

// Codex's calls are judged in answers. Its hook keeps what ran before a restart from running again, whichever id it names, and
// the model gets the recorded result in the place of the denial. What is new runs.
func TestWhatCodexRanDoesNotRunAgain(t *testing.T) {
	p := speaker{relay.OpenAI, "/v1/responses", true}
	for _, id := range []string{"c1", "exec-1"} { // that of the model, or one for what its script calls
		s := newStage(t)
		codex := func(c *gateway.Config) { c.Answers, c.Recalls = true, true }
		call := func(id string) string { return p.say("I look", [3]string{id, "exec_command", ls}) }
		answers := []string{call("c1"), call("c2"), call("c3"), p.say("done")}
		s.answersBy(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", p.kind())
			_, _ = io.WriteString(w, answers[s.paid.Load()-1])
		})
		turns := []string{`{"type":"function_call","call_id":"c1","name":"exec_command","arguments":"{}"}`, p.result("c1", "recorded")}
		r := s.start(codex)
		_, body := r.post(p.dialect, p.path, p.request())
		require.Equal(t, answers[0], body)
		require.Empty(t, r.hook("PreToolUse", id, "Bash", list))
		_, body = r.post(p.dialect, p.path, p.request(turns...))
		require.Equal(t, answers[1], body)
		require.Empty(t, r.hook("PreToolUse", strings.ReplaceAll(id, "1", "2"), "Bash", list))
		_, err := r.g.Close(t.Context(), 137) // it may have run
		require.NoError(t, err)
		r.stop()

		r = s.start(codex, again)
		_, body = r.post(p.dialect, p.path, p.request())
		require.Equal(t, answers[0], body)
		require.Contains(t, r.hook("PreToolUse", id, "Bash", list), "ran before the restart")
		turns[1] = p.result("c1", "Command blocked")
		_, body = r.post(p.dialect, p.path, p.request(turns...))
		require.Equal(t, answers[1], body)
		require.Contains(t, r.hook("PreToolUse", strings.ReplaceAll(id, "1", "2"), "Bash", list), "IN DOUBT")
		turns = append(turns, `{"type":"function_call","call_id":"c2","name":"exec_command","arguments":"{}"}`, p.result("c2", "Command blocked: IN DOUBT"))
		_, body = r.post(p.dialect, p.path, p.request(turns...))
		require.Equal(t, answers[2], body)
		asked := string(*s.body.Load())
		require.Contains(t, asked, "recorded")
		require.NotContains(t, asked, `Command blocked"`)
		require.Contains(t, asked, "IN DOUBT")
		require.Empty(t, r.hook("PreToolUse", strings.ReplaceAll(id, "1", "3"), "Bash", list), "it is new")
		require.EqualValues(t, 3, s.paid.Load())
		require.Equal(t, 1, r.stop().ToolsServed)
	}
}
