package worldctl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newReceiptCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "receipt"},
		newReceiptListCommand(c), newReceiptShowCommand(c), newReceiptVerifyCommand(c))
}

func newReceiptListCommand(c *cli) *cobra.Command {
	var limit uint64
	cmd := &cobra.Command{
		Use: "list",
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
		Use: "show KEY",
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
	changed := cmp.Or(a.StateChange, new(receipt.StateChange))
	c.facts([][2]any{
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
		when(a.ExternalRef != "", "external ref", a.ExternalRef),
		when(a.StateChange != nil, "changed", changed.Resource),
		when(a.Cost != (receipt.Cost{}), "cost", view.Cost(a.Cost)),
		when(a.Unsent, "unsent", "nothing left this machine"),
		when(a.Late, "late", "its attempt had been given up: it changed nothing"),
		when(a.Cancelled, "cancelled", "its cell had cancelled the intent, and is told so"),
		when(a.Signed, "started", wall(a.StartedAt)), when(a.Signed, "finished", wall(a.FinishedAt)),
		when(a.Signed, "signed with", a.KeyID), when(a.Signed, "hash", a.Hash), when(a.Signed, "mac", a.MAC),
		when(!a.Signed, "signed with", "nothing: the kernel made it"),
		{"payload", payload},
	}...)
}

func wall(nanoseconds int64) string { return time.Unix(0, nanoseconds).UTC().Format(time.RFC3339Nano) }

func newReceiptVerifyCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "verify [FILE]",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.verifyReceipts(view.Journal.CheckReceipts)
			}
			// What writes to stdin may still own the world: read it to its end.
			data, err := c.readContent(args[0])
			if err != nil {
				return err
			}
			if args[0] == "-" {
				c.stdin = bytes.NewReader(data) // for the owner
			}
			return c.verifyReceipts(func(j view.Journal) (*view.ReceiptCheck, error) {
				check, err := j.CheckShown(data)
				switch {
				case errors.Is(err, view.ErrNoReceipts):
					err = hinted(fmt.Errorf("%s is empty", args[0]), "worldctl receipt show KEY -o json > FILE")
				case errors.Is(err, view.ErrNoRaw):
					err = hinted(fmt.Errorf("%s: %w", args[0], err), "worldctl receipt show KEY -o json prints what can be verified")
				case err != nil:
					err = fmt.Errorf("%s: %w", args[0], err)
				}
				return check, err
			})
		},
	}
}

func (c *cli) verifyReceipts(verify func(view.Journal) (*view.ReceiptCheck, error)) error {
	return c.with(func(lw *local.World) error {
		check, err := verify(recordsOf(lw))
		if err != nil {
			return err
		}
		if err := c.object("receipt-verify", check, func() { c.showReceiptCheck(check) }); err != nil || check.OK {
			return err
		}
		return hinted(fmt.Errorf("%w: %d of %d receipts are bad", errInvalid, len(check.Bad), check.Checked), "worldctl verify checks the whole world")
	})
}

func (c *cli) showReceiptCheck(check *view.ReceiptCheck) {
	fmt.Fprintf(c.stdout, "%s checked, %d bad, %d unverifiable\n", view.Number(check.Checked, "receipt"), len(check.Bad), check.Unverifiable)
	tabulate(c, table.Row{"key", "record", "error"}, check.Bad, func(b *view.BadReceipt) table.Row {
		return table.Row{view.Short(b.Key), numbered(b.Record), b.Error}
	})
}

// maxFileBytes bounds what is read into memory at once.
const maxFileBytes = 256 << 20

// open opens a file to be read, or stdin for "-".
func (c *cli) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.stdin), nil
	}
	return os.Open(c.path(name))
}

// readContent returns the content of a file, or of stdin for "-".
func (c *cli) readContent(name string) ([]byte, error) {
	in, err := c.open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFileBytes)
	}
	return data, err
}
