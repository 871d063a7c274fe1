package worldctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/notify"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newStepCommand(c *cli) *cobra.Command {
	var n uint64
	cmd := &cobra.Command{
		Use: "step",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n == 0 {
				return usagef("worldctl step -n 1", "0 is no number of ticks to run")
			}
			return c.drive(cmd.Context(), "step", func(*local.World) local.Course { return local.Course{Ticks: n, Every: true} })
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
	var course local.Course
	var untilIdle bool
	var span time.Duration
	var effects string
	cmd := &cobra.Command{
		Use: "run",
		PreRunE: func(*cobra.Command, []string) (err error) {
			if err := checkWorkers("run", c.workers); err != nil {
				return err
			}
			if span < 0 {
				return usagef("worldctl run --for 10s", "--for takes a duration that is not negative, not %s", span)
			}
			c.effects, err = recordedIn(effects)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("for") {
				course.Until = time.Now().Add(span)
			}
			stays := !cmd.Flags().Changed("until-idle")
			return c.drive(cmd.Context(), "run", func(lw *local.World) local.Course {
				course.Stay = !untilIdle || stays && lw.IsReal()
				return course
			})
		},
	}
	cmd.Flags().BoolVar(&untilIdle, "until-idle", true, "stop when idle; =false, as it is with a real clock, waits for what other processes send, until Ctrl-C or the end of --for")
	cmd.Flags().Uint64Var(&course.Ticks, "ticks", 0, "at most `N` ticks; 0 is no bound")
	cmd.Flags().DurationVar(&span, "for", 0, "at most for this `DURATION`, as 10s")
	cmd.Flags().StringVar(&effects, "effects", "live", "`WHO` performs effects: live, or recorded:DIR, the receipts of another world")
	cmd.Flags().IntVar(&c.workers, "workers", 0, "perform at most `N` effects at once; 0 is the host's default")
	c.memoryFlag(cmd)
	c.driveFlags(cmd)
	return cmd
}

// checkWorkers refuses what is no number of workers of a verb.
func checkWorkers(verb string, n int) error {
	if n < 0 {
		return usagef("worldctl "+verb+" --workers 1", "%d is no number of workers", n)
	}
	return nil
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
		if named, _ := filepath.Abs(dir); errors.Is(err, local.ErrStrangersWorld) && at == named {
			err = nil
		}
		if err != nil {
			err = hinted(err, "--effects recorded:DIR names the directory of another world")
		}
		return at, err
	}
	return "", usagef("type --effects live or --effects recorded:DIR", "%q does not say who performs effects", effects)
}

// drive drives the world that is meant, and prints what became of it, also when it
// was interrupted.
func (c *cli) drive(ctx context.Context, verb string, courseOf func(*local.World) local.Course) error {
	return c.own(ctx, func(lw *local.World) error {
		course := courseOf(lw)
		c.noteEdited(lw)
		c.noteLive(lw)
		unconfirmed := c.confirmed(ctx, lw)
		// What is halted stays out of the way; what nobody could look at does not.
		if unconfirmed != nil && (errors.Is(unconfirmed, world.ErrUnconfirmed) || !errors.Is(unconfirmed, world.ErrConfirmationRequired)) {
			return unconfirmed
		}
		bar := c.newGauge("ticks", course.Ticks)
		course.Ticked = bar.report
		if bar.log != nil {
			course.Waits = func(w *world.Moment) { bar.name(underWay(w.InFlight())) }
		}
		if c.verbose {
			course.Ticked = func(uint64) {
				s := lw.Status()
				c.note("tick %d: #%d, %d events pending", s.Time, s.Head.ID, s.EventsPending)
			}
		}
		course.Behind, course.Last = c.noteBehind, c.owned == nil
		told := c.tellNews(ctx, lw, &course, &bar)
		done, err := lw.Drive(ctx, course)
		told()
		bar.stop()
		if err != nil && !errors.Is(err, context.Canceled) {
			return c.notRecorded(err)
		}
		if err == nil && done.Undecided > 0 {
			unconfirmed = errors.Join(unconfirmed, fmt.Errorf("%w: %d of them", errUndecided, done.Undecided))
		}
		if err == nil {
			err = unconfirmed
		}
		err = errors.Join(err, haltedCells(recordsOf(lw), done.Status.Halted))
		return errors.Join(answer(c, verb, func(a view.Course) { c.showCourse(lw, a) })(recordsOf(lw).Course(&done)), err)
	})
}

// tellNews tells on stderr of a world that goes by the wall clock, or waits for others, until
// what it returns is called. Of any other the answer tells at the end.
func (c *cli) tellNews(ctx context.Context, lw *local.World, course *local.Course, bar *gauge) (end func()) {
	if c.quiet || !course.Stay && !lw.IsReal() {
		return func() {}
	}
	begin := "world " + lw.Status().World + " runs until "
	switch {
	case !course.Stay:
		begin += "nothing is left to wait for"
	case !course.Until.IsZero():
		begin += course.Until.UTC().Format(time.RFC3339)
	default:
		begin += "Ctrl-C"
	}
	ctx, stop := context.WithCancel(ctx)
	var telling sync.WaitGroup
	on := notify.Follow(lw, begin, func(line string) { bar.say(c, time.Now().UTC().Format(time.RFC3339)+" "+line) })
	telling.Go(func() { on(ctx) })
	return func() {
		stop()
		telling.Wait()
	}
}

