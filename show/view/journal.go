// Package view has the forms in which people and programs see what a world holds: records, intents,
// receipts, proposals, cells and status, as `worldctl -o json` prints and serve/api serves them. It is
// a part of worldctl, and not an API.
package view

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/columns"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// Record is a record of a journal, as `worldctl tail -o jsonl` prints it.
type Record struct {
	ID       journal.Seq   `json:"id"`
	Time     manifest.Tick `json:"time"`
	Kind     journal.Kind  `json:"kind"`
	CausedBy journal.Seq   `json:"caused_by"`
	Payload  journal.Body  `json:"payload"`
	Raw      []byte        `json:"raw"`                // the stored bytes; prints as base64
	Redacted bool          `json:"redacted,omitempty"` // then there is no payload

	Printed []reducer.Print `json:"printed,omitempty"` // by the step, where it was taken again; see TakeAgain
}

// Entry is one record with its payload decoded.
type Entry struct {
	journal.Record
	Raw  []byte
	Body journal.Body // nil where the payload was redacted

	Printed []reducer.Print // see TakeAgain
}

// View returns the entry as it is shown.
func (e *Entry) View() Record {
	return Record{e.ID, e.Time, e.Kind, e.CausedBy, e.Body, e.Raw, e.Body == nil, e.Printed}
}

// MarshalJSON makes an entry print as it is shown, not as its Record.
func (e *Entry) MarshalJSON() ([]byte, error) {
	return Marshal(e.View())
}

// Journal reads the records of a world in their order. It is safe for concurrent use.
type Journal struct {
	Local *local.World
	Index *columns.Index // that knows what asked for an answer; nil: that is searched for
}

// End returns the last record, once it is durable: while the world is run, the last
// ones are on their way to where they can be read.
func (j Journal) End() journal.Seq {
	last := j.Local.Head().ID
	if last > 0 {
		_ = j.Local.Await(context.Background(), last-1) // who reads finds out what is wrong
	}
	return last
}

// Stored returns the stored bytes of a record. The error is journal.ErrNotFound where
// there is none.
func (j Journal) Stored(id journal.Seq) ([]byte, error) {
	raw, err := j.Local.Record(id)
	if errors.Is(err, journal.ErrNotFound) && id <= j.End() {
		return j.Local.Record(id)
	}
	return raw, err
}

// Entry reads a record. The error is journal.ErrNotFound where there is none.
func (j Journal) Entry(id journal.Seq) (*Entry, error) {
	raw, err := j.Stored(id)
	if err != nil {
		return nil, err
	}
	return j.Decode(raw)
}

// Decode reads a record of its stored bytes.
func (j Journal) Decode(raw []byte) (*Entry, error) {
	rec, err := journal.DecodeRecord(raw)
	if err != nil {
		return nil, err
	}
	return j.Load(rec, raw)
}

// Load reads the payload of a record.
func (j Journal) Load(rec journal.Record, raw []byte) (*Entry, error) {
	if err := rec.Load(j.Local); errors.Is(err, journal.ErrRedacted) {
		return &Entry{Record: rec, Raw: raw}, nil
	} else if err != nil {
		return nil, err
	}
	body, err := rec.Body()
	if err != nil {
		return nil, err
	}
	return &Entry{Record: rec, Raw: raw, Body: body}, nil
}

// Scan reads, in order, the records of some kinds that come after one, up to End.
func (j Journal) Scan(after journal.Seq, kinds ...journal.Kind) iter.Seq2[*Entry, error] {
	return j.Between(after+1, j.End(), kinds)
}

