package worldctl

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/worldkernel/worldkernel/governance"
)

// How many lines of a section of a report are shown; --verbose shows all that it
// lists.
const (
	reportLines   = 10
	markdownLines = 20
)

// showShadow prints a report about what is called of: what a reviewer has to
// know, the verdict first.
func (c *cli) showShadow(of string, r *governance.Report) {
	fmt.Fprintln(c.stdout, visible(headline(of, r), ""))
	most := reportLines
	if c.verbose {
		most = 0
	}
	for _, s := range sectionsOf(r, most) {
		if s.total > 0 {
			c.showSection(&s)
		}
	}
	fmt.Fprintln(c.stdout)
	if d := r.Divergence; d != nil {
		fmt.Fprintf(c.stdout, "the first record that would be another is #%d%s\n  recorded  %s\n  now       %s\n\n",
			d.Record, visible(ofCell(d.Cell), ""), visible(orNothing(d.Recorded), ""), visible(orNothing(d.Computed), ""))
	}
	var facts [][2]any
	for _, f := range reportFacts(r) {
		facts = append(facts, [2]any{f[0], visible(f[1], "")})
	}
	c.facts(facts...)
}

// showSection prints a section as plain lines, which nothing is cut off: data is
// short enough for a line or two.
func (c *cli) showSection(s *section) {
	fmt.Fprintf(c.stdout, "\n%s: %s\n", s.title, thousands(s.total))
	t := c.newTable()
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = "  ", ""
	t.SuppressTrailingSpaces()
	t.AppendHeader(rowOf(s.header))
	for _, row := range s.rows {
		t.AppendRow(rowOf(row))
	}
	t.Render()
	if more := s.more(); more != "" {
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

// headline says in a sentence what would have been otherwise.
func headline(of string, r *governance.Report) string {
	what := verdicts(r)
	events := eventCount(r)
	switch {
	case r.NoOp():
		return fmt.Sprintf("%s would have changed nothing in %s", of, events)
	case len(what) == 0:
		return fmt.Sprintf("%s would have come to the same in %s, by other records", of, events)
	case len(what) == 1:
		return fmt.Sprintf("%s would have %s in %s; nothing else", of, what[0], events)
	}
	last := len(what) - 1
	return fmt.Sprintf("%s would have %s, and %s, in %s", of, strings.Join(what[:last], ", "), what[last], events)
}

// verdicts returns what a candidate would have done, each thing with its verb.
func verdicts(r *governance.Report) []string {
	n := &r.Counts
	var out []string
	add := func(verb string, some ...string) {
		var there []string
		for _, s := range some {
			if s != "" {
				there = append(there, s)
			}
		}
		if len(there) > 0 {
			out = append(out, verb+" "+strings.Join(there, " and "))
		}
	}
	add("changed", some(n.Decisions, "decision", ""), some(n.Cells, "cell", ""))
	add("asked for", some(n.IntentsNew, "effect", " more"), some(n.IntentsGone, "effect", " less"))
	add("emitted", some(n.EventsNew, "event", " more"), some(n.EventsGone, "event", " less"))
	add("failed in", some(n.Failed, "step", ""))
	add("mended", some(n.Mended, "step", ""))
	add("refused", some(n.Refused, "input", ""))
	add("waited for", some(n.Unknown, "answer", " that nothing recorded gives"))
	add("left out", some(n.LeftOut, "decision", " of persons"))
	if r.CostWas != r.CostIs {
		out = append(out, fmt.Sprintf("cost %s instead of %s", cost(r.CostIs), cost(r.CostWas)))
	}
	return out
}

// some counts things, and says nothing where there are none.
func some(n uint64, thing, rest string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + thing + rest
	}
	return thousands(n) + " " + thing + "s" + rest
}

// eventCount says how many events of the history a report is about.
func eventCount(r *governance.Report) string {
	return cmp.Or(some(r.Events, "event", ""), "0 events")
}

// thousands prints a number as people read it: 2,340.
func thousands(n uint64) string {
	const group = 3
	s := strconv.FormatUint(n, 10)
	for at := len(s) - group; at > 0; at -= group {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// reportFacts returns what a report says besides its differences.
func reportFacts(r *governance.Report) [][2]string {
	facts := [][2]string{
		{"history", fmt.Sprintf("from %s, to #%d; %s", beganAt(r), r.To, eventCount(r))},
		{"cost", arrow(cost(r.CostWas), cost(r.CostIs))},
	}
	if r.Counts.LeftOut > 0 {
		facts = append(facts, [2]string{
			"left out", some(r.Counts.LeftOut, "decision", " of persons, where there was nothing to decide"),
		})
	}
	hash, err := r.Hash()
	text := hash.String()
	if err != nil {
		text = err.Error()
	}
	return append(facts, [2]string{"base", r.Base.String()}, [2]string{"candidate", r.Candidate.String()}, [2]string{"report", text})
}

// beganAt says where the history begins that a report is about.
func beganAt(r *governance.Report) string {
	switch {
	case r.Snapshot != "":
		return fmt.Sprintf("snapshot %s, #%d", r.Snapshot, r.From)
	case r.From > 1:
		return fmt.Sprintf("#%d, which put the manifest in force", r.From)
	}
	return "the first record"
}

func ofCell(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
