package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// agentEnv has the test itself be an agent: it asks a model twice about what the user has said, then once more.
const agentEnv = "WORLDKERNEL_TEST_AGENT"

func beAgent() error {
	said := []any{map[string]any{"role": "user", "content": "What is in a.txt?"}}
	for _, next := range []any{
		[]any{map[string]any{"type": "tool_result", "tool_use_id": "t1", "content": "hello from the file"}}, "And in b.txt?", nil,
	} {
		body, err := json.Marshal(map[string]any{"model": "claude-x", "max_tokens": 100, "messages": said, "tools": []any{map[string]any{"name": "read", "input_schema": map[string]any{}}}})
		if err != nil {
			return err
		}
		res, err := http.Post(os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", "application/json", strings.NewReader(string(body))) //nolint:noctx // it ends with the process
		if err != nil {
			return err
		}
		var answer struct{ Content any }
		if err = errors.Join(json.NewDecoder(res.Body).Decode(&answer), res.Body.Close()); err != nil {
			return err
		}
		said = append(said, map[string]any{"role": "assistant", "content": answer.Content}, map[string]any{"role": "user", "content": next})
	}
	return nil
}

// A session of an agent reads as it was spoken: what the user said is there once, though each request has it, then what
// the model said and which tools it asked for.
func TestASessionIsAConversation(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		content := `{"type": "text", "text": "It says hello."}`
		if !strings.Contains(string(body), "tool_result") {
			content = `{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.txt"}}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type": "message", "role": "assistant", "model": "claude-x", "content": [%s], "usage": {"input_tokens": 10, "output_tokens": 5}}`, content)
	}))
	defer provider.Close()
	t.Setenv(agentEnv, "1")
	agent, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	require.Contains(t, worldctl(t, dir, "agent", "run", "--upstream", "anthropic="+provider.URL, "--", agent), "3 made")

	dir = filepath.Join(dir, "worldkernel")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.txt"), []byte("It says nothing."), 0o600))
	fork := filepath.Join(t.TempDir(), "alt")
	require.Contains(t, worldctl(t, dir, "agent", "fork", "--at", "2", "--answer", "other.txt", "--tools", "read", "--upstream", "anthropic="+provider.URL, "-d", fork), "2 made")

	s := look(t, dir, "--manual", dir, fork)
	s.at("#/" + worldID(t, dir) + "/conversations")
	s.await("And in b.txt?")
	s.inOrder("user", "What is in a.txt?", "model.call", "claude-x", "assistant", "Let me look.", "tool.call", `read {"path":"a.txt"}`, "tool", "hello from the file",
		"model.call", "assistant", "It says hello.", "user", "And in b.txt?", "model.call")
	require.Equal(t, 1, strings.Count(s.text(), "\nWhat is in a.txt?\n"), s.text())
	s.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('.item.is-call .fold')[0].click()"))
	s.await(`"max_tokens":100`) // of the body, as text
	s.picture("session")
	s.at("#/" + worldID(t, dir) + "/meters")
	s.await("micros")
	s.at("#/" + worldID(t, dir) + "/compare?a=head&with=" + worldID(t, fork))
	s.await("they differ")
	s.inOrder("micros", "525", "350", "tool.call", `read {"path":"a.txt"}`, "model.call", "claude-x: ", "not asked for")
	s.picture("session-compare")
}
