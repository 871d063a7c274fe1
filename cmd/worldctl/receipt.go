package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

type receiptLine struct {
	Key         receipt.Key     `json:"key"`
	Cell        string          `json:"cell"`
	Kind        string          `json:"kind"`
	Status      receipt.Status  `json:"status"`
	Attempt     uint64          `json:"attempt"`
	Outcome     receipt.Outcome `json:"outcome"`
	Record      world.Seq       `json:"record"`
	StepID      receipt.StepID  `json:"step_id"`
	ExternalKey string          `json:"external_key"`
	Payload     world.Data      `json:"payload"`
	Cost        receipt.Cost    `json:"cost"`
}

// receiptAnswer is a receipt with all that it says and its stored bytes, which
// `receipt verify` takes.
type receiptAnswer struct {
	receipt.Receipt
	Cell        string          `json:"cell"`
	Outcome     receipt.Outcome `json:"outcome"`
	Record      world.Seq       `json:"record"`
	StepID      receipt.StepID  `json:"step_id"`
	ExternalKey string          `json:"external_key"`
	Raw         []byte          `json:"raw"` // prints as base64
}

func newReceiptCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "receipt", Short: "Look at the signed answers of the outside, and verify them"},
		newReceiptListCommand(c), newReceiptShowCommand(c), newReceiptVerifyCommand(c))
}

func newReceiptListCommand(c *cli) *cobra.Command {
	var limit uint64
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List receipts in the order of their intents",
		Example: `  worldctl receipt list
  worldctl receipt list -o jsonl`,
		Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.with(func(lw *local.World) error {
				tell := teller{journal: journal{lw}, full: c.verbose}
				return list(c, "receipt-list", "receipts", first(each(answered(lw), tell.receiptLine), limit), columns[receiptLine]{
					header: table.Row{"key", "cell", "kind", "status", "record", "payload"},
					row: func(l receiptLine) table.Row {
						return table.Row{short(l.Key), l.Cell, l.Kind, l.Status, fmt.Sprintf("#%d", l.Record), tell.data(l.Payload)}
					},
					none: "no receipts yet",
				})
			})
		},
	}
	cmd.Flags().Uint64Var(&limit, "limit", 0, "only the first `N`")
	return cmd
}

func newReceiptShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Show the receipt of an intent",
		Long: `Show the receipt of an intent. KEY may be cut short, to no less than 8 digits.
With -o json it carries its stored bytes under raw, so that receipt verify can
check the file.`,
		Example: `  worldctl receipt show 9f86d081884c
  worldctl receipt show 9f86d081884c -o json > receipt.json`,
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.with(func(lw *local.World) error {
				e, err := findIntent(lw, args[0])
				if err != nil {
					return err
				}
				if !isAnswered(e) {
					return hinted(fmt.Errorf("intent %s is %s: it has no receipt", e.Intent.Key, e.State), "worldctl intent show %s", short(e.Intent.Key))
				}
				raw, r, err := journal{lw}.receipt(e)
				if err != nil {
					return err
				}
				answer := receiptAnswer{
					Receipt: *r, Cell: e.Intent.Cell, Outcome: r.Outcome(), Record: world.Seq(e.Finished),
					StepID: e.Intent.Step, ExternalKey: r.Key.External(r.World), Raw: raw,
				}
				return c.object("receipt", answer, func() { c.showReceipt(&answer) })
			})
		},
	}
}

func (c *cli) showReceipt(a *receiptAnswer) {
	payload, err := indented(a.Payload)
	if err != nil {
		payload = err.Error()
	}
	c.facts([2]any{"key", a.Key}, [2]any{"cell", a.Cell}, [2]any{"kind", a.Kind}, [2]any{"status", a.Status},
		[2]any{"outcome", a.Outcome}, [2]any{"attempt", a.Attempt}, [2]any{"record", numbered(a.Record)},
		[2]any{"step", a.StepID}, [2]any{"external key", a.ExternalKey}, [2]any{"capability", a.Cap},
		[2]any{"started", wall(a.StartedAt)}, [2]any{"finished", wall(a.FinishedAt)},
		[2]any{"signed with", a.KeyID}, [2]any{"hash", a.Hash}, [2]any{"mac", a.MAC}, [2]any{"payload", payload})
}

func wall(nanoseconds int64) string { return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano) }

// isAnswered reports whether an intent has a receipt from outside.
func isAnswered(e *receipt.Entry) bool {
	return e.State == receipt.StateCommitted || e.State == receipt.StateFailed
}

// answered returns the intents that have a receipt from outside.
func answered(lw *local.World) []receipt.Entry {
	return slices.DeleteFunc(ledger(lw), func(e receipt.Entry) bool { return !isAnswered(&e) })
}

func (t teller) receiptLine(e receipt.Entry) (receiptLine, error) {
	_, r, err := t.receipt(&e)
	if err != nil {
		return receiptLine{}, err
	}
	return receiptLine{
		Key: r.Key, Cell: e.Intent.Cell, Kind: r.Kind, Status: r.Status, Attempt: r.Attempt, Outcome: r.Outcome(),
		Record: world.Seq(e.Finished), StepID: e.Intent.Step, ExternalKey: r.Key.External(r.World),
		Payload: r.Payload, Cost: r.Cost,
	}, nil
}

// receipt returns the receipt that ended an intent, with its stored bytes.
func (j journal) receipt(e *receipt.Entry) ([]byte, *receipt.Receipt, error) {
	rec, err := j.entry(world.Seq(e.Finished))
	if err != nil {
		return nil, nil, err
	}
	b, ok := rec.body.(*world.Finished)
	if !ok {
		return nil, nil, fmt.Errorf("record #%d is %s, and the ledger says that it ended intent %s", rec.ID, rec.Kind, e.Intent.Key)
	}
	r, err := receipt.Decode(b.Receipt)
	if err != nil {
		return nil, nil, fmt.Errorf("record #%d: %w", rec.ID, err)
	}
	return b.Receipt, r, nil
}
