package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/snapshot"
)

// metric returns the value of a metric as it is printed; "": there is none.
func (s *served) metric(name string) string {
	s.t.Helper()
	a := s.get("/metrics")
	require.Equal(s.t, http.StatusOK, a.Status, "%s", a.Body)
	for line := range strings.Lines(string(a.Body)) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), name+" "); found {
			return value
		}
	}
	return ""
}

func TestBudgetsAreToldOverHTTP(t *testing.T) {
	s := lived(t)
	got := ok[listed](s.get("/api/worlds/w/budgets"))
	require.Empty(t, got.Budgets, "this world has none")
	require.Nil(t, got.Next)
}

func TestMetricsCountWhatTheJournalSays(t *testing.T) {
	s := lived(t)
	ok[snapshot.Snapshot](s.post("/api/worlds/w/snapshots", nil))
	ok[api.Verification](s.get("/api/worlds/w/verify"))
	s.post("/api/worlds/w/events", map[string]any{"event": "unheard"})
	for name, want := range map[string]string{
		`worldkernel_events_submitted_total{world="w"}`:                                "3",
		`worldkernel_cell_steps_total{outcome="failed",world="w"}`:                     "1",
		`worldkernel_cell_steps_total{outcome="success",world="w"}`:                    "2",
		`worldkernel_intent_decisions_total{decision="allow",world="w"}`:               "2",
		`worldkernel_intent_decisions_total{decision="deny",world="w"}`:                "1",
		`worldkernel_intent_decisions_total{decision="require_approval",world="w"}`:    "1",
		`worldkernel_intent_outcomes_total{outcome="side_effect_committed",world="w"}`: "1",
		`worldkernel_intent_outcomes_total{outcome="permanent_failure",world="w"}`:     "2",
		`worldkernel_receipts_total{status="ok",world="w"}`:                            "1",
		`worldkernel_receipts_total{status="error",world="w"}`:                         "1",
		`worldkernel_receipts_late_total{world="w"}`:                                   "0",
		`worldkernel_confirmation_warnings_total{world="w"}`:                           "0",
		`worldkernel_effects_unrecorded_total{world="w"}`:                              "0",
		`worldkernel_intents_in_doubt{world="w"}`:                                      "0",
		`worldkernel_snapshot_seconds_count{world="w"}`:                                "1",
		`worldkernel_replay_seconds_count{world="w"}`:                                  "1",
	} {
		require.Equal(t, want, s.metric(name), name)
	}
	require.NotEqual(t, "0", s.metric(`worldkernel_journal_sync_seconds_count{world="w"}`))
}

// TestMetricsCountFromWhenTheServerBegan: another server of the same world begins
// anew.
func TestMetricsCountFromWhenTheServerBegan(t *testing.T) {
	w := create(t, "w")
	s := serve(t, api.Config{Worlds: wrap(w)})
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	again := serve(t, api.Config{Worlds: wrap(w)})
	require.Equal(t, "0", again.metric(`worldkernel_events_submitted_total{world="w"}`))
	ok[api.Submitted](again.post("/api/worlds/w/events", act("a")))
	require.Equal(t, "1", again.metric(`worldkernel_events_submitted_total{world="w"}`))
	require.Equal(t, "2", s.metric(`worldkernel_events_submitted_total{world="w"}`))
}

func TestMetricsAreOpenWhereTheConfigSaysSo(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), OpenMetrics: true})
	req := s.request("GET", "/metrics", nil)
	req.Header.Del("Authorization")
	require.Equal(t, http.StatusOK, s.do(req).Status)
	req = s.request("GET", "/api/worlds", nil)
	req.Header.Del("Authorization")
	s.do(req).problem(http.StatusUnauthorized, "unauthorized")
}
