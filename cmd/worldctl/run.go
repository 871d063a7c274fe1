package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// course is how a world is driven and how far it has come.
type course struct {
	lw     *local.World
	from   world.Head
	ticks  uint64
	most   uint64 // ticks; 0: no bound
	report func(ticks uint64)
}

type courseAnswer struct {
	Ticks         uint64        `json:"ticks"`
	Records       uint64        `json:"records"`
	Time          manifest.Tick `json:"time"`
	Head          world.Head    `json:"head"`
	EventsPending int           `json:"events_pending"`
	CellsParked   int           `json:"cells_parked"`
	Intents       intentCounts  `json:"intents"`
	Timers        int           `json:"timers"`
	Idle          bool          `json:"idle"`
}

func newStepCommand(c *cli) *cobra.Command {
	var n uint64
	cmd := &cobra.Command{
		Use:   "step",
		Short: "Run the next tick, or N of them",
		Long:  "Run the next tick, or N of them, whether or not there is anything to do. Every\nreceipt is awaited at the barrier of its round.",
		Example: `  worldctl step
  worldctl step -n 10`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n == 0 {
				return usagef("worldctl step -n 1", "0 is no number of ticks to run")
			}
			return c.drive(cmd.Context(), "step", n, func(ctx context.Context, lw *local.World) (world.Progress, error) {
				return world.Ticked, lw.Step(ctx)
			})
		},
	}
	cmd.Flags().Uint64VarP(&n, "ticks", "n", 1, "`N` ticks")
	c.paranoidFlag(cmd)
	return cmd
}

// paranoidFlag lets a command run every reduction twice.
func (c *cli) paranoidFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.paranoid, "paranoid", false, "run every reduction twice and fail the step on a difference")
}

func newRunCommand(c *cli) *cobra.Command {
	var untilIdle bool
	var ticks uint64
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run ticks until the world is idle",
		Long: `Run ticks until the world is idle: no event, no timer and no effect is left. Ticks
in which nothing can happen are jumped over. Ctrl-C stops between two steps of
cells; what was done is durable, and the next run goes on from there.

Exit code 130 when it was interrupted.`,
		Example: `  worldctl run
  worldctl run --ticks 100
  worldctl run --for 10s`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if cmd.Flags().Changed("for") {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, span)
				defer cancel()
			}
			return c.drive(ctx, "run", ticks, func(ctx context.Context, lw *local.World) (world.Progress, error) {
				p, err := lw.Next(ctx)
				switch {
				case err != nil:
				case p == world.Waiting:
					err = lw.Wait(ctx)
				case p == world.Idle && !untilIdle:
					<-ctx.Done()
					err = ctx.Err()
				}
				return p, err
			})
		},
	}
	cmd.Flags().BoolVar(&untilIdle, "until-idle", true, "stop when idle; =false waits for Ctrl-C or the end of --for")
	cmd.Flags().Uint64Var(&ticks, "ticks", 0, "at most `N` ticks; 0 is no bound")
	cmd.Flags().DurationVar(&span, "for", 0, "at most for this `DURATION`, as 10s")
	c.paranoidFlag(cmd)
	return cmd
}

// drive runs ticks until next has no more or the bound is reached, and prints
// what became of the world, also when it was interrupted.
func (c *cli) drive(ctx context.Context, verb string, most uint64, next func(context.Context, *local.World) (world.Progress, error)) error {
	return c.with(func(lw *local.World) error {
		c.noteEdited(lw)
		report, stop := c.progress("ticks", most)
		d := course{lw: lw, from: lw.Store().Head(), most: most, report: report}
		if c.verbose {
			d.report = func(uint64) {
				s := lw.Status()
				c.note("tick %d: #%d, %d events pending", s.Time, s.Head.ID, s.EventsPending)
			}
		}
		err := d.run(ctx, next)
		stop()
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil // --for is over
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return errors.Join(c.showCourse(verb, &d), err)
	})
}

func (d *course) run(ctx context.Context, next func(context.Context, *local.World) (world.Progress, error)) error {
	for d.most == 0 || d.ticks < d.most {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := next(ctx, d.lw)
		if err != nil || p == world.Idle {
			return err
		}
		if p == world.Ticked {
			d.ticks++
			d.report(d.ticks)
		}
	}
	return nil
}

func (c *cli) showCourse(verb string, d *course) error {
	s := d.lw.Status()
	a := courseAnswer{
		Ticks: d.ticks, Records: uint64(s.Head.ID - d.from.ID), Time: s.Time, Head: s.Head, EventsPending: s.EventsPending,
		CellsParked: s.Parked, Intents: countsOf(&s), Timers: s.Timers, Idle: s.Idle,
	}
	return c.object(verb, a, func() {
		c.facts([2]any{"ticks", a.Ticks}, [2]any{"records", fmt.Sprintf("%d, up to #%d", a.Records, a.Head.ID)},
			[2]any{"time", fmt.Sprintf("tick %d, %s", a.Time, calendar(d.lw, a.Time))},
			[2]any{"events pending", a.EventsPending}, [2]any{"timers", a.Timers},
			[2]any{"intents", a.Intents}, [2]any{"idle", a.Idle})
		if a.CellsParked > 0 {
			c.note("parked cells: %d; worldctl tail --kind cell.failed tells why", a.CellsParked)
		}
	})
}
