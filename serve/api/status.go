package api

import (
	"fmt"
	"net/http"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// Worlds is a page of the worlds that the caller may see, by their ids: those that are served, and
// those of the store.
type Worlds struct {
	Schema string      `json:"schema"`
	Worlds []WorldLine `json:"worlds"`
	Forks  bool        `json:"forks"`          // the server has a place for forks
	Next   *string     `json:"next"`           // the path of what comes after it; null: nothing does
	Away   int         `json:"away,omitempty"` // stores that do not answer, whose worlds are lacking here
}

// WorldLine is a world in a list.
type WorldLine struct {
	ID   string       `json:"id"`
	Name string       `json:"name"` // the manifest's; the id of one that is not open in this process
	Head journal.Head `json:"head"`
	Idle bool         `json:"idle"`           // of one that is not open here: it waits to be asked for
	Open bool         `json:"open"`           // in some process: who asks for another has it opened
	Busy bool         `json:"busy,omitempty"` // a step of it takes long: the rest is as it was last seen

	// Of a world in a store.
	Owner string `json:"owner,omitempty"` // the node that has it
	Due   string `json:"due,omitempty"`   // when it goes on by itself, that nobody owns: a time, or now
	Owed  int    `json:"owed,omitempty"`  // attempts of effects that have begun and not ended
}

func listWorlds(c *call) error {
	limit := c.server.cfg.Limits.Page
	if c.param("limit") != "" {
		limit = c.limit()
	}
	lines, away, err := c.worldLines(c.param("after"), limit+1)
	if err != nil {
		return err
	}
	out := Worlds{Schema: view.SchemaOf("worlds"), Worlds: lines, Forks: c.server.cfg.Forks != "", Away: away}
	if len(lines) > limit {
		out.Worlds, out.Next = lines[:limit], c.next(lines[limit-1].ID)
	}
	return c.ok(out)
}

// worldLines returns at most so many worlds after an id, and how many stores have not answered.
func (c *call) worldLines(after string, most int) (lines []WorldLine, away int, err error) {
	lines = []WorldLine{}
	wait := newList(c.Context())
	if c.server.cfg.Stores == nil {
		for _, h := range c.server.worlds.sorted() {
			if c.token.sees(h.id) && h.id > after && len(lines) < most && !h.leaving.Load() {
				lines = append(lines, h.line(wait))
			}
		}
		return lines, 0, nil
	}
	stored, away, err := c.server.cfg.Stores.Worlds(c.Context(), after, c.token.worlds, most)
	if err != nil {
		return nil, 0, notNow(err)
	}
	for _, s := range stored {
		line := WorldLine{ID: s.ID, Name: s.ID, Head: s.Head, Idle: s.Owner == "" && s.Due == "", Open: s.Owner != ""}
		if h := c.server.worlds.get(s.ID); h != nil && !h.leaving.Load() {
			line = h.line(wait)
		}
		line.Owner, line.Due, line.Owed = s.Owner, s.Due, s.Owed
		lines = append(lines, line)
	}
	return lines, away, nil
}

func (h *hosted) line(l list) WorldLine {
	if status, ok := askWorld(l, h, h.Local.Status); ok {
		h.seen.Store(lineOf(&status))
		return *h.seen.Load()
	}
	line := *h.seen.Load()
	line.Busy = true
	return line
}

func lineOf(s *world.Status) *WorldLine {
	return &WorldLine{ID: s.ID, Name: s.World, Head: s.Head, Idle: s.Idle, Open: true}
}

func showStatus(c *call) error {
	s := c.world.Local.Status()
	now, _ := c.world.Local.Reached()
	return c.ok(object{"status", view.StatusOf(&s, c.world.Local.Head(), now)})
}

// Health says that every world goes on, or what some of them wait for.
type Health struct {
	OK      bool     `json:"ok"`
	Waiting []string `json:"waiting,omitempty"` // why some worlds do not go on, where the others do
}

func health(c *call) error {
	out := Health{OK: true}
	worlds, ended := 0, 0
	for h := range c.server.worlds.each() {
		worlds++
		if h.ended() != nil {
			ended++
		}
	}
	switch {
	case ended == 0:
	case ended == worlds && c.server.cfg.Stores == nil:
		return failed(http.StatusServiceUnavailable, "ended", "no world goes on in this process")
	default:
		out.Waiting = append(out.Waiting, fmt.Sprintf("%d of the worlds cannot go on in this process: who asks for them is told why", ended))
	}
	if of := c.server.cfg.Health; of != nil {
		waits, err := of()
		if err != nil {
			return failed(http.StatusServiceUnavailable, "ended", err.Error())
		}
		out.Waiting = append(out.Waiting, waits...)
	}
	return c.ok(out)
}
