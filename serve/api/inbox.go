package api

import (
	"strings"

	"github.com/worldkernel/worldkernel/show/view"
)

// Inbox is a page of what waits for a person in the worlds that the token is for: world by
// world, in each intents, the oldest first, then cells, by name.
type Inbox struct {
	Schema string      `json:"schema"`
	Owed   []view.Owed `json:"owed"`
	Next   *string     `json:"next"` // the path of what comes after it; null: nothing does
}

func showInbox(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	out := Inbox{Schema: view.SchemaOf("inbox"), Owed: []view.Owed{}}
	room := c.room()
	last := ""
	from, after, _ := strings.Cut(c.param("after"), "/") // ids of worlds have none
	for h := range c.server.worlds.each() {
		if !c.token.sees(h.id) || h.stopped.Load() != nil || h.id < from {
			continue
		}
		for _, d := range h.Debts() {
			if h.id == from && d.ID <= after {
				continue
			}
			if err := c.Context().Err(); err != nil {
				return err
			}
			o, owed, err := h.Owed(&d)
			if err != nil {
				return err
			}
			if !owed {
				continue
			}
			if len(out.Owed) == limit || !room.take(bytesOf(&o)) {
				out.Next = c.next(last)
				return c.ok(out)
			}
			out.Owed = append(out.Owed, o)
			last = h.id + "/" + d.ID
		}
	}
	return c.ok(out)
}

// bytesOf is about how long what an item of the inbox quotes is.
func bytesOf(o *view.Owed) int {
	switch {
	case o.Failure != nil:
		return len(o.Failure.Error)
	case o.Intent == nil:
		return 0
	}
	n := len(o.Intent.Params) + len(o.Intent.Reason)
	for _, r := range o.Intent.Asks {
		n += len(r.Message) + len(r.Schema)
	}
	return n
}

// Whoami says who shows a token, and what that lets them do.
type Whoami struct {
	Schema string `json:"schema"`
	TokenLine
}

func whoami(c *call) error {
	return c.ok(Whoami{view.SchemaOf("whoami"), c.token.line()})
}
