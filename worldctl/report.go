package worldctl

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/show/view"
)

// How many lines of a section of a report are shown; --verbose shows all that it
// lists.
const (
	reportLines   = 10
	markdownLines = 20
)

// showShadow prints a report about what is called of: what a reviewer has to
// know, the verdict first, and what an apply would migrate now.
func (c *cli) showShadow(of string, r *governance.Report, m *view.Migration) {
	fmt.Fprintln(c.stdout, visible(view.Headline(of, r, m), ""))
	most := reportLines
	if c.verbose {
		most = 0
	}
	for _, s := range append(view.Sections(r, most), m.Section(most), m.Stops(most)) {
		if s.Total > 0 {
			c.showSection(&s)
		}
	}
	fmt.Fprintln(c.stdout)
	if d := r.Divergence; d != nil {
		record, cell, recorded, computed := view.FirstOther(d)
		fmt.Fprintf(c.stdout, "the first record that would be another is %s%s\n  recorded  %s\n  now       %s\n\n",
			record, visible(cell, ""), visible(recorded, ""), visible(computed, ""))
	}
	var facts [][2]any
	for _, f := range view.ReportFacts(r) {
		facts = append(facts, [2]any{f[0], visible(f[1], "")})
	}
	c.facts(facts...)
}

// showSection prints a section as plain lines, which nothing is cut off: data is
// short enough for a line or two.
func (c *cli) showSection(s *view.Section) {
	fmt.Fprintf(c.stdout, "\n%s: %s\n", s.Title, view.Thousands(s.Total))
	t := c.newTable()
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "  ", ""
	t.SuppressTrailingSpaces()
	t.AppendHeader(rowOf(s.Header))
	for _, row := range s.Rows {
		t.AppendRow(rowOf(row))
	}
	t.Render()
	if more := s.More(); more != "" {
		fmt.Fprintf(c.stdout, "  %s\n", more)
	}
}

// rowOf makes a row of a table, in which nothing can hide the rest.
func rowOf(texts []string) table.Row {
	var row table.Row
	for _, text := range texts {
		row = append(row, visible(text, ""))
	}
	return row
}
