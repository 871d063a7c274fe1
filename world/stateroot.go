package world

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
)

// stateTree is what the state root is computed of, as it was when that was last
// asked for.
type stateTree struct {
	cells     snapshot.Tree
	mailboxes snapshot.Tree
	stale     []*cell // changed since
}

// stateRoot returns the root of all that a rollback would return: cells,
// mailboxes, timers and scheduled events. docs/journal-format.md has the leaves.
// It costs what changed since it was last asked for, and what is scheduled.
func (a *calendar) stateRoot() journal.Hash {
	alarms := snapshot.Root(alarmLeaves(a.scheduled, a.timers, a.now))
	if a.tree == nil && a.cells.shelved > 0 {
		return a.rootWithoutTree(alarms, func(c *cell) (*cell, journal.Hash) { return c, a.codeOf(c) })
	}
	a.refreshTree()
	return snapshot.StateRoot(a.tree.cells.Root(), a.tree.mailboxes.Root(), alarms)
}

// leavesAtOnce is how many leaves of cells are in memory where there is no tree of them.
const leavesAtOnce = 1 << 20

// rootWithoutTree is the state root of a world that is larger than memory, in which each
// cell is another, nil for none, and has some code. It reads all cells, once for so many of
// them as fit into memory.
func (r *roster) rootWithoutTree(alarms journal.Hash, as func(*cell) (*cell, journal.Hash)) journal.Hash {
	depth := bits.Len(uint(r.cells.len() / leavesAtOnce))
	var mailboxes []snapshot.Leaf
	cells := snapshot.RootOfParts(depth, func(part int) (leaves []snapshot.Leaf) {
		for c := range r.cells.allCells() {
			key := cellLeafKey(c.name)
			if snapshot.Part(key, depth) != part {
				continue
			}
			is, code := as(c)
			if is == nil || !is.born {
				continue
			}
			r.scratch = is.leaf(code).append(r.scratch[:0])
			leaves = append(leaves, snapshot.Leaf{Key: key, Value: canon.Sum(r.scratch)})
			if is.mail.len() > 0 {
				r.scratch = appendMailLeaf(r.scratch[:0], is)
				mailboxes = append(mailboxes, snapshot.Leaf{Key: key, Value: canon.Sum(r.scratch)})
			}
		}
		return leaves
	})
	return snapshot.StateRoot(cells, snapshot.Root(mailboxes), alarms)
}

// refreshTree brings the tree up to date.
func (r *roster) refreshTree() {
	if r.tree == nil {
		r.tree = new(stateTree)
		for c := range r.cells.allCells() { // the tree is the same in any order
			r.setLeaves(c)
		}
		return
	}
	for _, c := range r.tree.stale {
		r.setLeaves(c)
	}
	r.settleTree()
}

// setLeaves puts a cell into the tree as it is.
func (r *roster) setLeaves(c *cell) {
	r.setLeavesUnder(r.codeOf(c), c)
}

// codeOf returns the hash of the code that handles a cell's events, zero where its
// reducer is gone.
func (r *roster) codeOf(c *cell) journal.Hash {
	if rule := r.rules.reducers[c.id().Reducer]; rule != nil {
		return rule.hash
	}
	return journal.Hash{}
}

// setLeavesUnder puts a cell into the tree whose reducer has some code.
func (r *roster) setLeavesUnder(code journal.Hash, c *cell) {
	key := cellLeafKey(c.name)
	if !c.born {
		r.tree.cells.Delete(key)
		r.tree.mailboxes.Delete(key)
		return
	}
	r.scratch = c.leaf(code).append(r.scratch[:0])
	r.tree.cells.Set(key, canon.Sum(r.scratch))
	if c.mail.len() == 0 {
		r.tree.mailboxes.Delete(key)
		return
	}
	r.scratch = appendMailLeaf(r.scratch[:0], c)
	r.tree.mailboxes.Set(key, canon.Sum(r.scratch))
}