// errHalted says that cells wait for a person, because a step of theirs failed.
var errHalted = errors.New("cells are halted")

// haltedCells names the cells that are halted, so many of them; nil: none is.
func haltedCells(j view.Journal, n int) error {
	if n == 0 {
		return nil
	}
	const most = 3
	names := j.HaltedCells(most)
	for i := range names {
		names[i] = visible(names[i], "")
	}
	text := strings.Join(names, ", ")
	if more := n - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%w: %s", errHalted, text)
}

// underWay names effects in flight, the oldest of them first.
func underWay(flight []receipt.Permit) string {
	const most = 2
	var names []string
	for i := range flight[:min(most, len(flight))] {
		names = append(names, view.Brief(visible(flight[i].Kind+" of "+flight[i].Cell, "")))
	}
	switch more := len(flight) - most; {
	case len(names) == 0:
		return "ticks"
	case more > 0:
		return fmt.Sprintf("ticks; under way: %s and %d more", strings.Join(names, ", "), more)
	}
	return "ticks; under way: " + strings.Join(names, ", ")
}

// notRecorded says what to do about an effect that the recording has no answer for which a
// fork was made with: no run performs it.
func (c *cli) notRecorded(err error) error {
	miss := (*host.MissError)(nil)
	if !errors.As(err, &miss) || !miss.Recorded || miss.Unanswered || c.effects != "" {
		return err
	}
	if local.IsPast(miss.File) {
		return hinted(err, "make another fork when its parent has asked for the same, or one with --live %s, which performs it. Nothing was done outside", miss.Kind)
	}
	return hinted(err, "let the world in %[1]s go on until it has asked for the same, then run this one again; "+
		"or worldctl -w %[1]s fork DIR --live %[2]s makes one that performs it. Nothing was done outside", miss.File, miss.Kind)
}

// noteLive says, before anything is, which effects of a fork are performed for real.
func (c *cli) noteLive(lw *local.World) {
	from := lw.LiveBeside()
	if from == "" {
		return
	}
	kinds := lw.Performs()
	if len(kinds) == 0 {
		c.note("note: what %s has not asked for is answered by the adapters; none of them reaches the outside", from)
		return
	}
	c.note("note: what %s has not asked for is performed, for real: %s", from, strings.Join(kinds, ", "))
}

// noteMissed says which effect is the first that is performed because nothing recorded
// answers it.
func (c *cli) noteMissed(miss *host.MissError) {
	c.note("not recorded, and so it is performed, as is all that follows and is not recorded: %s", visible(miss.Error(), ""))
}

// notePerformed says how much was performed because nothing recorded answers it.
func (c *cli) notePerformed(attempts uint64) {
	if attempts > 0 {
		c.note("performed, for nothing recorded answers it: %s", view.Number(attempts, "attempt"))
	}
}

// confirmed compares recorded results with the outside, where that is wanted.
// Those that a person has to confirm wait, and the rest can go on.
func (c *cli) confirmed(ctx context.Context, lw *local.World) error {
	if !c.confirm {
		return nil
	}
	n, err := local.Change(lw, func(w *world.World) (world.Confirmation, error) { return w.Confirm(ctx) })
	c.note("recorded results: %d confirmed, %d failed, %d warned of, %d awaiting a person", n.Confirmed, n.Failed, n.Warned, n.Awaiting)
	return err
}

func (c *cli) showCourse(lw *local.World, a view.Course) {
	c.facts([2]any{"ticks", a.Ticks}, [2]any{"records", fmt.Sprintf("%d, up to #%d", a.Records, a.Head.ID)},
		[2]any{"time", fmt.Sprintf("tick %d, %s", a.Time, calendar(lw, a.Time))},
		[2]any{"events pending", a.EventsPending}, [2]any{"timers", a.Timers},
		[2]any{"intents", counts(a.Intents)}, [2]any{"idle", a.Idle})
	c.notePerformed(a.Performed)
	for _, d := range a.DeniedBy {
		c.note("denied: %d by %s; worldctl intent list --state denied tells why", d.Intents, visible(d.By, ""))
	}
	for _, x := range a.Expired {
		c.note("%s expired at tick %d", view.Number(uint64(x.Approvals), "approval"), x.Time)
	}
	for _, key := range a.Uncompensated {
		c.note("not compensated: the compensation of %s came to nothing; worldctl intent show %s", view.Short(key), view.Short(key))
	}
	if n := a.Intents.Awaiting(); n > 0 {
		c.note("intents that await a person: %d; worldctl intent list --state awaiting tells why", n)
	}
	if e := a.Meanwhile; e != (view.Meanwhile{}) {
		cancelled := ""
		if e.Cancelled > 0 {
			cancelled = fmt.Sprintf("%d cancelled, ", e.Cancelled)
		}
		fmt.Fprintf(c.stdout, "meanwhile: %d committed, %d failed, %d denied, %s%d in doubt\n", e.Committed, e.Failed, e.Denied, cancelled, e.InDoubt)
	}
}
