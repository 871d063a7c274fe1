package worldctl

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A conversation: a cell asks a model for the next message with all of them as params.
const (
	talkWorld = `world: talk
reducers:
  talker: {engine: starlark, source: talker.star, grants: [model]}
events:
  begin:
effects:
  model.ask:
    adapter: http
    config: {url: "%s", method: POST}
    idempotent: true
    on_in_doubt: retry
    retry: {attempts: 9, backoff: 1ms}
caps:
  model: {type: http, params: {schemes: [http], hosts: ["127.0.0.1"], ports: [%s], methods: [POST], paths: [/]}}
policies:
  - {name: all, when: 'true', decide: allow}
routing:
  - {event: begin, reducer: talker, key: '"one"'}
`
	talker = `
def reduce(ctx, state, event):
    if event.name == "begin":
        state = {"left": event.data, "messages": []}
    elif event.data["status"] != "ok":
        fail(event.data)
    else:
        state["messages"].append(event.data["payload"]["body"])
    if state["left"] > 0:
        state["left"] -= 1
        ctx.effect("model.ask", {"json": state["messages"]})
    return state
`
)

// model answers a list of messages with the next one: 800 bytes that say which it is.
type model struct {
	mu    sync.Mutex
	asked map[int]map[string]bool // the keys under which each message was asked for
	kill  int                     // at this message
	at    func()                  // is called
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var messages []string
	if err != nil || json.Unmarshal(body, &messages) != nil {
		return // of a process that was killed
	}
	m.mu.Lock()
	n := len(messages)
	if m.asked[n] == nil {
		m.asked[n] = make(map[string]bool)
	}
	m.asked[n][r.Header.Get("Idempotency-Key")] = true
	if n >= m.kill && m.at != nil { // the message itself may have come before the last kill
		go m.at()
		m.at = nil
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, message(n))
}

// message is the answer to so many messages.
func message(n int) string {
	random := rand.New(rand.NewPCG(uint64(n), 0))
	text := strconv.Itoa(n) + ":"
	for len(text) < 800 {
		text += " " + strconv.FormatUint(random.Uint64()%50_000, 36)
	}
	return text
}

// talkOf makes a world with a conversation of so many calls that nobody has run.
func talkOf(t *testing.T, calls int) (dir string, m *model) {
	t.Helper()
	m = &model{asked: make(map[int]map[string]bool)}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	dir = filepath.Join(t.TempDir(), "talk")
	require.NoError(t, os.Mkdir(dir, 0o700))
	port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), fmt.Appendf(nil, talkWorld, s.URL, port), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "talker.star"), []byte(talker), 0o600))
	worldctl(t, nil, "-w", dir, "init")
	worldctl(t, nil, "-w", dir, "send", "begin", strconv.Itoa(calls))
	return dir, m
}

// runUntil runs the world, and kills it so long after a message, or a later one, was asked for.
func (m *model) runUntil(t *testing.T, dir string, message int, while time.Duration) {
	t.Helper()
	cmd := exec.Command("worldctl", "-w", dir, "run", "-q")
	cmd.Stderr = t.Output()
	m.mu.Lock()
	m.kill, m.at = message, func() {
		time.Sleep(while) //nolint:forbidigo // a random moment, not an event
		_ = cmd.Process.Kill()
	}
	err := cmd.Start()
	m.mu.Unlock()
	require.NoError(t, err)
	require.Error(t, cmd.Wait(), "it was not killed")
}

// TestAConversationOutlivesItsKills: killed at any moment it goes on with the next message,
// asks for none under two keys, and has each once and whole.
func TestAConversationOutlivesItsKills(t *testing.T) {
	const calls, kills = 60, 5
	random := seeded(t)
	dir, m := talkOf(t, calls)
	for i := range kills {
		each := calls / (kills + 1)
		m.runUntil(t, dir, i*each+random.IntN(each), time.Duration(random.IntN(5000))*time.Microsecond)
	}
	worldctl(t, nil, "-w", dir, "run", "-q")
	verified(t, dir)

	require.Len(t, m.asked, calls)
	for n, keys := range m.asked {
		require.Len(t, keys, 1, "message %d", n)
		require.NotContains(t, keys, "")
	}
	talk := states[struct{ Messages []string }](t, dir)["talker/one"]
	require.Len(t, talk.Messages, calls)
	for n, text := range talk.Messages {
		require.Equal(t, message(n), text)
	}
}
