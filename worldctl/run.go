package worldctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// course is how a world is driven and how far it has come.
type course struct {
	lw     *local.World
	from   journal.Head
	ticks  uint64
	most   uint64 // ticks; 0: no bound
	idle   bool   // nothing more can happen without another input
	report func(ticks uint64)
}

type courseAnswer struct {
	Ticks         uint64            `json:"ticks"`
	Records       uint64            `json:"records"`
	Time          manifest.Tick     `json:"time"`
	Head          journal.Head      `json:"head"`
	EventsPending int               `json:"events_pending"`
	CellsParked   int               `json:"cells_parked"`
	Intents       view.IntentCounts `json:"intents"`
	Timers        int               `json:"timers"`
	Idle          bool              `json:"idle"`
}

func newStepCommand(c *cli) *cobra.Command {
	var n uint64
	cmd := &cobra.Command{
		Use:   "step",
		Short: "Run the next tick, or N of them",
		Long: `Run the next tick, or N of them, whether or not there is anything to do. Every
receipt is awaited at the barrier of its round.

Exit code 6 when effects in doubt need a decision.`,
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
	c.driveFlags(cmd)
	return cmd
}

// driveFlags are those of what drives a world.
func (c *cli) driveFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.confirm, "confirm", false, "first compare recorded results that no cell has handled yet with the outside")
	cmd.Flags().BoolVar(&c.paranoid, "paranoid", false, "run every reduction twice and fail the step on a difference")
}

func newRunCommand(c *cli) *cobra.Command {
	var untilIdle bool
	var ticks uint64
	var span time.Duration
	var effects string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run ticks until the world is idle",
		Long: `Run ticks until the world is idle: no event, no timer and no effect is left. Ticks
in which nothing can happen are jumped over. Ctrl-C stops between two steps of
cells; what was done is durable, and the next run goes on from there. Other
processes can be used on the world meanwhile.

With --effects recorded:DIR nothing outside is touched: the receipts of the world
in DIR answer, and where they have no answer the run stops and says so.

Exit code 130 when it was interrupted, 6 when effects in doubt need a decision.`,
		Example: `  worldctl run
  worldctl run --ticks 100
  worldctl run --for 10s
  worldctl run --effects recorded:../yesterday`,
		Args: args(0, 0),
		PreRunE: func(*cobra.Command, []string) (err error) {
			if c.workers < 0 {
				return usagef("worldctl run --workers 1", "%d is no number of workers", c.workers)
			}
			c.effects, err = recordedIn(effects)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if cmd.Flags().Changed("for") {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, span)
				defer cancel()
			}
			return c.drive(ctx, "run", ticks, func(ctx context.Context, lw *local.World) (world.Progress, error) {
				before := lw.Store().Head().ID
				p, err := lw.Next(ctx)
				if err == nil && (p == world.Waiting || p == world.Idle && !untilIdle) {
					p, err = world.Waiting, awaitNews(ctx, lw, before) // a late answer comes to an idle world, too
				}
				return p, err
			})
		},
	}
	cmd.Flags().BoolVar(&untilIdle, "until-idle", true, "stop when idle; =false waits for what other processes send, until Ctrl-C or the end of --for")
	cmd.Flags().Uint64Var(&ticks, "ticks", 0, "at most `N` ticks; 0 is no bound")
	cmd.Flags().DurationVar(&span, "for", 0, "at most for this `DURATION`, as 10s")
	cmd.Flags().StringVar(&effects, "effects", "live", "`WHO` performs effects: live, or recorded:DIR, the receipts of another world")
	cmd.Flags().IntVar(&c.workers, "workers", 0, "perform at most `N` effects at once; 0 is the host's default")
	c.driveFlags(cmd)
	return cmd
}

// recordedIn returns the directory of the world whose receipts answer effects;
// empty: the outside does.
func recordedIn(effects string) (string, error) {
	dir, recorded := strings.CutPrefix(effects, "recorded:")
	switch {
	case effects == "live":
		return "", nil
	case recorded && dir != "":
		at, err := local.Find(dir)
		if err != nil {
			err = hinted(err, "--effects recorded:DIR names the directory of another world")
		}
		return at, err
	}
	return "", usagef("type --effects live or --effects recorded:DIR", "%q does not say who performs effects", effects)
}

