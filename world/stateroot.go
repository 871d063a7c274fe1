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

// stateTree has the leaves of the state root as of its last computation.
type stateTree struct {
	cells     snapshot.Tree
	mailboxes snapshot.Tree
	stale     []*cell // changed since then
}

// stateRoot returns the root over cells, mailboxes, timers and scheduled events, which is what a rollback returns.
// docs/journal-format.md has the leaves. The cost is that of the cells changed since the last call, and of all alarms.
func (a *calendar) stateRoot() journal.Hash {
	alarms := snapshot.Root(alarmLeaves(a.scheduled, a.timers, a.now))
	if a.tree == nil && a.cells.stored > 0 {
		return a.rootWithoutTree(alarms, func(c *cell) (*cell, journal.Hash) { return c, a.codeOf(c) })
	}
	a.refreshTree()
	return snapshot.StateRoot(a.tree.cells.Root(), a.tree.mailboxes.Root(), alarms)
}

// leavesAtOnce bounds the leaves in memory if there is no tree.
const leavesAtOnce = 1 << 20

// rootWithoutTree computes the state root of a world that is larger than memory. as replaces each cell by another
// (nil: no cell) and its code. It reads all cells once for each part of them that fits into memory.
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

// codeOf returns the hash of the code that handles a cell's events; zero: its reducer is gone.
func (r *roster) codeOf(c *cell) journal.Hash {
	if rule := r.rules.reducers[c.id().Reducer]; rule != nil {
		return rule.hash
	}
	return journal.Hash{}
}

// setLeavesUnder puts a cell into the tree as if its reducer had this code.
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

// CellLeaf is the leaf of a cell in the state root.
type CellLeaf struct {
	N       uint64       `json:"n"`            // steps taken
	History journal.Hash `json:"history"`      // over the events that it has handled
	State   journal.Hash `json:"state_hash"`   // zero: no state
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

// leaf returns a cell's leaf, as if its reducer had this code.
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

// alarmLeaves returns a leaf for each timer and scheduled event. The key is its place in the order in which they
// fall due, the value has the remaining ticks: see appendAlarm.
func alarmLeaves(scheduled, timers alarms, now manifest.Tick) []snapshot.Leaf {
	var leaves []snapshot.Leaf
	for i, h := range []alarms{scheduled, timers} {
		for j, x := range sortedAlarms(h) {
			leaves = append(leaves, alarmLeaf(i, j, appendAlarm(nil, x.at-now, cellNames(x.to), x.name, x.data, x.tag)))
		}
	}
	return leaves
}

// appendAlarm appends [remaining, [cell, …], name, data], with the tag as a fifth item if there is one.
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

// alarmLeaf returns the leaf of an alarm that appendAlarm has encoded. kind is 0 for scheduled events, 1 for timers.
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
