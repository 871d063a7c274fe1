package api

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// SnapshotRequest asks for a snapshot.
type SnapshotRequest struct {
	Name  string `json:"name"`  // empty: s1, s2 and so on
	Label string `json:"label"` // what it is for
}

// listSnapshots answers with a page of the snapshots that are kept, from the oldest.
func listSnapshots(c *call) error {
	var all []snapshot.Snapshot
	c.world.Local.View(func(w *world.Moment) { all = w.Snapshots() })
	page, next := pageOf(c, all, func(i int) uint64 { return all[i].Record })
	return c.list("snapshot-list", "snapshots", page, next, nil)
}

func makeSnapshot(c *call, req *SnapshotRequest) error {
	if view.ReadsAsMoment(req.Name) {
		return badRequest("name", "worldctl reads it as a moment: choose another name")
	}
	stop := timed(c.world.counted.snapshots)
	s, err := local.Change(c.world.Local, func(w *world.World) (snapshot.Snapshot, error) {
		return w.Snapshot(c.Context(), req.Name, req.Label, c.actor())
	})
	if err != nil {
		return err
	}
	stop()
	return c.created("", object{"snapshot", s})
}

// PruneRequest names a snapshot, or the beginning of its hash.
type PruneRequest struct {
	Snapshot string `json:"snapshot"`
}

// PinRequest says whether a snapshot stays whatever the retention says.
type PinRequest struct {
	Snapshot string `json:"snapshot"` // its name, or the beginning of its hash
	Pinned   *bool  `json:"pinned"`   // nil: true
}

func pruneSnapshot(c *call, req *PruneRequest) error {
	return c.answer("snapshot-pruned")(c.world.Prune(c.Context(), req.Snapshot, c.actor()))
}

func pinSnapshot(c *call, req *PinRequest) error {
	pinned := req.Pinned == nil || *req.Pinned
	return c.answer("snapshot-pinned")(c.world.Pin(c.Context(), req.Snapshot, pinned, c.actor()))
}

// RollbackRequest names the snapshot that a world returns to, and the effects that the caller
// knows to stay behind. See worldctl rollback.
type RollbackRequest struct {
	Snapshot     string `json:"snapshot"` // its name, or the beginning of its hash
	Reason       string `json:"reason"`
	Ack          bool   `json:"ack"`
	Compensate   bool   `json:"compensate"`
	Fresh        bool   `json:"fresh_effects"`
	WithManifest bool   `json:"with_manifest"`
	DryRun       bool   `json:"dry_run"` // only tell what would be left behind
}

func rollBack(c *call, req *RollbackRequest) error {
	s, err := c.world.Snapshot(req.Snapshot)
	if err != nil {
		return err
	}
	b := journal.RolledBack{
		Snapshot: s.Name, Reason: req.Reason, Actor: c.actor(), Ack: req.Ack, Compensate: req.Compensate, Fresh: req.Fresh,
	}
	if req.DryRun {
		return c.answer("rollback")(c.world.Leaves(&s, b, req.WithManifest))
	}
	return c.answer("rollback")(c.world.RollBack(c.Context(), &s, b, req.WithManifest))
}
