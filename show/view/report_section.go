package view

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
)

// Section is one kind of difference in a report, as a table.
type Section struct {
	Title  string
	Total  uint64 // how many there are
	Header []string
	Rows   [][]string

	told uint64 // how many of them the rows tell of
}

// More says how many differences the rows leave out.
func (s *Section) More() string {
	if s.told >= s.Total {
		return ""
	}
	return fmt.Sprintf("… and %s more", Thousands(s.Total-s.told))
}

// Section returns the cells that an apply would migrate now, and what becomes of them.
func (m *Migration) Section(most int) Section {
	s := Section{Title: "cells that apply migrates now", Header: []string{"cell", "what becomes of its state"}}
	if m == nil {
		return s
	}
	s.Total = m.Cells
	for i := range m.First {
		if most != 0 && i == most {
			break
		}
		t := &m.First[i]
		s.addCell([]string{t.Cell}, placeLines(t.State, t.More, most))
	}
	return s
}

// addCell adds rows about one cell, one for each of the lines.
func (s *Section) addCell(columns, lines []string) {
	if len(lines) == 0 {
		lines = []string{""}
	}
	s.Rows = append(s.Rows, append(columns, lines[0]))
	for _, line := range lines[1:] {
		row := make([]string, len(columns)+1)
		row[len(columns)] = line
		s.Rows = append(s.Rows, row)
	}
	s.told++
}

// placeLines tells of the places in which two states differ; most 0: of all.
func placeLines(places []governance.Change, more uint64, most int) (lines []string) {
	listed := len(places)
	if most != 0 {
		listed = min(statePlaces, listed)
	}
	for i := range places[:listed] {
		lines = append(lines, placeLine(&places[i]))
	}
	if more += uint64(len(places) - listed); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %s more places", Thousands(more)))
	}
	return lines
}

// Sections returns the differences of a report, in the order in which they
// matter to a reviewer, those of which there are none among them. most bounds the
// rows of each, in which like ones are counted together; 0: a row for each that is
// listed.
func Sections(r *governance.Report, most int) []Section {
	n := &r.Counts
	failures := []string{"times", "record", "cell", "step", "on", "error"}
	intents := []string{"times", "kind", "decision", "record", "cell", "params"}
	events := []string{"times", "event", "reaches", "record", "from", "data"}
	return []Section{
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
func counted[T any](title string, total uint64, listed []T, most int, row func(*T) (like string, columns []string), header ...string) Section {
	s := Section{Title: title, Total: total, Header: header}
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
				s.Rows = append(s.Rows, columns)
			}
		}
		counts[at]++
	}
	for i, columns := range s.Rows {
		s.Rows[i] = append([]string{Thousands(counts[i])}, columns...)
		s.told += counts[i]
	}
	return s
}

// like joins what differences have in common.
func like(parts ...string) string { return strings.Join(parts, "\x00") }

func decisionRow(d *governance.DecisionDifference) (string, []string) {
	by := decidedBy(d.Rules, d.Code)
	return like(d.Was, d.Is, d.Kind, by), []string{d.Was, d.Is, d.Kind, by, numbered(d.Record), d.Cell, Brief(d.Params)}
}

func intentRow(d *governance.IntentDifference) (string, []string) {
	return like(d.Kind, d.Decision), []string{d.Kind, d.Decision, numbered(d.Record), d.Cell, Brief(d.Params)}
}

func eventRow(d *governance.EventDifference) (string, []string) {
	reaches := strings.Join(d.To, ", ")
	if reaches == "" {
		reaches = "nobody"
	}
	return d.Name, []string{d.Name, reaches, numbered(d.Record), d.Cell, Brief(d.Data)}
}

func failureRow(d *governance.Failure) (string, []string) {
	return d.Error, []string{numbered(d.Record), d.Cell, strconv.FormatUint(d.Step, 10), numbered(d.Event), d.Error}
}

func refusalRow(d *governance.Refusal) (string, []string) {
	return d.Error, []string{numbered(d.Record), d.Error}
}

func unknownRow(d *governance.Unknown) (string, []string) {
	return like(d.Kind, d.Why), []string{d.Kind, d.Why, d.Cell, Brief(d.Params)}
}

// statePlaces is how many places of a cell's state are shown.
const statePlaces = 3

// cellsSection tells of each cell, and of the places in which its state differs.
func cellsSection(r *governance.Report, most int) Section {
	s := Section{Title: "cells changed", Total: r.Counts.Cells, Header: []string{"cell", "is", "steps", "where its state differs"}}
	for i := range r.Cells {
		if most != 0 && i == most {
			break
		}
		d := &r.Cells[i]
		s.addCell([]string{d.Cell, cellIs(d), Arrow(d.StepsWas, d.StepsIs)}, placeLines(d.State, d.More, most))
	}
	return s
}

// cellIs says what has become of a cell.
func cellIs(d *governance.CellDifference) string {
	is := d.What
	switch {
	case d.HaltedIs && !d.HaltedWas:
		is += ", halted"
	case d.HaltedWas && !d.HaltedIs:
		is += ", halted no more"
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
	return fmt.Sprintf("%s: %s -> %s", path, Brief(orNothing(x.Was)), Brief(orNothing(x.Is)))
}

// numbered names a record; 0 is none.
func numbered(id uint64) string {
	if id == 0 {
		return ""
	}
	return "#" + strconv.FormatUint(id, 10)
}

// briefRunes is how much data fits into a line.
const briefRunes = 100

// Brief shortens data to what fits into a line.
func Brief(data string) string {
	if runes := []rune(data); len(runes) > briefRunes {
		return string(runes[:briefRunes]) + "…"
	}
	return data
}