// drive runs ticks until next has no more or the bound is reached, and prints
// what became of the world, also when it was interrupted.
func (c *cli) drive(ctx context.Context, verb string, most uint64, next func(context.Context, *local.World) (world.Progress, error)) error {
	return c.own(ctx, func(lw *local.World) error {
		c.noteEdited(lw)
		unconfirmed := c.confirmed(ctx, lw)
		// What is parked stays out of the way; what nobody could look at does not.
		if unconfirmed != nil && (errors.Is(unconfirmed, world.ErrUnconfirmed) || !errors.Is(unconfirmed, world.ErrConfirmationRequired)) {
			return unconfirmed
		}
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
		if failed := lw.Sync(); failed != nil {
			return failed
		}
		if err == nil {
			err = errors.Join(unconfirmed, d.owed())
		}
		return errors.Join(c.showCourse(verb, &d), err)
	})
}

// awaitNews blocks until the outside has an answer, or the journal has a record
// after one: another command may have brought it about.
func awaitNews(ctx context.Context, lw *local.World, after journal.Seq) error {
	either, stop := context.WithCancel(ctx)
	defer stop()
	var grown sync.WaitGroup
	var failed error
	grown.Go(func() {
		failed = lw.Store().Await(either, after)
		stop()
	})
	err := lw.Wait(either)
	stop()
	grown.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.Canceled):
		return failed
	}
	return err
}

// confirmed compares recorded results with the outside, where that is wanted.
// Those that a person has to confirm are parked, and the rest can go on.
func (c *cli) confirmed(ctx context.Context, lw *local.World) error {
	if !c.confirm {
		return nil
	}
	n, err := lw.Confirm(ctx)
	c.note("recorded results: %d confirmed, %d failed, %d warned of, %d parked", n.Confirmed, n.Failed, n.Warned, n.Parked)
	return err
}

// owed says how many effects in doubt need a person's decision; nil: none. Where
// nothing more can happen verifiers have said that they cannot tell.
func (d *course) owed() error {
	n, asked := inDoubt(d.lw)
	if d.idle {
		n += asked
	}
	if n > 0 {
		return fmt.Errorf("%w: %d of them", errOwed, n)
	}
	return nil
}

// inDoubt counts the effects in doubt that a person has to decide about, and
// those whose verifiers are asked first.
func inDoubt(lw *local.World) (owed, asked int) {
	lw.View(func(w *world.Moment) {
		if w.Status().Intents[receipt.StateInDoubt] == 0 {
			return // the common case, without a look at every intent
		}
		for _, e := range w.Intents() {
			switch {
			case e.State != receipt.StateInDoubt:
			case e.Waiting:
				asked++
			default:
				owed++
			}
		}
	})
	return owed, asked
}

func (d *course) run(ctx context.Context, next func(context.Context, *local.World) (world.Progress, error)) error {
	for d.most == 0 || d.ticks < d.most {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := next(ctx, d.lw)
		if err != nil || p == world.Idle {
			d.idle = err == nil
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
		CellsParked: s.Parked, Intents: view.CountsOf(&s), Timers: s.Timers, Idle: s.Idle,
	}
	return c.object(verb, a, func() {
		c.facts([2]any{"ticks", a.Ticks}, [2]any{"records", fmt.Sprintf("%d, up to #%d", a.Records, a.Head.ID)},
			[2]any{"time", fmt.Sprintf("tick %d, %s", a.Time, calendar(d.lw, a.Time))},
			[2]any{"events pending", a.EventsPending}, [2]any{"timers", a.Timers},
			[2]any{"intents", counts(a.Intents)}, [2]any{"idle", a.Idle})
		if a.CellsParked > 0 {
			c.note("parked cells: %d; worldctl tail --kind cell.failed tells why", a.CellsParked)
		}
		if a.Intents.Parked > 0 {
			c.note("parked intents: %d; worldctl intent list --state parked tells why", a.Intents.Parked)
		}
	})
}
