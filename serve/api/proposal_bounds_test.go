package api_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

// A shadow runs what nobody has approved.
func TestShadowsOverTheAPIAreBounded(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Shadow: time.Nanosecond}})
	base := ok[view.Status](s.get("/api/worlds/w")).Manifest
	code := []byte("def reduce(ctx, state, event):\n    return {\"new\": True}\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(code))
	ok[proposal](s.post("/api/worlds/w/proposals", map[string]any{
		"patch": map[string]any{"base_manifest_hash": base.Hash, "new_version": 2, "ops": []any{
			map[string]any{"op": "set", "path": "/reducers/bot/source", "value": sum},
		}},
		"contents": map[string]any{sum: code}, "reason": "simpler",
	}))
	s.post("/api/worlds/w/proposals/p1/shadow", nil).problem(http.StatusServiceUnavailable, "deadline")
}
