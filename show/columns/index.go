package columns

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Source is what an index reads.
type Source interface {
	journal.Blobs
	// Scan is that of journal.History.
	Scan(after journal.Seq) iter.Seq2[journal.Scanned, error]
	// Intent returns the cell and the kind of an intent; empty: nobody knows it. It is
	// asked where the record that has them was redacted.
	Intent(key journal.Hash) (cell, kind string)
}

// Index is the columns of a journal, from its first record up to where it was read. It
// is safe for concurrent use. In memory it takes a few bytes a record, compressed, 8
// for what it caused, and for the last page 32; about 130 bytes an intent, and 56 a receipt; and the name of every cell.
type Index struct {
	of      Source
	reading chan struct{} // holds whoever reads

	noting  sync.RWMutex
	intents intents // written by who reads

	mu                  sync.RWMutex
	whats, names, cells words
	full                []block
	last                Page   // not full yet; its texts are those above
	bytes               int    // about how long last is
	text                []byte // room for one
	spent               []spent
	kin                 []kin
	counted             []bucket
}

// block is a full page, and is not written to.
type block struct {
	first, last journal.Seq
	zipped      []byte // its bytes, in gzip
}

// New returns an empty index.
func New(of Source) *Index {
	return &Index{of: of, reading: make(chan struct{}, 1), intents: newIntents(), last: Page{first: 1}}
}

// End returns the last record that was read.
func (x *Index) End() journal.Seq {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.lastRecord()
}

func (x *Index) lastRecord() journal.Seq { return x.last.first + journal.Seq(len(x.last.rows)) - 1 }

// gathered is how many records become visible at once, at most.
const gathered = 1024

