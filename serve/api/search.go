package api

import (
	"errors"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
)

// Search is what a text may mean in a world.
type Search struct {
	Schema  string           `json:"schema"`
	Record  *view.RecordView `json:"record"` // the moment of that name: #12, t7, a time, a snapshot; null: there is none
	Cells   []string         `json:"cells"`  // that have it in their names; an operator stands in the place of a cell
	Names   []string         `json:"names"`  // likewise, of events, timers, tags, snapshots and kinds of effects
	Intents []FoundIntent    `json:"intents"`
	More    bool             `json:"more"` // there are others
}

// FoundIntent is an intent whose key begins with what was looked for.
type FoundIntent struct {
	Key    receipt.Key   `json:"key"`
	Cell   string        `json:"cell"`
	Kind   string        `json:"kind"`
	State  receipt.State `json:"state"`
	Record journal.Seq   `json:"record"` // that made it, or that approved it
}

// search finds what a person may mean. It looks through names and keys, not through what
// records hold.
func search(c *call) error {
	text := c.param("q")
	if text == "" {
		return badRequest("q", "it is not said what to look for")
	}
	if err := c.world.Index.Extend(c.Context(), c.world.End()); err != nil {
		return err
	}
	found := c.world.Index.Find(text, min(c.limit(), usualPage))
	out := Search{Schema: view.SchemaOf("search"), Cells: found.Cells, Names: found.Names, Intents: []FoundIntent{}, More: found.More}
	for _, key := range found.Keys {
		e, ok := c.world.LedgerEntry(receipt.Key{Hash: key})
		if ok {
			out.Intents = append(out.Intents, FoundIntent{e.Intent.Key, e.Intent.Cell, e.Intent.Kind, e.State, journal.Seq(e.Emitted)})
		}
	}
	if id, err := c.world.At(strings.TrimSpace(text)); err == nil && id > 0 {
		e, err := c.record(id)
		if err != nil {
			return err
		}
		told, err := c.world.View(e)
		if err != nil {
			return err
		}
		out.Record = &told
	}
	return c.ok(out)
}

// showSeries answers with the activity of a world along its ticks, with its cost.
func showSeries(c *call) error {
	stretches, err := c.buckets(100, 1000)
	if err != nil {
		return err
	}
	first, last, err := c.world.Part(c.param("from"), c.param("to"))
	if errors.Is(err, view.ErrOrder) {
		return badRequest("to", err.Error())
	}
	if err != nil {
		return err
	}
	if err := c.world.Index.Extend(c.Context(), last); err != nil {
		return err
	}
	return c.answer("series")(c.world.Index.Series(first, last, int(stretches), c.limit()))
}