// Between reads, in order, the records from one to another, of all kinds or of
// those that are named; see Among.
func (j Journal) Between(from, to journal.Seq, kinds []journal.Kind) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for s, err := range j.Local.Scan(from - 1) {
			if err == nil {
				err = s.Err
			}
			var e *Entry
			switch {
			case err != nil:
			case s.ID > to:
				return
			case Among(kinds, s.Record.Kind):
				e, err = j.Load(s.Record, s.Bytes)
			default:
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// each yields what use makes of the items of a sequence, where that is to be kept, up to
// the first error.
func each[T, U any](from iter.Seq2[T, error], use func(T) (u U, keep bool, err error)) iter.Seq2[U, error] {
	return func(yield func(U, error) bool) {
		for item, err := range from {
			var u U
			keep := true
			if err == nil {
				u, keep, err = use(item)
			}
			if (keep || err != nil) && !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// Concerning yields, in order, the records after one that name a cell, or an intent
// of it.
func (j Journal) Concerning(cell string, after journal.Seq) iter.Seq2[*Entry, error] {
	return each(j.Local.CellRecords(cell, after), func(id journal.Seq) (*Entry, bool, error) {
		e, err := j.Entry(id)
		return e, true, err
	})
}

// Concerned reports, as world.ErrNoCell, a cell or an operator that no record concerns. A
// cell that a rollback undid was there.
func (j Journal) Concerned(cell reducer.Cell) error {
	for _, err := range j.Local.CellRecords(cell.String(), 0) {
		return err
	}
	return &world.InputError{Err: world.ErrNoCell, Field: "cell", Rule: cell.String()}
}

// OfCell yields, in order, the later records about a cell or an operator: its own, and the
// consequences of its steps.
func (j Journal) OfCell(cell string, after journal.Seq) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		told := after
		rest := func(step journal.Seq) bool {
			for e, err := range j.Following(step, max(step, told)) {
				if !yield(e, err) || err != nil {
					return false
				}
				told = e.ID
			}
			return true
		}
		step, err := j.stepAt(cell, after)
		if err != nil {
			yield(nil, err)
			return
		}
		if step != 0 && !rest(step) {
			return
		}
		for e, err := range j.Concerning(cell, told) {
			switch {
			case err == nil && e.ID <= told:
				continue // it was part of a turn
			case !yield(e, err) || err != nil:
				return
			}
			if told = e.ID; e.Kind == journal.KindStepped && !rest(e.ID) {
				return
			}
		}
	}
}

// stepAt returns the step of a cell in whose turn a record was written, or that it
// is; 0: it is in none.
func (j Journal) stepAt(cell string, id journal.Seq) (journal.Seq, error) {
	if id == 0 || id >= j.Local.Head().ID {
		return 0, nil
	}
	e, err := j.Entry(id)
	if err == nil && e.Kind != journal.KindStepped {
		e, err = j.Turn(e)
	}
	if err != nil || e == nil {
		return 0, err
	}
	if b, ok := e.Body.(*journal.Stepped); !ok || b.Cell != cell {
		return 0, nil
	}
	return e.ID, nil
}

// Following yields the records after one that follow at once from a step: the rest
// of its turn.
func (j Journal) Following(step, after journal.Seq) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		last := j.End()
		for id := after + 1; id <= last; id++ {
			e, err := j.Entry(id)
			if err == nil && (e.Kind.Input() || e.CausedBy < step || e.Kind == journal.KindStepped || e.Kind == journal.KindFailed) {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Turn returns the step in whose turn a record was written, nil where it was in
// none.
func (j Journal) Turn(e *Entry) (*Entry, error) {
	var err error
	for err == nil && e.CausedBy != 0 {
		dropped := e.Kind == journal.KindDropped // by an event, which may have been sent in a turn
		if e, err = j.Entry(e.CausedBy); err == nil && e.Kind == journal.KindStepped {
			return e, nil
		}
		if !dropped {
			break
		}
	}
	return nil, err
}

// Cells returns the cells and operators that a record concerns: it names them, or
// an intent of theirs.
func (j Journal) Cells(e *Entry) []string {
	var cells []string
	_ = journal.EachCell(e.Kind, e.Payload, func(cell []byte) { // the payload was read before
		cells = append(cells, string(cell))
	})
	if key, _ := e.Intent(); len(cells) == 0 && key != (receipt.Key{}) {
		if of, ok := j.LedgerEntry(key); ok {
			cells = append(cells, of.Intent.Cell)
		}
	}
	return cells
}

// TellsOf reports whether OfCell yields a record.
func (j Journal) TellsOf(e *Entry, cell string) (bool, error) {
	if slices.Contains(j.Cells(e), cell) {
		return true, nil
	}
	step, err := j.Turn(e)
	return err == nil && step != nil && slices.Contains(j.Cells(step), cell), err
}
