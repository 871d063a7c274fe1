package worldctl

import (
	"fmt"
	"iter"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
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
				t := teller{records: recordsOf(lw), full: c.verbose}
				e, err := t.find(args[0])
				if err != nil {
					return err
				}
				return list(c, "why", "records", t.causes(e), columns[*view.Entry]{
					header: table.Row{"record", "tick", "kind", "what"},
					plain:  true,
					row: func(e *view.Entry) table.Row {
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

// causes yields a record and what caused it, up to an input.
func (j records) causes(e *view.Entry) iter.Seq2[*view.Entry, error] {
	return func(yield func(*view.Entry, error) bool) {
		for yield(e, nil) {
			cause, err := j.causeOf(e)
			if err == nil && cause == 0 {
				return
			}
			if err == nil && cause >= e.ID {
				err = fmt.Errorf("record #%d says that #%d caused it, which comes later", e.ID, cause)
			}
			if err == nil {
				e, err = j.Entry(cause)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// causeOf returns the record that caused e, 0 for none. An answer is an input,
// but someone asked: its cause is the permit. A decision was asked for as well.
func (j records) causeOf(e *view.Entry) (journal.Seq, error) {
	m := mentionIn(e)
	if len(m.answers()) == 0 {
		return e.CausedBy, nil
	}
	var before []journal.Seq
	for id, err := range j.Local.CellRecords(entryOf(j.Local, m.key).Intent.Cell, 0) {
		if err != nil {
			return 0, err
		}
		if id >= e.ID {
			break
		}
		before = append(before, id)
	}
	for _, id := range slices.Backward(before) { // what was asked for is seldom far
		e, err := j.Entry(id)
		if err != nil {
			return 0, err
		}
		if m.answersTo(mentionIn(e)) {
			return id, nil
		}
	}
	return 0, nil
}

// mention is what a record about an intent is about.
type mention struct {
	record  journal.Seq
	kind    journal.Kind
	key     receipt.Key // zero: it is about no intent
	attempt uint64      // 0: it is about no attempt
}

func mentionIn(e *view.Entry) mention {
	key, attempt := e.Intent()
	return mention{e.ID, e.Kind, key, attempt}
}

// answers returns the kinds of records that asked for one of this kind, which
// names no cause itself.
func (m mention) answers() []journal.Kind {
	switch m.kind {
	case journal.KindFinished, journal.KindLate, journal.KindExpired:
		return []journal.Kind{journal.KindStarted}
	case journal.KindDue:
		return []journal.Kind{journal.KindWaiting, journal.KindInDoubt}
	case journal.KindResolved:
		return []journal.Kind{journal.KindParked, journal.KindInDoubt, journal.KindConfirmed}
	case journal.KindConfirmed:
		return []journal.Kind{journal.KindFinished, journal.KindEnded, journal.KindConfirmed}
	default:
		return nil
	}
}

// answersTo reports whether an earlier record may have asked for this one: it is
// about the same attempt, or about the same intent where one of them is about no
// attempt. The last such record did.
func (m mention) answersTo(asked mention) bool {
	return slices.Contains(m.answers(), asked.kind) && m.key == asked.key &&
		(m.attempt == asked.attempt || m.attempt == 0 || asked.attempt == 0)
}

// consequence is a record that another one brought about.
type consequence struct {
	*view.Entry
	cause journal.Seq // what brought it about directly
}

// consequences yields, in order, what a record brought about, up to so many
// links away; 0 is no bound. Such records stand right behind their causes, or
// concern a cell that those concern: so the indexes of these cells are read, each
// once, from the cause on.
func (j records) consequences(of *view.Entry, links uint64) iter.Seq2[consequence, error] {
	return func(yield func(consequence, error) bool) {
		s := spread{
			records: j, most: links,
			found: make(map[journal.Seq]uint64), mentions: make(map[receipt.Key][]mention), reads: make(map[string]bool),
		}
		defer s.stop()
		s.mention(of)
		err := s.add(of, 0)
		for err == nil && len(s.cursors) > 0 {
			var e *view.Entry
			if e, err = s.next(); err != nil {
				break
			}
			cause := s.causeOf(e)
			s.mention(e)
			away, ok := s.found[cause]
			if !ok {
				continue
			}
			if !yield(consequence{e, cause}, nil) {
				return
			}
			err = s.add(e, away+1)
		}
		if err != nil {
			yield(consequence{}, err)
		}
	}
}

// spread reads the indexes of several cells at once, in the order of the journal,
// and knows which of the records that it came by follow from the first.
type spread struct {
	records
	most     uint64
	found    map[journal.Seq]uint64 // whose consequences are wanted: links to the first record
	mentions map[receipt.Key][]mention
	reads    map[string]bool // cells
	cursors  []cursor
}

// cursor is a sequence of records, and where it has come to.
type cursor struct {
	at   *view.Entry
	next func() (*view.Entry, error, bool)
	stop func()
}

// add makes it read on where the consequences of a record that it found
// can be.
func (s *spread) add(e *view.Entry, away uint64) error {
	if s.most != 0 && away == s.most {
		return nil
	}
	s.found[e.ID] = away
	if err := s.read(s.Following(e.ID, e.ID)); err != nil {
		return err
	}
	for _, cell := range s.Cells(e) {
		if s.reads[cell] {
			continue
		}
		s.reads[cell] = true
		if err := s.read(s.Concerning(cell, e.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (s *spread) read(records iter.Seq2[*view.Entry, error]) error {
	next, stop := iter.Pull2(records)
	e, err, ok := next()
	if !ok || err != nil {
		stop()
		return err
	}
	s.cursors = append(s.cursors, cursor{e, next, stop})
	return nil
}

// next returns the first record that a cursor has come to, and moves the cursors
// on.
func (s *spread) next() (*view.Entry, error) {
	first := slices.MinFunc(s.cursors, func(a, b cursor) int { return int(a.at.ID) - int(b.at.ID) }).at
	for i := len(s.cursors) - 1; i >= 0; i-- {
		c := &s.cursors[i]
		if c.at.ID != first.ID {
			continue
		}
		e, err, ok := c.next()
		if err != nil {
			return nil, err
		}
		if c.at = e; !ok {
			c.stop()
			s.cursors = slices.Delete(s.cursors, i, i+1)
		}
	}
	return first, nil
}

func (s *spread) stop() {
	for _, c := range s.cursors {
		c.stop()
	}
}

func (s *spread) mention(e *view.Entry) {
	if m := mentionIn(e); m.key != (receipt.Key{}) {
		s.mentions[m.key] = append(s.mentions[m.key], m)
	}
}

// causeOf is journal.causeOf without a search; 0 also where the cause is none of
// what it came by, and so does not follow from the first.
func (s *spread) causeOf(e *view.Entry) journal.Seq {
	m := mentionIn(e)
	if len(m.answers()) == 0 {
		return e.CausedBy
	}
	for _, asked := range slices.Backward(s.mentions[m.key]) {
		if m.answersTo(asked) {
			return asked.record
		}
	}
	return 0
}
