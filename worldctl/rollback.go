package worldctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world/local"
)

// rollbackFlags say how to roll back, as typed.
type rollbackFlags struct {
	reason                 string
	ack, compensate, fresh bool
	dry                    bool
	withManifest           bool
}

func (x *rollbackFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&x.reason, "reason", "", "why, for those who read the journal: `TEXT`")
	cmd.Flags().BoolVar(&x.ack, "ack", false, "side effects stay that are left behind, and you know it")
	cmd.Flags().BoolVar(&x.compensate, "compensate", false, "ask for their compensations, where their kind declares one")
	cmd.Flags().BoolVar(&x.fresh, "fresh-effects", false, "the same steps ask for new effects, and get no recorded results")
	cmd.Flags().BoolVar(&x.dry, "dry-run", false, "only print what would be left behind")
	cmd.Flags().BoolVar(&x.withManifest, "with-manifest", false, "then propose the manifest that was in force at the snapshot")
	addActor(cmd, "does it")
}

func newRollbackCommand(c *cli) *cobra.Command {
	var x rollbackFlags
	cmd := &cobra.Command{
		Use: "rollback SNAPSHOT",
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, args []string) error {
			s, err := recordsOf(lw).Snapshot(args[0])
			if errors.Is(err, snapshot.ErrNoSnapshot) {
				return hinted(err, "only to a snapshot: worldctl snapshot list shows those that are kept, worldctl snapshot create makes one of what is now")
			}
			if err != nil {
				return err
			}
			return c.rollback(ctx, lw, &s, &x)
		}),
	}
	x.add(cmd)
	return cmd
}

// rollback returns the world to a snapshot, or prints what that would leave
// behind.
func (c *cli) rollback(ctx context.Context, lw *local.World, s *snapshot.Snapshot, x *rollbackFlags) error {
	b := journal.RolledBack{
		Snapshot: s.Name, Reason: x.reason, Actor: c.by, Ack: x.ack, Compensate: x.compensate, Fresh: x.fresh,
	}
	if x.dry {
		a, err := recordsOf(lw).Leaves(s, b, x.withManifest)
		if err != nil {
			return err
		}
		return c.object("rollback", a, func() {
			c.showLeft(lw, a)
			c.note("nothing has changed; without --dry-run, cells, mailboxes and timers return to #%d", s.At)
			if a.Former != nil {
				c.note("manifest %s, which was in force then, would be proposed", a.Former.Hash)
			}
		})
	}
	a, err := recordsOf(lw).RollBack(ctx, s, b, x.withManifest)
	if a == nil {
		return err
	}
	return errors.Join(c.object("rollback", a, func() {
		c.showLeft(lw, a)
		if a.Done == nil {
			return
		}
		c.showRollback(a, s)
		switch {
		case a.Proposal != nil:
			fmt.Fprintf(c.stdout, "%s is proposed: manifest %s, which was in force at %s\n", *a.Proposal, a.Former.Hash, s.Name)
			c.hintNext("worldctl shadow %s, or worldctl run under the manifest that is in force now", *a.Proposal)
			return
		case x.withManifest && a.Former == nil:
			fmt.Fprintf(c.stdout, "the manifest that was in force at %s is in force now\n", s.Name)
		}
		c.nextRun()
	}), err)
}

func (c *cli) showRollback(a *view.Rollback, s *snapshot.Snapshot) {
	fmt.Fprintf(c.stdout, "#%d cells, mailboxes and timers are what they were at %s: after #%d, in tick %d\n", *a.Record, s.Name, s.At, s.Time)
	effects, reads := journal.RolledBack{Abandoned: a.Abandoned}, journal.RolledBack{Abandoned: a.Reads}
	if stay, undone := effects.Count(journal.Kept, journal.Acknowledged), effects.Count(journal.Compensated); stay+undone > 0 {
		fmt.Fprintf(c.stdout, "side effects left behind: %d stay, %d are compensated\n", stay, undone)
	}
	if n := reads.Count(journal.Kept, journal.Acknowledged); n > 0 {
		fmt.Fprintf(c.stdout, "reads left behind: %d, which changed nothing outside\n", n)
	}
	if n := a.Done.Count(journal.Cancelled); n > 0 {
		fmt.Fprintf(c.stdout, "not begun: %d, which are cancelled\n", n)
	}
	if n := a.Done.Count(journal.MadeUpFor); n > 0 {
		fmt.Fprintf(c.stdout, "%d of the history that comes back were compensated since: they are not done again\n", n)
	}
}

// showLeft prints every side effect that is left behind, and then what only read.
func (c *cli) showLeft(lw *local.World, a *view.Rollback) {
	if a.Events > 0 {
		fmt.Fprintf(c.stdout, "accepted since, and dropped: %s\n", view.Number(a.Events, "event"))
	}
	if len(a.Abandoned) == 0 {
		c.note("no side effects are left behind")
	} else {
		c.showLeftTable(lw, a.Abandoned)
	}
	if len(a.Reads) > 0 {
		fmt.Fprintln(c.stdout, "only read:")
		c.showLeftTable(lw, a.Reads)
	}
}

func (c *cli) showLeftTable(lw *local.World, left []journal.SideEffect) {
	d := view.Describer{Journal: recordsOf(lw), Full: c.verbose}
	tabulate(c, table.Row{"key", "cell", "kind", "state", "record", "disposition", "params"}, left, func(x *journal.SideEffect) table.Row {
		return table.Row{view.Short(x.Key), x.Cell, x.Kind, x.State, numbered(x.Record), x.Disposition, d.ParamsOf(x.Key)}
	})
}
