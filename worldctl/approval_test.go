package worldctl

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/recording"
)

// cancels are the recorded calls of tool.cancel_reservation.
const cancels = 16

// airlineWithApproval returns a world of the recorded runs whose cancellations
// need a person's approval, within 300 ticks. It has not run.
func airlineWithApproval(t *testing.T) string {
	t.Helper()
	origin, dir := filepath.Join(t.TempDir(), "airline"), filepath.Join(t.TempDir(), "careful")
	worldctl(t, nil, "import", "chat", recording.Shared(t, recording.Airline), "-w", origin)
	require.NoError(t, os.CopyFS(dir, os.DirFS(origin)))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".world")))
	file := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	careful := strings.Replace(string(text), "\npolicies:\n", `
defaults: {approval_ttl: 300}
policies:
  - {name: ask, when: 'intent.kind == "tool.cancel_reservation"', decide: require_approval}
`, 1)
	require.NotEqual(t, string(text), careful)
	require.NoError(t, os.WriteFile(file, []byte(careful), 0o600))
	worldctl(t, nil, "init", dir)

	var messages bytes.Buffer
	for _, rec := range jsonLines[struct {
		Payload struct {
			Name string          `json:"name"`
			Data json.RawMessage `json:"data"`
			Due  uint64          `json:"due"`
		} `json:"payload"`
	}](t, worldctl(t, nil, "-w", origin, "tail", "--kind", "event.submitted", "-o", "jsonl", "-v")) {
		line, err := json.Marshal(map[string]any{"event": rec.Payload.Name, "data": rec.Payload.Data, "at": rec.Payload.Due})
		require.NoError(t, err)
		messages.Write(append(line, '\n'))
	}
	worldctl(t, &messages, "-w", dir, "send", "-")
	return dir
}

// asked is an intent of an imported run.
type asked struct {
	Key        string          `json:"key"`
	Cell       string          `json:"cell"`
	Kind       string          `json:"kind"`
	State      string          `json:"state"`
	Params     json.RawMessage `json:"params"`
	Decision   string          `json:"decision"`
	Rules      []string        `json:"rules"`
	ParamsHash string          `json:"params_hash"` // of intent show
}

// cancellations returns the intents of tool.cancel_reservation in a state.
func cancellations(t *testing.T, dir, state string) []asked {
	t.Helper()
	var out []asked
	for _, in := range jsonLines[asked](t, worldctl(t, nil, "-w", dir, "intent", "list", "--state", state, "-o", "jsonl")) {
		if in.Kind == "tool.cancel_reservation" {
			out = append(out, in)
		}
	}
	return out
}

// stands returns how many intents of a world are in each state, and whether it
// is idle.
func stands(t *testing.T, dir string) (intents map[string]int, idle bool) {
	t.Helper()
	var s struct {
		Intents map[string]int `json:"intents"`
		Idle    bool           `json:"idle"`
	}
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "status", "-o", "json"), &s))
	return s.Intents, s.Idle
}

func paramsHash(t *testing.T, dir, key string) string {
	t.Helper()
	var in asked
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "intent", "show", key, "-o", "json"), &in))
	return in.ParamsHash
}

// heard adds up the statuses of the receipts that the cells have seen.
func heard(t *testing.T, dir string) map[string]int {
	t.Helper()
	sum := make(map[string]int)
	for _, state := range states[struct {
		Answers map[string]int `json:"answers"`
	}](t, dir) {
		for status, n := range state.Answers {
			sum[status] += n
		}
	}
	return sum
}

