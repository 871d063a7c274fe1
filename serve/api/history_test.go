package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/snapshot"
)

// rolledBack is the part of a Rollback that can be parsed again.
type rolledBack struct {
	Record    *uint64
	Snapshot  string
	Abandoned []struct{ Key, Disposition string }
	Events    int
	Proposal  *string
}

// TestAWorldIsRolledBackOverTheAPI once who asks knows what stays.
func TestAWorldIsRolledBackOverTheAPI(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	const path = "/api/worlds/w/rollback"
	ok[snapshot.Snapshot](s.post("/api/worlds/w/snapshots", map[string]any{"name": "one"}))
	live(s)
	ask := map[string]any{"snapshot": "one", "reason": "astray", "dry_run": true}
	dry := ok[rolledBack](s.post(path, ask))
	require.Nil(t, dry.Record)
	require.NotEmpty(t, dry.Abandoned)
	require.Equal(t, 3, dry.Events)
	delete(ask, "dry_run")
	p := s.post(path, ask).problem(http.StatusConflict, "side-effects")
	require.Contains(t, p.Detail, "acknowledged")
	ask["ack"], ask["reason"] = true, ""
	s.post(path, ask).problem(http.StatusUnprocessableEntity, "no-reason")
	ask["reason"] = "astray"
	done := ok[rolledBack](s.post(path, ask))
	require.NotNil(t, done.Record)
	require.Len(t, done.Abandoned, len(dry.Abandoned))
	require.Equal(t, "rollback.applied", ok[map[string]any](s.get(fmt.Sprintf("/api/worlds/w/records/%d", *done.Record)))["kind"])
	require.Empty(t, ok[cellsThen](s.get("/api/worlds/w/cells")).Cells)
	s.post(path, map[string]any{"snapshot": "two", "reason": "x"}).problem(http.StatusNotFound, "not-found")
	s.post(path, map[string]any{"snapshot": "one", "reason": "x", "force": true}).problem(http.StatusBadRequest, "malformed")
}

func TestSnapshotsArePinnedAndPruned(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	const path = "/api/worlds/w/snapshots"
	for _, name := range []string{"one", "two"} {
		ok[snapshot.Snapshot](s.post(path, map[string]any{"name": name}))
	}
	require.True(t, ok[view.Pinned](s.post(path+"/pin", map[string]any{"snapshot": "one"})).Pinned)
	s.post(path+"/prune", map[string]any{"snapshot": "one"}).problem(http.StatusConflict, "snapshot-kept")
	require.False(t, ok[view.Pinned](s.post(path+"/pin", map[string]any{"snapshot": "one", "pinned": false})).Pinned)
	require.Equal(t, "one", ok[view.Cataloged](s.post(path+"/prune", map[string]any{"snapshot": "one"})).Name)
	s.post(path+"/prune", map[string]any{"snapshot": "one"}).problem(http.StatusNotFound, "not-found")
	s.post(path+"/pin", nil).problem(http.StatusNotFound, "not-found")
	s.post(path+"/prune", map[string]any{"snapshot": "two"}).problem(http.StatusConflict, "snapshot-kept")
	require.Len(t, ok[listed](s.get(path)).Snapshots, 1)
}

func TestACheckpointIsSignedOverTheAPI(t *testing.T) {
	s := lived(t)
	const path = "/api/worlds/w/checkpoints"
	a := s.post(path, nil)
	require.Equal(t, http.StatusCreated, a.Status)
	made := ok[view.Checkpoint](a)
	require.Contains(t, made.Note, "w")
	all := ok[listed](s.get(path)).Checkpoints
	require.Equal(t, made, all[len(all)-1])
	require.Equal(t, made, ok[view.Checkpoint](s.post(path, nil)), "nothing has happened since")
}
