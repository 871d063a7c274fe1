package worldctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// experiment is a what-if under way. The world and its fork are open together
// only while the fork runs: before, the fork reads the world's recordings. Where
// the world is being run, a copy of it stands for what it was.
type experiment struct {
	question
	cli     *cli
	dir     string // the world's
	forkDir string
	past    string // directory of the copy; empty: there is none

	parted       journal.Seq   // the last record that both have
	came         manifest.Tick // where the world is
	idle         bool          // the world
	last         manifest.Tick // no later one is run in the fork
	world, child *local.World
	answer       whatIfAnswer
}

// forkOff forks the world, under the rules that change makes of its own.
func (x *experiment) forkOff(change world.Amendment) error {
	return x.cli.with(func(lw *local.World) error {
		if x.past == "" {
			return x.forkFrom(lw, lw, change)
		}
		if _, err := lw.Backup(x.past); err != nil {
			return err
		}
		past, err := local.Look(x.past, x.cli.options())
		if err != nil {
			return err
		}
		return errors.Join(x.forkFrom(lw, past, change), past.Close())
	})
}

// forkFrom forks a world at a moment of its past.
func (x *experiment) forkFrom(lw, past *local.World, change world.Amendment) error {
	at, err := recordsOf(past).At(x.at)
	if err != nil {
		return err
	}
	by, err := x.cli.actor("")
	if err != nil {
		return err
	}
	made, err := lw.Fork(x.forkDir, local.ForkOptions{At: at, Effects: journal.ForkRecorded, Actor: by, Amend: change})
	switch {
	case errors.Is(err, local.ErrNotEmpty):
		return hinted(err, "--keep names a directory that is not there yet, or is empty")
	case change != nil && errors.Is(err, journal.ErrNotFound):
		return hinted(err, "a patch names contents that the world has; --patch world.yaml brings its own along")
	case err != nil:
		return err
	}
	x.parted, x.answer.Patched = made.At, change != nil
	x.answer.Forked = forkedAnswer{At: made.At, WorldID: made.ID, Dir: x.keep}
	past.View(func(w *world.Moment) { x.came, x.idle = w.Time(), w.Idle() })
	return nil
}

// live runs the fork and compares the two.
func (x *experiment) live(ctx context.Context, events io.Reader) (err error) {
	opts := x.cli.options()
	opts.Effects = x.past // else the fork knows whose recordings it gets
	if x.child, err = local.Open(x.forkDir, opts); err != nil {
		return err
	}
	worlds := openWorlds{worlds: []*local.World{x.child}}
	defer func() { err = worlds.close(err) }()
	if x.world, err = local.Look(cmp.Or(x.past, x.dir), x.cli.options()); err != nil {
		return err
	}
	worlds.worlds = append(worlds.worlds, x.world)
	x.answer.Forked.Time = x.child.Status().Time
	if err := x.send(ctx, events); err != nil {
		return err
	}
	if err := x.run(ctx); err != nil {
		return err
	}
	was, is, err := x.sides()
	if err != nil {
		return err
	}
	if x.answer.Difference, err = view.Compare(was, is, x.limit); err != nil {
		return err
	}
	x.answer.Difference.A.Dir, x.answer.Difference.B.Dir = x.dir, x.keep
	x.answer.Same = x.answer.Difference.Same && x.answer.Unknown == nil
	return x.cli.object("what-if", x.answer, func() { x.cli.showWhatIf(&x.answer, was, is) })
}

// send submits the events that are asked about.
func (x *experiment) send(ctx context.Context, events io.Reader) error {
	if events == nil {
		return nil
	}
	b := newBulk(events)
	var err error
	x.answer.Sent, err = b.submit(ctx, x.child)
	var line *lineError
	var input *world.InputError
	switch {
	case errors.As(err, &line):
		err = hinted(err, "%s", hintLine)
	case errors.Is(err, world.ErrBadTick):
		err = hinted(err, "the fork begins at tick %d", x.answer.Forked.Time)
	case errors.As(err, &input):
		err = refused(err, x.child, b.event)
	default:
		return err
	}
	return fmt.Errorf("line %d: %w", b.line, err)
}

// hintLine says what a line of a bulk looks like.
const hintLine = `a line is {"event": NAME, "data": ..., "at": TICK, "to": CELL}, without at and to where not wanted`

// run runs the fork: along the world's journal, and on.
func (x *experiment) run(ctx context.Context) error {
	x.last = math.MaxUint64
	switch began := x.answer.Forked.Time; {
	case x.ticks > 0 && manifest.Tick(x.ticks) < x.last-began:
		x.last = began + manifest.Tick(x.ticks)
	case x.ticks == 0 && !x.untilIdle && !x.idle:
		x.last = x.came
	}
	var err error
	if !x.only {
		var followed local.Followed
		followed, err = x.child.Follow(ctx, local.Past{World: x.world, After: x.parted, Last: x.last})
		x.answer.Again = againOf(&followed)
	}
	if err == nil {
		err = x.child.RunUntil(ctx, x.last)
	}
	if err = x.unknown(err); err != nil {
		return err
	}
	if err := x.child.Sync(); err != nil {
		return err
	}
	spent, err := world.Spent(x.child, x.parted, x.child.Head().ID)
	x.answer.Answered = spent.Answers
	return err
}

// unknown takes the end that a run comes to where nothing that was recorded
// answers.
func (x *experiment) unknown(err error) error {
	var miss *host.MissError
	if !errors.As(err, &miss) {
		return err
	}
	asked, failed := x.child.Unanswered(x.world)
	if failed != nil {
		return failed
	}
	if len(asked) == 0 {
		return err
	}
	first := asked[0]
	x.answer.Unanswered = uint64(len(asked))
	x.answer.Unknown = &unknownAnswer{
		Tick: x.child.Status().Time, Cell: first.Cell, Kind: first.Kind, Params: first.Params, Occurrence: first.Occurrence,
	}
	return nil
}

// sides returns the moments to compare: where the fork has come to, or the end of
// the tick before what is unknown, and the world as it was then.
func (x *experiment) sides() (was, is *view.Side, err error) {
	last := x.last
	if x.answer.Unknown != nil {
		last = x.answer.Unknown.Tick - 1
		is, err = sideAfter(x.child, last)
	} else {
		is, err = sideAfter(x.child, math.MaxUint64)
	}
	if err == nil {
		was, err = sideAfter(x.world, last)
	}
	return was, is, err
}

// sideAfter returns a world as it was before the first tick after one.
func sideAfter(lw *local.World, tick manifest.Tick) (*view.Side, error) {
	at, err := recordsOf(lw).EndOf(tick, lw.Head().ID)
	if err != nil {
		return nil, err
	}
	m, err := lw.At(at)
	if err != nil {
		return nil, err
	}
	return sideOf(lw, m), nil
}
