package view

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
)

// Why no record can be selected.
var (
	ErrKind  = errors.New("unknown kind")
	ErrOrder = errors.New("a range begins before it ends")
)

// Selection says which records are wanted: those for which all of it holds. The zero
// value wants all.
type Selection struct {
	After    journal.Seq // only later ones
	Until    journal.Seq // and no later ones; 0: all
	From, To Moment      // the first and the last
	Kinds    []journal.Kind
	Cell     string      // that they tell of, or an operator
	CausedBy journal.Seq // what brought them about directly
	Last     uint64      // so many of them, at the end; 0: all
}

// ParseKinds reads the names of kinds of records and of their families. The error is
// ErrKind.
func ParseKinds(names []string) ([]journal.Kind, error) {
	var kinds []journal.Kind
	for _, name := range names {
		if !Selects(journal.Kind(name)) {
			return nil, fmt.Errorf("%w %q", ErrKind, name)
		}
		kinds = append(kinds, journal.Kind(name))
	}
	return kinds, nil
}

// Range sets From and To to the moments that a person named; an empty name is none.
// The error is ErrOrder or a *MomentError.
func (s *Selection) Range(j Journal, from, to string) (err error) {
	for _, end := range []struct {
		name   string
		moment *Moment
	}{{from, &s.From}, {to, &s.To}} {
		if end.name == "" {
			continue
		}
		if *end.moment, err = j.Moment(end.name); err != nil {
			return err
		}
	}
	if a, b := s.From, s.To; !a.IsZero() && !b.IsZero() && j.after(a, b) {
		return fmt.Errorf("%w: not with %s, to end with %s", ErrOrder, a, b)
	}
	return nil
}

// after reports whether a moment begins when another has ended. Nobody can tell of a tick
// and a record that cannot be read.
func (j Journal) after(a, b Moment) bool {
	switch {
	case a.tick == b.tick:
		return a.record > b.record || a.first > b.last
	case a.tick:
		ended, err := j.timeOf(b.record)
		return err == nil && a.first > ended
	default:
		begun, err := j.timeOf(a.record)
		return err == nil && begun > b.last
	}
}

// Span returns the first record and the last that can be wanted; the first is after the
// last where there is none.
func (s *Selection) Span(j Journal) (from, to journal.Seq, err error) {
	end := j.End()
	if s.Until != 0 {
		end = min(end, s.Until)
	}
	from, to = min(s.After, end)+1, end
	if !s.From.IsZero() {
		first, err := j.firstOf(s.From, end)
		if err != nil {
			return 0, 0, err
		}
		from = max(from, first)
	}
	if !s.To.IsZero() {
		last, err := j.lastOf(s.To, end)
		if err != nil {
			return 0, 0, err
		}
		to = min(to, last)
	}
	return from, to, nil
}

// Part returns the first record and the last of a range whose ends a person named, none
// for those of the journal, and which must be there. The error is that of Range.
func (j Journal) Part(from, to string) (first, last journal.Seq, err error) {
	var s Selection
	if err := s.Range(j, from, to); err != nil {
		return 0, 0, err
	}
	for _, name := range []string{from, to} {
		if name == "" {
			continue
		}
		if _, err := j.At(name); err != nil {
			return 0, 0, err
		}
	}
	return s.Span(j)
}

// Candidate is a record that was looked at for a selection.
type Candidate struct {
	ID    journal.Seq
	Entry *Entry // nil: it is not wanted
}

