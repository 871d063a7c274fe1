package api

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/show/view"
)

// ReportPage is a page of one of the lists of the last report about a proposal, as it
// would be without governance.MaxListed.
type ReportPage struct {
	Schema     string          `json:"schema"`
	Proposal   string          `json:"proposal"`
	ReportHash governance.Hash `json:"report_hash"` // of the report as it is recorded
	List       string          `json:"list"`
	Count      uint64          `json:"count"` // of all that there are
	Items      []any           `json:"items"`
	Next       *string         `json:"next"` // the path of what comes after it; null: nothing does
}

// maxListed is how many differences of a kind are shown at most: they are kept in memory.
const maxListed = 5000

// wholeReport is a report with all that is shown of it.
type wholeReport struct {
	hash governance.Hash // of the recorded one
	*governance.Report
}

// listsOf returns the lists of a report by their names, and how many differences of the
// kind there are.
func listsOf(r *governance.Report) map[string]reportList {
	c := &r.Counts
	return map[string]reportList{
		"cells_changed":     {anyOf(r.Cells), c.Cells},
		"events_new":        {anyOf(r.EventsNew), c.EventsNew},
		"events_gone":       {anyOf(r.EventsGone), c.EventsGone},
		"intents_new":       {anyOf(r.IntentsNew), c.IntentsNew},
		"intents_gone":      {anyOf(r.IntentsGone), c.IntentsGone},
		"decisions_changed": {anyOf(r.Decisions), c.Decisions},
		"failed":            {anyOf(r.Failed), c.Failed},
		"mended":            {anyOf(r.Mended), c.Mended},
		"refused":           {anyOf(r.Refused), c.Refused},
		"unknown":           {anyOf(r.Unknown), c.Unknown},
	}
}

type reportList struct {
	items []any
	count uint64
}

func anyOf[T any](of []T) []any {
	out := make([]any, len(of))
	for i := range of {
		out[i] = of[i]
	}
	return out
}

// showReport answers with a page of a report. The first one has the shadow run again; the
// others, until another report is asked for, cost nothing.
func showReport(c *call) error {
	lists := slices.Sorted(maps.Keys(listsOf(new(governance.Report))))
	name := c.param("list")
	if !slices.Contains(lists, name) {
		return badRequest("list", "it has to be one of "+strings.Join(lists, ", "))
	}
	n, err := c.proposal()
	if err != nil {
		return err
	}
	r, err := c.wholeReport(n)
	if err != nil {
		return err
	}
	list := listsOf(r.Report)[name]
	from := min(int(min(c.number("after"), maxListed)), len(list.items))
	to := min(from+c.limit(), len(list.items))
	out := ReportPage{
		Schema: view.SchemaOf("report"), Proposal: view.ProposalName(n), ReportHash: r.hash, List: name, Count: list.count, Items: list.items[from:to],
	}
	if to < len(list.items) {
		out.Next = c.next(strconv.Itoa(to))
	}
	return c.ok(out)
}

// wholeReport returns the last report about a proposal.
func (c *call) wholeReport(n uint64) (*wholeReport, error) {
	done, err := c.alone()
	if err != nil {
		return nil, err
	}
	defer done()
	recorded, err := c.world.ReportHash(n)
	if err != nil {
		return nil, err
	}
	if r := c.world.report; r != nil && r.hash == recorded {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), c.server.cfg.Limits.Shadow)
	defer cancel()
	whole, err := c.world.Local.WholeReport(ctx, n, maxListed)
	if err != nil {
		return nil, err
	}
	c.world.report = &wholeReport{recorded, whole}
	return c.world.report, nil
}
