package llm

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/recording"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

type run struct {
	Messages []json.RawMessage `json:"traj"`
}

func readRuns(t *testing.T) []run {
	t.Helper()
	data, err := os.ReadFile(recording.Shared(t, recording.Airline))
	require.NoError(t, err)
	var runs []run
	require.NoError(t, json.Unmarshal(data, &runs))
	return runs
}

// replay answers a request, which names its run in the param user, with the
// message that came after those that it holds.
func replay(runs []run) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			User     string            `json:"user"`
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			canned(400, `{"error":{"message":"not JSON"}}`)(w, r)
			return
		}
		i, err := strconv.Atoi(request.User)
		if err != nil || i >= len(runs) || len(request.Messages) >= len(runs[i].Messages) {
			canned(400, `{"error":{"message":"there is no such run"}}`)(w, r)
			return
		}
		for j, got := range request.Messages {
			a, errA := canon.FromJSON(got)
			b, errB := canon.FromJSON(runs[i].Messages[j])
			if errA != nil || errB != nil || string(a) != string(b) {
				canned(400, `{"error":{"message":"message `+strconv.Itoa(j)+` is another one"}}`)(w, r)
				return
			}
		}
		next := runs[i].Messages[len(request.Messages)]
		body, _ := json.Marshal(map[string]any{
			"id": "chatcmpl-" + request.User, "object": "chat.completion", "model": "recorded",
			"choices": []any{map[string]any{"index": 0, "message": next, "finish_reason": "stop"}},
			"usage":   map[string]int{"prompt_tokens": len(request.Messages), "completion_tokens": 1, "total_tokens": len(request.Messages) + 1},
		})
		canned(200, string(body))(w, r)
	}
}

// TestAirlineComesThroughExactly asks for every message of an
// assistant with what the adapter itself gave for the ones before it.
func TestAirlineComesThroughExactly(t *testing.T) {
	runs := readRuns(t)
	s := serve(t, replay(runs))
	a := adapterFor(t, s.URL, `,"model":"recorded"`, manifest.Effect{})
	answers, calls := 0, 0
	for i, run := range runs {
		var history []canon.Raw
		for _, message := range run.Messages {
			want := fromJSON(t, string(message))
			if at(t, want, "role") == `"assistant"` {
				params, err := canon.Marshal(map[string]any{"user": strconv.Itoa(i), "messages": history})
				require.NoError(t, err)
				call := callOf(t, `{}`)
				call.Permit.Params = params
				got, err := a.Perform(t.Context(), call)
				require.NoError(t, err)
				require.Equal(t, receipt.StatusOK, got.Status, "%v", got.Payload)
				given, err := canon.Lookup(got.Payload, "message")
				require.NoError(t, err)
				require.Equal(t, want, given)
				if _, err := canon.Lookup(given, "tool_calls"); err == nil {
					calls++
				}
				require.EqualValues(t, len(history)+1, got.Cost.Tokens)
				want = given
				answers++
			}
			history = append(history, want)
		}
	}
	require.Len(t, runs, 60)
	require.Equal(t, 790, answers)
	require.Equal(t, 361, calls)
}
