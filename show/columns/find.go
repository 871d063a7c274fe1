package columns

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
)

// Found is where a text stands in a journal.
type Found struct {
	Cells []string // those that begin with it first, each of the two by name
	Names []string // of events, timers, tags, snapshots and kinds of effects, likewise
	Keys  []journal.Hash
	More  bool // there are others
}

// Find returns the cells and the names in which a text stands, and the intents whose keys
// begin with it, if it is 8 hex digits or more; at most so many of each.
func (x *Index) Find(text string, most int) Found {
	x.mu.RLock()
	cells, names := x.cells.list, x.names.list // whose elements stay as they are
	x.mu.RUnlock()
	var f Found
	var more [3]bool
	f.Cells, more[0] = having(cells, text, most)
	f.Names, more[1] = having(names, text, most)
	f.Keys, more[2] = x.keys(text, most)
	f.More = more != [3]bool{}
	return f
}

// having returns the first of some texts that have another one in them.
func having(list []string, text string, most int) (found []string, more bool) {
	begin, within := least[string]{most: most, compare: strings.Compare}, least[string]{most: most, compare: strings.Compare}
	for _, s := range list {
		switch i := strings.Index(s, text); {
		case i == 0:
			begin.add(s)
		case i > 0:
			within.add(s)
		}
	}
	found = append(append([]string{}, begin.kept...), within.kept...)
	return found[:min(most, len(found))], begin.more || within.more || len(found) > most
}

// minDigits is the least number of hex digits that a key is found by.
const minDigits = 8

func (x *Index) keys(digits string, most int) (found []journal.Hash, more bool) {
	whole, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil || len(digits) < minDigits {
		return nil, false
	}
	keys := least[journal.Hash]{most: most, compare: func(a, b journal.Hash) int { return bytes.Compare(a[:], b[:]) }}
	x.noting.RLock()
	defer x.noting.RUnlock()
	for key := range x.intents.known { // order cannot show: the first are the first in any order
		if bytes.HasPrefix(key[:], whole) && strings.HasPrefix(key.String(), digits) {
			keys.add(key)
		}
	}
	return keys.kept, keys.more
}

// least keeps the first of some values, in their order.
type least[T any] struct {
	most    int
	compare func(a, b T) int
	kept    []T
	more    bool // there were others
}

func (l *least[T]) add(v T) {
	at, _ := slices.BinarySearchFunc(l.kept, v, l.compare)
	if len(l.kept) == l.most {
		if l.more = true; at == l.most {
			return
		}
		l.kept = l.kept[:l.most-1]
	}
	l.kept = slices.Insert(l.kept, at, v)
}
