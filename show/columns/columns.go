// Package columns holds a journal as columns: for each record its tick, its kind and outcome, the name
// of its subject, the cells that it concerns, and the record that caused it. A picture of a whole
// journal takes no more than that: about 10 bytes a record, 3 in gzip. For more of a record a client
// reads the record. It is a part of worldctl, and not an API.
//
// An [Index] is derived from a journal and kept in memory, never stored: about 5 bytes a
// record, 130 bytes an intent, and the name of every cell. Opened anew, a world has it
// made anew from the journal, without what was redacted meanwhile. Columns tell nothing
// that the records withhold.
//
// # The format of a page
//
// A page is consecutive records: [MaxRecords] at most, and about a mebibyte, which one
// record can exceed. The columns follow each other without lengths:
//
//	bytes      4, big-endian: the length of the head
//	head       JSON, UTF-8
//	time       a number for each record: ticks since the record before
//	what       a number for each record: an index into whats
//	name       a number for each record: 0, none; else 1 + an index into names
//	cells      for each record a number n. 0: none; odd: one, n>>1 is an index into
//	           cells; even: n>>1 cells, whose indexes follow
//	cause      a number for each record: how many records before it its cause is; 0:
//	           it has none
//
// Numbers are unsigned LEB128: seven bits a byte, the lowest first, the eighth says that
// more follow. The head is an object:
//
//	schema     "worldctl/columns/v1"
//	first      the number of the first record
//	records    how many there are
//	time       the tick of the record before the first, 0 where there is none
//	whats      texts: the kind of a record and, behind a space, its outcome, where the
//	           record has a word for that: "cell.stepped pure", "clock.advanced",
//	           "intent.denied policy_denied", "invocation.finished ok"
//	names      texts: of events, timers, tags, snapshots and kinds of effects
//	cells      texts: "reducer/key"; "operator/NAME" in the place of a cell
//
// Texts are in the order in which the records of the page first use them. Every page is
// read by itself: only causes, which are numbers of records, point out of it. Agents
// wrote many of the texts: show them as text and nothing else.
//
// A record about an intent that names nothing itself, such as a permit, has the name and
// the cell of its intent. The cause of an answer is what asked for it: of a receipt its
// permit, of a decision the intent that awaited approval; the records say 0 there, because an answer is
// an input. A record whose payload was redacted has its kind, its tick and its cause.
//
// # Reading all of it
//
// A client reads the pages after record 0, after the last record of that page, and so
// on, up to a page of no records; since each is read by itself, they can be fetched at
// the same time. The stream sends the same pages in base64 as the journal grows: what
// happens within 50 ms is one page, whose last record is its id. serve/ui/page/columns.js
// is a decoder. A world of many millions of records is more than a browser should hold:
// [Index.Density] and the pages of the part that is looked at take less.
package columns

import (
	"errors"
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// Schema names the format of a page.
const Schema = "worldctl/columns/v1"

// MaxRecords is how many records a page has at most.
const MaxRecords = 1 << 16

// maxBytes is about how long a page gets before the next one begins; one record can make
// it longer.
const maxBytes = 1 << 20

// ErrFormat says that bytes are no page.
var ErrFormat = errors.New("columns: not a page")

// Row is what the columns have of a record.
type Row struct {
	Record journal.Seq
	Time   manifest.Tick
	What   string   // the kind and, behind a space, how it came out
	Name   string   // empty: none
	Cells  []string // empty: none
	Cause  journal.Seq
}

// Page is some records that follow each other. The zero value has none.
type Page struct {
	first journal.Seq
	time  manifest.Tick // of the record before the first
	rows  []row

	// What the numbers of rows stand for. A row with several cells has the index of
	// a group: of its cells' numbers.
	whats, names, cells []string
	groups              [][]uint32
}

// row is a record of a page, with numbers for texts.
type row struct {
	time  manifest.Tick
	cause journal.Seq
	what  uint32
	name  uint32 // 1 + the number; 0: none
	cells int32  // 1 + the number of the only one; 0: none; negative: -1 - the index of a group
}

// Len returns how many records there are.
func (p *Page) Len() int { return len(p.rows) }

// Rows yields the records in their order.
func (p *Page) Rows() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for i, r := range p.rows {
			out := Row{Record: p.first + journal.Seq(i), Time: r.time, What: p.whats[r.what], Cause: r.cause}
			if r.name > 0 {
				out.Name = p.names[r.name-1]
			}
			for _, c := range p.cellsOf(r, nil) {
				out.Cells = append(out.Cells, p.cells[c])
			}
			if !yield(out) {
				return
			}
		}
	}
}

// cellsOf returns the numbers of a row's cells, with room for a single one.
func (p *Page) cellsOf(r row, room []uint32) []uint32 {
	switch {
	case r.cells > 0:
		return append(room, uint32(r.cells-1))
	case r.cells < 0:
		return p.groups[-1-r.cells]
	}
	return nil
}

// after returns the part of a page that comes after a record.
func (p Page) after(id journal.Seq) Page {
	if id < p.first {
		return p
	}
	n := min(int(id-p.first)+1, len(p.rows))
	if n > 0 {
		p.time = p.rows[n-1].time
	}
	p.first += journal.Seq(n)
	p.rows = p.rows[n:]
	return p
}

// words numbers texts, in the order in which they came.
type words struct {
	list []string
	of   map[string]uint32

	page int   // that is being filled
	used []int // by number: 1 + the last page that uses it
}

func (w *words) number(text []byte) uint32 {
	n, known := w.of[string(text)]
	if !known {
		if w.of == nil {
			w.of = make(map[string]uint32)
		}
		s := string(text)
		n = uint32(len(w.list))
		w.list, w.of[s] = append(w.list, s), n
	}
	return n
}

// numbers returns the numbers of texts.
func (w *words) numbers(texts []string) []uint32 {
	out := make([]uint32, len(texts))
	for i, text := range texts {
		out[i] = w.number([]byte(text))
	}
	return out
}

// or0 returns 1 + the number of a text; 0: it is empty.
func (w *words) or0(text string) uint32 {
	if text == "" {
		return 0
	}
	return 1 + w.number([]byte(text))
}

// use is number that also returns how many bytes longer that makes the page.
func (w *words) use(text []byte) (n uint32, size int) {
	n = w.number(text)
	for int(n) >= len(w.used) {
		w.used = append(w.used, 0)
	}
	if w.used[n] == w.page+1 {
		return n, 0
	}
	w.used[n] = w.page + 1
	return n, len(text) + 3
}

// ordered returns the texts of a page by new numbers.
func ordered(list []string, numbers map[uint32]uint32) []string {
	out := make([]string, len(numbers))
	for old, n := range numbers { // order cannot show: each has a place of its own
		out[n] = list[old]
	}
	return out
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
