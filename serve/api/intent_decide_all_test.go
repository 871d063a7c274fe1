package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
)

// decidedAll is what a client reads of a decision about several intents.
type decidedAll struct {
	Done    bool                  `json:"done"`
	Digest  string                `json:"digest"`
	Intents []intent              `json:"intents"`
	More    int                   `json:"more"`
	Begun   map[receipt.State]int `json:"begun"`
	Refused []struct {
		Reason string `json:"reason"`
	} `json:"refused"`
}

// TestWhatWasListedIsDecidedAtOnce and nothing else: without a digest nothing is, and with that
// of another list neither.
func TestWhatWasListedIsDecidedAtOnce(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Page: 3}})
	const path = "/api/worlds/w/intents/"
	ask := func(from, to int) {
		for i := from; i < to; i++ {
			s.post("/api/worlds/w/events", act(fmt.Sprint("a", i), map[string]any{"effect": "tool.b", "param": "wait"}))
		}
		s.post("/api/worlds/w/step", map[string]any{"ticks": 2})
	}
	asked := func() int {
		return len(ok[intents](s.get("/api/worlds/w/intents?state=awaiting_approval&limit=3")).Intents)
	}
	ask(0, 2)
	filter := map[string]any{"kind": "tool.*", "reason": "so"}
	list := ok[decidedAll](s.post(path+"approve", filter))
	require.False(t, list.Done)
	require.Len(t, list.Intents, 2)
	require.Zero(t, list.More)
	require.Equal(t, 2, asked(), "nothing was decided")

	ask(2, 4)
	filter["digest"] = list.Digest
	s.post(path+"approve", filter).problem(http.StatusConflict, "other-intents")
	s.post(path+"deny", map[string]any{"cell": "bot/a0", "digest": list.Digest}).problem(http.StatusConflict, "other-intents")
	require.Equal(t, 3, asked(), "a page of four")

	delete(filter, "digest")
	list = ok[decidedAll](s.post(path+"deny", filter))
	require.Len(t, list.Intents, 3, "no more than a page at once")
	require.Equal(t, 1, list.More)
	filter["digest"] = list.Digest
	done := ok[decidedAll](s.post(path+"deny", filter))
	require.True(t, done.Done)
	require.Equal(t, list.Digest, done.Digest)
	require.Len(t, done.Intents, 3)
	for _, in := range done.Intents {
		require.Equal(t, receipt.StateDenied, in.State)
	}
	require.Equal(t, 1, asked())
	require.Contains(t, done.Intents[0].Reason, "ada: so")
	s.post(path+"deny", filter).problem(http.StatusConflict, "other-intents")
}

// TestBatchesAreChecked as single decisions are.
func TestBatchesAreChecked(t *testing.T) {
	s := lived(t)
	const path = "/api/worlds/w/intents/"
	s.post(path+"approve", map[string]any{"reason": "all"}).problem(http.StatusBadRequest, "malformed")
	s.post(path+"approve", map[string]any{"state": "failed"}).problem(http.StatusBadRequest, "malformed")
	s.post(path+"approve", map[string]any{"kind": "*", "digest": "beef"}).problem(http.StatusBadRequest, "malformed")
	s.post(path+"approve", map[string]any{"kind": "nothing.*", "digest": strings.Repeat("0", 64)}).problem(http.StatusConflict, "other-intents")
	s.post(path+"deny", map[string]any{"kind": "*", "reuse": true}).problem(http.StatusBadRequest, "malformed")
	s.post(path+"resolve", map[string]any{"kind": "*"}).problem(http.StatusBadRequest, "malformed")
	s.post(path+"resolve", map[string]any{"kind": "*", "executed": false, "payload": 1}).problem(http.StatusBadRequest, "malformed")
	s.do(s.as("reader", s.request("POST", path+"approve", map[string]any{"kind": "*"}))).problem(http.StatusForbidden, "scope")
	s.do(s.as("other", s.request("POST", path+"approve", map[string]any{"kind": "*"}))).problem(http.StatusNotFound, "not-found")
}

