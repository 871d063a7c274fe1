package api

import (
	"net/http"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/view"
)

// Worlds lists the worlds that are served and that the caller may see.
type Worlds struct {
	Schema string      `json:"schema"`
	Worlds []WorldLine `json:"worlds"`
	Forks  bool        `json:"forks"` // the server has a place for forks
}

// WorldLine is a world in a list.
type WorldLine struct {
	ID   string       `json:"id"`
	Name string       `json:"name"` // the manifest's
	Head journal.Head `json:"head"`
	Idle bool         `json:"idle"`
}

func listWorlds(c *call) error {
	out := Worlds{Schema: view.SchemaOf("worlds"), Worlds: []WorldLine{}, Forks: c.server.cfg.Forks != ""}
	for h := range c.server.worlds.each() {
		if c.token.sees(h.id) {
			s := h.Local.Status()
			out.Worlds = append(out.Worlds, WorldLine{ID: s.ID, Name: s.World, Head: s.Head, Idle: s.Idle})
		}
	}
	return c.ok(out)
}

func showStatus(c *call) error {
	s := c.world.Local.Status()
	now, _ := c.world.Local.Reached()
	return c.ok(object{"status", view.StatusOf(&s, c.world.Local.Head(), now)})
}

// Health says that every world goes on.
type Health struct {
	OK bool `json:"ok"`
}

func health(c *call) error {
	for h := range c.server.worlds.each() {
		if h.ended() != nil {
			return failed(http.StatusServiceUnavailable, "ended", "a world has ended in this process")
		}
	}
	if of := c.server.cfg.Health; of != nil {
		if err := of(); err != nil {
			return failed(http.StatusServiceUnavailable, "ended", err.Error())
		}
	}
	return c.ok(Health{OK: true})
}