// Extend reads the journal on, up to a record that is there. One call reads at a time;
// others wait for it, as long as ctx lets them. The error is that of ctx or of the
// journal; what was read before it stays.
func (x *Index) Extend(ctx context.Context, to journal.Seq) error {
	if x.End() >= to {
		return nil
	}
	select {
	case x.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.reading }()
	from := x.End()
	if from >= to {
		return nil
	}
	some := make([]told, 0, gathered)
	for s, err := range x.of.Scan(from) {
		if err == nil {
			err = s.Err
		}
		if err != nil {
			return errors.Join(x.add(some), err)
		}
		if s.ID > to {
			break
		}
		t, err := x.tell(&s.Record)
		if err != nil {
			return errors.Join(x.add(some), err)
		}
		if some = append(some, t); len(some) == gathered {
			if err := errors.Join(x.add(some), ctx.Err()); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return x.add(some)
}

// AskedFor returns the record that asked for an answer, or 0, at the cost of a look at one intent.
// False: the index does not reach up to the answer.
func (x *Index) AskedFor(answer journal.Mention) (asked journal.Seq, known bool) {
	if x.End() < answer.Record {
		return 0, false
	}
	x.noting.RLock()
	defer x.noting.RUnlock()
	return x.intents.askedFor(answer, x.intents.known[answer.Key].last), true
}

// kin of a record are the last one that it caused, and the one before it of those that
// have its cause; 0: there is none.
type kin struct{ last, before uint32 }

// Caused returns the records that one brought about directly, in their order, as far as
// the index reaches.
func (x *Index) Caused(cause journal.Seq) (all []journal.Seq) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if cause == 0 || int(cause) > len(x.kin) {
		return nil
	}
	for id := x.kin[cause-1].last; id > 0; id = x.kin[id-1].before {
		all = append(all, journal.Seq(id))
	}
	slices.Reverse(all)
	return all
}

// add makes records visible.
func (x *Index) add(some []told) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range some {
		x.bytes += x.put(&some[i])
		if len(x.last.rows) == MaxRecords || x.bytes >= maxBytes {
			if err := x.close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// close makes the last page a full one, and begins the next.
func (x *Index) close() error {
	p := x.page()
	encoded, err := p.Encode()
	if err != nil {
		return err
	}
	zipped, err := zip(encoded)
	if err != nil {
		return err
	}
	x.full = append(x.full, block{p.first, x.lastRecord(), zipped})
	x.last = p.after(x.lastRecord())
	x.last.rows, x.last.groups, x.bytes = nil, nil, 0
	x.whats.page, x.names.page, x.cells.page = len(x.full), len(x.full), len(x.full)
	return nil
}

// page returns the last page with its texts.
func (x *Index) page() Page {
	p := x.last
	p.whats, p.names, p.cells = x.whats.list, x.names.list, x.cells.list
	return p
}

// Page returns the bytes of the page of what comes after a record, in gzip where that is
// wanted, and its last record. It is empty where the index ends there. The bytes are not
// to be written to.
func (x *Index) Page(after journal.Seq, zipped bool) (page []byte, last journal.Seq, err error) {
	x.mu.RLock()
	p, full := x.page(), x.full // whose elements stay as they are
	x.mu.RUnlock()
	if after < p.first-1 {
		b := full[sort.Search(len(full), func(i int) bool { return full[i].last > after })]
		if zipped && b.first == after+1 {
			return b.zipped, b.last, nil
		}
		page, err = unzip(b.zipped)
		if err != nil || b.first == after+1 {
			return page, b.last, err
		}
		within, err := Decode(page)
		if err != nil {
			return nil, 0, err
		}
		p = *within
	}
	p = p.after(after)
	if len(p.rows) == 0 {
		p.first = after + 1
	}
	last = p.first + journal.Seq(len(p.rows)) - 1
	if page, err = p.Encode(); err == nil && zipped {
		page, err = zip(page)
	}
	return page, last, err
}

func zip(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	return slices.Clip(out.Bytes()), err
}

func unzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// put adds a record to the last page and to the counts, and returns about how many bytes
// longer the page gets.
func (x *Index) put(t *told) (size int) {
	x.text = append(x.text[:0], t.kind...)
	if len(t.how) > 0 {
		x.text = append(append(x.text, ' '), t.how...)
	}
	what, used := x.whats.use(x.text)
	r := row{time: t.time, cause: t.cause, what: what}
	size = 12 + used
	if len(t.name) > 0 {
		n, used := x.names.use(t.name)
		r.name, size = n+1, size+used
	}
	if len(t.cell) > 0 {
		n, used := x.cells.use(t.cell)
		r.cells, size = int32(n)+1, size+used
	}
	if len(t.others) > 0 {
		group := []uint32{uint32(r.cells) - 1}
		for _, c := range t.others {
			n, used := x.cells.use(c)
			group, size = append(group, n), size+used+3
		}
		x.last.groups = append(x.last.groups, group)
		r.cells = -int32(len(x.last.groups))
	}
	x.last.rows = append(x.last.rows, r)
	x.kin = append(x.kin, kin{})
	if t.cause > 0 {
		cause, id := &x.kin[t.cause-1], uint32(x.lastRecord())
		x.kin[id-1].before, cause.last = cause.last, id
	}
	if t.kind == journal.KindFinished {
		x.spent = append(x.spent, spent{x.lastRecord(), t.time, r.name, r.cells, t.cost})
	}
	x.count(x.lastRecord(), t.time, what)
	return size
}

// told is what a record tells. The texts may be parts of its payload.
type told struct {
	time   manifest.Tick
	cause  journal.Seq
	kind   journal.Kind
	how    []byte
	name   []byte
	cell   []byte   // the first one
	others [][]byte // cells
	cost   receipt.Cost
}

// tell reads a record.
func (x *Index) tell(rec *journal.Record) (t told, err error) {
	if err := rec.Load(x.of); err != nil && !errors.Is(err, journal.ErrRedacted) {
		return t, err
	}
	t = told{time: rec.Time, cause: rec.CausedBy, kind: rec.Kind}
	if rec.Payload == nil {
		return t, nil
	}
	t.how, t.name = journal.HowOf(rec.Kind, rec.Payload), journal.NameOf(rec.Kind, rec.Payload)
	if t.kind == journal.KindFinished {
		t.cost = journal.CostOf(rec.Kind, rec.Payload)
	}
	err = journal.EachCell(rec.Kind, rec.Payload, func(cell []byte) {
		if t.cell == nil {
			t.cell = cell
		} else {
			t.others = append(t.others, cell)
		}
	})
	if err == nil {
		x.noting.Lock()
		x.intents.tell(&t, rec, x.of)
		x.noting.Unlock()
	}
	return t, err
}
