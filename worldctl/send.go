package worldctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

type sendAnswer struct {
	Record journal.Seq   `json:"record"`
	Event  string        `json:"event"`
	Due    manifest.Tick `json:"due"` // 0: at once
	To     []string      `json:"to"`
}

func newSendCommand(c *cli) *cobra.Command {
	var to, at, in, key string
	cmd := &cobra.Command{
		Use: "send NAME [JSON|@FILE|-]",
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" && len(args) > 1 {
				return usagef("worldctl send - < FILE", "send - takes no data: names and data are on its lines")
			}
			for _, name := range []string{"to", "at", "in", "key"} { // as a variable that is not set leaves them
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
					return usagef("type --"+name+" "+takenBy(f)+", or leave it out", "--%s is empty", name)
				}
			}
			when, err := whenOf(at, in)
			if err != nil {
				return err
			}
			return c.with(func(lw *local.World) error {
				if args[0] == "-" {
					return c.sendLines(cmd.Context(), lw, to, when, key)
				}
				s, err := c.submission(args, to, when)
				if err != nil {
					return err
				}
				if key != "" {
					s = world.Keyed(s, key)
				}
				return c.send(cmd.Context(), lw, s)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "send it to this `CELL`, whatever the routes say; with -, lines that name none")
	cmd.Flags().StringVar(&at, "at", "", "let it fall due at this `TICK` or time, as 2026-12-24T18:00Z; with -, lines that say nothing of it")
	cmd.Flags().StringVar(&in, "in", "", "let it fall due after this `DURATION`, as 2h; with -, likewise")
	cmd.Flags().StringVar(&key, "key", "", "submit once, however often the same is sent with this `KEY`; with -, all lines together")
	return cmd
}

// whenOf reads when an event is to fall due.
func whenOf(at, in string) (when world.When, err error) {
	switch {
	case at != "" && in != "":
		return when, usagef("type one of them", "--at and --in do not go together")
	case in != "":
		when.In, err = manifest.ParseDuration(in)
	case at != "":
		tick, notTick := strconv.ParseUint(at, 10, 64)
		if when.At = manifest.Tick(tick); notTick != nil {
			var time int64
			time, err = manifest.ParseTime(at)
			when = world.When{Time: &time}
		}
	}
	if err != nil {
		return world.When{}, usagef("type --at TICK, --at 2026-12-24T18:00Z or --in 2h", "%v", err)
	}
	return when, nil
}

// submission makes an event of a command line.
func (c *cli) submission(args []string, to string, when world.When) (world.Submission, error) {
	s := world.Submission{Name: args[0], When: when}
	var err error
	if s.To, err = cellTo(to); err != nil {
		return s, err
	}
	if len(args) == 1 {
		return s, nil
	}
	data, err := c.parseData("data", args[1])
	if err != nil {
		return s, err
	}
	s.Data = data
	return s, nil
}

// cellTo returns the cell that --to names; nil: it names none.
func cellTo(name string) (*reducer.Cell, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // the routes say where it goes
	}
	cell, err := parseCell(name)
	return &cell, err
}

func (c *cli) send(ctx context.Context, lw *local.World, s world.Submission) error {
	sent, err := lw.SubmitEvent(ctx, s)
	if err != nil {
		return refused(err, lw, s.Name)
	}
	e, err := recordsOf(lw).Entry(sent.ID)
	if err != nil {
		return err
	}
	return c.object("send", sendAnswer{Record: sent.ID, Event: s.Name, Due: sent.Due, To: sent.To}, func() {
		line, err := view.Describer{Journal: recordsOf(lw), Full: c.verbose}.Describe(e)
		if err != nil {
			line = err.Error()
		}
		fmt.Fprintf(c.stdout, "#%d %s\n", sent.ID, line)
		c.nextRun()
	})
}

