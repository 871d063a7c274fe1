package api

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/view"
)

// Decisions is a page of what the gate decided, in the order of the journal.
type Decisions struct {
	Schema    string          `json:"schema"`
	Decisions []view.Decision `json:"decisions"`
	Next      *string         `json:"next"` // the path of what comes after it; null: nothing does yet
}

func listDecisions(c *call) error {
	s, err := c.selection()
	if err != nil {
		return err
	}
	s.Kinds = []journal.Kind{journal.KindIntent, journal.KindDenied, journal.KindParked}
	out := Decisions{Schema: view.SchemaOf("decisions"), Decisions: []view.Decision{}}
	out.Next, err = page(c, s, func(e *view.Entry) error {
		if d, ok := e.Decision(); ok {
			out.Decisions = append(out.Decisions, d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.ok(out)
}
