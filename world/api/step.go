package api

import (
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/view"
)

// StepRequest asks for ticks.
type StepRequest struct {
	Ticks *uint64 `json:"ticks"` // nil: 1
}

// Course is what became of a world, as `worldctl step -o json` says it.
type Course struct {
	Schema        string            `json:"schema"`
	Ticks         uint64            `json:"ticks"`   // that were run
	Records       uint64            `json:"records"` // that the journal has more
	Time          manifest.Tick     `json:"time"`
	Head          journal.Head      `json:"head"`
	EventsPending int               `json:"events_pending"`
	CellsParked   int               `json:"cells_parked"`
	Intents       view.IntentCounts `json:"intents"`
	Timers        int               `json:"timers"`
	Idle          bool              `json:"idle"`
}

// step runs ticks. Where the deadline of the answer ends it, those before are
// durable.
func step(c *call) error {
	var req StepRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	ticks := uint64(1)
	if req.Ticks != nil {
		ticks = *req.Ticks
	}
	if most := c.server.cfg.Limits.Ticks; ticks == 0 || ticks > uint64(most) {
		return badRequest("ticks", "it has to be from 1 to "+strconv.Itoa(most))
	}
	from := c.world.head()
	for range ticks {
		if err := c.world.Local.Step(c.Context()); err != nil {
			return err
		}
	}
	s := c.world.Local.Status()
	return c.ok(Course{
		Schema: schemaOf("step"), Ticks: ticks, Records: uint64(s.Head.ID - from), Time: s.Time, Head: s.Head,
		EventsPending: s.EventsPending, CellsParked: s.Parked, Intents: view.CountsOf(&s), Timers: s.Timers, Idle: s.Idle,
	})
}
