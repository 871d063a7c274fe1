package api

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
)

// listDecisions answers with a page of what the gate decided, in the order of the journal.
func listDecisions(c *call) error {
	f := c.quoted("decision")
	s, err := c.selectionOf(f.ExactCell())
	if err != nil {
		return err
	}
	s.Kinds = []journal.Kind{journal.KindIntent, journal.KindDenied, journal.KindAwaitingApproval}
	decisions := []view.Decision{}
	next, err := page(c, s, func(e *view.Entry) (bool, error) {
		d, ok := e.Decision()
		if ok = ok && f.Fits(d.Cell, d.Kind, d.Decision); ok {
			decisions = append(decisions, d)
		}
		return ok, nil
	})
	return c.list("decisions", "decisions", decisions, next, err)
}

// quoted reads of whose effects, of which kind and with which word the query wants records.
func (c *call) quoted(word string) view.EffectFilter {
	return view.EffectFilter{Cell: c.param("cell"), Kind: c.param("kind"), Word: c.param(word)}
}
