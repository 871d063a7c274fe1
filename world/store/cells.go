package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/world"
)

// CellRecords yields the ids of the records that concern a cell, in order, as
// Options.EachCell says. An error ends it.
func (s *Store) CellRecords(cell string) iter.Seq2[world.Seq, error] {
	return func(yield func(world.Seq, error) bool) {
		indexed, err := s.imageHead()
		if err == nil {
			var more bool
			if more, err = s.yieldPostings(cell, yield); !more && err == nil {
				return
			}
		}
		if err != nil {
			yield(0, fmt.Errorf("store: records of cell %s: %w", cell, err))
			return
		}
		for e, err := range s.entries(indexed.ID + 1) {
			concerned := false
			if err == nil {
				err = s.eachCell(e, func(name []byte) { concerned = concerned || string(name) == cell })
			}
			if err != nil {
				yield(0, fmt.Errorf("store: records of cell %s: %w", cell, err))
				return
			}
			if concerned && !yield(world.Seq(e.ID), nil) {
				return
			}
		}
	}
}

// yieldPostings yields what is indexed and reports whether more is wanted.
func (s *Store) yieldPostings(cell string, yield func(world.Seq, error) bool) (bool, error) {
	key := cellKey(nil, postingPrefix, cell, 0)
	lower := key[:len(key)-idLen]
	upper := slices.Clone(lower)
	upper[len(upper)-1] = 1 // the byte after the zero that ends the cell's name
	it, err := s.iterate(lower, upper)
	if err != nil {
		return false, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	seal := newSealer()
	for ok := it.First(); ok; ok = it.Next() {
		body, err := openAt(seal, it)
		if err != nil {
			return false, err
		}
		for id, ok := range postings(body) {
			if !ok {
				return false, damaged(it.Key(), errShape)
			}
			if !yield(id, nil) {
				return false, nil
			}
		}
	}
	if err := it.Error(); err != nil {
		return false, &DamageError{What: "index of cell " + cell, Err: err}
	}
	return true, nil
}

func (s *Store) eachCell(e entry, visit func(cell []byte)) error {
	payload, err := s.payload(e)
	if err != nil {
		return err
	}
	s.opts.EachCell(e.Kind, payload, visit)
	return nil
}

// mention is a cell that a record concerns: one entry of the index to be.
type mention struct {
	cell   int // index into the names
	record world.Seq
}

// addPostings indexes the records after one checkpoint up to another.
func (s *Store) addPostings(b *pebble.Batch, seal *sealer, after, to world.Seq) error {
	names, mentions, err := s.mentions(after, to)
	if err != nil {
		return err
	}
	slices.SortFunc(mentions, func(a, b mention) int {
		return cmp.Or(strings.Compare(names[a.cell], names[b.cell]), cmp.Compare(a.record, b.record))
	})
	var key, list []byte
	var last world.Seq
	for i, m := range mentions {
		if m.record != last { // a record may name a cell twice
			list = binary.AppendUvarint(list, uint64(m.record-last))
			last = m.record
		}
		if i == len(mentions)-1 || mentions[i+1].cell != m.cell {
			key = cellKey(key[:0], postingPrefix, names[m.cell], to)
			seal.set(b, key, list)
			list, last = list[:0], 0
		}
	}
	return nil
}

// mentions gathers which records after one checkpoint up to another concern
// which cells.
func (s *Store) mentions(after, to world.Seq) (names []string, all []mention, err error) {
	index := map[string]int{}
	var id world.Seq
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
		if id = world.Seq(e.ID); id > to {
			break
		}
		if err := s.eachCell(e, add); err != nil {
			return nil, nil, err
		}
	}
	return names, all, nil
}

// postings yields the ids of a list; one that is not a list ends in false.
func postings(list []byte) iter.Seq2[world.Seq, bool] {
	return func(yield func(world.Seq, bool) bool) {
		var id world.Seq
		for len(list) > 0 {
			distance, n := binary.Uvarint(list)
			if n <= 0 || distance == 0 {
				yield(0, false)
				return
			}
			id, list = id+world.Seq(distance), list[n:]
			if !yield(id, true) {
				return
			}
		}
	}
}