func cellLeafKey(name string) journal.Hash { return canon.Sum([]byte(name)) }

// CellLeaf is what the state root says of a cell.
type CellLeaf struct {
	N       uint64       `json:"n"`            // steps taken
	History journal.Hash `json:"history"`      // of the events that it has handled
	State   journal.Hash `json:"state_hash"`   // zero: it has none
	Reducer journal.Hash `json:"reducer_hash"` // of the code that handles its events
	Halted  bool         `json:"halted"`
}

// Hash returns the leaf's value: H of canonical [n, history, state, reducer, halted].
func (l CellLeaf) Hash() journal.Hash { return canon.Sum(l.append(nil)) }

func (l CellLeaf) append(b []byte) []byte {
	b = canon.AppendArray(b, 5)
	b = canon.AppendUint(b, l.N)
	b = canon.AppendBytes(b, l.History[:])
	b = canon.AppendBytes(b, l.State[:])
	b = canon.AppendBytes(b, l.Reducer[:])
	return canon.AppendBool(b, l.Halted)
}

// leaf returns a cell's leaf, under a reducer with some code.
func (c *cell) leaf(code journal.Hash) CellLeaf {
	l := CellLeaf{N: c.n, History: c.history, Reducer: code, Halted: c.halted}
	if len(c.state) > 0 {
		l.State = canon.Sum(c.state)
	}
	return l
}

// appendMailLeaf appends [[name, data], …] in the order of the mailbox.
func appendMailLeaf(b []byte, c *cell) []byte {
	b = canon.AppendArray(b, c.mail.len())
	for _, x := range c.mail.pending() {
		b = canon.AppendArray(b, 2)
		b = canon.AppendText(b, x.name)
		b = canon.AppendRaw(b, x.data)
	}
	return b
}

// alarmLeaves returns a leaf for every timer and scheduled event. They come in
// the order in which they will happen, are keyed by their place in it, and
// count in remaining ticks: see appendAlarm.
func alarmLeaves(scheduled, timers alarms, now manifest.Tick) []snapshot.Leaf {
	var leaves []snapshot.Leaf
	for i, h := range []alarms{scheduled, timers} {
		for j, x := range sortedAlarms(h) {
			leaves = append(leaves, alarmLeaf(i, j, appendAlarm(nil, x.at-now, cellNames(x.to), x.name, x.data, x.tag)))
		}
	}
	return leaves
}

// appendAlarm appends [remaining, [cell, …], name, data], and the tag behind it of a
// timer that has one.
func appendAlarm(b []byte, remaining manifest.Tick, to []string, name string, data journal.Data, tag string) []byte {
	items := 4
	if tag != "" {
		items++
	}
	b = canon.AppendArray(b, items)
	b = canon.AppendUint(b, uint64(remaining))
	b = canon.AppendTexts(b, to)
	b = canon.AppendText(b, name)
	b = canon.AppendRaw(b, data)
	if tag != "" {
		b = canon.AppendText(b, tag)
	}
	return b
}

// alarmLeaf returns the leaf of one, which is what appendAlarm appends: kind is 0 for
// scheduled events, 1 for timers.
func alarmLeaf(kind, place int, b []byte) snapshot.Leaf {
	key := binary.BigEndian.AppendUint64([]byte{byte(kind)}, uint64(place))
	return snapshot.Leaf{Key: canon.Sum(key), Value: canon.Sum(b)}
}

func sortedAlarms(h alarms) alarms {
	sorted := slices.Clone(h)
	slices.SortFunc(sorted, func(a, b *alarm) int {
		switch {
		case a.at < b.at || a.at == b.at && a.record < b.record:
			return -1
		case a.at == b.at && a.record == b.record:
			return 0
		}
		return 1
	})
	return sorted
}

func cellNames(cells []*cell) []string {
	names := make([]string, len(cells))
	for i, c := range cells {
		names[i] = c.name
	}
	return names
}
