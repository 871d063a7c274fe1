package columns

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// head is what a page begins with.
type head struct {
	Schema  string        `json:"schema"`
	First   journal.Seq   `json:"first"`
	Records int           `json:"records"`
	Time    manifest.Tick `json:"time"`
	Whats   []string      `json:"whats"`
	Names   []string      `json:"names"`
	Cells   []string      `json:"cells"`
}

// lenBytes is how long the length of a head is.
const lenBytes = 4

// renumbered gives texts numbers in the order in which they are used.
type renumbered map[uint32]uint32

func (r renumbered) number(old uint32) uint64 {
	n, known := r[old]
	if !known {
		n = uint32(len(r))
		r[old] = n
	}
	return uint64(n)
}

// Encode returns the bytes of a page.
func (p *Page) Encode() ([]byte, error) {
	whats, names, cells := make(renumbered), make(renumbered), make(renumbered)
	columns := make([]byte, 0, 8*len(p.rows))
	before := p.time
	for _, r := range p.rows {
		columns = binary.AppendUvarint(columns, uint64(r.time-before))
		before = r.time
	}
	for _, r := range p.rows {
		columns = binary.AppendUvarint(columns, whats.number(r.what))
	}
	for _, r := range p.rows {
		n := uint64(0)
		if r.name > 0 {
			n = 1 + names.number(r.name-1)
		}
		columns = binary.AppendUvarint(columns, n)
	}
	var room [1]uint32
	for _, r := range p.rows {
		of := p.cellsOf(r, room[:0])
		if len(of) == 1 {
			columns = binary.AppendUvarint(columns, cells.number(of[0])<<1|1)
			continue
		}
		columns = binary.AppendUvarint(columns, uint64(len(of))<<1)
		for _, c := range of {
			columns = binary.AppendUvarint(columns, cells.number(c))
		}
	}
	for i, r := range p.rows {
		n := journal.Seq(0)
		if r.cause > 0 {
			n = p.first + journal.Seq(i) - r.cause
		}
		columns = binary.AppendUvarint(columns, uint64(n))
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(head{
		Schema, p.first, len(p.rows), p.time, ordered(p.whats, whats), ordered(p.names, names), ordered(p.cells, cells),
	}); err != nil {
		return nil, err
	}
	out := binary.BigEndian.AppendUint32(make([]byte, 0, lenBytes+text.Len()+len(columns)), uint32(text.Len()))
	return append(append(out, text.Bytes()...), columns...), nil
}

// Decode reads a page. The error is ErrFormat.
func Decode(data []byte) (*Page, error) {
	if len(data) < lenBytes {
		return nil, malformed("%d bytes", len(data))
	}
	size := uint64(binary.BigEndian.Uint32(data))
	data = data[lenBytes:]
	if size > uint64(len(data)) {
		return nil, malformed("a head of %d bytes", size)
	}
	var h head
	if err := json.Unmarshal(data[:size], &h); err != nil {
		return nil, malformed("its head: %v", err)
	}
	switch {
	case h.Schema != Schema:
		return nil, malformed("its schema is %q", h.Schema)
	case h.Records < 0 || h.Records > MaxRecords:
		return nil, malformed("%d records", h.Records)
	case h.First == 0 || uint64(h.First) > math.MaxInt64:
		return nil, malformed("the first record is #%d", h.First)
	}
	r := reader{data: data[size:], Page: Page{
		first: h.First, time: h.Time, rows: make([]row, h.Records), whats: h.Whats, names: h.Names, cells: h.Cells,
	}}
	r.readColumns()
	if len(r.data) > 0 {
		r.fail("%d bytes follow it", len(r.data))
	}
	if r.err != nil {
		return nil, r.err
	}
	return &r.Page, nil
}

// reader reads the columns of a page. The first error sticks.
type reader struct {
	Page

	data []byte
	err  error
}

func (r *reader) readColumns() {
	time := r.time
	for i := range r.rows {
		time += manifest.Tick(r.number())
		r.rows[i].time = time
	}
	for i := range r.rows {
		r.rows[i].what = r.below(r.whats)
	}
	for i := range r.rows {
		n := r.number()
		if n > uint64(len(r.names)) {
			r.fail("#%d has name %d", r.first+journal.Seq(i), n)
			n = 0
		}
		r.rows[i].name = uint32(n)
	}
	for i := range r.rows {
		r.rows[i].cells = r.cellsOfRow()
	}
	for i := range r.rows {
		id := r.first + journal.Seq(i)
		switch n := journal.Seq(r.number()); {
		case n >= id:
			r.fail("the cause of #%d is %d before it", id, n)
		case n > 0:
			r.rows[i].cause = id - n
		}
	}
}

func (r *reader) cellsOfRow() int32 {
	switch n := r.number(); {
	case n == 0:
		return 0
	case n&1 == 1:
		if n>>1 >= uint64(len(r.cells)) {
			r.fail("there is no cell %d", n>>1)
		}
		return int32(n>>1) + 1
	case n>>1 == 1 || n>>1 > uint64(len(r.data)): // one is odd, and each is a byte at least
		r.fail("a record of %d cells", n>>1)
		return 0
	default:
		group := make([]uint32, n>>1)
		for i := range group {
			group[i] = r.below(r.cells)
		}
		r.groups = append(r.groups, group)
		return -int32(len(r.groups))
	}
}

// below reads the number of one of some texts.
func (r *reader) below(texts []string) uint32 {
	n := r.number()
	if n >= uint64(len(texts)) {
		r.fail("there is no text %d", n)
		return 0
	}
	return uint32(n)
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.fail("it ends within a number")
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(format, args...)
	}
}
