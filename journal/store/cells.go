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
		err := s.indexAfter(after)
		if err != nil {
			yield(0, fmt.Errorf("store: records of cell %s: %w", cell, s.suspect(err)))
			return
		}
		err = s.settled(func(v *view) error {
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

// addPostings indexes the records after one checkpoint, the last before, up to
// another.
func (s *Store) addPostings(b *pebble.Batch, before *view, after journal.Seq, img *imageWriter) error {
	to := img.Head.ID
	m, err := s.mentions(before, after, img)
	if err != nil {
		return err
	}
	names, mentions := m.names, m.all
	byCell := make([]int, 0, len(names)) // those that are mentioned, sorted by name
	first := groupByCell(mentions, len(names))
	for cell := range names {
		if first[cell] != 0 {
			byCell = append(byCell, cell)
		}
	}
	slices.SortFunc(byCell, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	w := postingWriter{batch: b, at: to}
	var list []byte
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

// mentions returns which records after one checkpoint up to another concern which cells:
// what was gathered, or what they say.
func (s *Store) mentions(before *view, after journal.Seq, img *imageWriter) (*mentions, error) {
	c, err := s.concernsSince(before)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if g := img.gathered; g.has(after, img.Head.ID) {
		c.lately = func(intent journal.Hash) []byte {
			if len(s.written) > 0 && s.written[0].head == after && s.written[0].has(intent) {
				return g.lately(intent)
			}
			return nil
		}
		return &g.mentions, g.settle(c)
	}
	m := &mentions{index: map[string]int{}}
	visit := m.mention
	for e, err := range s.entries(after + 1) {
		if err != nil {
			return nil, err
		}
		if m.record = journal.Seq(e.ID); m.record > img.Head.ID {
			break
		}
		if err := c.eachKnown(e, visit); err != nil {
			return nil, err
		}
	}
	return m, nil
}
