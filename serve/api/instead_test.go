package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

// TestIntentsAreAskedForInThePlaceOfOthers: what waits with other params, and what failed once
// more.
func TestIntentsAreAskedForInThePlaceOfOthers(t *testing.T) {
	s := lived(t)
	path := "/api/worlds/w/intents/"
	asked := ok[intents](s.get("/api/worlds/w/intents?state=awaiting_approval")).Intents[0]
	s.post(path+asked.Key+"/edit", map[string]any{"reason": "so"}).problem(http.StatusBadRequest, "malformed")
	s.post(path+asked.Key+"/edit", map[string]any{"params": map[string]any{"p": "less"}}).problem(http.StatusUnprocessableEntity, "no-reason")
	type decided struct {
		State   receipt.State `json:"state"`
		Instead *intent       `json:"instead"`
	}
	edited := ok[decided](s.post(path+asked.Key+"/edit", map[string]any{"params": map[string]any{"p": "less"}, "reason": "too much"}))
	require.Equal(t, receipt.StateCancelled, edited.State)
	require.Equal(t, receipt.StateAwaitingApproval, edited.Instead.State, "an edit is no approval")
	shown := ok[map[string]any](s.get(path + edited.Instead.Key))
	require.Equal(t, asked.Key, shown["instead_of"])
	s.post(path+asked.Key+"/edit", map[string]any{"params": 1, "reason": "so"}).problem(http.StatusConflict, "not-waiting")

	failed := ok[intents](s.get("/api/worlds/w/intents?state=failed")).Intents[0]
	again := ok[decided](s.post(path+failed.Key+"/retry", map[string]any{"reason": "it is mended"}))
	require.Equal(t, receipt.StateFailed, again.State, "an end is an end")
	require.Equal(t, receipt.StateOpen, again.Instead.State)
	s.post(path+failed.Key+"/retry", map[string]any{"reason": "it is mended"}).problem(http.StatusConflict, "not-waiting")
}