// TestWhatFailedIsTriedAgainAtOnce if the filter says that it is meant, and once.
func TestWhatFailedIsTriedAgainAtOnce(t *testing.T) {
	s := lived(t)
	const path = "/api/worlds/w/intents/"
	require.Empty(t, ok[decidedAll](s.post(path+"retry", map[string]any{"kind": "*"})).Intents, "none is in doubt")
	filter := map[string]any{"kind": "*", "state": "failed"}
	list := ok[decidedAll](s.post(path+"retry", filter))
	require.Len(t, list.Intents, 1)
	filter["digest"] = list.Digest
	s.post(path+"retry", filter).problem(http.StatusUnprocessableEntity, "no-reason")
	filter["reason"] = "it is mended"
	done := ok[decidedAll](s.post(path+"retry", filter))
	require.Len(t, done.Intents, 1)
	require.Contains(t, done.Intents[0].Reason, "is asked for in its place")
	failed := ok[map[string]any](s.get(path + done.Intents[0].Key))
	next := ok[map[string]any](s.get(path + failed["instead"].(string)))
	require.Equal(t, done.Intents[0].Key, next["instead_of"])
	delete(filter, "digest")
	require.Empty(t, ok[decidedAll](s.post(path+"retry", filter)).Intents, "it is asked for")
}

// TestWhatIsToldCountsForEach intent that it is told of: else a body of 3 MiB would be 3 GiB
// for a thousand of them.
func TestWhatIsToldCountsForEach(t *testing.T) {
	s, _ := inDoubt(t, "a", "b", "c")
	const path = "/api/worlds/w/intents/resolve"
	body := map[string]any{"kind": "tool.*", "executed": true, "payload": strings.Repeat("x", 1900<<10)}
	list := ok[decidedAll](s.post(path, body))
	require.Len(t, list.Intents, 2, "those that a page has room for")
	require.Equal(t, 1, list.More)
	body["digest"], body["reason"] = list.Digest, "the bank has them"
	require.Len(t, ok[decidedAll](s.post(path, body)).Intents, 2)
	delete(body, "digest")
	require.Len(t, ok[decidedAll](s.post(path, body)).Intents, 1)
}

// TestReasonsFillAPage as params do: how long they are the outside says.
func TestReasonsFillAPage(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{PageBytes: 150}})
	for i := range 3 {
		s.post("/api/worlds/w/events", act(fmt.Sprint("a", i), map[string]any{"effect": "tool.b", "param": "wait"}))
	}
	s.post("/api/worlds/w/step", map[string]any{"ticks": 2})
	list := ok[intents](s.get("/api/worlds/w/intents?state=awaiting_approval"))
	require.Len(t, list.Intents, 2, "%d bytes", len(list.Intents[0].Reason))
	batch := ok[decidedAll](s.post("/api/worlds/w/intents/deny", map[string]any{"kind": "tool.*"}))
	require.Len(t, batch.Intents, 2)
	require.Equal(t, 1, batch.More)
}

// TestStopStopsAtOnce what is not begun, by a key and by what it is, unless it is a dry run.
func TestStopStopsAtOnce(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	const path = "/api/worlds/w/intents/"
	for i := range 3 {
		s.post("/api/worlds/w/events", act(fmt.Sprint("a", i), map[string]any{"effect": "tool.b", "param": "wait"}))
	}
	s.post("/api/worlds/w/step", map[string]any{"ticks": 2})
	list := ok[decidedAll](s.post(path+"stop", map[string]any{"kind": "*", "dry_run": true}))
	require.False(t, list.Done)
	require.Len(t, list.Intents, 3)
	require.Empty(t, list.Begun)
	s.post(path+"stop", map[string]any{"kind": "*"}).problem(http.StatusUnprocessableEntity, "no-reason")
	s.post(path+"stop", map[string]any{"reason": "so"}).problem(http.StatusBadRequest, "malformed")
	s.post(path+"stop", map[string]any{"state": "failed", "reason": "so"}).problem(http.StatusBadRequest, "malformed")
	s.do(s.as("reader", s.request("POST", path+"stop", map[string]any{"kind": "*", "reason": "so"}))).problem(http.StatusForbidden, "scope")

	key := list.Intents[0].Key
	s.post(path+key+"/stop", map[string]any{}).problem(http.StatusUnprocessableEntity, "no-reason")
	require.Equal(t, receipt.StateDenied, ok[intent](s.post(path+key+"/stop", map[string]any{"reason": "so"})).State)
	s.post(path+key+"/stop", map[string]any{"reason": "so"}).problem(http.StatusConflict, "not-waiting")
	s.post(path+"stop", map[string]any{"kind": "*", "digest": list.Digest, "reason": "so"}).problem(http.StatusConflict, "other-intents")
	done := ok[decidedAll](s.post(path+"stop", map[string]any{"kind": "tool.*", "reason": "so"}))
	require.True(t, done.Done)
	require.Len(t, done.Intents, 2)
	for _, in := range done.Intents {
		require.Equal(t, receipt.StateDenied, in.State)
		require.Equal(t, "stopped: ada: so", in.Reason)
	}
}
