package worldctl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newStatusCommand(c *cli) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: "status",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			return c.status(lw, at)
		}),
	}
	addAt(cmd, &at, "as it was at this")
	return cmd
}

func (c *cli) status(lw *local.World, at string) error {
	if at == "" {
		c.noteEdited(lw)
		c.noteBehind(lw.Behind())
	}
	var s world.Status
	var clock manifest.Clock
	var head journal.Head // of what is stored
	err := useMoment(lw, at, func(m *world.Moment) error {
		s, clock, head = m.Status(), m.Manifest().Clock, lw.Head()
		return nil
	})
	if err != nil {
		return err
	}
	var now manifest.Tick
	ago := ""
	if at == "" {
		now, _ = lw.Reached()
		ago = since(lw)
	}
	a := view.StatusOf(&s, head, now)
	if at == "" && lw.Lacks() != nil {
		a.Head = head // nothing is written by who lacks something
	}
	return c.object("status", a, func() {
		c.showStatus(&s, &a, view.Date(clock, s.Time)+ago)
		if a.AsOf < a.Head.ID {
			fmt.Fprintf(c.stdout, "time, cells and intents are as of #%d, before what needs a reducer: %v\n", a.AsOf, lw.Lacks())
		}
		if at == "" {
			c.noteNext(lw, &s, &a)
		}
	})
}

// counts puts into words how many intents are in which state.
func counts(n view.IntentCounts) string {
	text := fmt.Sprintf("%d committed, %d failed, %d denied, %d open, %d in flight",
		n.Committed, n.Failed, n.Denied, n.Open, n.InFlight)
	for _, x := range []struct {
		n  int
		is string
	}{
		{n.Cancelled, "cancelled"},
		{n.AwaitingApproval, "awaiting approval"},
		{n.AwaitingAnswer, "awaiting an answer"},
		{n.AwaitingConfirmation, "awaiting confirmation"},
		{n.InDoubt, "in doubt"},
	} {
		if x.n > 0 {
			text += fmt.Sprintf(", %d %s", x.n, x.is)
		}
	}
	return text
}

func (c *cli) showStatus(s *world.Status, a *view.Status, date string) {
	facts := [][2]any{
		{"world", s.World},
		{"id", s.ID},
		{"time", fmt.Sprintf("tick %d, %s", s.Time, date)},
		{"head", fmt.Sprintf("#%d %s", a.Head.ID, a.Head.Root)},
		{"manifest", fmt.Sprintf("version %d %s", s.Version, s.Manifest)},
		{"cells", fmt.Sprintf("%d, %d of them halted", s.Cells, s.Halted)},
		{"events pending", s.EventsPending},
		{"timers", s.Timers},
		{"snapshots", s.Snapshots},
		{"intents", counts(a.Intents)},
		{"idle", s.Idle},
		{"anchor", fmt.Sprintf("#%d, ok: %t", a.Anchor.ID, a.Anchor.OK)},
	}
	for _, name := range slices.Sorted(maps.Keys(a.Resting)) {
		facts = append(facts, [2]any{"rests", fmt.Sprintf("capability %s, since #%d: what is asked for under it waits for a person", name, a.Resting[name])})
	}
	c.facts(facts...)
}

// noteNext says what to type next.
func (c *cli) noteNext(lw *local.World, s *world.Status, a *view.Status) {
	if s.Halted > 0 {
		c.hintNext("worldctl cell show CELL tells why it is halted (worldctl cell list: which), then worldctl cell resume CELL or worldctl cell skip CELL")
	}
	if n := a.Intents.Awaiting(); n > 0 {
		c.hintNext("worldctl intent list --state awaiting, for a person has to decide about %d", n)
	}
	var undecided, asked int
	lw.View(func(w *world.Moment) { undecided, asked = w.InDoubt() })
	if undecided > 0 {
		c.hintNext("worldctl intent list --state in_doubt, for a person has to decide about %d", undecided)
	}
	switch {
	case c.owned != nil || lw.Lacks() != nil: // whoever owns it runs it, or another program
	case asked > 0:
		c.hintNext("worldctl run, which asks the verifiers of %d in doubt", asked)
	case !s.Idle && s.Halted == 0 && isGateway(lw):
		c.hintNext("worldctl agent list tells which agents have not ended, and worldctl agent resume NAME starts one again")
	case !s.Idle && s.Halted == 0:
		c.hintNext("worldctl run")
	}
}

// noteBehind says that a world waits for the wall clock.
func (c *cli) noteBehind(by time.Duration) {
	if by > 0 {
		c.note("the wall clock is %s behind the world, which waits for it", by.Round(time.Millisecond))
	}
}

// calendar returns the world's calendar time of a tick.
func calendar(lw *local.World, t manifest.Tick) string {
	var clock manifest.Clock
	lw.View(func(w *world.Moment) { clock = w.Manifest().Clock })
	return view.Date(clock, t)
}

// since says how long ago the world's tick came by a real clock, of which nothing in the
// world tells before the next input, or that none has come; empty: it is now.
func since(lw *local.World) string {
	reached, byClock := lw.Reached()
	var ago time.Duration
	begun := true
	lw.View(func(w *world.Moment) {
		if clock := w.Manifest().Clock; byClock {
			begun = w.Time() > 0
			ago = time.Duration(clock.At(reached) - clock.At(w.Time())).Round(time.Second)
		}
	})
	switch {
	case !begun:
		return ", the world has not begun"
	case ago <= 0:
		return ""
	}
	return fmt.Sprintf(", %s ago", ago)
}
