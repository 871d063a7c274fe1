package worldctl

import (
	"fmt"
	"sync"

	"github.com/jedib0t/go-pretty/v6/progress"
)

// gauge shows on a terminal how far long work has come, and is safe for concurrent use. Its
// funcs are never nil.
type gauge struct {
	report func(done uint64)
	name   func(what string) // names the work anew, in text that is spelled out
	log    func(line string) // a line above it; nil: it is not shown
	stop   func()            // before anything else is printed
}

// progress shows on a terminal how far long work has come. total 0 is unknown.
// stop must be called before anything else is printed.
func (c *cli) progress(what string, total uint64) (report func(done uint64), stop func()) {
	g := c.newGauge(what, total)
	return g.report, g.stop
}

func (c *cli) newGauge(what string, total uint64) gauge {
	if c.quiet || !c.origin.Console {
		return gauge{report: func(uint64) {}, name: func(string) {}, stop: func() {}}
	}
	bar := progress.NewWriter()
	bar.SetOutputWriter(c.rawErr)
	bar.SetAutoStop(true) // Render returns once the tracker is done
	bar.SetTrackerPosition(progress.PositionRight)
	if !c.plain() {
		bar.Style().Colors = progress.StyleColorsExample
	}
	if total == 0 {
		bar.Style().Visibility.Percentage = false // of what nobody knows it would say ???
	}
	tracker := &progress.Tracker{Message: what, Total: int64(total)}
	bar.AppendTracker(tracker)
	var done sync.WaitGroup
	done.Go(bar.Render)
	return gauge{
		report: func(n uint64) { tracker.SetValue(int64(n)) },
		name:   tracker.UpdateMessage,
		stop: func() {
			tracker.MarkAsDone()
			done.Wait()
		},
		log: func(line string) { bar.Log("%s", visible(line, "")) }, // past the door
	}
}

// say prints a line while the gauge may be shown.
func (g *gauge) say(c *cli, line string) {
	if g.log != nil {
		g.log(line)
		return
	}
	fmt.Fprintln(c.stderr, line)
}
