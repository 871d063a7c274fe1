package world

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// How often a cell has asked for the same: the occurrence of an intent, by which its answer is
// found in a cassette. There is a count for each different thing that a cell of the world has
// ever asked for, so they are no part of their cells, and those that nobody has used in a while
// lie in the image store: a version each, under the name of the cell and what it asked for.
//
// A rollback does not touch them. A count says when it was what, and what it is follows from
// the history that goes on; see inNow.

// occurrences are the counts of all cells.
type occurrences struct {
	*ground

	here    map[journal.CountKey]count
	changed []journal.CountKey // of here: since the last image
	stored  int                // how many are in the image store, and not here
	left    *BloomFilter       // has all that were ever left to the image store; nil: that is not known
	store   *imageStore
}

// count is how often something was asked for.
type count struct {
	counted

	saved   bool // some image has it
	changed bool // since the last image
	used    bool // somebody has looked since drop did
}

// counted is what a count was set to when a record was the last.
type counted struct {
	n      uint64
	at     journal.Seq
	before *counted // what it was before, if a rollback may return to that
}

// countBytes is about what a count takes in memory.
const countBytes = 96

func (x *occurrences) bytes() int { return countBytes * len(x.here) }

// len returns how many counts there are.
func (x *occurrences) len() int { return len(x.here) + x.stored }

// get returns a count, the zero one where there is none.
func (x *occurrences) get(key journal.CountKey) count {
	c, ok := x.here[key]
	if !ok && x.stored > 0 {
		c, ok = x.fetch(key)
	}
	if ok && !c.used {
		c.used = true
		x.here[key] = c
	}
	return c
}

// fetch takes a count from the image store.
func (x *occurrences) fetch(key journal.CountKey) (c count, ok bool) {
	if x.left != nil && !x.left.Has(hashOfCount(key)) {
		return c, false
	}
	v, err := x.store.images.CountVersion(key, journal.Last)
	if err == nil && v != nil {
		c, err = decodeCount(v)
	}
	if err != nil {
		x.store.fail(err)
	}
	if err != nil || v == nil {
		return count{}, false
	}
	x.stored--
	x.here[key] = c
	return c, true
}

// set notes what a count is, which was got before.
func (x *occurrences) set(key journal.CountKey, c count) {
	if !c.changed {
		c.changed = true
		x.changed = append(x.changed, key)
	}
	c.used = true
	x.here[key] = c
}

// image returns the counts that changed since the last image.
func (x *occurrences) image() (out []journal.CountVersion) {
	var b []byte
	for _, key := range x.changed {
		c := x.here[key]
		start := len(b)
		b = c.append(b)
		out = append(out, journal.CountVersion{CountKey: key, First: !c.saved, Bytes: b[start:len(b):len(b)]})
		c.changed, c.saved = false, true
		x.here[key] = c
	}
	x.changed = x.changed[:0]
	return out
}

// drop leaves counts to the image store until those in memory take about so many bytes: first those
// that nobody has looked at since it last did. All must be in an image that the journal has.
func (x *occurrences) drop(bytes int) {
	for range 2 {
		for key, c := range x.here { // order cannot show: what is in the image store does not
			switch {
			case x.bytes() <= bytes:
				return
			case c.used:
				c.used = false
				x.here[key] = c
			default:
				if x.left == nil && x.stored == 0 {
					x.left = new(BloomFilter)
				}
				if x.left != nil {
					x.left.Add(hashOfCount(key))
				}
				delete(x.here, key)
				x.stored++
			}
		}
	}
}

// restore takes the counts of an image that has so many.
func (x *occurrences) restore(img *journal.Image, all uint64) error {
	for i := range img.Counts {
		c, err := decodeCount(&img.Counts[i])
		if err != nil {
			return err
		}
		x.here[img.Counts[i].CountKey] = c
	}
	x.stored = int(all) - len(x.here)
	if x.stored < 0 || x.stored > 0 && x.store.images == nil {
		return fmt.Errorf("it has %d counts of what cells have asked for, and there are %d", all, len(x.here))
	}
	return nil
}

// append appends the canonical array [n, at, …], the last first; [at] where n is 1, and was
// nothing before: that is nearly each.
func (c *count) append(b []byte) []byte {
	if c.n == 1 && c.before == nil {
		return canon.AppendUint(canon.AppendArray(b, 1), uint64(c.at))
	}
	items := 2
	for x := c.before; x != nil; x = x.before {
		items += 2
	}
	b = canon.AppendArray(b, items)
	for x := &c.counted; x != nil; x = x.before {
		b = canon.AppendUint(b, x.n)
		b = canon.AppendUint(b, uint64(x.at))
	}
	return b
}

// decodeCount is the inverse of append.
func decodeCount(v *journal.CountVersion) (count, error) {
	r := canon.NewReader(v.Bytes)
	items := r.Array()
	c := count{saved: true}
	if items == 1 {
		c.n, c.at = 1, journal.Seq(r.Uint())
		return c, countError(v, r.Close())
	}
	for x := &c.counted; r.Err() == nil; {
		x.n, x.at = r.Uint(), journal.Seq(r.Uint())
		if items -= 2; items < 2 {
			break
		}
		x.before = new(counted)
		x = x.before
	}
	err := r.Close()
	if err == nil && (items != 0 || c.n == 1 && c.before == nil) {
		err = errors.New("it is not [count, record, …]")
	}
	return c, countError(v, err)
}

// countError says of which cell a count is that cannot be read.
func countError(v *journal.CountVersion, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("world: a count of cell %s: %w", v.Cell, err)
}

func hashOfCount(key journal.CountKey) uint64 {
	return hashOfText(key.Cell) ^ binary.BigEndian.Uint64(key.What[:])
}

// add counts one more of what a cell asks for, and returns how many its history held before.
func (x *occurrences) add(c *cell, kind string, params journal.Data) uint64 {
	key := journal.CountKey{Cell: c.name, What: askedFor(kind, params)}
	was := x.get(key)
	n := x.inNow(&was.counted)
	before := was.before
	if was.n > 0 && (was.at <= journal.Seq(x.catalog.Last().Record) || !x.inHistory(was.at, x.last)) {
		was := was.counted // only what is kept takes memory
		before = x.returnable(&was)
	}
	was.counted = counted{n: n + 1, at: x.last, before: before}
	x.set(key, was)
	return n
}

// inNow returns what a count is in the history that goes on.
func (x *occurrences) inNow(is *counted) uint64 {
	for ; is != nil; is = is.before {
		if is.n > 0 && x.inHistory(is.at, x.last) {
			return is.n
		}
	}
	return 0
}

// returnable returns those of what a count was that a rollback may return to: the last in the
// history of some snapshot.
func (x *occurrences) returnable(was *counted) *counted {
	var kept []*counted
	for ; was != nil; was = was.before {
		kept = append(kept, was)
	}
	needed := make([]bool, len(kept))
	for _, record := range x.catalog.Records() {
		at := slices.IndexFunc(kept, func(is *counted) bool { return x.inHistory(is.at, journal.Seq(record)) })
		if at >= 0 {
			needed[at] = true
		}
	}
	var out *counted
	for i, is := range slices.Backward(kept) {
		if needed[i] {
			out = &counted{n: is.n, at: is.at, before: out}
		}
	}
	return out
}
