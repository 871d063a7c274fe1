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
		s.settleImages()
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
	w := postingWriter{batch: b, seal: seal, at: to}
	var list []byte
	var last world.Seq
	for i, m := range mentions {
		if m.record != last { // a record may name a cell twice
			list = binary.AppendUvarint(list, uint64(m.record-last))
			last = m.record
		}
		if i == len(mentions)-1 || mentions[i+1].cell != m.cell {
			w.add(names[m.cell], list)
			list, last = list[:0], 0
		}
	}
	w.flush()
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
