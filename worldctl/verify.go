package worldctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
)

func newVerifyCommand(c *cli) *cobra.Command {
	var trust, kept []string
	cmd := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Prove the world: chain, ledger, receipts, governance, checkpoints, replay",
		Long: `Prove the world from its stored bytes alone: the hash chain, that every effect
happened at most once, the signatures of receipts, that every change of the rules
was approved, that what was signed is still there, and that the inputs give the
journal. A world that runs goes on meanwhile.

FILE is a bundle (worldctl export --format bundle) or a proof (worldctl prove), - is
stdin: they need no world, and no secret. --trust says whom you believe; without it the verdict
is that all is consistent, and not whose it is. --checkpoint takes a checkpoint that
you have kept: it must be of this history. A stranger's rules run with what --max-gas,
--max-memory, --max-time and --max-size allow, whatever they allow themselves.

Exit code 3 if anything does not hold, or if nobody whom you trust has signed all of
it; every fault is named with its place. Exit code 1 if there is no fault, but this
program lacks Go reducers that the replay needs, or if a bound of a FILE does not
suffice, which is no verdict.`,
		Example: `  worldctl verify
  worldctl verify -o json
  worldctl verify town.bundle
  worldctl verify town.bundle --trust town.pub --checkpoint monday.checkpoint
  worldctl verify refund.proof`,
		RunE: func(cmd *cobra.Command, args []string) error {
			how, err := c.believed(trust, kept)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if cmd.Flags().Changed("memory") {
					return usagef("a FILE has --max-memory", "--memory is for a world, which puts the rest on its disk")
				}
				return c.verifyFile(cmd.Context(), args[0], how)
			}
			for _, name := range []string{"max-gas", "max-memory", "max-time", "max-size"} {
				if cmd.Flags().Changed(name) {
					return usagef("the rules of a world are its owner's, and have its limits", "--%s is for a FILE", name)
				}
			}
			dir, err := c.dir()
			if err != nil {
				return err
			}
			return c.verify(cmd.Context(), dir, how)
		},
	}
	cmd.Flags().StringArrayVar(&trust, "trust", nil, "believe the owner of this public `KEY`, or those in a file; may be repeated")
	c.addBounds(cmd)
	c.addTime(cmd)
	c.addSize(cmd)
	c.memoryFlag(cmd)
	cmd.Flags().StringArrayVar(&kept, "checkpoint", nil, "`FILE` with a checkpoint that must be of this history; may be repeated")
	return cmd
}

// verify does not open the world: one that is too damaged for that gets its
// report all the same.
func (c *cli) verify(ctx context.Context, dir string, how local.Verification) error {
	remedy := "bring back a copy of .world that verifies, or worldctl import journal an export"
	if c.placed != nil {
		remedy = hintDamaged
	}
	var stop func()
	how.Memory = int(c.memory)
	how.Progress, stop = c.counted()
	var r *verify.Report
	var err error
	if c.owns(dir) {
		r, err = c.owned.Verify(ctx, how)
	} else {
		r, err = local.Verify(ctx, dir, c.in(dir, c.options()), how)
	}
	stop()
	if errors.As(err, new(*store.DamageError)) {
		return hinted(err, "%s", remedy)
	}
	if err != nil {
		return ownedIn(dir, err)
	}
	return c.concludeVerify(r, len(how.Trust) > 0, remedy, "worldctl checkpoint signs all of it")
}

func (c *cli) showReport(r *verify.Report, trust bool) {
	facts := [][2]any{
		{"records", r.Records},
		{"chain root", hashOrUnknown(r.EventChainRootHash)},
		{"execution hash", hashOrUnknown(r.ExecutionHash)},
		{"state root", hashOrUnknown(r.StateRoot)},
		{"ledger", fmt.Sprintf("%s: %d pending, %d duplicate, %d orphaned", okay(r.Ledger.OK),
			len(r.Ledger.PendingIdempotencyKeys), len(r.Ledger.DuplicateKeys), len(r.Ledger.OrphanKeys))},
		{"receipts", fmt.Sprintf("%d checked, %d bad, %d unverifiable, %d inherited",
			r.Receipts.Checked, r.Receipts.Bad, r.Receipts.Unverifiable, r.Receipts.Inherited)},
		{"snapshots", snapshotsChecked(r)},
		{"governance", fmt.Sprintf("%s, %d applied, %d bad", view.Number(r.Governance.Proposals, "proposal"), r.Governance.Applied, r.Governance.Bad)},
		{"replay", replayed(&r.Replay)},
	}
	if r.From > 0 { // of the rest nobody can tell anything, and that is no fault
		facts = [][2]any{{"records", fmt.Sprintf("#%d to #%d", r.From, r.Records)}, facts[1], facts[5], {"replay", r.Replay.Error}}
	}
	if n := r.Redacted + r.Withheld; n > 0 {
		facts = append(facts, [2]any{"payloads gone", fmt.Sprintf("%d redacted, %d withheld%s", r.Redacted, r.Withheld, gaps(r.Replay.Gaps))})
	}
	facts = append(facts, [2]any{"checkpoints", fmt.Sprintf("%d checked, %d bad", r.Checkpoints.Checked, r.Checkpoints.Bad)})
	if last := r.Checkpoints.Last; last > 0 {
		facts = append(facts, [2]any{"signed up to", fmt.Sprintf("#%d", last)}, [2]any{"signed by", strings.Join(r.Checkpoints.Signers, "\n")})
	}
	if r.Anchor != nil {
		facts = append(facts, [2]any{"anchor", fmt.Sprintf("%s, at #%d", okay(r.Anchor.OK), r.Anchor.ID)})
	}
	c.facts(append(facts, [2]any{"verdict", verdict(r, trust)})...)
	c.showFaults(r.Faults)
}

func (c *cli) showFaults(faults []verify.Fault) {
	n := 0
	tabulate(c, table.Row{"", "place", "fault"}, faults, func(f *verify.Fault) table.Row {
		n++
		return table.Row{n, f.Place, f.Message}
	})
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

// snapshotsChecked says how many snapshots have the states that the replay came to.
func snapshotsChecked(r *verify.Report) string {
	if len(r.Replay.Needs) > 0 {
		return "states not checked without the replay"
	}
	return fmt.Sprintf("%d checked, %d bad", r.Snapshots.Checked, r.Snapshots.Bad)
}

func replayed(p *verify.ReplayProof) string {
	if len(p.Needs) > 0 {
		return p.Error
	}
	return okay(p.OK)
}

// hashOrUnknown prints a hash that is zero where nobody knows it.
func hashOrUnknown(h journal.Hash) string {
	if h.IsZero() {
		return "unknown"
	}
	return h.String()
}

func verdict(r *verify.Report, trust bool) string {
	switch {
	case r.OK && r.Checkpoints.Last == 0:
		return "consistent"
	case r.OK && !r.Trusted && r.Checkpoints.Trusted > 0:
		return fmt.Sprintf("consistent, signer trusted up to #%d", r.Checkpoints.Trusted)
	case r.OK:
		return signedVerdict("consistent", trust, r.Trusted)
	case len(r.Faults) == 0:
		return "no faults, and " + r.Replay.Error
	}
	return "NOT CONSISTENT: " + view.Number(len(r.Faults), "fault")
}
