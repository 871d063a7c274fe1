package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/store"
	"github.com/worldkernel/worldkernel/world/verify"
)

func newVerifyCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Prove the world: chain, ledger, receipts, governance, replay",
		Long: `Prove the world from its stored bytes alone: the hash chain, that every effect
happened at most once, the signatures of receipts, that every change of the rules
was approved, and that the inputs give the journal.

Exit code 3 if anything does not hold; every fault is named with its place.`,
		Example: `  worldctl verify
  worldctl verify -o json`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := c.dir()
			if err != nil {
				return err
			}
			return c.verify(cmd.Context(), dir)
		},
	}
}

// verify does not open the world: one that is too damaged for that gets its
// report all the same.
func (c *cli) verify(ctx context.Context, dir string) error {
	const remedy = "bring back a copy of .world that verifies, or worldctl import journal an export"
	var report func(done uint64)
	stop := func() {}
	r, err := local.Verify(ctx, dir, c.options(), local.Verification{Progress: func(done, all uint64) {
		if report == nil {
			report, stop = c.progress("records", all)
		}
		report(done)
	}})
	stop()
	var damage *store.DamageError
	if errors.As(err, &damage) {
		return hinted(err, remedy)
	}
	if err != nil {
		return notOpened(dir, err)
	}
	if err := c.object("verify", r, func() { c.showReport(r) }); err != nil || r.OK {
		return err
	}
	return hinted(fmt.Errorf("%w: %d faults", errInvalid, len(r.Faults)), remedy)
}

func (c *cli) showReport(r *verify.Report) {
	facts := [][2]any{
		{"records", r.Records},
		{"chain root", r.EventChainRootHash},
		{"execution hash", r.ExecutionHash},
		{"state root", r.StateRoot},
		{"ledger", fmt.Sprintf("%s: %d pending, %d duplicate, %d orphaned", okay(r.Ledger.OK),
			len(r.Ledger.PendingIdempotencyKeys), len(r.Ledger.DuplicateKeys), len(r.Ledger.OrphanKeys))},
		{"receipts", fmt.Sprintf("%d checked, %d bad, %d unverifiable, %d inherited",
			r.Receipts.Checked, r.Receipts.Bad, r.Receipts.Unverifiable, r.Receipts.Inherited)},
		{"snapshots", fmt.Sprintf("%d checked, %d bad", r.Snapshots.Checked, r.Snapshots.Bad)},
		{"governance", fmt.Sprintf("%d proposals, %d applied, %d bad", r.Governance.Proposals, r.Governance.Applied, r.Governance.Bad)},
		{"replay", okay(r.Replay.OK)},
		{"anchor", anchored(r.Anchor)},
		{"verdict", verdict(r)},
	}
	if r.Redacted > 0 {
		facts = slices.Insert(facts, len(facts)-3, [2]any{"redacted", fmt.Sprintf("%d payloads%s", r.Redacted, gaps(r.Replay.Gaps))})
	}
	c.facts(facts...)
	if r.OK {
		return
	}
	t := c.newTable()
	t.AppendHeader(table.Row{"", "place", "fault"})
	for i, f := range r.Faults {
		t.AppendRow(table.Row{strconv.Itoa(i + 1), f.Place, f.Message})
	}
	t.Render()
}

// gaps says which records a replay could not recompute.
func gaps(all []verify.Gap) string {
	text := ""
	for i, g := range all {
		if i == 0 {
			text = "; not replayed: "
		} else {
			text += ", "
		}
		text += fmt.Sprintf("#%d to #%d", g.From, g.To)
	}
	return text
}

func okay(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAILED"
}

func anchored(a *verify.AnchorProof) string {
	if a == nil {
		return "none"
	}
	return fmt.Sprintf("%s, at #%d", okay(a.OK), a.ID)
}

func verdict(r *verify.Report) string {
	if r.OK {
		return "consistent"
	}
	return fmt.Sprintf("NOT CONSISTENT: %d faults", len(r.Faults))
}
