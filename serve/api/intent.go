package api

import (
	"strconv"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
)

// Intents is a page of intents, in the order of the records that made them, or that
// approved them.
type Intents struct {
	Schema  string            `json:"schema"`
	Intents []view.IntentLine `json:"intents"`
	Next    *string           `json:"next"` // the path of what comes after it; null: nothing does yet
}

func listIntents(c *call) error {
	all, err := c.world.Selected(view.IntentFilter{
		State: receipt.State(c.param("state")), Cell: c.param("cell"), Kind: c.param("kind"), Since: c.param("since"),
	})
	if err != nil {
		return err
	}
	entries, next, err := pageOf(c, all, func(e *receipt.Entry) uint64 { return e.Emitted })
	if err != nil {
		return err
	}
	out := Intents{Schema: view.SchemaOf("intent-list"), Intents: []view.IntentLine{}, Next: next}
	lines, err := c.world.IntentLines(entries)
	if err != nil {
		return err
	}
	room := c.room()
	for i := range entries {
		if err := c.Context().Err(); err != nil {
			return err
		}
		line, err := lines.Line(entries[i])
		if err != nil {
			return err
		}
		if !room.takeRoom(len(line.Params) + len(line.Reason)) {
			out.Next = c.next(strconv.FormatUint(entries[i-1].Emitted, 10))
			break
		}
		out.Intents = append(out.Intents, line)
	}
	return c.ok(out)
}

// intent returns the intent that the path names.
func (c *call) intent() (*receipt.Entry, error) {
	key, err := receipt.ParseKey(c.PathValue("key"))
	if err != nil {
		return nil, notFound("there is no such intent: a key is 64 hex digits")
	}
	e, ok := c.world.LedgerEntry(key)
	if !ok {
		return nil, notFound("there is no such intent")
	}
	return &e, nil
}

func showIntent(c *call) error {
	e, err := c.intent()
	if err != nil {
		return err
	}
	return c.answer("intent")(c.world.Intent(e))
}
