package worldctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
)

// applyAnswer is an apply, or what one would come to.
type applyAnswer struct {
	Proposal string        `json:"proposal"`
	Record   *journal.Seq  `json:"record"` // null: nothing has changed
	Manifest manifest.Hash `json:"manifest"`
	Version  uint64        `json:"version"`
	Base     manifest.Hash `json:"base"`     // what was in force
	Migrated int           `json:"migrated"` // cells whose code took over their state
	Stale    []string      `json:"stale"`    // open proposals of what is not in force any more
}

func newApplyCommand(c *cli) *cobra.Command {
	var dry bool
	var as string
	cmd := &cobra.Command{
		Use:   "apply PROPOSAL",
		Short: "Put what was proposed and approved in force",
		Long: `Put what was proposed, shadowed and approved in force, between two ticks: it is what
the world runs from then on. Effects in flight are awaited first. Cells whose code
changes keep their state, or the new code's migrate(state) takes it over, all of them
or none. PROPOSAL is p1 or 1.

Exit code 4 if approvals or the report are missing, 5 if another manifest is in force
than the one that it was made of, effects are under way of a kind that goes, or a
migration fails. Then nothing has changed.`,
		Example: `  worldctl apply p1 --dry-run
  worldctl apply p1`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := c.actor(as)
			if err != nil {
				return err
			}
			return c.onProposal(args[0], func(lw *local.World, n uint64) error {
				if dry {
					return c.rehearseApply(lw, n)
				}
				return c.apply(cmd.Context(), lw, n, by)
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what it would come to")
	addActor(cmd, &as)
	return cmd
}

func (c *cli) rehearseApply(lw *local.World, n uint64) error {
	a, err := proposalOf(lw, n)
	if err != nil {
		return err
	}
	if !a.WouldApply.OK {
		return a.WouldApply.err
	}
	answer := applyAnswer{
		Proposal: a.Proposal, Manifest: a.Candidate, Version: a.Version, Base: a.Base, Migrated: a.WouldApply.Migrated,
		Stale: staleUnder(lw, a),
	}
	return c.object("apply", answer, func() {
		fmt.Fprintf(c.stdout, "%s would put manifest %s, version %d, in force\n", a.Proposal, a.Candidate, a.Version)
		c.showApplied(&answer)
		c.note("nothing has changed; worldctl apply %s does it", a.Proposal)
	})
}

func (c *cli) apply(ctx context.Context, lw *local.World, n uint64, by string) error {
	if err := lw.Apply(ctx, n, by); err != nil {
		return err
	}
	a, err := proposalOf(lw, n)
	if err != nil {
		return err
	}
	answer := applyAnswer{
		Proposal: a.Proposal, Record: &a.Ended.Record, Manifest: a.Candidate, Version: a.Version, Base: a.Base,
		Stale: staleUnder(lw, a),
	}
	for e, err := range recordsOf(lw).Scan(a.Ended.Record, journal.KindMigrated) {
		if err != nil {
			return err
		}
		if e.CausedBy == a.Ended.Record {
			answer.Migrated++
		}
	}
	return c.object("apply", answer, func() {
		fmt.Fprintf(c.stdout, "#%d %s is applied: manifest %s, version %d, is in force\n", a.Ended.Record, a.Proposal, a.Candidate, a.Version)
		c.showApplied(&answer)
		next := "worldctl run"
		if text := otherSource(lw); text != "" {
			next += "; but " + text
		}
		c.note("next: %s", next)
	})
}

// staleUnder returns the open proposals that cannot be applied where the
// candidate of one is in force.
func staleUnder(lw *local.World, a *proposalAnswer) []string {
	out := []string{}
	for _, l := range proposalsOf(lw, false) {
		if l.Proposal != a.Proposal && l.Base != a.Candidate {
			out = append(out, l.Proposal)
		}
	}
	return out
}

// showApplied says what an apply does besides.
func (c *cli) showApplied(a *applyAnswer) {
	fmt.Fprintf(c.stdout, "cells migrated: %d\n", a.Migrated)
	if len(a.Stale) > 0 {
		fmt.Fprintf(c.stdout, "stale, because they were made of another manifest: %s\n", strings.Join(a.Stale, ", "))
	}
}
