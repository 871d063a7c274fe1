package api_test

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestReviewersAreToldOfGoReducersWhatApplySays has a candidate with reducers of the
// program: what the proposal says of apply is what apply does.
func TestReviewersAreToldOfGoReducersWhatApplySays(t *testing.T) {
	registry := make(reducer.Registry)
	for _, version := range []string{"1", "2"} {
		registry["tally@"+version] = reducer.Typed(1, func(_ *reducer.Context, n uint64, _ struct{}) (uint64, error) { return n + 1, nil })
	}
	dir, with := t.TempDir(), local.Options{Reducers: registry}
	require.NoError(t, os.WriteFile(filepath.Join(dir, local.ManifestFile), []byte(`world: tallies
version: 1
reducers:
  tally: {engine: go, name: tally, version: "1"}
events:
  tick:
routing:
  - {event: tick, reducer: tally, key: '"a"'}
`), 0o600))
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w"}, with))
	w, err := local.Open(dir, with)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	_, err = w.Submit(t.Context(), "tick", struct{}{})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))

	s := serve(t, api.Config{Worlds: []*local.World{w}})
	type outlook struct {
		proposal
		WouldApply struct {
			OK       bool   `json:"ok"`
			Migrated int    `json:"migrated"`
			Error    string `json:"error"`
		} `json:"would_apply"`
	}
	p := ok[outlook](s.post("/api/worlds/w/proposals", map[string]any{"patch": map[string]any{
		"base_manifest_hash": ok[view.Status](s.get("/api/worlds/w")).Manifest.Hash,
		"ops":                []any{map[string]any{"op": "set", "path": "/reducers/tally/version", "value": "2"}}, "new_version": 2,
	}}))
	require.Contains(t, p.WouldApply.Error, "no report")
	at := "/api/worlds/w/proposals/" + p.Proposal
	ok[map[string]any](s.post(at+"/shadow", nil))
	statement := *ok[outlook](s.get(at)).Statement
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	p = ok[outlook](s.post(at+"/approve", map[string]any{
		"key": fmt.Sprintf("%x", key.Public()), "signature": ed25519.Sign(key, []byte(statement)), "reason": "read it",
	}))
	require.Empty(t, p.WouldApply.Error)
	require.True(t, p.WouldApply.OK)
	require.Equal(t, p.WouldApply.Migrated, ok[view.Applied](s.post(at+"/apply", nil)).Migrated)
	require.Equal(t, []string{}, ok[api.Verification](s.get("/api/worlds/w/verify")).Replay.Needs)
	require.NoError(t, w.Close())

	delete(registry, "tally@1") // what was is not known any more, what is runs on
	w, err = local.Open(dir, with)
	require.NoError(t, err)
	s = serve(t, api.Config{Worlds: []*local.World{w}})
	replay := ok[api.Verification](s.get("/api/worlds/w/verify")).Replay
	require.False(t, replay.OK)
	require.Equal(t, []string{"tally@1"}, replay.Needs)
	require.Empty(t, replay.Faults)
}
