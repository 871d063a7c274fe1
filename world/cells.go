package world

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
)

// imageStore holds cells, intents and counts that are out of memory: they are read from the last image on
// demand. Only the time of access shows the difference; docs/adr/0043 says what may leave memory, and why.
type imageStore struct {
	images journal.Versions // nil: all stays in memory
	spill  Spill            // the images, if a replay has made them for itself; else nil

	// err is the first error of reading. The caller was told that the thing does not exist, so no consequence of
	// that may become durable: see World.append.
	err error
}

// fail notes an error of reading.
func (s *imageStore) fail(err error) {
	if s.err == nil && s.spill != nil {
		err = &SpillError{err}
	}
	if s.err == nil {
		s.err = err
	}
}

// cells are the cells of a world.
type cells struct {
	here   map[string]*cell // in memory, by name
	name   []byte           // scratch: the name that is looked up
	stored int              // number of cells in the image store only
	unborn int              // number of cells, in memory or not, that are not born: see cell.born
	bytes  int              // approximate memory of the cells here, as of the last image
	left   *BloomFilter     // has all cells that were ever dropped from memory; nil: not known
	store  *imageStore
	sorted map[string]*byName // by reducer; see of
}

// get returns a cell, or nil.
func (x *cells) get(id reducer.Cell) *cell {
	x.name = append(append(append(x.name[:0], id.Reducer...), '/'), id.Key...)
	c := x.here[string(x.name)]
	if c == nil && x.wasLeft(hashOf(id)) {
		c = x.fetch(string(x.name))
	}
	if c != nil {
		c.used = true
	}
	return c
}

// named is get by the cell's name.
func (x *cells) named(name string) *cell {
	c := x.here[name]
	if c == nil && x.wasLeft(hashOfText(name)) {
		c = x.fetch(name)
	}
	if c != nil {
		c.used = true
	}
	return c
}

// wasLeft reports whether a cell with this hash of its name may be in the image store.
func (x *cells) wasLeft(hash uint64) bool {
	return x.stored > 0 && (x.left == nil || x.left.Has(hash))
}

// len returns the number of cells, and born the number of cells that an event has reached.
func (x *cells) len() int { return len(x.here) + x.stored }

func (x *cells) born() int { return x.len() - x.unborn }

// fetch loads a cell from the image store, nil if it is not there.
func (x *cells) fetch(name string) *cell {
	c := x.peek(name)
	if c != nil {
		x.addStored(c)
	}
	return c
}

// peek reads a cell and leaves it in the image store, nil if it is not there.
func (x *cells) peek(name string) *cell {
	v, err := x.store.images.CellVersion(name, journal.Last)
	if err != nil || v == nil {
		if err != nil {
			x.store.fail(err)
		}
		return nil
	}
	c, err := decodeCell(v)
	if err != nil {
		x.store.fail(fmt.Errorf("world: cell %s: %w", v.Cell, err))
		return nil
	}
	return c
}

// addStored adds a cell that was in the image store.
func (x *cells) addStored(c *cell) {
	x.stored--
	x.enter(c)
}

// put adds a new cell.
func (x *cells) put(c *cell) {
	x.enter(c)
	if !c.born {
		x.unborn++
	}
}

// enter adds a cell to those in memory.
func (x *cells) enter(c *cell) {
	x.here[c.name] = c
	x.weigh(c)
	if len(x.sorted) > 0 {
		if r := x.sorted[c.id().Reducer]; r != nil {
			r.fresh = append(r.fresh, c)
		}
	}
}

// bear notes whether a cell is born: an event has reached it.
func (x *cells) bear(c *cell, born bool) {
	switch {
	case c.born && !born:
		x.unborn++
	case !c.born && born:
		x.unborn--
	}
	c.born = born
}

// weigh updates the count of bytes after a change of a cell.
func (x *cells) weigh(c *cell) {
	x.bytes -= int(c.bytes)
	c.bytes = uint32(min(c.size(), math.MaxUint32))
	x.bytes += int(c.bytes)
}

// bring loads all cells with a property, and returns them in no order.
func (x *cells) bring(such func(*cell) bool) []*cell { return x.bringChanged(0, such) }

// bringChanged is bring for cells changed after a record.
func (x *cells) bringChanged(after journal.Seq, such func(*cell) bool) []*cell {
	var out, came []*cell
	for c := range x.changed(after) {
		if !such(c) {
			continue
		}
		if out = append(out, c); x.here[c.name] == nil {
			came = append(came, c)
		}
	}
	for _, c := range came {
		x.addStored(c)
	}
	return out
}

// allCells yields all cells, in no order. Cells in the image store stay there: load one to change it.
func (x *cells) allCells() iter.Seq[*cell] { return x.changed(0) }

// changed is allCells for cells changed after a record.
func (x *cells) changed(after journal.Seq) iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		for _, c := range x.here { // order cannot show: callers must not depend on it
			if c.changed > after && !yield(c) {
				return
			}
		}
		if x.stored == 0 {
			return
		}
		for v, err := range x.store.images.CellVersions("", journal.Last) {
			var c *cell
			if err == nil && v.At > after && !isList(v.Cell) {
				v.Bytes = slices.Clone(v.Bytes)
				c, err = decodeCell(&v)
			}
			if err != nil {
				x.store.fail(err)
				return
			}
			if c != nil && x.here[c.name] == nil && !yield(c) {
				return
			}
		}
	}
}

// drop removes resting cells from memory until the rest takes at most so many bytes: first those that were
// not used since the last call, then others.
func (x *cells) drop(bytes int) {
	x.sorted = nil
	for range 2 {
		for name, c := range x.here { // order cannot show: what is in the image store does not
			switch {
			case x.bytes <= bytes:
				return
			case c.used:
				c.used = false
			case c.rests():
				delete(x.here, name)
				if x.left == nil && x.stored == 0 {
					x.left = new(BloomFilter)
				}
				if x.left != nil {
					x.left.Add(hashOf(c.id()))
				}
				x.bytes -= int(c.bytes)
				x.stored++
			}
		}
	}
}

// treeBytes is the approximate memory of the state root's tree for a cell.
const treeBytes = 128

// isList reports whether a name is the name of a list of alarms, not of a cell.
func isList(name string) bool {
	return strings.HasPrefix(name, scheduledList) || strings.HasPrefix(name, timersList)
}

// hashOf returns what stands for a cell in a Seen.
func hashOf(id reducer.Cell) uint64 { return hashOfText(id.Reducer, "/", id.Key) }

func hashOfText(parts ...string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, RFC 9923
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	return h ^ h>>29 // its low bits are those of the last bytes
}
