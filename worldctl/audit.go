package worldctl

import (
	"bufio"
	"context"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newAuditCommand(c *cli) *cobra.Command {
	var s selected
	var limit uint64
	var file string
	var to *target
	cmd := &cobra.Command{
		Use: "audit",
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, _ []string) error {
			want, err := s.in(recordsOf(lw))
			if err != nil {
				return err
			}
			head := lw.Head()
			want.Until = head.ID
			records := first(recordsOf(lw).Select(ctx, want), limit)
			if file == "" {
				return c.listRecords(lw, "audit", records)
			}
			return c.saveRecords(head, to, file, records)
		}),
	}
	s.addFlags(cmd)
	cmd.Flags().StringVar(&s.causedBy, "caused-by", "", "only what the record of this `MOMENT` brought about directly")
	addLimit(cmd, &limit, "of them")
	cmd.Flags().StringVar(&file, "save", "", "write them to a new `FILE` instead, as JSON lines")
	to = c.savesTo(cmd, func([]string) string { return file })
	return cmd
}

// saveRecords makes a file of records of a journal with that head, durably and
// whole or not at all.
func (c *cli) saveRecords(head journal.Head, to *target, name string, records iter.Seq2[*view.Entry, error]) error {
	n := uint64(0)
	report, stop := c.progress("records", 0)
	err := to.write(name, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		for e, err := range records {
			if err != nil {
				return err
			}
			line, err := view.Marshal(e)
			if err != nil {
				return err
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
			n++
			report(n)
		}
		return out.Flush()
	})
	stop()
	if err == nil {
		c.note("%d records are in %s, taken at #%d, chain root %s", n, name, head.ID, head.Root)
	}
	return err
}
