package columns

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// spent is what a receipt says that an attempt cost. It has no pointer.
type spent struct {
	record journal.Seq
	time   manifest.Tick
	name   uint32 // as a row has it
	cell   int32  // likewise
	cost   receipt.Cost
}

// Series is what happened, and what it cost, along the ticks of a part of a journal.
type Series struct {
	Ticks []Ticks `json:"ticks"` // in which something happened
	Kinds []Share `json:"kinds"` // of effects, the dearest first
	Cells []Share `json:"cells"` // likewise
	Rest  struct {
		Kinds journal.Spending `json:"kinds"` // of those that are not listed
		Cells journal.Spending `json:"cells"`
	} `json:"rest"`
}

// Ticks says how many records of what there are in some ticks that follow each other, and
// what receipts cost.
type Ticks struct {
	From   manifest.Tick     `json:"from"`
	To     manifest.Tick     `json:"to"`
	Counts map[string]uint64 `json:"counts"`
	Cost   journal.Spending  `json:"cost"`
}

// Share is what the receipts of a kind, or of a cell, cost.
type Share struct {
	Name string `json:"name"`
	journal.Spending
}

// Series sums the records from one to another, both of which have been read, in at most so
// many stretches of equally many ticks, and lists at most so many kinds, and cells.
func (x *Index) Series(from, to journal.Seq, stretches, most int) (*Series, error) {
	x.mu.RLock()
	names, cells := x.names.list, x.cells.list // whose elements stay as they are
	paid := x.spent
	x.mu.RUnlock()
	first := sort.Search(len(paid), func(i int) bool { return paid[i].record >= from })
	paid = paid[first:]
	paid = paid[:sort.Search(len(paid), func(i int) bool { return paid[i].record > to })]
	s, err := x.ticks(from, to, stretches)
	if err != nil {
		return nil, err
	}
	byKind, byCell := make(spending), make(spending)
	for i := range paid {
		p := &paid[i]
		at := sort.Search(len(s.Ticks), func(i int) bool { return s.Ticks[i].To >= p.time })
		add(&s.Ticks[at].Cost, 1, &p.cost)
		if p.name > 0 {
			byKind.add(names[p.name-1], p)
		}
		if p.cell > 0 {
			byCell.add(cells[p.cell-1], p)
		}
	}
	s.Kinds, s.Rest.Kinds = dearest(byKind, most)
	s.Cells, s.Rest.Cells = dearest(byCell, most)
	return s, nil
}

// spending is what receipts cost, by names.
type spending map[string]journal.Spending

func (s spending) add(name string, p *spent) {
	sum := s[name]
	add(&sum, 1, &p.cost)
	s[name] = sum
}

// add adds what so many receipts cost.
func add(to *journal.Spending, answers uint64, cost *receipt.Cost) {
	to.Answers += answers
	to.Tokens += cost.Tokens
	to.Bytes += cost.Bytes
	to.Micros += cost.Micros
}

// dearest returns the dearest, and the sum of the others.
func dearest(all spending, most int) (shares []Share, rest journal.Spending) {
	shares = []Share{}
	for name, sum := range all { // order cannot show: sorted below
		shares = append(shares, Share{name, sum})
	}
	slices.SortFunc(shares, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Micros, a.Micros), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(b.Answers, a.Answers), strings.Compare(a.Name, b.Name))
	})
	for _, x := range shares[min(most, len(shares)):] {
		add(&rest, x.Answers, &x.Cost)
	}
	return shares[:min(most, len(shares))], rest
}

// ticks counts records by stretches of ticks.
func (x *Index) ticks(from, to journal.Seq, stretches int) (*Series, error) {
	s := &Series{Ticks: []Ticks{}}
	if from > to {
		return s, nil
	}
	began, err := x.timeOf(from)
	if err != nil {
		return nil, err
	}
	ends, err := x.timeOf(to)
	if err != nil {
		return nil, err
	}
	begins, err := x.begins(from, to, began, ends, stretches)
	if err != nil {
		return nil, err
	}
	if begins > began {
		stretches-- // the first tick has a stretch of its own
	}
	width := (ends-begins)/manifest.Tick(stretches) + 1
	stretchOf := func(t manifest.Tick) manifest.Tick {
		if t < begins {
			return began
		}
		return begins + (t-begins)/width*width
	}
	var whats words
	var sum bucket
	end := func() {
		if len(sum.counts) == 0 {
			return
		}
		t := Ticks{From: sum.from, To: min(sum.from+width-1, ends), Counts: make(map[string]uint64, len(sum.counts))}
		if t.From < begins {
			t.To = t.From
		}
		for _, c := range sum.counts {
			t.Counts[whats.list[c.what]] = uint64(c.n)
		}
		s.Ticks, sum = append(s.Ticks, t), bucket{}
	}
	for p, err := range x.pages(from, to) {
		if err != nil {
			return nil, err
		}
		numbers := whats.numbers(p.whats)
		for i := range p.rows {
			r := &p.rows[i]
			if from := stretchOf(r.time); len(sum.counts) == 0 || from != sum.from {
				end()
				sum.from = from
			}
			sum.add(numbers[r.what], 1)
		}
	}
	end()
	return s, nil
}

// begins returns the tick from which on stretches are of one length: the second in which
// something happened, where the first is farther from that than all the rest is long, as it is
// of a world that was made at the epoch of a real clock; else the first.
func (x *Index) begins(from, to journal.Seq, began, ends manifest.Tick, stretches int) (at manifest.Tick, err error) {
	if stretches == 1 {
		return began, nil
	}
	later := sort.Search(int(to-from)+1, func(i int) bool {
		t, failed := x.timeOf(from + journal.Seq(i))
		err = cmp.Or(err, failed)
		return t > began
	})
	if err != nil || later > int(to-from) {
		return began, err
	}
	next, err := x.timeOf(from + journal.Seq(later))
	if err != nil || next-began <= ends-next {
		return began, err
	}
	return next, nil
}

// timeOf returns the tick of a record that has been read.
func (x *Index) timeOf(id journal.Seq) (manifest.Tick, error) {
	for p, err := range x.pages(id, id) {
		if err != nil {
			return 0, err
		}
		return p.rows[0].time, nil
	}
	return 0, nil
}

// pages yields the pages that have the records from one to another, each without others.
func (x *Index) pages(from, to journal.Seq) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		x.mu.RLock()
		last, full := x.page(), x.full // whose elements stay as they are
		x.mu.RUnlock()
		for _, b := range full[sort.Search(len(full), func(i int) bool { return full[i].last >= from }):] {
			if b.first > to {
				return
			}
			data, err := unzip(b.zipped)
			if err != nil {
				yield(nil, err)
				return
			}
			p, err := Decode(data)
			if err != nil {
				yield(nil, err)
				return
			}
			if part := p.between(from, to); !yield(&part, nil) {
				return
			}
		}
		if part := last.between(from, to); len(part.rows) > 0 {
			yield(&part, nil)
		}
	}
}

// between returns the part of a page from one record to another.
func (p Page) between(from, to journal.Seq) Page {
	p = p.after(from - 1)
	if len(p.rows) > 0 && to >= p.first {
		p.rows = p.rows[:min(len(p.rows), int(to-p.first)+1)]
		return p
	}
	p.rows = nil
	return p
}
