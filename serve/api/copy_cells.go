package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// cellCourse is how a cell stood, as /cell answers, whenever that changed. The answers are in ASCII, so
// that one character is one byte for everybody.
type cellCourse struct {
	cell    reducer.Cell
	moments []cellMoment
	last    string
	due     manifest.Tick // of the next of what is scheduled: it is in the mailbox then; 0: nothing is
}

// cellMoment is the first record of what was written at once with what changed a cell, and how the answer
// before becomes the one after.
type cellMoment struct {
	from  journal.Seq
	edits []edit
}

// edit keeps so many bytes of what was, leaves out so many, and has a text instead. What follows the last
// one is kept.
type edit struct {
	keep, drop int
	text       string
}

// MarshalJSON writes [from, keep, drop, text, ...].
func (m cellMoment) MarshalJSON() ([]byte, error) {
	out := []any{m.from}
	for _, e := range m.edits {
		out = append(out, e.keep, e.drop, e.text)
	}
	return json.Marshal(out)
}

// cells adds how each cell stood, up to the last record whose cells can be computed. One replay tells it of
// all of them.
func (c *Copy) cells(ctx context.Context, named map[string][]journal.Seq, add func(string, []byte) error) error {
	u, err := c.units()
	if err != nil || len(u.first) == 1 {
		return err
	}
	var all []*cellCourse
	changed := make(map[journal.Seq][]*cellCourse) // by the first record of what was written at once
	for _, name := range slices.Sorted(maps.Keys(named)) {
		cell, err := reducer.ParseCell(name)
		if err != nil {
			continue // records name operators, too
		}
		x := &cellCourse{cell: cell, moments: []cellMoment{}}
		all = append(all, x)
		for _, id := range named[name] {
			if id < journal.Seq(len(u.first)) {
				changed[u.first[id]] = append(changed[u.first[id]], x)
			}
		}
	}
	err = c.world.Local.ReplayAt(ctx, slices.Compact(slices.Clone(u.first[1:])), 0, func(at journal.Seq, m *world.Moment) error {
		which := changed[at]
		switch {
		case u.rewritten[at]:
			which = all
		case u.timed[at]:
			for _, x := range all {
				if x.due > 0 && x.due <= m.Time() {
					which = append(slices.Clip(which), x)
				}
			}
		}
		for _, x := range which {
			if err := c.addMoment(x, at, m); err != nil {
				return err
			}
		}
		return nil
	})
	for _, x := range all {
		var text []byte
		if err == nil {
			text, err = json.Marshal(x.moments)
		}
		if err == nil {
			err = add(c.path("/cell?cell="+url.QueryEscape(x.cell.String())), text)
		}
	}
	return err
}

// units are the records that were written at once, by the first of each.
type units struct {
	first     []journal.Seq        // of each record; [0] is nobody's
	rewritten map[journal.Seq]bool // change cells without naming them
	timed     map[journal.Seq]bool // time advances: what was scheduled until then is due
}

func (c *Copy) units() (*units, error) {
	u := &units{first: []journal.Seq{0}, rewritten: make(map[journal.Seq]bool), timed: make(map[journal.Seq]bool)}
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
		switch e.Body.(type) {
		case *journal.RolledBack, *journal.Applied, *journal.Forked:
			u.rewritten[from] = true
		case *journal.Advanced:
			u.timed[from] = true
		}
		for first := from; from <= end; from++ {
			u.first = append(u.first, first)
		}
	}
	return u, nil
}

// addMoment adds how a cell stands, if that is new.
func (c *Copy) addMoment(x *cellCourse, at journal.Seq, m *world.Moment) error {
	text := ""
	x.due = 0
	if v, ok := m.Cell(x.cell); ok {
		shown, err := c.world.CellIn(v, at)
		if err != nil {
			return err
		}
		if len(shown.Scheduled) > 0 {
			x.due = shown.Scheduled[0].At
		}
		shown.At = 0 // who looks knows
		plain, err := view.MarshalObject("cell", shown)
		if err != nil {
			return err
		}
		text = inASCII(plain)
	}
	if text != x.last {
		x.moments = append(x.moments, cellMoment{at, edits(x.last, text)})
		x.last = text
	}
	return nil
}

// Two texts are the same again where so many bytes are equal, found so near after they part.
const (
	sameBytes = 16
	nearBytes = 48
)

// edits says how one text becomes another: small changes far from each other, and one that is large. It
// takes time in proportion to them.
func edits(a, b string) (out []edit) {
	for {
		keep := 0
		for keep < len(a) && keep < len(b) && a[keep] == b[keep] {
			keep++
		}
		a, b = a[keep:], b[keep:]
		drop, add, found := rejoin(a, b)
		if !found {
			n := 0
			for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
				n++
			}
			return append(out, edit{keep, len(a) - n, b[:len(b)-n]})
		}
		out = append(out, edit{keep, drop, b[:add]})
		a, b = a[drop:], b[add:]
	}
}

// rejoin finds where two texts that part are the same again, nearby.
func rejoin(a, b string) (drop, add int, found bool) {
	for far := 1; far <= nearBytes; far++ {
		for drop := range far + 1 {
			add := far - drop
			if len(a) >= drop+sameBytes && len(b) >= add+sameBytes && a[drop:drop+sameBytes] == b[add:add+sameBytes] {
				return drop, add, true
			}
		}
	}
	return 0, 0, false
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
