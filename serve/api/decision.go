package api

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
)

// Decisions is a page of what the gate decided, in the order of the journal.
type Decisions struct {
	Schema    string          `json:"schema"`
	Decisions []view.Decision `json:"decisions"`
	Next      *string         `json:"next"` // the path of what comes after it; null: nothing does yet
}

func listDecisions(c *call) error {
	f := c.quoted("decision")
	s, err := c.selectionOf(f.ExactCell())
	if err != nil {
		return err
	}
	s.Kinds = []journal.Kind{journal.KindIntent, journal.KindDenied, journal.KindAwaitingApproval}
	out := Decisions{Schema: view.SchemaOf("decisions"), Decisions: []view.Decision{}}
	out.Next, err = page(c, s, func(e *view.Entry) (bool, error) {
		d, ok := e.Decision()
		if ok = ok && f.Fits(d.Cell, d.Kind, d.Decision); ok {
			out.Decisions = append(out.Decisions, d)
		}
		return ok, nil
	})
	if err != nil {
		return err
	}
	return c.ok(out)
}

// quoted reads of whose effects, of which kind and with which word the query wants records.
func (c *call) quoted(word string) view.EffectFilter {
	return view.EffectFilter{Cell: c.param("cell"), Kind: c.param("kind"), Word: c.param(word)}
}
