package worldctl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
)

// section is one kind of difference in a report, as a table.
type section struct {
	title  string
	total  uint64 // how many there are
	told   uint64 // how many of them the rows tell of
	header []string
	rows   [][]string
}

// more says how many differences the rows leave out.
func (s *section) more() string {
	if s.told >= s.total {
		return ""
	}
	return fmt.Sprintf("… and %s more", thousands(s.total-s.told))
}

// sectionsOf returns the differences of a report, in the order in which they
// matter to a reviewer, those of which there are none among them. most bounds the
// rows of each, in which like ones are counted together; 0: a row for each that is
// listed.
func sectionsOf(r *governance.Report, most int) []section {
	n := &r.Counts
	failures := []string{"times", "record", "cell", "step", "on", "error"}
	intents := []string{"times", "kind", "decision", "record", "cell", "params"}
	events := []string{"times", "event", "reaches", "record", "from", "data"}
	return []section{
		counted("decisions changed", n.Decisions, r.Decisions, most, decisionRow,
			"times", "was", "would be", "kind", "by", "record", "cell", "params"),
		cellsSection(r, most),
		counted("intents new", n.IntentsNew, r.IntentsNew, most, intentRow, intents...),
		counted("intents gone", n.IntentsGone, r.IntentsGone, most, intentRow, intents...),
		counted("events new", n.EventsNew, r.EventsNew, most, eventRow, events...),
		counted("events gone", n.EventsGone, r.EventsGone, most, eventRow, events...),
		counted("steps that fail", n.Failed, r.Failed, most, failureRow, failures...),
		counted("steps that fail no more", n.Mended, r.Mended, most, failureRow, failures...),
		counted("inputs refused", n.Refused, r.Refused, most, refusalRow, "times", "record", "error"),
		counted("unknown beyond here", n.Unknown, r.Unknown, most, unknownRow, "times", "kind", "why", "cell", "params"),
	}
}

// counted makes a section of differences. row returns what those have in common
// that are counted together, and the columns after the count.
func counted[T any](title string, total uint64, listed []T, most int, row func(*T) (like string, columns []string), header ...string) section {
	s := section{title: title, total: total, header: header}
	var counts []uint64
	places := make(map[string]int)
	for i := range listed {
		like, columns := row(&listed[i])
		if most == 0 {
			like = strconv.Itoa(i)
		}
		at, known := places[like]
		if !known {
			at = len(counts)
			places[like], counts = at, append(counts, 0)
			if most == 0 || at < most {
				s.rows = append(s.rows, columns)
			}
		}
		counts[at]++
	}
	for i, columns := range s.rows {
		s.rows[i] = append([]string{thousands(counts[i])}, columns...)
		s.told += counts[i]
	}
	return s
}

// like joins what differences have in common.
func like(parts ...string) string { return strings.Join(parts, "\x00") }

func decisionRow(d *governance.DecisionDifference) (string, []string) {
	by := strings.Join(d.Rules, ", ")
	if by == "" {
		by = d.Code
	}
	return like(d.Was, d.Is, d.Kind, by), []string{d.Was, d.Is, d.Kind, by, record(d.Record), d.Cell, brief(d.Params)}
}

func intentRow(d *governance.IntentDifference) (string, []string) {
	return like(d.Kind, d.Decision), []string{d.Kind, d.Decision, record(d.Record), d.Cell, brief(d.Params)}
}

func eventRow(d *governance.EventDifference) (string, []string) {
	reaches := strings.Join(d.To, ", ")
	if reaches == "" {
		reaches = "nobody"
	}
	return d.Name, []string{d.Name, reaches, record(d.Record), d.Cell, brief(d.Data)}
}

func failureRow(d *governance.Failure) (string, []string) {
	return d.Error, []string{record(d.Record), d.Cell, strconv.FormatUint(d.Step, 10), record(d.Event), d.Error}
}

func refusalRow(d *governance.Refusal) (string, []string) {
	return d.Error, []string{record(d.Record), d.Error}
}

func unknownRow(d *governance.Unknown) (string, []string) {
	return like(d.Kind, d.Why), []string{d.Kind, d.Why, d.Cell, brief(d.Params)}
}

// statePlaces is how many places of a cell's state are shown.
const statePlaces = 3

// cellsSection tells of each cell, and of the places in which its state differs.
func cellsSection(r *governance.Report, most int) section {
	s := section{title: "cells changed", total: r.Counts.Cells, header: []string{"cell", "is", "steps", "where its state differs"}}
	for i := range r.Cells {
		if most != 0 && i == most {
			break
		}
		d := &r.Cells[i]
		places := d.State
		if most != 0 {
			places = places[:min(statePlaces, len(places))]
		}
		var lines []string
		for _, x := range places {
			lines = append(lines, placeLine(&x))
		}
		if more := uint64(len(d.State)-len(places)) + d.More; more > 0 {
			lines = append(lines, fmt.Sprintf("… and %s more places", thousands(more)))
		}
		if len(lines) == 0 {
			lines = []string{""}
		}
		s.rows = append(s.rows, []string{d.Cell, cellIs(d), arrow(d.StepsWas, d.StepsIs), lines[0]})
		for _, line := range lines[1:] {
			s.rows = append(s.rows, []string{"", "", "", line})
		}
		s.told++
	}
	return s
}

// cellIs says what has become of a cell.
func cellIs(d *governance.CellDifference) string {
	is := d.What
	switch {
	case d.ParkedIs && !d.ParkedWas:
		is += ", parked"
	case d.ParkedWas && !d.ParkedIs:
		is += ", parked no more"
	}
	if d.Unknown {
		is += ", waits"
	}
	return is
}

func placeLine(x *governance.Change) string {
	path := x.Path
	if path == "" {
		path = "(all)"
	}
	return fmt.Sprintf("%s: %s -> %s", path, brief(orNothing(x.Was)), brief(orNothing(x.Is)))
}

// record names a record; 0 is none.
func record(id uint64) string {
	if id == 0 {
		return ""
	}
	return "#" + strconv.FormatUint(id, 10)
}

// brief shortens data to what fits into a line.
func brief(data string) string {
	if runes := []rune(data); len(runes) > briefRunes {
		return string(runes[:briefRunes]) + "…"
	}
	return data
}
