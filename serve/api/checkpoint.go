package api

import (
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
)

// Checkpoints is a page of the signed checkpoints of a world, by their sizes.
type Checkpoints struct {
	Schema      string            `json:"schema"`
	Checkpoints []view.Checkpoint `json:"checkpoints"`
	Next        *string           `json:"next"` // the path of what comes after it; null: nothing does yet
}

func listCheckpoints(c *call) error {
	after, err := c.number("after")
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	out := Checkpoints{Schema: view.SchemaOf("checkpoints"), Checkpoints: []view.Checkpoint{}}
	for signed, err := range c.world.Local.Checkpoints(journal.Seq(after)+1, journal.Last) {
		if err != nil {
			return err
		}
		if len(out.Checkpoints) == limit {
			out.Next = c.next(strconv.FormatUint(out.Checkpoints[limit-1].Size, 10))
			break
		}
		out.Checkpoints = append(out.Checkpoints, view.CheckpointOf(&signed))
	}
	return c.ok(out)
}

// makeCheckpoint signs the journal as it is, with the world's own key.
func makeCheckpoint(c *call) error {
	if err := c.decode(&struct{}{}); err != nil {
		return err
	}
	signed, err := c.world.Local.Checkpoint()
	if err != nil {
		return err
	}
	return c.created("", object{"checkpoint", view.CheckpointOf(signed)})
}
