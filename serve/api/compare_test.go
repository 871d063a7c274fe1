package api_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// compared is the part of a Comparison that can be parsed again.
type compared struct {
	A, B struct {
		Dir     string
		WorldID string `json:"world_id"`
		At      uint64
	}
	Same    bool
	Parted  struct{ Common, A, B uint64 }
	Cells   struct{ Added, Gone, Changed []struct{ Cell string } }
	Intents struct{ Added, Gone, Changed []struct{ Cell, Kind string } }
	LeftOut struct{ Cells, Intents int } `json:"left_out"`
}

func TestMomentsAreCompared(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w", "v", "elsewhere")})
	live(s)
	const path = "/api/worlds/w/compare?"
	x := ok[compared](s.get(path + "a=1"))
	require.Equal(t, []any{"w", "w", "", "", false}, []any{x.A.WorldID, x.B.WorldID, x.A.Dir, x.B.Dir, x.Same})
	require.EqualValues(t, 1, x.Parted.Common)
	require.Len(t, x.Cells.Added, 3)
	require.NotEmpty(t, x.Intents.Added)
	short := ok[compared](s.get(path + "a=1&limit=1"))
	require.Equal(t, x.Cells.Added[:1], short.Cells.Added)
	require.Equal(t, []int{2, len(x.Intents.Added) - 1}, []int{short.LeftOut.Cells, short.LeftOut.Intents})
	require.True(t, ok[compared](s.get(path+"a=head&b=head")).Same)

	other := ok[compared](s.get(path + "a=head&with=v"))
	require.Equal(t, "v", other.B.WorldID)
	require.Zero(t, other.Parted.Common)
	require.Len(t, other.Cells.Gone, 3)

	s.get(path).problem(http.StatusBadRequest, "malformed")
	s.get(path+"a=nowhere").problem(http.StatusNotFound, "not-found")
	s.get(path+"a=1&with=nobody").problem(http.StatusBadRequest, "malformed")
	as := func(path string) *answer { return s.do(s.as("other", s.request("GET", path, nil))) }
	as("/api/worlds/elsewhere/compare?a=1&with=w").problem(http.StatusBadRequest, "malformed")
	s.api.Stop("v", errors.New("its disk is full"))
	s.get(path+"a=1&with=v").problem(http.StatusServiceUnavailable, "ended")
	require.Contains(t, s.get("/api/worlds/v").problem(http.StatusServiceUnavailable, "ended").Detail, "its disk is full")
	require.Equal(t, api.Health{OK: true, Waiting: []string{"1 of the worlds cannot go on in this process: who asks for them is told why"}},
		ok[api.Health](s.get("/healthz")), "it is nobody else's 503")
}

// TestAComparisonIsNoLongerThanAPage but for the first of what differs.
func TestAComparisonIsNoLongerThanAPage(t *testing.T) {
	s := livedWithin(t, api.Limits{PageBytes: 1})
	x := ok[compared](s.get("/api/worlds/w/compare?a=1"))
	require.Len(t, x.Cells.Added, 1)
	require.Equal(t, 2, x.LeftOut.Cells)
	require.Empty(t, x.Intents.Added)
	require.Positive(t, x.LeftOut.Intents)
}

func TestAWorldIsForkedOverTheAPI(t *testing.T) {
	into := t.TempDir()
	s := serve(t, api.Config{Worlds: worlds(t, "w", "other"), Forks: into})
	live(s)
	const path = "/api/worlds/w/fork"
	a := s.post(path, map[string]any{"id": "try", "at": "t1", "seed": 7})
	require.Equal(t, http.StatusCreated, a.Status)
	made := ok[local.Forked](a)
	require.Equal(t, []any{"try", "w", "try", uint64(7)}, []any{made.ID, made.Parent, made.Dir, *made.Seed})
	fork, err := local.OpenReadOnly(filepath.Join(into, "try"), local.Options{})
	require.NoError(t, err)
	require.Equal(t, "try", fork.Status().ID)
	require.NoError(t, fork.Close())

	require.NotContains(t, s.post(path, map[string]any{"id": "try"}).problem(http.StatusConflict, "exists").Detail, into)
	require.NoError(t, os.WriteFile(filepath.Join(into, "file"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(into, "full", "of"), 0o700))
	require.NotContains(t, s.post(path, map[string]any{"id": "full"}).problem(http.StatusConflict, "exists").Detail, into)
	for _, id := range []string{"", ".", "..", ".world", "../out"} {
		a := s.post(path, map[string]any{"id": id})
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, a.Status, "%q: %s", id, a.Body)
	}
	s.post(path, map[string]any{"id": "x/y"}).problem(http.StatusUnprocessableEntity, "bad-id")
	s.post(path, map[string]any{"id": "-x"}).problem(http.StatusUnprocessableEntity, "bad-id")
	s.post(path, map[string]any{"id": "w"}).problem(http.StatusConflict, "exists")
	s.post(path, map[string]any{"id": "other"}).problem(http.StatusConflict, "exists")
	s.post(path, map[string]any{"id": "a", "at": "nowhere"}).problem(http.StatusNotFound, "not-found")
	s.post(path, map[string]any{"id": "a", "effects": "all"}).problem(http.StatusUnprocessableEntity, "bad-data")
	s.post(path, map[string]any{"id": "a", "patch": map[string]any{}}).problem(http.StatusUnprocessableEntity, "bad-patch")
	left, err := os.ReadDir(into)
	require.NoError(t, err)
	require.Len(t, left, 3)
}

