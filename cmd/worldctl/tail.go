package main

import (
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// selection says which records are wanted.
type selection struct {
	kinds []string
	cell  string
	since string
	limit uint64
}

func newTailCommand(c *cli) *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the journal's records",
		Long: `Print the journal's records, all of them unless they are selected. With -o jsonl
each carries its stored bytes, in base64, under raw.`,
		Example: `  worldctl tail --limit 20
  worldctl tail --cell agent/ada --kind cell.failed
  worldctl tail --since 100 -o jsonl`,
		Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.with(func(lw *local.World) error {
				t := teller{journal: journal{lw}, full: c.verbose}
				records, err := s.records(t.journal)
				if err != nil {
					return err
				}
				return list(c, "tail", "records", records, columns[*entry]{
					line: t.line, none: "no such records",
				})
			})
		},
	}
	cmd.Flags().StringSliceVar(&s.kinds, "kind", nil, "only records of this `KIND`; may be repeated")
	cmd.Flags().StringVar(&s.cell, "cell", "", "only what this `CELL` did and what happened to it")
	cmd.Flags().StringVar(&s.since, "since", "", "only from this `RECORD` on")
	cmd.Flags().Uint64Var(&s.limit, "limit", 0, "only the last `N` of them")
	return cmd
}

// line prints a record where there may be millions.
func (t teller) line(e *entry) string {
	text, err := t.tell(e)
	if err != nil {
		text = err.Error()
	}
	return fmt.Sprintf("#%-7d t%-6d %-19s %s", e.ID, e.Time, e.Kind, text)
}

// records yields the records of the selection.
func (s *selection) records(j journal) (iter.Seq2[*entry, error], error) {
	for _, kind := range s.kinds {
		if !world.Kind(kind).Known() {
			return nil, usagef("kinds are such as cell.stepped, event.emitted, intent.denied, invocation.finished", "%q is not a kind of record", kind)
		}
	}
	var from world.Seq = 1
	if s.since != "" {
		var err error
		if from, err = parseRecord(s.since); err != nil {
			return nil, err
		}
	}
	ids, err := s.candidates(j, max(from, 1))
	if err != nil {
		return nil, err
	}
	matching := func(yield func(*entry, error) bool) {
		for id := range ids {
			e, err := j.entry(id)
			wanted := err == nil && (len(s.kinds) == 0 || slices.Contains(s.kinds, string(e.Kind)))
			if (err != nil || wanted) && !yield(e, err) || err != nil {
				return
			}
		}
	}
	return last(matching, s.limit), nil
}

// candidates yields the ids of the records of the cell, or of all.
func (s *selection) candidates(j journal, from world.Seq) (iter.Seq[world.Seq], error) {
	if s.cell != "" {
		if _, err := reducer.ParseCell(s.cell); err != nil {
			return nil, usagef("worldctl cell list", "%w", err)
		}
		ids, err := j.ofCell(s.cell)
		at, _ := slices.BinarySearch(ids, from)
		return slices.Values(ids[at:]), err
	}
	end := j.lw.Store().Head().ID
	if s.limit != 0 && len(s.kinds) == 0 && uint64(end) > s.limit {
		from = max(from, end-world.Seq(s.limit)+1) // the records before need not be read
	}
	return func(yield func(world.Seq) bool) {
		more := true
		for id := from; id <= end && more; id++ {
			more = yield(id)
		}
	}, nil
}

// last yields the last items, in order; 0: all.
func last[T any](items iter.Seq2[T, error], limit uint64) iter.Seq2[T, error] {
	if limit == 0 {
		return items
	}
	return func(yield func(T, error) bool) {
		var kept []T
		for item, err := range items {
			if err != nil {
				yield(item, err)
				return
			}
			if uint64(len(kept)) == limit {
				kept = slices.Delete(kept, 0, 1)
			}
			kept = append(kept, item)
		}
		for _, item := range kept {
			if !yield(item, nil) {
				return
			}
		}
	}
}
