package worldctl

import (
	"sync"

	"github.com/jedib0t/go-pretty/v6/progress"
)

// progress shows on a terminal how far long work has come. total 0 is unknown.
// stop must be called before anything else is printed.
func (c *cli) progress(what string, total uint64) (report func(done uint64), stop func()) {
	if c.quiet || !c.origin.Console {
		return func(uint64) {}, func() {}
	}
	bar := progress.NewWriter()
	bar.SetOutputWriter(c.rawErr)
	bar.SetAutoStop(true) // Render returns once the tracker is done
	bar.SetTrackerPosition(progress.PositionRight)
	if !c.plain() {
		bar.Style().Colors = progress.StyleColorsExample
	}
	tracker := &progress.Tracker{Message: what, Total: int64(total)}
	bar.AppendTracker(tracker)
	var done sync.WaitGroup
	done.Go(bar.Render)
	report = func(n uint64) { tracker.SetValue(int64(n)) }
	return report, func() {
		tracker.MarkAsDone()
		done.Wait()
	}
}
