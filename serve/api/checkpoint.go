package api

import (
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
)

// listCheckpoints answers with a page of the signed checkpoints of a world, by their sizes.
func listCheckpoints(c *call) error {
	limit := c.limit()
	all, next := []view.Checkpoint{}, (*string)(nil)
	for signed, err := range c.world.Local.Checkpoints(journal.Seq(c.number("after"))+1, journal.Last) {
		if err != nil {
			return err
		}
		if len(all) == limit {
			next = c.next(strconv.FormatUint(all[limit-1].Size, 10))
			break
		}
		all = append(all, view.CheckpointOf(&signed))
	}
	return c.list("checkpoints", "checkpoints", all, next, nil)
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