// sendLines submits the lines of stdin.
func (c *cli) sendLines(ctx context.Context, lw *local.World, to string, when world.When, key string) error {
	cell, err := cellTo(to)
	if err != nil {
		return err
	}
	submit := lw.SubmitLines
	if key != "" {
		submit = lw.SubmitLinesUnder(key)
	}
	report, stop := c.progress("events", 0)
	accepted, err := submit(ctx, c.stdin, cell, when, report)
	stop()
	if err != nil {
		return notAll(err, lw, accepted, key)
	}
	answer := struct {
		Accepted uint64       `json:"accepted"`
		Head     journal.Head `json:"head"`
	}{accepted, lw.Head()}
	return c.object("send-bulk", answer, func() {
		fmt.Fprintf(c.stdout, "%s accepted, the journal ends at #%d\n", view.Number(accepted, "event"), answer.Head.ID)
		c.nextRun()
	})
}

// nextRun says what to type next, unless who owns the world runs it.
func (c *cli) nextRun() {
	if c.owned == nil {
		c.hintNext("worldctl run")
	}
}

// nextAfter is nextRun after a decision about an intent of a cell: calls of an agent are made when it asks again.
func (c *cli) nextAfter(cell string) {
	if name, session := strings.CutPrefix(cell, recorder.Name+"/"); session && c.owned == nil {
		c.hintNext("worldctl agent resume %s, if the agent has ended", shellWord(name))
		return
	}
	c.nextRun()
}

// notAll says where lines ended, and what was accepted before.
func notAll(err error, lw *local.World, accepted uint64, key string) error {
	var at *local.LineError
	switch {
	case errors.Is(err, context.Canceled):
		return hinted(fmt.Errorf("after %d accepted events: %w", accepted, err), "go on with the lines after these")
	case !errors.As(err, &at) && accepted == 0:
		return err
	case !errors.As(err, &at):
		return fmt.Errorf("after %s, durable: %w", view.Number(accepted, "accepted event"), err)
	case errors.Is(err, world.ErrKeyReused):
		return hinted(fmt.Errorf("%w; none of these lines was accepted", at.Err), "of lines that were corrected, leave out what was accepted, and send the rest with another --key")
	}
	err = fmt.Errorf("line %d: %w; %d events before it were accepted", at.Line, refusedLine(at, lw), accepted)
	if key != "" && accepted > 0 {
		err = fmt.Errorf("%w, and stay so: when it is corrected, send it and what comes after it with another --key", err)
	}
	return err
}

// refusedLine adds to the error of a line what a person can do about it.
func refusedLine(at *local.LineError, lw *local.World) error {
	if at.Event == "" {
		return hinted(at.Err, `a line is {"event": NAME, "data": ..., "at": TICK or TIME, "in": DURATION, "to": CELL}, without at, in and to where not wanted`)
	}
	return refused(at.Err, lw, at.Event)
}

// refused adds to a refused input what a person can do about it.
func refused(err error, lw *local.World, event string) error {
	var m *manifest.Manifest
	lw.View(func(w *world.Moment) { m = w.Manifest() })
	switch {
	case errors.Is(err, world.ErrUnknownEvent):
		names, meant := slices.Sorted(maps.Keys(m.Events)), ""
		if like := manifest.Nearest(event, names); like != "" {
			meant = "did you mean " + like + "? "
		}
		return hinted(err, "%sthe world's events are %s", meant, strings.Join(names, ", "))
	case errors.Is(err, world.ErrSchema): // of an event that the manifest has
		return hinted(err, "the schema of %s is in %s", event, m.Events[event].File)
	}
	named := "name the cell: worldctl send " + event + " DATA --to REDUCER/KEY"
	return advised(err, []advice{
		{world.ErrNoRoute, 0, named + ", with a reducer of " + strings.Join(slices.Sorted(maps.Keys(m.Reducers)), ", ")},
		{world.ErrBadKey, 0, "put the key into the data, or " + named},
		{world.ErrTooLarge, 0, "send less, or where to find the rest; world.yaml sets limits.payload when a world is made"},
		{world.ErrMailboxFull, 0, "let the cell work first: worldctl run"},
		{world.ErrNoTick, 0, "a clock has the years 1678 to 2261: send it for a tick of theirs"},
		{world.ErrBadTick, 0, "worldctl status shows the time: " + recordsOf(lw).Tick(lw.Status().Time)},
	}...)
}
