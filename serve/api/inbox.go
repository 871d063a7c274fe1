package api

import (
	"context"
	"errors"
	"strings"

	"github.com/worldkernel/worldkernel/show/view"
)

// Inbox is a page of what waits for a person in the worlds that the token is for: world by
// world, in each intents, the oldest first, then cells, by name.
type Inbox struct {
	Schema string      `json:"schema"`
	Owed   []view.Owed `json:"owed"`
	Next   *string     `json:"next"`           // the path of what comes after it; null: nothing does
	Busy   []string    `json:"busy,omitempty"` // ids of worlds of which a step takes long: what waits in them is lacking here
}

func showInbox(c *call) error {
	limit := c.limit()
	out := Inbox{Schema: view.SchemaOf("inbox"), Owed: []view.Owed{}}
	room, wait := c.room(), newList(c.Context())
	last := ""
	from, after, _ := strings.Cut(c.param("after"), "/") // ids of worlds have none
	for _, h := range c.server.worlds.sorted() {
		if !c.token.sees(h.id) || h.stopped.Load() != nil || h.id < from || h.leaving.Load() {
			continue
		}
		beyond := ""
		if h.id == from {
			beyond = after
		}
		most := limit - len(out.Owed) + 1
		is, ok := askWorld(wait, h, func() owing { return h.owing(c.Context(), beyond, most, c.room()) })
		if err := errors.Join(c.Context().Err(), is.err); err != nil {
			return err
		}
		if !ok {
			out.Busy = append(out.Busy, h.id)
		}
		for i := range is.all {
			if len(out.Owed) == limit || !room.takeRoom(bytesOf(&is.all[i])) {
				out.Next = c.next(last)
				return c.ok(out)
			}
			out.Owed = append(out.Owed, is.all[i])
			last = h.id + "/" + is.ids[i]
		}
	}
	return c.ok(out)
}

// owing is what a world has for a page of the inbox, with the ids of its debts.
type owing struct {
	all []view.Owed
	ids []string
	err error
}

// owing returns at most so many items after a debt, and one more than there is room for.
func (h *hosted) owing(ctx context.Context, after string, most int, room *room) (is owing) {
	for _, d := range h.Debts() {
		if d.ID <= after {
			continue
		}
		if is.err = ctx.Err(); is.err != nil {
			return is
		}
		o, owed, err := h.Owed(&d)
		if err != nil {
			is.err = err
			return is
		}
		if !owed {
			continue
		}
		is.all, is.ids = append(is.all, o), append(is.ids, d.ID)
		if len(is.all) == most || !room.takeRoom(bytesOf(&o)) {
			return is
		}
	}
	return is
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

// whoami answers with the bearer of a token, and its scopes.
func whoami(c *call) error { return c.ok(object{"whoami", c.token.line()}) }
