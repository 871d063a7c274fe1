package worldctl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newReceiptVerifyCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Verify the signatures of receipts",
		Long: `Verify all receipts in the journal, or those in FILE (- for stdin): what
receipt show -o json or -o jsonl printed, or the stored bytes of one receipt.
Those in FILE must also be the ones that the journal has.

Exit code 3 if one is forged, altered, foreign, unknown or a duplicate.`,
		Example: `  worldctl receipt verify
  worldctl receipt show 9f86d081884c -o json | worldctl receipt verify -`,
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
