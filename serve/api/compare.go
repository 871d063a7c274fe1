package api

import (
	"github.com/worldkernel/worldkernel/show/view"
)

// compareMoments answers with how two moments differ, of the world or of it and another
// one that is served, as worldctl diff does.
func compareMoments(c *call) error {
	other := c.world
	if id := c.param("with"); id != "" && id != other.id {
		other = c.server.worlds.get(id)
		switch {
		case other == nil || !c.token.sees(id):
			return badRequest("with", "there is no such world")
		case other.stopped.Load() != nil:
			return other.stopped.Load()
		case !other.enter():
			return errMoving()
		}
		defer other.exit()
	}
	if c.param("a") == "" {
		return badRequest("a", "it is not said which moment")
	}
	a, err := sideOf(c.world, c.param("a"))
	if err != nil {
		return err
	}
	b, err := sideOf(other, c.param("b"))
	if err != nil {
		return err
	}
	if err := c.Context().Err(); err != nil {
		return err
	}
	found, err := view.Compare(a, b, c.most(c.limit()))
	if err != nil {
		return err
	}
	return c.ok(object{"diff", withoutDirs(found)})
}

// sideOf finds a moment of a world; empty: now.
func sideOf(h *hosted, moment string) (*view.Side, error) {
	if moment == "" {
		moment = view.HeadName
	}
	m, err := h.World(moment)
	return &view.Side{Journal: h.Journal, Moment: m}, err
}

// most bounds what is told of a comparison.
func (c *call) most(limit int) view.Most {
	return view.Most{Cells: uint64(limit), Intents: uint64(limit), Bytes: c.server.cfg.Limits.PageBytes}
}

// withoutDirs leaves out where the worlds of a comparison are on this machine.
func withoutDirs(x *view.Comparison) *view.Comparison {
	x.A.Dir, x.B.Dir = "", ""
	return x
}
