package worldctl

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/serve/owner"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// selected is a view.Selection as it is typed.
type selected struct {
	view.Selection
	kinds    []string
	from, to string
	causedBy string
}

func (s *selected) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&s.kinds, "kind", nil, "only records of this `KIND`, such as cell.failed, or intent.* for all that begin so; may be repeated")
	cmd.Flags().StringVar(&s.Cell, "cell", "", "only what this `CELL` did and what happened to it")
	addRange(cmd, &s.from, &s.to)
}

// in reads what was typed, for a world.
func (s *selected) in(j view.Journal) (_ *view.Selection, err error) {
	if s.Kinds, err = view.ParseKinds(s.kinds); err != nil {
		return nil, err
	}
	if s.Cell != "" {
		if _, err := parseCell(s.Cell); err != nil {
			return nil, err
		}
	}
	if s.causedBy != "" {
		if s.CausedBy, err = j.At(s.causedBy); err != nil {
			return nil, err
		}
	}
	return &s.Selection, s.Range(j, s.from, s.to)
}

func newTailCommand(c *cli) *cobra.Command {
	var s selected
	var follow bool
	cmd := &cobra.Command{
		Use: "tail",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if follow && c.output == formJSON {
				return usagef("worldctl tail -f -o jsonl", "-o json is one object, and what is followed has no end")
			}
			return c.with(func(lw *local.World) error {
				want, err := s.in(recordsOf(lw))
				if err != nil {
					return err
				}
				if follow {
					return c.follow(cmd.Context(), lw, want)
				}
				return c.listRecords(lw, "tail", recordsOf(lw).Select(cmd.Context(), want))
			})
		},
	}
	s.addFlags(cmd)
	cmd.Flags().Uint64Var(&s.Last, "last", 0, "only the last `N` of them; 0: all")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "then print what is added, as it is added")
	return cmd
}

// listRecords prints records where there may be millions.
func (c *cli) listRecords(lw *local.World, name string, records iter.Seq2[*view.Entry, error]) error {
	in := c.recordColumns(lw)
	in.none = "no such records"
	return list(c, name, "records", records, in)
}

func (c *cli) recordColumns(lw *local.World) columns[*view.Entry] {
	t := view.Describer{Journal: recordsOf(lw), Full: c.verbose}
	return columns[*view.Entry]{line: func(e *view.Entry) string {
		text, err := t.Describe(e)
		if err != nil {
			text = err.Error()
		}
		return fmt.Sprintf("#%-7d t%-6d %-19s %s", e.ID, e.Time, e.Kind, text)
	}}
}

// errInterrupted has no text: whoever follows a journal ends that by interrupting
// it.
var errInterrupted = errors.New("")

// follow prints the records of a selection, and then those that are added, until
// it is interrupted or nobody can add any more.
func (c *cli) follow(ctx context.Context, lw *local.World, s *view.Selection) error {
	j := recordsOf(lw)
	for {
		s.Until = j.End()
		err := errors.Join(list(c, "tail", "records", j.Select(ctx, s), c.recordColumns(lw)), c.stdout.Flush())
		switch {
		case errors.Is(err, context.Canceled):
			return &fault{err: errInterrupted, code: exitInterrupted}
		case err != nil:
			return err
		}
		if c.owned == nil {
			c.note("note: nobody runs this world, so nothing is added; worldctl run does")
			return nil
		}
		if _, to, err := s.Span(j); err != nil || to < s.Until {
			return err // the range has ended
		}
		s.After, s.Last = s.Until, 0
		switch err := lw.Await(ctx, s.Until); {
		case errors.Is(context.Cause(ctx), owner.ErrEnding), errors.Is(err, store.ErrClosed):
			c.note("note: the process that ran this world has ended")
			return nil
		case errors.Is(err, context.Canceled):
			return &fault{err: errInterrupted, code: exitInterrupted}
		case err != nil:
			return err
		}
	}
}