func TestForksHaveAPlaceOrAreNotMade(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	s.post("/api/worlds/w/fork", map[string]any{"id": "try"}).problem(http.StatusForbidden, "no-forks")
}

// supposed is the part of a WhatIf that can be parsed again.
type supposed struct {
	Sent       uint64
	Answered   uint64
	Unanswered uint64
	Unknown    []struct {
		Cell, Why string
		Effect    struct{ Kind string }
	}
	Same   bool
	Forked struct{ Dir string }
	Diff   compared
}

// TestWhatWouldHaveBeenIsTold of a world that goes on, and nothing of it is left.
func TestWhatWouldHaveBeenIsTold(t *testing.T) {
	w := worlds(t, "w")
	s := serve(t, api.Config{Worlds: w})
	live(s)
	before := ok[map[string]any](s.get("/api/worlds/w"))
	const path = "/api/worlds/w/what-if"
	x := ok[supposed](s.post(path, map[string]any{"at": "t1", "events": []any{act("new")}}))
	require.EqualValues(t, 1, x.Sent)
	require.False(t, x.Same)
	require.Len(t, x.Diff.Cells.Added, 1)
	require.Equal(t, "bot/new", x.Diff.Cells.Added[0].Cell)
	require.Equal(t, []string{"", "", ""}, []string{x.Forked.Dir, x.Diff.A.Dir, x.Diff.B.Dir})

	x = ok[supposed](s.post(path, map[string]any{"at": "1", "only": true}))
	require.Len(t, x.Diff.Cells.Gone, 3)
	x = ok[supposed](s.post(path, map[string]any{"at": "t1", "only": true, "events": []any{act("a", map[string]any{"effect": "tool.a", "param": "unheard"})}}))
	require.Len(t, x.Unknown, 1)
	require.Equal(t, []string{"bot/a", "asks", "tool.a"}, []string{x.Unknown[0].Cell, x.Unknown[0].Why, x.Unknown[0].Effect.Kind})

	require.Equal(t, before, ok[map[string]any](s.get("/api/worlds/w")), "the world has not changed")
	left, err := filepath.Glob(filepath.Join(w[0].Dir(), ".world.new-*"))
	require.NoError(t, err)
	require.Empty(t, left)

	s.post(path, map[string]any{"only": true}).problem(http.StatusBadRequest, "malformed")
	s.post(path, map[string]any{"at": "t1"}).problem(http.StatusBadRequest, "malformed")
	s.post(path, map[string]any{"at": "nowhere", "only": true}).problem(http.StatusNotFound, "not-found")
	s.post(path, map[string]any{"at": "t1", "only": true, "ticks": 1, "until_idle": true}).problem(http.StatusBadRequest, "malformed")
	p := s.post(path, map[string]any{"at": "t1", "events": []any{act("b"), map[string]any{"event": "none"}}}).problem(http.StatusUnprocessableEntity, "unknown-event")
	require.EqualValues(t, 2, p.Line)
	p = s.post(path, map[string]any{"at": "t1", "events": []any{act("b"), 7}}).problem(http.StatusBadRequest, "malformed")
	require.EqualValues(t, 2, p.Line)
}

// TestRulesAreTriedOnThePast with a patch.
func TestRulesAreTriedOnThePast(t *testing.T) {
	s := lived(t)
	base := ok[struct{ Manifest struct{ Hash string } }](s.get("/api/worlds/w")).Manifest.Hash
	patch := map[string]any{"base_manifest_hash": base, "ops": []any{map[string]any{"op": "set", "path": "/policies", "value": []any{}}}}
	x := ok[supposed](s.post("/api/worlds/w/what-if", map[string]any{"at": "1", "patch": patch}))
	require.False(t, x.Same)
	require.Len(t, x.Diff.Intents.Changed, 3, "no policy allows them any more")
	patch["base_manifest_hash"] = strings.Repeat("0", 64)
	s.post("/api/worlds/w/what-if", map[string]any{"at": "1", "patch": patch}).problem(http.StatusConflict, "stale")
}
