package worldctl

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

func newTailCommand(c *cli) *cobra.Command {
	s := newSelection()
	var follow bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the journal's records, and follow it",
		Long: `Print the journal's records, all of them unless they are selected. With -o jsonl
each carries its stored bytes, in base64, under raw.

With --follow it goes on with what the process that runs the world adds, once that is
durable, until Ctrl-C or the end of that process. Where none does, nothing is added,
and it ends at once.`,
		Example: `  worldctl tail --limit 20
  worldctl tail -f --limit 10
  worldctl tail --cell agent/ada --kind cell.failed
  worldctl tail --since 100 -o jsonl`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if follow && c.output == formJSON {
				return usagef("worldctl tail -f -o jsonl", "-o json is one object, and what is followed has no end")
			}
			return c.with(func(lw *local.World) error {
				if follow {
					return c.follow(cmd.Context(), lw, &s)
				}
				records, err := s.records(recordsOf(lw))
				if err != nil {
					return err
				}
				return c.listRecords(lw, "tail", records)
			})
		},
	}
	s.addFlags(cmd)
	cmd.Flags().StringVar(&s.from, "since", "", "only from this `RECORD` on")
	cmd.Flags().Uint64Var(&s.last, "limit", 0, "only the last `N` of them")
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
	t := teller{records: recordsOf(lw), full: c.verbose}
	return columns[*view.Entry]{line: func(e *view.Entry) string {
		text, err := t.tell(e)
		if err != nil {
			text = err.Error()
		}
		return fmt.Sprintf("#%-7d t%-6d %-19s %s", e.ID, e.Time, e.Kind, text)
	}}
}

// selection says which records are wanted: those for which all of it holds.
type selection struct {
	kinds            []string
	cell             string
	from, to         string // records, the first and the last
	fromTick, toTick uint64
	end              journal.Seq // later ones are not looked at; 0: all are
	causedBy         string      // a record
	last             uint64      // so many of them; 0: all
}

func newSelection() selection { return selection{toTick: math.MaxUint64} }

func (s *selection) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&s.kinds, "kind", nil, "only records of this `KIND`, such as cell.failed, or intent.* for all that begin so; may be repeated")
	cmd.Flags().StringVar(&s.cell, "cell", "", "only what this `CELL` did and what happened to it")
}

// records yields the records of the selection, in order. Of the journal it reads
// the range, or what the index names of the cell or of the cells of the cause.
func (s *selection) records(j records) (iter.Seq2[*view.Entry, error], error) {
	kinds := make([]journal.Kind, len(s.kinds))
	for i, name := range s.kinds {
		if kinds[i] = journal.Kind(name); !view.Selects(kinds[i]) {
			return nil, usagef("kinds are such as cell.stepped, event.emitted, intent.denied, invocation.finished; all of a family are "+
				strings.Join(journal.Families(), ".*, ")+".*", "%q is not a kind of record", name)
		}
	}
	if s.cell != "" {
		if _, err := reducer.ParseCell(s.cell); err != nil {
			return nil, usagef("worldctl cell list", "%w", err)
		}
	}
	from, to, err := s.span(j)
	if err != nil {
		return nil, err
	}
	records := j.Between(from, to, kinds)
	switch {
	case s.causedBy != "":
		cause, err := j.find(s.causedBy)
		if err != nil {
			return nil, err
		}
		records = j.broughtAbout(cause, s.cell)
	case s.cell != "" && from <= to:
		records = j.OfCell(s.cell, from-1)
	}
	return last(within(records, from, to, kinds), s.last), nil
}

// within yields those of a sequence of records that are in a range and of one of
// some kinds, or of any where none is named.
func within(records iter.Seq2[*view.Entry, error], from, to journal.Seq, kinds []journal.Kind) iter.Seq2[*view.Entry, error] {
	return func(yield func(*view.Entry, error) bool) {
		for e, err := range records {
			if err == nil {
				if e.ID > to {
					return
				}
				if e.ID < from || !view.Among(kinds, e.Kind) {
					continue
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// broughtAbout yields what a record brought about directly, and of that what
// tells of a cell where one is named.
func (j records) broughtAbout(cause *view.Entry, cell string) iter.Seq2[*view.Entry, error] {
	return func(yield func(*view.Entry, error) bool) {
		for x, err := range j.consequences(cause, 1) {
			wanted := err != nil || cell == ""
			if !wanted {
				wanted, err = j.TellsOf(x.Entry, cell)
			}
			if (wanted || err != nil) && !yield(x.Entry, err) || err != nil {
				return
			}
		}
	}
}

// span returns the first record and the last that can be wanted; the first is
// after the last where there is none.
func (s *selection) span(j records) (from, to journal.Seq, err error) {
	end := j.End()
	if s.end != 0 {
		end = min(end, s.end)
	}
	from, to = 1, end
	if s.from != "" {
		if from, err = parseRecord(s.from); err != nil {
			return 0, 0, err
		}
	}
	if s.to != "" {
		if to, err = parseRecord(s.to); err != nil {
			return 0, 0, err
		}
		if from > to {
			return 0, 0, usagef("the first record comes before the last", "no record is from #%d on and up to #%d", from, to)
		}
	}
	if s.fromTick > s.toTick {
		return 0, 0, usagef("the first tick comes before the last", "no record is from tick %d on and up to tick %d", s.fromTick, s.toTick)
	}
	if s.fromTick > 0 {
		first, err := firstAt(end, manifest.Tick(s.fromTick), j.timeOf)
		if err != nil {
			return 0, 0, err
		}
		from = max(from, first)
	}
	if s.toTick < math.MaxUint64 {
		beyond, err := firstAt(end, manifest.Tick(s.toTick)+1, j.timeOf)
		if err != nil {
			return 0, 0, err
		}
		to = min(to, beyond-1)
	}
	from, to = max(from, 1), min(to, end)
	if s.last != 0 && len(s.kinds) == 0 && s.cell == "" && s.causedBy == "" && uint64(to) > s.last {
		from = max(from, to-journal.Seq(s.last)+1) // the records before need not be read
	}
	return from, to, nil
}

// firstAt returns the first of the records up to an end whose time is not before
// a tick; the one after the end where there is none. Times never decrease.
func firstAt(end journal.Seq, tick manifest.Tick, timeOf func(journal.Seq) (manifest.Tick, error)) (journal.Seq, error) {
	var failed error
	before := sort.Search(int(end), func(before int) bool {
		if failed != nil {
			return true
		}
		var t manifest.Tick
		t, failed = timeOf(journal.Seq(before) + 1)
		return t >= tick
	})
	return journal.Seq(before) + 1, failed
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
