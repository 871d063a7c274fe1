package worldctl

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/lab/experiment"
)

// reportFile is the page that sweep report writes.
const reportFile = "report.html"

func newSweepReportCommand(c *cli) *cobra.Command {
	var out, html string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Summarise the results of an experiment, and draw them",
		Long: `Summarise the results of an experiment: of each measure at the end of the runs the mean,
standard deviation, 95% interval of the mean and median, by variant and point of the
params; and how much each variant differs from the first over equal seeds, with the
interval of that. Intervals are by Student's t. Failed runs are in no figure.

The same is in a page with plots, one file that needs no network: lines over ticks,
distributions, and of two varied params a heat map.`,
		Example: `  worldctl sweep report
  worldctl sweep report --out results -o json`,
		RunE: func(*cobra.Command, []string) error { return c.sweepReport(out, html) },
	}
	cmd.Flags().StringVar(&out, "out", defaultResults, "the `DIR` of results")
	cmd.Flags().StringVar(&html, "html", "", "write the page to this `FILE`; if not given it is "+reportFile+" in the directory of results")
	return cmd
}

func (c *cli) sweepReport(out, html string) error {
	dir := c.path(out)
	s, err := experiment.Summarise(dir)
	if err != nil {
		return sweepFault(err, dir)
	}
	path := c.path(html)
	if path == "" {
		path = filepath.Join(dir, reportFile)
	}
	if err := file.Replace(path, 0o600, func(w io.Writer) error { return experiment.WriteReport(w, dir) }); err != nil {
		return err
	}
	err = c.object("sweep-report", s, func() { err = c.showSummary(s) })
	c.flush()
	c.note("the page is %s", relative(path))
	return err
}

func (c *cli) showSummary(s *experiment.Summary) error {
	fmt.Fprintf(c.stdout, "%s: %d of %d runs, %d failed\n", s.Experiment, s.Done, s.Runs, s.Failed)
	if err := c.showWrong(s); err != nil {
		return err
	}
	header := func(names ...any) table.Row {
		row := table.Row{"measure", "variant"}
		for _, p := range s.Params {
			row = append(row, p)
		}
		return append(row, names...)
	}
	err := list(c, "sweep-report", "statistics", allItems(s.Statistics), columns[experiment.Statistic]{
		header: header("runs", "mean", "sd", "95% interval", "median"),
		row: func(x experiment.Statistic) table.Row {
			return append(append(table.Row{x.Measure, x.Variant}, x.Point...), x.N, figure(x.Mean), figure(x.SD), interval(&x.Moments), figure(x.Median))
		},
	})
	if len(s.ByVariant) == 1 {
		c.note("there is one variant, and so there are no pairs")
	}
	if err != nil || len(s.Pairs) == 0 {
		return err
	}
	fmt.Fprintf(c.stdout, "difference from %s, over equal seeds:\n", s.Pairs[0].Less)
	return list(c, "sweep-report", "pairs", allItems(s.Pairs), columns[experiment.Pair]{
		header: header("pairs", "mean", "sd", "95% interval", "without 0"),
		row: func(x experiment.Pair) table.Row {
			apart := any(x.Apart())
			if x.None != "" {
				apart = x.None
			}
			return append(append(table.Row{x.Measure, x.Variant}, x.Point...), x.N, figure(x.Mean), figure(x.SD), interval(&x.Moments), apart)
		},
	})
}

// showWrong says why runs have failed, and what went wrong within others, by variant.
func (c *cli) showWrong(s *experiment.Summary) error {
	if s.Clean() {
		return nil
	}
	if len(s.Failures) > 0 {
		fmt.Fprintln(c.stdout, "why runs have failed:")
		err := list(c, "sweep-report", "failures", allItems(s.Failures), columns[experiment.Reason]{
			header: table.Row{"runs", "such as run", "reason"},
			row:    func(x experiment.Reason) table.Row { return table.Row{x.Runs, x.Run, x.Reason} },
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(c.stdout, "how runs have ended:")
	err := list(c, "sweep-report", "by_variant", allItems(s.ByVariant), columns[experiment.Ended]{
		header: table.Row{"variant", "runs", "failed", "cells halted", "events dropped", "effects in doubt", "effects failed"},
		row: func(x experiment.Ended) table.Row {
			return table.Row{x.Variant, x.Done, x.Failed, inRuns(x.Halted), inRuns(x.Skipped), inRuns(x.InDoubt), inRuns(x.FailedEffects)}
		},
	})
	if f := s.First(); f != nil {
		c.note("run %d has %s; worldctl sweep run %d --keep DIR makes it again, to look at", f.Run, &f.StepFailure, f.Run)
	}
	return err
}

func inRuns(n experiment.Count) string {
	if n.Runs == 0 {
		return "0"
	}
	return fmt.Sprintf("%d in %d runs", n.All, n.Runs)
}

func figure(f *float64) string {
	if f == nil {
		return ""
	}
	return experiment.ShowNumber(*f)
}

func interval(m *experiment.Moments) string {
	if m.Low == nil {
		return ""
	}
	return figure(m.Low) + " … " + figure(m.High)
}
