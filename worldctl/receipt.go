package worldctl

import (
	"context"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newReceiptCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "receipt", Short: "Look at the signed answers of the outside, and verify them"},
		newReceiptListCommand(c), newReceiptShowCommand(c), newReceiptVerifyCommand(c))
}

func newReceiptListCommand(c *cli) *cobra.Command {
	var limit uint64
	cmd := &cobra.Command{
		Use: "list",
		Long: `List receipts in the order of their intents: one for every attempt that the
outside answered, and those that the kernel made for intents that it denied or
ended itself. A late one answers an attempt that had been given up, and changed
nothing.`,
		Example: `  worldctl receipt list
  worldctl receipt list -o jsonl`,
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			d := view.Describer{Journal: recordsOf(lw), Full: c.verbose}
			return list(c, "receipt-list", "receipts", first(d.AnswersByIntent(), limit), columns[view.ReceiptLine]{
				header: table.Row{"key", "cell", "kind", "attempt", "status", "outcome", "record", "", "payload"},
				row: func(l view.ReceiptLine) table.Row {
					return table.Row{
						view.Short(l.Key), l.Cell, l.Kind, l.Attempt, l.Status, l.Outcome, fmt.Sprintf("#%d", l.Record), markOf(&l), d.Data(l.Payload),
					}
				},
				none: "no receipts yet",
			})
		}),
	}
	addLimit(cmd, &limit, "receipts")
	return cmd
}

// markOf says what is special about a receipt.
func markOf(l *view.ReceiptLine) string {
	switch {
	case l.Late:
		return "late"
	case l.Cancelled && l.Signed:
		return "cancelled by its cell"
	case !l.Signed:
		return "by the kernel"
	case l.Unsent:
		return "unsent"
	}
	return ""
}

func newReceiptShowCommand(c *cli) *cobra.Command {
	var attempt uint64
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show the receipt of an intent",
		Long: `Show the last receipt of an intent, or that of one attempt. KEY may be cut short,
to no less than 8 digits. With -o json it carries its stored bytes under raw, so
that receipt verify can check the file. One that the kernel made, because it
denied or ended the intent itself, has no signature and no such bytes.`,
		Example: `  worldctl receipt show 9f86d081884c
  worldctl receipt show 9f86d081884c -o json > receipt.json
  worldctl receipt show 9f86d081884c --attempt 1`,
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			e, err := recordsOf(lw).FindIntent(args[0])
			if err != nil {
				return err
			}
			a, err := recordsOf(lw).AnswerTo(e, attempt)
			if err != nil {
				return err
			}
			if a == nil {
				return hinted(fmt.Errorf("intent %s is %s: it has no such receipt", e.Intent.Key, e.State), "worldctl intent show %s", view.Short(e.Intent.Key))
			}
			full := a.Full()
			return c.object("receipt", full, func() { c.showReceipt(full) })
		}),
	}
	cmd.Flags().Uint64Var(&attempt, "attempt", 0, "that of attempt `N`; the last if not given")
	return cmd
}

func (c *cli) showReceipt(a *view.Receipt) {
	payload, err := indented(a.Payload)
	if err != nil {
		payload = err.Error()
	}
	facts := [][2]any{
		{"key", a.Key},
		{"cell", a.Cell},
		{"kind", a.Kind},
		{"status", a.Status},
		{"outcome", a.Outcome},
		{"attempt", a.Attempt},
		{"record", numbered(a.Record)},
		{"step", a.StepID},
		{"external key", a.ExternalKey},
		{"capability", a.Cap},
	}
	if a.ExternalRef != "" {
		facts = append(facts, [2]any{"external ref", a.ExternalRef})
	}
	if x := a.StateChange; x != nil {
		facts = append(facts, [2]any{"changed", x.Resource})
	}
	if a.Cost != (receipt.Cost{}) {
		facts = append(facts, [2]any{"cost", view.Cost(a.Cost)})
	}
	if a.Unsent {
		facts = append(facts, [2]any{"unsent", "nothing left this machine"})
	}
	if a.Late {
		facts = append(facts, [2]any{"late", "its attempt had been given up: it changed nothing"})
	}
	if a.Cancelled {
		facts = append(facts, [2]any{"cancelled", "its cell had cancelled the intent, and is told so"})
	}
	if a.Signed {
		facts = append(facts, [2]any{"started", wall(a.StartedAt)}, [2]any{"finished", wall(a.FinishedAt)},
			[2]any{"signed with", a.KeyID}, [2]any{"hash", a.Hash}, [2]any{"mac", a.MAC})
	} else {
		facts = append(facts, [2]any{"signed with", "nothing: the kernel made it"})
	}
	c.facts(append(facts, [2]any{"payload", payload})...)
}

func wall(nanoseconds int64) string { return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano) }
