package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
)

// Headline says in a sentence what would have been otherwise, and what an apply would
// do to cells and to what is open now; nil: nobody has asked that.
func Headline(of string, r *governance.Report, m *Migration) string {
	switch text := verdict(of, r); {
	case !m.any():
		return text
	case m.Error != "":
		return text + "; applied now, it would be refused: " + m.Error
	default:
		if m.Cells > 0 {
			text += "; applied now, it migrates " + Count(m.Cells, "cell", "")
		}
		if m.stops() {
			text += "; " + OpenIntents(&m.Open, true)
		}
		if m.Moved > 0 {
			text += "; applied now, it changes the due time of " + Count(m.Moved, "timer", "") + ", as each keeps its tick"
		}
		return text
	}
}

func verdict(of string, r *governance.Report) string {
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
	add := func(verb string, things ...string) {
		var there []string
		for _, s := range things {
			if s != "" {
				there = append(there, s)
			}
		}
		if len(there) > 0 {
			out = append(out, verb+" "+strings.Join(there, " and "))
		}
	}
	add("changed", Count(n.Decisions, "decision", ""), Count(n.Cells, "cell", ""))
	add("asked for", Count(n.IntentsNew, "effect", " more"), Count(n.IntentsGone, "effect", " less"))
	add("emitted", Count(n.EventsNew, "event", " more"), Count(n.EventsGone, "event", " less"))
	add("failed in", Count(n.Failed, "step", ""))
	add("mended", Count(n.Mended, "step", ""))
	add("refused", Count(n.Refused, "input", ""))
	add("waited for", Count(n.Unknown, "answer", " that nothing recorded gives"))
	add("left out", Count(n.LeftOut, "decision", " of persons"))
	if r.CostWas != r.CostIs {
		out = append(out, fmt.Sprintf("cost %s instead of %s", Cost(r.CostIs), Cost(r.CostWas)))
	}
	return out
}

// Count counts things, and is empty for zero.
func Count(n uint64, thing, rest string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + thing + rest
	}
	return Thousands(n) + " " + thing + "s" + rest
}

// eventCount says how many events of the history a report is about.
func eventCount(r *governance.Report) string {
	return cmp.Or(Count(r.Events, "event", ""), "0 events")
}

// Thousands prints a number as people read it: 2,340.
func Thousands(n uint64) string {
	const group = 3
	s := strconv.FormatUint(n, 10)
	for at := len(s) - group; at > 0; at -= group {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// ReportFacts returns the facts of a report without its differences.
func ReportFacts(r *governance.Report) [][2]string {
	facts := [][2]string{
		{"history", fmt.Sprintf("from %s, to #%d; %s", BeganAt(r), r.To, eventCount(r))},
		{"cost", Arrow(Cost(r.CostWas), Cost(r.CostIs))},
	}
	if r.Counts.LeftOut > 0 {
		facts = append(facts, [2]string{
			"left out", Count(r.Counts.LeftOut, "decision", " of persons, where there was nothing to decide"),
		})
	}
	hash, err := r.Hash()
	text := hash.String()
	if err != nil {
		text = err.Error()
	}
	return append(facts, [2]string{"base", r.Base.String()}, [2]string{"candidate", r.Candidate.String()}, [2]string{"report", text})
}

// BeganAt says where the history begins that a report is about.
func BeganAt(r *governance.Report) string {
	switch {
	case r.Snapshot != "":
		return fmt.Sprintf("snapshot %s, #%d", r.Snapshot, r.From)
	case r.From > 1:
		return fmt.Sprintf("#%d, which put the manifest in force", r.From)
	}
	return "the first record"
}

// FirstOther returns the record and cell of the first difference, with the recorded and the shadow
// value. The shadow numbers its records itself.
func FirstOther(d *governance.Divergence) (record, cell, recorded, computed string) {
	if cell = d.Cell; cell != "" {
		cell = " of " + cell
	}
	if computed = d.Computed; computed != "" {
		computed += " of the shadow"
	}
	return numbered(d.Record), cell, orNothing(d.Recorded), orNothing(computed)
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
