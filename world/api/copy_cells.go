package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// cellMoments is how a cell stood, as /cell answers, whenever that changed: what it was
// before with the middle exchanged. The answers are in ASCII, so that one character is one
// byte for everybody.
type cellMoments []cellMoment

type cellMoment struct {
	from  journal.Seq // the first record of what was written at once with what changed it
	start int         // bytes of the one before that it begins with
	end   int         // and ends with
	text  string      // between
}

// MarshalJSON writes [from, start, end, text].
func (m cellMoment) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{m.from, m.start, m.end, m.text})
}

// cells adds how each cell stood, up to the last record whose cells can be computed.
func (c *Copy) cells(ctx context.Context, cells map[string][]journal.Seq, add func(string, []byte) error) error {
	turns, err := c.turns()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		cell, err := reducer.ParseCell(name)
		if err != nil {
			continue // records name operators, too
		}
		moments, err := c.moments(ctx, cell, cells[name], turns)
		if err != nil {
			return err
		}
		text, err := json.Marshal(moments)
		if err == nil {
			err = add(c.path("/cell?cell="+url.QueryEscape(name)), text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// turns are the records at which a cell may change.
type turns struct {
	first  []journal.Seq // for each record the first of what was written at once with it; [0] is nobody's
	always []journal.Seq // those that change cells without naming them
	ticks  []tick        // in their order
}

// tick is a record at which time advanced: what had been scheduled until then is due.
type tick struct {
	to     manifest.Tick
	record journal.Seq
}

func (c *Copy) turns() (*turns, error) {
	t := &turns{first: []journal.Seq{0}}
	head := c.Whole()
	for from := journal.Seq(1); from <= head; {
		end, err := journal.UnitEnd(c.world.Local, from, head)
		if err != nil {
			return nil, err
		}
		e, err := c.world.Entry(from)
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case *journal.RolledBack, *journal.Applied, *journal.Forked:
			t.always = append(t.always, from)
		case *journal.Advanced:
			t.ticks = append(t.ticks, tick{b.To, from})
		}
		for first := from; from <= end; from++ {
			t.first = append(t.first, first)
		}
	}
	return t, nil
}

// due returns the first record after one at which a tick has come; 0: there is none.
func (t *turns) due(at manifest.Tick, after journal.Seq) journal.Seq {
	i, _ := slices.BinarySearchFunc(t.ticks, after+1, func(x tick, id journal.Seq) int { return cmp.Compare(x.record, id) })
	for _, x := range t.ticks[i:] { // a rollback sets time back
		if x.to >= at {
			return x.record
		}
	}
	return 0
}

// moments returns how a cell stood that some records name.
func (c *Copy) moments(ctx context.Context, cell reducer.Cell, named []journal.Seq, t *turns) (cellMoments, error) {
	at := slices.Clone(t.always)
	for _, id := range named {
		if id < journal.Seq(len(t.first)) {
			at = append(at, t.first[id])
		}
	}
	slices.Sort(at)
	out, last := cellMoments{}, ""
	for i := 0; i < len(at); i++ {
		id := at[i]
		if i > 0 && id == at[i-1] {
			continue
		}
		text, due, err := c.stood(cell, id)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return nil, err
		}
		if due > 0 { // what is due next is in the mailbox then
			if next := t.due(due, id); next > 0 {
				place, _ := slices.BinarySearch(at[i+1:], next)
				at = slices.Insert(at, i+1+place, next)
			}
		}
		if text != last {
			out = append(out, between(id, last, text))
			last = text
		}
	}
	return out, nil
}

// stood returns how a cell stood, empty where there was none, and the tick at which the
// next of what was scheduled is due; 0: nothing is.
func (c *Copy) stood(cell reducer.Cell, at journal.Seq) (text string, due manifest.Tick, err error) {
	v, err := c.world.Cell(cell, fmt.Sprintf("#%d", at))
	switch {
	case errors.Is(err, world.ErrNoCell): // not yet, or not any more
		return "", 0, nil
	case err != nil:
		return "", 0, err
	case len(v.Scheduled) > 0:
		due = v.Scheduled[0].At
	}
	v.At = 0 // who looks knows
	plain, err := view.MarshalObject("cell", v)
	return inASCII(plain), due, err
}

// between says how one answer becomes another.
func between(from journal.Seq, a, b string) cellMoment {
	n := min(len(a), len(b))
	start := 0
	for start < n && a[start] == b[start] {
		start++
	}
	end := 0
	for end < n-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return cellMoment{from, start, end, b[start : len(b)-end]}
}

// inASCII returns JSON that says the same in ASCII.
func inASCII(text []byte) string {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) { // only strings hold others
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return string(out)
}
