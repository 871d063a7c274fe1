package main

import (
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/world"
)

// tellHistory says what a record records that is about the world as a whole.
func tellHistory(e *entry) string {
	switch b := e.body.(type) {
	case *world.SnapshotCreated:
		text := fmt.Sprintf("snapshot %s of #%d, %d cells, state root %s", b.Name, b.At, b.Cells, b.StateRoot.String()[:12])
		if b.Label != "" {
			text += ": " + b.Label
		}
		return text + madeBy(b.Actor) + letGo(b.Pruned)
	case *world.SnapshotPinned:
		if b.Pinned {
			return "snapshot " + b.Name + " is pinned" + madeBy(b.Actor)
		}
		return "snapshot " + b.Name + " is no longer pinned" + madeBy(b.Actor)
	case *world.SnapshotPruned:
		return "snapshot " + b.Name + " is let go" + madeBy(b.Actor)
	case *world.SnapshotRetention:
		return fmt.Sprintf("%d snapshots are kept from now on", b.Max) + madeBy(b.Actor) + letGo(b.Pruned)
	case *world.RolledBack:
		text := fmt.Sprintf("rolled back to snapshot %s of #%d, leaving %d side effects", b.Snapshot, b.SnapshotLen, len(b.Abandoned))
		if b.Fresh {
			text += ", with fresh effects"
		}
		return text + madeBy(b.Actor) + ": " + b.Reason
	case *world.Forked:
		return fmt.Sprintf("world %s forks from %s at #%d, effects %s", b.World, b.Parent, b.At, b.Effects) + madeBy(b.Actor)
	case *world.Redacted:
		return fmt.Sprintf("payload %s is destroyed", b.Blob) + madeBy(b.Actor) + ": " + b.Reason
	case *world.Applied:
		return fmt.Sprintf("manifest %s is in force, in the place of %s", b.Manifest.String()[:12], b.Base.String()[:12]) + madeBy(b.Actor)
	}
	return string(e.Kind)
}

// madeBy names who did something; nobody where the world did it by itself.
func madeBy(actor string) string {
	if actor == "" {
		return ""
	}
	return ", says " + actor
}

func letGo(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; let go: " + strings.Join(names, ", ")
}
