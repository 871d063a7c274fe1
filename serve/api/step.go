package api

import (
	"strconv"

	"github.com/worldkernel/worldkernel/world/local"
)

// StepRequest asks for ticks.
type StepRequest struct {
	Ticks *uint64 `json:"ticks"` // nil: 1
}

// step runs ticks. Where the deadline of the answer ends it, those before are
// durable.
func step(c *call, req *StepRequest) error {
	ticks := uint64(1)
	if req.Ticks != nil {
		ticks = *req.Ticks
	}
	if most := c.server.cfg.Limits.Ticks; ticks == 0 || ticks > uint64(most) {
		return badRequest("ticks", "it has to be from 1 to "+strconv.Itoa(most))
	}
	driven, err := c.world.Local.Drive(c.Context(), local.Course{Ticks: ticks, Every: true})
	if err != nil {
		return err
	}
	return c.answer("step")(c.world.Course(&driven))
}