// Candidates yields, in order, the records that have to be looked at to find those of a
// selection: of the journal the range, or what the index names of the cell or of the
// cells of the cause, for as long as ctx lets it. Last does not count.
func (j Journal) Candidates(ctx context.Context, s *Selection) iter.Seq2[Candidate, error] {
	return func(yield func(Candidate, error) bool) {
		from, to, err := s.Span(j)
		if err != nil {
			yield(Candidate{}, err)
			return
		}
		if from > to {
			return
		}
		looks := j.looks(ctx, s, from)
		if s.Last != 0 && len(s.Kinds) == 0 && s.Cell == "" && s.CausedBy == 0 && uint64(to) > s.Last {
			looks = j.looks(ctx, s, max(from, to-journal.Seq(s.Last)+1)) // the records before need not be read
		}
		for x, err := range looks {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && x.ID > to {
				return
			}
			if err == nil && x.ID < from {
				continue
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}

// looks is Look from a record on, or from before.
func (j Journal) looks(ctx context.Context, s *Selection, from journal.Seq) iter.Seq2[Candidate, error] {
	entries := j.OfCell(s.Cell, from-1)
	switch {
	case s.CausedBy != 0:
		entries = j.broughtAbout(ctx, s.CausedBy, s.Cell)
	case s.Cell == "":
		return j.scanned(s, from)
	}
	return each(entries, func(e *Entry) (Candidate, bool, error) {
		if !Among(s.Kinds, e.Kind) {
			return Candidate{ID: e.ID}, true, nil
		}
		return Candidate{ID: e.ID, Entry: e}, true, nil
	})
}

// scanned reads what is wanted of every record from one on.
func (j Journal) scanned(s *Selection, from journal.Seq) iter.Seq2[Candidate, error] {
	return each(j.Local.Scan(from-1), func(r journal.Scanned) (x Candidate, keep bool, err error) {
		x.ID = r.ID
		if err = r.Err; err == nil && Among(s.Kinds, r.Record.Kind) {
			x.Entry, err = j.Load(r.Record, r.Bytes)
		}
		return x, true, err
	})
}

// Select yields the records of a selection, in order.
func (j Journal) Select(ctx context.Context, s *Selection) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		var kept []*Entry // the last ones
		for x, err := range j.Candidates(ctx, s) {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case x.Entry == nil:
			case s.Last == 0:
				if !yield(x.Entry, nil) {
					return
				}
			default:
				if uint64(len(kept)) == s.Last {
					kept = slices.Delete(kept, 0, 1)
				}
				kept = append(kept, x.Entry)
			}
		}
		for _, e := range kept {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// LastOf returns the last records of a selection, at most so many whose stored bytes are
// together no more than some, but for one. It looks at no more than so many of the journal
// as scan says; from is the record from which on these are all that there are, 1 where
// there are no others.
func (j Journal) LastOf(ctx context.Context, s Selection, most, bytes, scan int) (kept []*Entry, from journal.Seq, err error) {
	first, last, err := s.Span(j)
	if err != nil || first > last {
		return nil, 1, err
	}
	look := journal.Seq(scan)
	if len(s.Kinds) == 0 && s.Cell == "" && s.CausedBy == 0 {
		look = journal.Seq(most)
	}
	from = max(first, last-min(last, look)+1)
	s.After, s.Until, s.Last = from-1, last, 0
	held := 0
	for e, err := range j.Select(ctx, &s) {
		if err != nil {
			return nil, 0, err
		}
		kept, held = append(kept, e), held+len(e.Raw)
		for len(kept) > most || held > bytes && len(kept) > 1 {
			held -= len(kept[0].Raw)
			kept = slices.Delete(kept, 0, 1)
			from = kept[0].ID
		}
	}
	if from == first {
		from = 1
	}
	return kept, from, nil
}

// broughtAbout yields what a record brought about directly, and of that what tells of
// a cell where one is named.
func (j Journal) broughtAbout(ctx context.Context, cause journal.Seq, cell string) iter.Seq2[*Entry, error] {
	of, err := j.Entry(cause)
	if err != nil {
		return func(yield func(*Entry, error) bool) { yield(nil, err) }
	}
	return each(j.Consequences(ctx, of, 1), func(x Consequence) (*Entry, bool, error) {
		if cell == "" {
			return x.Entry, true, nil
		}
		tells, err := j.TellsOf(x.Entry, cell)
		return x.Entry, tells, err
	})
}