func TestAirlineCancelsNothingWithoutApproval(t *testing.T) {
	t.Parallel()
	dir := airlineWithApproval(t)
	worldctl(t, nil, "-w", dir, "run")
	counts, idle := stands(t, dir)
	require.Equal(t, cancels, counts["awaiting_approval"])
	require.Equal(t, 361-cancels, counts["committed"]+counts["failed"], "all others went on")
	require.True(t, idle)
	asked := cancellations(t, dir, "awaiting_approval")
	require.Len(t, asked, cancels)
	require.Equal(t, []string{"ask"}, asked[0].Rules)

	other := asked[0]
	for _, in := range asked {
		if string(in.Params) != string(asked[0].Params) {
			other = in
		}
	}
	code, _, said := outcome(t, "-w", dir, "intent", "approve", asked[0].Key, "--params-hash", paramsHash(t, dir, other.Key))
	require.Equal(t, exitConflict, code, said)
	require.Len(t, cancellations(t, dir, "awaiting_approval"), cancels)
	worldctl(t, nil, "-w", dir, "intent", "approve", asked[0].Key, "--params-hash", paramsHash(t, dir, asked[0].Key), "--reason", "ada called")
	worldctl(t, nil, "-w", dir, "run")
	done := cancellations(t, dir, "committed")
	require.Len(t, done, 1, "that one, and no other")
	require.Equal(t, asked[0].Key, done[0].Key)
	require.Len(t, cancellations(t, dir, "awaiting_approval"), cancels-1)

	worldctl(t, nil, "-w", dir, "intent", "deny", asked[1].Key, "--reason", "ada did not call")
	code, _, _ = outcome(t, "-w", dir, "intent", "approve", asked[1].Key)
	require.NotEqual(t, exitOK, code, "it is denied for good")
	worldctl(t, nil, "-w", dir, "run")
	require.Equal(t, 1, heard(t, dir)["denied"])

	counts, _ = stands(t, dir)
	require.Equal(t, cancels-2, counts["awaiting_approval"])
	require.Equal(t, cancels-2, expired(t, dir, cancels-2))
	verified(t, dir)
	worldctl(t, nil, "-w", dir, "replay")
}

// expired lets the time of approvals run out and returns how many cells were
// told so. Nothing can be approved any more then.
func expired(t *testing.T, dir string, asked int) int {
	t.Helper()
	last := cancellations(t, dir, "awaiting_approval")[asked-1]
	before := heard(t, dir)["denied"]
	worldctl(t, nil, "-w", dir, "step", "-n", "300")
	require.Empty(t, cancellations(t, dir, "awaiting_approval"))
	code, _, _ := outcome(t, "-w", dir, "intent", "approve", last.Key)
	require.NotEqual(t, exitOK, code)
	worldctl(t, nil, "-w", dir, "run")
	require.Len(t, cancellations(t, dir, "committed"), 1, "expiry approves nothing")
	return heard(t, dir)["denied"] - before
}

// TestAirlineApprovalHoldsForItsParamsOnly asks for what was approved once more, and
// for a little more than that.
func TestAirlineApprovalHoldsForItsParamsOnly(t *testing.T) {
	dir := airlineWithApproval(t)
	worldctl(t, nil, "-w", dir, "run")
	first := cancellations(t, dir, "awaiting_approval")[0]
	hash := paramsHash(t, dir, first.Key)
	worldctl(t, nil, "-w", dir, "intent", "approve", first.Key)
	worldctl(t, nil, "-w", dir, "run")

	for i, params := range []string{string(first.Params), `{"reservation_id": "OTHER1"}`} {
		_, run, _ := strings.Cut(first.Cell, "/")
		message := `{"run": "` + run + `", "role": "assistant", "index": 900, "content": "once more", "calls": [
			{"id": "again", "kind": "tool.cancel_reservation", "arguments": ` + params + `}]}`
		worldctl(t, nil, "-w", dir, "send", "chat.message", message)
		worldctl(t, nil, "-w", dir, "run")
		asked := cancellations(t, dir, "awaiting_approval")
		require.Len(t, asked, cancels+i, "it awaits approval anew")
		anew := asked[len(asked)-1]
		require.JSONEq(t, params, string(anew.Params))
		require.NotEqual(t, first.Key, anew.Key)
		if i > 0 {
			code, _, _ := outcome(t, "-w", dir, "intent", "approve", anew.Key, "--params-hash", hash)
			require.Equal(t, exitConflict, code)
		}
	}
	require.Len(t, cancellations(t, dir, "committed"), 1)
}
