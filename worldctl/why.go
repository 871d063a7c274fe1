package worldctl

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newWhyCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "why RECORD",
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, args []string) error {
			t := view.Describer{Journal: recordsOf(lw), Full: c.verbose}
			e, err := t.EntryAt(args[0])
			if err != nil {
				return err
			}
			causes := t.Causes(e)
			if c.verbose {
				causes = c.printed(ctx, t.Journal, causes)
			}
			return list(c, "why", "records", causes, columns[*view.Entry]{
				header: table.Row{"record", "tick", "kind", "what"},
				plain:  true,
				whole:  true,
				row: func(e *view.Entry) table.Row {
					what, err := t.Describe(e)
					if err != nil {
						what = err.Error()
					}
					what = strings.Join(append([]string{what}, e.PrintedLines()...), "\n  ")
					return table.Row{fmt.Sprintf("#%d", e.ID), e.Time, e.Kind, what}
				},
			})
		}),
	}
	c.addBounds(cmd)
	c.addTime(cmd)
	return cmd
}

// printed takes the steps among some records again, to show what they print.
func (c *cli) printed(ctx context.Context, j view.Journal, records iter.Seq2[*view.Entry, error]) iter.Seq2[*view.Entry, error] {
	var entries []*view.Entry
	var end error
	for e, err := range records {
		if err != nil {
			end = err
			break
		}
		entries = append(entries, e)
	}
	ctx, cancel := c.timed(ctx)
	defer cancel()
	if err := j.TakeAgain(ctx, entries, c.bounds.Bounds); err != nil {
		c.note("what the steps printed is not known: %s", visible(err.Error(), ""))
	}
	return func(yield func(*view.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
		if end != nil {
			yield(nil, end)
		}
	}
}
