package api_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

// reportPage is the part of a ReportPage that can be parsed again.
type reportPage struct {
	Count uint64
	Items []map[string]any
	Next  *string
}

// TestAReportIsShownWhole though its record has the first differences only, and as it was
// made, though the world has gone on.
func TestAReportIsShownWhole(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	const cells = 130
	for i := range cells {
		s.post("/api/worlds/w/events", act(fmt.Sprintf("c%03d", i)))
	}
	ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 1}))
	s.post("/api/worlds/w/snapshots", map[string]any{"name": "one"})
	code := []byte("def reduce(ctx, state, event):\n    return {\"new\": True}\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(code))
	p := s.post("/api/worlds/w/proposals", map[string]any{
		"patch": map[string]any{"base_manifest_hash": ok[view.Status](s.get("/api/worlds/w")).Manifest.Hash, "ops": []any{
			map[string]any{"op": "set", "path": "/reducers/bot/source", "value": sum},
		}, "new_version": 2},
		"contents": map[string]any{sum: code}, "reason": "simpler",
	})
	require.Equal(t, http.StatusCreated, p.Status, string(p.Body))
	const path = "/api/worlds/w/proposals/p1/report?list="
	s.get(path+"cells_changed").problem(http.StatusForbidden, "not-shadowed")
	shadow := ok[map[string]any](s.post("/api/worlds/w/proposals/p1/shadow", nil))
	require.Len(t, shadow["cells_changed"], 100)
	s.post("/api/worlds/w/events", act("later"))
	ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 1}))

	all := ok[reportPage](s.get(path + "cells_changed&limit=1000"))
	require.EqualValues(t, cells, all.Count)
	require.Len(t, all.Items, cells)
	require.Nil(t, all.Next)
	require.Equal(t, shadow["cells_changed"].([]any)[99], any(all.Items[99])) //nolint:forcetypeassert // it is a list
	var paged []map[string]any
	for next := path + "cells_changed&limit=50"; next != ""; {
		page := ok[reportPage](s.get(next))
		paged, next = append(paged, page.Items...), linkOf(page.Next)
	}
	require.Equal(t, all.Items, paged)
	for _, list := range []string{"events_new", "events_gone", "intents_new", "intents_gone", "decisions_changed", "failed", "mended", "refused", "unknown"} {
		require.Empty(t, ok[reportPage](s.get(path+list)).Items)
	}
	s.get(path+"cells").problem(http.StatusBadRequest, "malformed")
	s.get("/api/worlds/w/proposals/p2/report?list=failed").problem(http.StatusNotFound, "not-found")
}

// TestAReportThatBeganWithASnapshotIsMadeAgain from there, while that is kept.
func TestAReportThatBeganWithASnapshotIsMadeAgain(t *testing.T) {
	s := lived(t)
	s.post("/api/worlds/w/snapshots", map[string]any{"name": "one"})
	live(s)
	base := ok[view.Status](s.get("/api/worlds/w")).Manifest.Hash
	s.post("/api/worlds/w/proposals", map[string]any{"reason": "none", "patch": map[string]any{
		"base_manifest_hash": base, "ops": []any{map[string]any{"op": "set", "path": "/policies", "value": []any{}}}, "new_version": 2,
	}})
	const path = "/api/worlds/w/proposals/p1/report?list=decisions_changed"
	for _, from := range []map[string]any{{"from": "one"}, {"from": "1"}, nil} {
		shadow := ok[map[string]any](s.post("/api/worlds/w/proposals/p1/shadow", from))
		require.Len(t, ok[reportPage](s.get(path)).Items, len(shadow["decisions_changed"].([]any)), "%v", from) //nolint:forcetypeassert // it is a list
	}
	ok[map[string]any](s.post("/api/worlds/w/proposals/p1/shadow", map[string]any{"from": "one"}))
	s.post("/api/worlds/w/snapshots", map[string]any{"name": "two"})
	ok[map[string]any](s.post("/api/worlds/w/snapshots/prune", map[string]any{"snapshot": "one"}))
	s.get(path).problem(http.StatusConflict, "other-report")
}
