package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// CellRecords yields the ids after one of the records that concern a cell, in
// order, as Options.EachCell and IntentOf say. An error ends it.
func (s *Store) CellRecords(cell string, after journal.Seq) iter.Seq2[journal.Seq, error] {
	return func(yield func(journal.Seq, error) bool) {
		err := s.settled(func(v *view) error {
			indexed, err := v.lastHead()
			if err != nil {
				return err
			}
			more, err := v.yieldPostings(cell, after, yield)
			if !more || err != nil {
				return err
			}
			return s.yieldTail(v, cell, indexed, after, yield)
		})
		if err != nil {
			yield(0, fmt.Errorf("store: records of cell %s: %w", cell, err))
		}
	}
}

// yieldTail yields what is not indexed yet. It begins at the index's end, however
// late the ids are that are wanted: what comes before may name their intents.
func (s *Store) yieldTail(v *view, cell string, indexed, after journal.Seq, yield func(journal.Seq, error) bool) error {
	if after >= s.readable().ID {
		return nil
	}
	c, err := s.concernsSince(v)
	if err != nil {
		return err
	}
	defer c.close()
	for e, err := range s.entries(indexed + 1) {
		concerned := false
		if err == nil {
			err = c.eachKnown(e, func(name []byte) { concerned = concerned || string(name) == cell })
		}
		if err != nil {
			return err
		}
		if id := journal.Seq(e.ID); concerned && id > after && !yield(id, nil) {
			return nil
		}
	}
	return nil
}

// eachKnown is each for a record whose payload may have been redacted: then
// nobody knows whom it concerns.
func (c *concerns) eachKnown(e entry, visit func(cell []byte)) error {
	err := c.each(e, visit)
	if errors.Is(err, journal.ErrRedacted) {
		return nil
	}
	return err
}

// mention is a cell that a record concerns: one entry of the index to be.
type mention struct {
	cell   int // index into the names
	record journal.Seq
	next   int // the cell's next mention; see groupByCell
}

// addPostings indexes the records after one checkpoint, the last before, up to
// another.
func (s *Store) addPostings(b *pebble.Batch, before *view, after, to journal.Seq) error {
	names, mentions, err := s.mentions(before, after, to)
	if err != nil {
		return err
	}
	byCell := make([]int, len(names)) // cells, sorted by name
	for i := range byCell {
		byCell[i] = i
	}
	slices.SortFunc(byCell, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	w := postingWriter{batch: b, seal: before.seal, at: to}
	var list []byte
	first := groupByCell(mentions, len(names))
	for _, cell := range byCell {
		var last journal.Seq
		list = list[:0]
		for at := first[cell]; at != 0; at = mentions[at-1].next {
			if record := mentions[at-1].record; record != last { // it may name a cell twice
				list = binary.AppendUvarint(list, uint64(record-last))
				last = record
			}
		}
		w.add(names[cell], list)
	}
	w.flush()
	return nil
}

// groupByCell chains the mentions of each of n cells, in order, and returns where
// each chain begins; places count from 1, and 0 ends a chain.
func groupByCell(mentions []mention, n int) (first []int) {
	first = make([]int, n)
	for i := len(mentions) - 1; i >= 0; i-- {
		m := &mentions[i]
		m.next, first[m.cell] = first[m.cell], i+1
	}
	return first
}

// mentions gathers which records after one checkpoint up to another concern
// which cells.
func (s *Store) mentions(before *view, after, to journal.Seq) (names []string, all []mention, err error) {
	c, err := s.concernsSince(before)
	if err != nil {
		return nil, nil, err
	}
	defer c.close()
	index := map[string]int{}
	var id journal.Seq
	add := func(cell []byte) {
		at, ok := index[string(cell)]
		if !ok {
			at = len(names)
			names = append(names, string(cell))
			index[names[at]] = at
		}
		all = append(all, mention{cell: at, record: id})
	}
	for e, err := range s.entries(after + 1) {
		if err != nil {
			return nil, nil, err
		}
		if id = journal.Seq(e.ID); id > to {
			break
		}
		if err := c.eachKnown(e, add); err != nil {
			return nil, nil, err
		}
	}
	return names, all, nil
}
