package view

import (
	"context"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// TakeAgain takes again those steps whose ends are among the entries, and notes in these
// what the steps print, within bounds; zero: the reader's. The error wraps journal.ErrRedacted where a payload that
// this needs is gone.
func (j Journal) TakeAgain(ctx context.Context, entries []*Entry, b world.Bounds) error {
	steps := make(map[journal.Seq]*Entry)
	var records []journal.Seq
	for _, e := range entries {
		if e.Kind == journal.KindStepped || e.Kind == journal.KindFailed {
			steps[e.ID] = e
			records = append(records, e.ID)
		}
	}
	slices.Sort(records)
	printed, err := j.Local.PrintsOf(ctx, records, b)
	for _, p := range printed {
		e := steps[p.Record]
		e.Printed = append(e.Printed, p.Print)
	}
	return err
}

// PrintedLines is what a step printed as people read it: a line for each that it has, with
// the place of its call, spelled out where a terminal would not show it.
func (e *Entry) PrintedLines() []string {
	var lines []string
	for _, p := range e.Printed {
		lines = append(lines, PrintedLines(p)...)
	}
	return lines
}

// PrintedLines are the lines of a print call, as Entry.PrintedLines has them.
func PrintedLines(p reducer.Print) []string {
	var lines []string
	for text := range strings.SplitSeq(p.Text, "\n") {
		lines = append(lines, Visible(p.Place, "")+"  "+Visible(text, ""))
	}
	return lines
}
