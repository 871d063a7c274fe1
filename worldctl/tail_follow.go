package worldctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/worldctl/owner"
)

// errInterrupted has no text: whoever follows a journal ends that by interrupting
// it.
var errInterrupted = errors.New("")

// follow prints the records of a selection, and then those that are added, until
// it is interrupted or nobody can add any more.
func (c *cli) follow(ctx context.Context, lw *local.World, s *selection) error {
	j := recordsOf(lw)
	for {
		s.end = j.End()
		records, err := s.records(j)
		if err == nil {
			err = errors.Join(list(c, "tail", "records", records, c.recordColumns(lw)), c.stdout.Flush())
		}
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
		asked, _ := parseRecord(s.from) // records found no fault with it; 0 where it is not given
		s.from, s.last = fmt.Sprint(max(asked, s.end+1)), 0
		switch err := lw.Await(ctx, s.end); {
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
