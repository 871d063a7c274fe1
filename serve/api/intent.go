package api

import (
	"strconv"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
)

// listIntents answers with a page of intents, in the order of the records that made them, or that
// approved them.
func listIntents(c *call) error {
	all, err := c.world.Selected(view.IntentFilter{
		State: receipt.State(c.param("state")), Cell: c.param("cell"), Kind: c.param("kind"), Since: c.param("since"),
	})
	if err != nil {
		return err
	}
	entries, next := pageOf(c, all, func(i int) uint64 { return all[i].Emitted })
	intents := []view.IntentLine{}
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
			next = c.next(strconv.FormatUint(entries[i-1].Emitted, 10))
			break
		}
		intents = append(intents, line)
	}
	return c.list("intent-list", "intents", intents, next, nil)
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
