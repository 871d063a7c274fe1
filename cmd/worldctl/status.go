package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

type statusAnswer struct {
	World    string        `json:"world"`
	WorldID  string        `json:"world_id"`
	Time     manifest.Tick `json:"time"`
	Head     world.Head    `json:"head"`
	Manifest struct {
		Hash    world.Hash `json:"hash"`
		Version uint64     `json:"version"`
	} `json:"manifest"`
	Cells         int          `json:"cells"`
	EventsPending int          `json:"events_pending"`
	Intents       intentCounts `json:"intents"`
	Timers        int          `json:"timers"`
	Snapshots     int          `json:"snapshots"`
	Idle          bool         `json:"idle"`
	Anchor        anchorAnswer `json:"anchor"`
}

type intentCounts struct {
	Open      int `json:"open"`
	InFlight  int `json:"in_flight"`
	InDoubt   int `json:"in_doubt"`
	Parked    int `json:"parked"`
	Committed int `json:"committed"`
	Failed    int `json:"failed"`
	Denied    int `json:"denied"`
}

type anchorAnswer struct {
	ID world.Seq `json:"id"`
	OK bool      `json:"ok"`
}

func newStatusCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show where the world stands",
		Example: "  worldctl status -o json",
		Args:    args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.with(func(lw *local.World) error {
				c.noteEdited(lw)
				s := lw.Status()
				a := answerOf(&s)
				// Opening refuses a store that is not what its anchor says, and every
				// append moves both.
				a.Anchor = anchorAnswer{ID: s.Head.ID, OK: lw.Store().Head() == s.Head}
				return c.object("status", a, func() { c.showStatus(lw, &s, &a) })
			})
		},
	}
}

func answerOf(s *world.Status) statusAnswer {
	a := statusAnswer{
		World: s.World, WorldID: s.ID, Time: s.Time, Head: s.Head, Cells: s.Cells,
		EventsPending: s.EventsPending, Intents: countsOf(s), Timers: s.Timers, Idle: s.Idle,
	}
	a.Manifest.Hash, a.Manifest.Version = s.Manifest, s.Version
	return a
}

func countsOf(s *world.Status) intentCounts {
	return intentCounts{
		Open: s.Intents[receipt.StateOpen], InFlight: s.Intents[receipt.StateInFlight],
		InDoubt: s.Intents[receipt.StateInDoubt], Parked: s.Intents[receipt.StateParked],
		Committed: s.Intents[receipt.StateCommitted], Failed: s.Intents[receipt.StateFailed],
		Denied: s.Intents[receipt.StateDenied],
	}
}

func (n intentCounts) String() string {
	text := fmt.Sprintf("%d committed, %d failed, %d denied, %d open, %d in flight",
		n.Committed, n.Failed, n.Denied, n.Open, n.InFlight)
	if n.Parked > 0 {
		text += fmt.Sprintf(", %d parked", n.Parked)
	}
	if n.InDoubt > 0 {
		text += fmt.Sprintf(", %d in doubt", n.InDoubt)
	}
	return text
}

func (c *cli) showStatus(lw *local.World, s *world.Status, a *statusAnswer) {
	c.facts([2]any{"world", s.World}, [2]any{"id", s.ID},
		[2]any{"time", fmt.Sprintf("tick %d, %s", s.Time, calendar(lw, s.Time))},
		[2]any{"head", fmt.Sprintf("#%d %s", s.Head.ID, s.Head.Root)},
		[2]any{"manifest", fmt.Sprintf("version %d %s", s.Version, s.Manifest)},
		[2]any{"cells", fmt.Sprintf("%d, %d of them parked", s.Cells, s.Parked)},
		[2]any{"events pending", s.EventsPending}, [2]any{"timers", s.Timers}, [2]any{"intents", a.Intents},
		[2]any{"idle", s.Idle}, [2]any{"anchor", fmt.Sprintf("#%d, ok: %t", a.Anchor.ID, a.Anchor.OK)})
	if s.Parked > 0 {
		c.note("next: worldctl tail --kind cell.failed, then worldctl cell resume CELL or worldctl cell skip CELL")
	}
	if n := a.Intents.Parked; n > 0 {
		c.note("next: worldctl intent list --state parked, for a person has to decide about %d", n)
	}
	owed, asked := inDoubt(lw)
	if owed > 0 {
		c.note("next: worldctl intent list --state in_doubt, for a person has to decide about %d", owed)
	}
	switch {
	case asked > 0:
		c.note("next: worldctl run, which asks the verifiers of %d in doubt", asked)
	case !s.Idle && s.Parked == 0:
		c.note("next: worldctl run")
	}
}

// calendar returns the world's calendar time of a tick.
func calendar(lw *local.World, t manifest.Tick) string {
	var at int64
	_ = lw.View(func(w *world.World) error { // the function never errs
		at = w.Manifest().Clock.At(t)
		return nil
	})
	return time.Unix(0, at).UTC().Format(time.RFC3339)
}
