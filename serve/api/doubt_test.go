package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// inDoubt serves a world in which nobody can tell what came of an intent of each of
// some cells, and returns their paths.
func inDoubt(t *testing.T, cells ...string) (s *served, paths []string) {
	t.Helper()
	lw := create(t, "w",
		"tool.a: {adapter: stub, config: {script: answers.star}}",
		`tool.a: {adapter: exec, config: {program: sh, args: ["-c", "kill -9 $$"]}, on_in_doubt: ask}`,
		`{type: any, params: {kinds: ["tool.*"]}}`, `{type: exec, params: {programs: [sh], args: ["*"]}}`)
	s = serve(t, api.Config{Worlds: []*local.World{lw}})
	for _, cell := range cells {
		ok[api.Submitted](s.post("/api/worlds/w/events", act(cell, map[string]any{"effect": "tool.a", "param": "x"})))
	}
	require.NoError(t, lw.Run(t.Context()))
	for _, line := range ok[intents](s.get("/api/worlds/w/intents?state=in_doubt")).Intents {
		require.Contains(t, line.Reason, "sh was ended by")
		require.Contains(t, line.Reason, "; decide with ")
		paths = append(paths, "/api/worlds/w/intents/"+line.Key)
	}
	require.Len(t, paths, len(cells))
	return s, paths
}

// What nobody can tell about is decided over the API: it happened, it did not, or it
// is tried once more.
func TestPersonDecidesAboutDoubtOverTheAPI(t *testing.T) {
	s, at := inDoubt(t, "a", "b", "c")
	s.do(s.as("reader", s.request("POST", at[0]+"/resolve", map[string]any{"reason": "so", "executed": false}))).problem(http.StatusForbidden, "scope")

	d := ok[view.Decided](s.post(at[0]+"/resolve", map[string]any{"reason": "the bank has it", "executed": true, "payload": map[string]any{"paid": 1}}))
	require.EqualValues(t, "committed", d.State)
	require.Equal(t, "ada", d.Actor)
	require.Equal(t, map[string]any{"paid": 1.0}, ok[map[string]any](s.get("/api/worlds/w/receipts/" + d.Key.String()))["payload"])

	d = ok[view.Decided](s.post(at[1]+"/resolve", map[string]any{"reason": "the bank has nothing", "executed": false}))
	require.EqualValues(t, "open", d.State, "it is not done yet")
	require.EqualValues(t, "open", ok[view.Decided](s.post(at[2]+"/retry", map[string]any{"reason": "once more"})).State)
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	for _, path := range at[1:] {
		require.Len(t, ok[intent](s.get(path)).Attempts, 2)
	}
	s.post(at[0]+"/resolve", map[string]any{"reason": "again", "executed": true}).problem(http.StatusConflict, "not-waiting")
	require.Empty(t, ok[map[string]any](s.get("/api/worlds/w/verify"))["faults"])
}

// What is decided is what was seen: an intent that was attempted again since is another
// question, and who has decided before is named beside it.
func TestDecisionIsAboutTheAttemptThatWasSeen(t *testing.T) {
	s, at := inDoubt(t, "a")
	ok[view.Decided](s.post(at[0]+"/retry", map[string]any{"reason": "once more", "attempt": 1}))
	refused := s.post(at[0]+"/retry", map[string]any{"reason": "so", "attempt": 1})
	refused.problem(http.StatusConflict, "not-waiting")
	require.Contains(t, string(refused.Body), "is open; #")
	require.Contains(t, string(refused.Body), "ada lets it be attempted again")
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	require.EqualValues(t, "in_doubt", ok[intent](s.get(at[0])).State)
	for path, body := range map[string]map[string]any{
		"/resolve": {"executed": false}, "/retry": {}, "/approve": {}, "/deny": {}, "/confirm": {}, "/edit": {"params": 1}, "/answer": {"data": 1},
	} {
		body["reason"], body["attempt"] = "so", 1
		refused := s.post(at[0]+path, body)
		refused.problem(http.StatusConflict, "not-waiting")
		require.Contains(t, string(refused.Body), "is at attempt 2 by now, not 1; #", path)
	}
	ok[view.Decided](s.post(at[0]+"/resolve", map[string]any{"reason": "the bank has nothing", "executed": false, "attempt": 2}))
}
