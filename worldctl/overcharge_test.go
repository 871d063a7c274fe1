package worldctl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two cells that ask different servers, under capabilities of their own, and share the
// world's budget.
const overchargeWorld = `world: shared
version: 1
reducers:
  caller: {engine: starlark, source: caller.star, grants: [model, mail]}
events:
  go:
effects:
  model.ask: {adapter: llm, config: {base_url: "%[1]s", price: {prompt: 3, completion: 7}}, max_cost: {tokens: 50, micros: 10, bytes: 4096}}
  mail.send: {adapter: http, config: {url: "%[1]s/mail", method: POST}, max_cost: {micros: 0, bytes: 4096}}
caps:
  model: {type: any, params: {kinds: [model.ask]}}
  mail: {type: any, params: {kinds: [mail.send]}}
budget: {tokens: 1000, micros: 1000, bytes: 1MiB}
policies:
  - {name: all, when: "true", decide: allow}
routing:
  - {event: go, reducer: caller, key: event.data.to}
`

const overchargeCaller = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return event.data["status"]
    if event.data["kind"] == "mail.send":
        ctx.effect("mail.send", {"json": 1})
    else:
        ctx.effect("model.ask", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    return ""
`

// Whatever a model's server says that an answer used, it takes no more than max_cost of what
// others share, and never nothing; where it says more its capability rests, is shown to, and
// goes on when a person approves. Both verifiers agree.
func TestAHostileModelServerUsesUpNobodysBudget(t *testing.T) {
	t.Parallel()
	for usage, rests := range map[string]bool{
		`{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}`:                   false,
		`{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}`: true,
		`{"total_tokens":9223372036854775807}`:                                            true,
		`{"prompt_tokens":5,"completion_tokens":46}`:                                      true,
		`{"prompt_tokens":-1000000,"completion_tokens":10}`:                               true,
		`{"prompt_tokens":10,"completion_tokens":-5,"total_tokens":5}`:                    true,
		`{"prompt_tokens":1e300,"completion_tokens":1e300}`:                               true,
		`{"prompt_tokens":99999999999999999999999999,"completion_tokens":1}`:              true,
		`{"prompt_tokens":"NaN","completion_tokens":null}`:                                true,
		`{"total_tokens":-5}`: true, `{"total_tokens":1.5}`: true, `{"total_tokens":"1000"}`: true,
		`null`: false, `[]`: false, `"much"`: false,
	} {
		t.Run(usage, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"id":"x","choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":%s}`, usage)
			}))
			defer server.Close()
			dir := filepath.Join(t.TempDir(), "w")
			makeWorld(t, dir, map[string]string{"world.yaml": fmt.Sprintf(overchargeWorld, server.URL), "caller.star": overchargeCaller})
			goes := func(to, kind string) {
				worldctl(t, strings.NewReader(fmt.Sprintf(`{"event":"go","data":{"to":%q,"kind":%q}}`, to, kind)), "-w", dir, "send", "-")
				worldctl(t, nil, "-w", dir, "run", "-q", "--until-idle")
			}
			goes("a", "model.ask")
			left, spent := budgetOf(t, dir, "tokens")
			require.GreaterOrEqual(t, left, 950)
			require.Positive(t, spent, "an answer is not for nothing")
			goes("b", "mail.send")
			goes("c", "model.ask")
			var status struct {
				Resting map[string]int `json:"resting"`
				Intents struct {
					Committed int
					Awaiting  int `json:"awaiting_approval"`
				}
			}
			look := func() {
				status.Resting = nil
				require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "status", "-o", "json"), &status))
			}
			look()
			require.Equal(t, rests, len(status.Resting) == 1, "%v", status)
			if rests {
				require.Equal(t, 1, status.Intents.Awaiting)
				require.Equal(t, 2, status.Intents.Committed, "the mail is another capability's")
				var line struct{ Key string }
				require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "intent", "list", "--state", "awaiting_approval", "-o", "jsonl"), &line))
				shown := string(worldctl(t, nil, "-w", dir, "intent", "show", line.Key))
				require.Contains(t, shown, "capability model rests since")
				worldctl(t, nil, "-w", dir, "intent", "approve", line.Key, "--reason", "looked")
				look()
				require.Empty(t, status.Resting)
			}
			worldctl(t, nil, "-w", dir, "verify")
			g, id := stored(t, dir)
			agrees(t, g.data, id)
		})
	}
}

// budgetOf returns what the world's budget has left of a unit, and what is spent or held.
func budgetOf(t *testing.T, dir, unit string) (left, gone int) {
	t.Helper()
	var b struct {
		Units []struct {
			Unit              string
			Spent, Held, Left int
		}
	}
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "budget", "show", "world", "-o", "json"), &b))
	for _, u := range b.Units {
		if u.Unit == unit {
			return u.Left, u.Spent + u.Held
		}
	}
	t.Fatalf("the world has no budget in %s", unit)
	return 0, 0
}

// agrees has the second verifier say of a bundle what this program says.
func agrees(t *testing.T, bundle []byte, id string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b")
	require.NoError(t, os.WriteFile(file, bundle, 0o600))
	out, err := exec.Command(secondVerifier(t, nil).python, "-X", "utf8", secondVerifier(t, nil).tool, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), id)
}
