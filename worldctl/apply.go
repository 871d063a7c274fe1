package worldctl

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newApplyCommand(c *cli) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "apply PROPOSAL",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onProposal(args[0], func(lw *local.World, n uint64) error {
				if dry {
					return c.rehearseApply(cmd.Context(), lw, n)
				}
				return c.apply(cmd.Context(), lw, n)
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what it would change")
	addActor(cmd, "does it")
	return cmd
}

func (c *cli) rehearseApply(ctx context.Context, lw *local.World, n uint64) error {
	p, err := recordsOf(lw).Proposal(ctx, n)
	if err == nil {
		err = p.WouldApply.Err
	}
	if err != nil {
		return err
	}
	a := recordsOf(lw).Applied(p, 0, world.Outcome{Migrated: p.WouldApply.Migrated, Open: p.Migration.Open})
	return c.object("apply", a, func() {
		fmt.Fprintf(c.stdout, "%s would put manifest %s, version %d, in force\n", a.Proposal, a.Manifest, a.Version)
		c.showApplied(a)
		c.note("nothing has changed; worldctl apply %s does it", a.Proposal)
	})
}

func (c *cli) apply(ctx context.Context, lw *local.World, n uint64) error {
	var says sync.WaitGroup
	applied := make(chan struct{})
	says.Go(func() {
		select {
		case <-time.After(time.Second):
			c.note("it waits for what is under way, which worldctl intent list --state in_flight lists; nothing else begins meanwhile")
		case <-applied:
		}
	})
	id, done, err := lw.Apply(ctx, n, c.by)
	close(applied)
	says.Wait()
	if err != nil {
		return err
	}
	p, err := recordsOf(lw).Proposal(ctx, n)
	if err != nil {
		return err
	}
	a := recordsOf(lw).Applied(p, id, done)
	return c.object("apply", a, func() {
		fmt.Fprintf(c.stdout, "#%d %s is applied: manifest %s, version %d, is in force\n", *a.Record, a.Proposal, a.Manifest, a.Version)
		c.showApplied(a)
		next := "worldctl run"
		if isGateway(lw) {
			next = "worldctl agent run -- COMMAND"
		}
		if text := otherSource(lw); text != "" {
			next += "; but " + text
		}
		c.hintNext("%s", next)
	})
}

// showApplied says what an apply does besides.
func (c *cli) showApplied(a *view.Applied) {
	fmt.Fprintf(c.stdout, "cells migrated: %d\n", a.Migrated)
	if text := view.OpenIntents(&a.Open, a.Record == nil); text != "" {
		fmt.Fprintln(c.stdout, visible(text, ""))
	}
	most := reportLines
	if c.verbose {
		most = 0
	}
	if s := view.StoppedSection(&a.Open, "intents that it stops", most); s.Total > 0 {
		c.showSection(&s)
	}
	if len(a.Stale) > 0 {
		fmt.Fprintf(c.stdout, "stale, because they were made of another manifest: %s\n", strings.Join(a.Stale, ", "))
	}
}
