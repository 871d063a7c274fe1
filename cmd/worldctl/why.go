package main

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newWhyCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "why RECORD",
		Short: "Follow a record's causes back to the input they began with",
		Long: `Follow a record's causes back to the input they began with, the record itself
first. An answer of the outside is followed to the permit of its attempt and the
intent that asked for it, a person's decision to what it was about.`,
		Example: `  worldctl why 20
  worldctl why '#20' -o json`,
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.with(func(lw *local.World) error {
				t := teller{journal: journal{lw}, full: c.verbose}
				e, err := t.find(args[0])
				if err != nil {
					return err
				}
				chain, err := t.causes(e)
				if err != nil {
					return err
				}
				return list(c, "why", "records", all(chain), columns[*entry]{
					header: table.Row{"record", "tick", "kind", "what"},
					plain:  true,
					row: func(e *entry) table.Row {
						what, err := t.tell(e)
						if err != nil {
							what = err.Error()
						}
						return table.Row{fmt.Sprintf("#%d", e.ID), e.Time, e.Kind, what}
					},
				})
			})
		},
	}
}

// causes returns a record and what caused it, up to an input.
func (j journal) causes(e *entry) ([]*entry, error) {
	entries := byKey(j.lw)
	chain := []*entry{e}
	for {
		cause, err := j.causeOf(e, entries)
		if err != nil || cause == 0 {
			return chain, err
		}
		if cause >= e.ID {
			return nil, fmt.Errorf("record #%d says that #%d caused it, which comes later", e.ID, cause)
		}
		if e, err = j.entry(cause); err != nil {
			return nil, err
		}
		chain = append(chain, e)
	}
}

// causeOf returns the record that caused e, 0 for none. An answer is an input,
// but someone asked: its cause is the permit. A decision was asked for as well.
func (j journal) causeOf(e *entry, entries map[receipt.Key]*receipt.Entry) (world.Seq, error) {
	switch e.Kind {
	case world.KindFinished, world.KindLate, world.KindExpired:
		key, attempt := intentOf(e.body)
		if in := entries[key]; in != nil && in.Attempt == attempt {
			return world.Seq(in.Started), nil
		}
		return j.lastAbout(e, world.KindStarted)
	case world.KindDue:
		return j.lastAbout(e, world.KindWaiting, world.KindInDoubt)
	case world.KindResolved:
		return j.lastAbout(e, world.KindParked, world.KindInDoubt, world.KindConfirmed)
	case world.KindConfirmed:
		return j.lastAbout(e, world.KindFinished, world.KindEnded, world.KindConfirmed)
	default:
		return e.CausedBy, nil
	}
}

// lastAbout returns the last record before e, of some kinds, that is about the
// same attempt, or about the same intent where one of them is about no attempt.
func (j journal) lastAbout(e *entry, kinds ...world.Kind) (world.Seq, error) {
	key, attempt := intentOf(e.body)
	var last world.Seq
	for before, err := range j.scan(0, kinds...) {
		if err != nil {
			return 0, err
		}
		if before.ID >= e.ID {
			break
		}
		if k, a := intentOf(before.body); k == key && (a == attempt || a == 0 || attempt == 0) {
			last = before.ID
		}
	}
	return last, nil
}
