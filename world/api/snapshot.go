package api

import (
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// Snapshots is a page of the snapshots that are kept, from the oldest.
type Snapshots struct {
	Schema    string              `json:"schema"`
	Snapshots []snapshot.Snapshot `json:"snapshots"`
	Next      *string             `json:"next"` // the path of what comes after it; null: nothing does
}

// SnapshotRequest asks for a snapshot.
type SnapshotRequest struct {
	Name  string `json:"name"`  // empty: s1, s2 and so on
	Label string `json:"label"` // what it is for
}

func listSnapshots(c *call) error {
	var all []snapshot.Snapshot
	c.world.Local.View(func(w *world.Moment) { all = w.Snapshots() })
	page, next, err := pageOf(c, all, func(s *snapshot.Snapshot) uint64 { return s.Record })
	if err != nil {
		return err
	}
	return c.ok(Snapshots{view.SchemaOf("snapshot-list"), page, next})
}

func makeSnapshot(c *call) error {
	var req SnapshotRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if view.ReadsAsMoment(req.Name) {
		return badRequest("name", "worldctl reads it as a moment: choose another name")
	}
	stop := c.server.metrics.time(c.server.metrics.snapshots, c.world.id)
	s, err := local.Change(c.world.Local, func(w *world.World) (snapshot.Snapshot, error) {
		return w.Snapshot(c.Context(), req.Name, req.Label, c.actor())
	})
	if err != nil {
		return err
	}
	stop()
	return c.created("", object{"snapshot", s})
}
