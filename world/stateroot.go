package world

import (
	"encoding/binary"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
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
func (k *kernel) stateRoot() Hash {
	k.refreshTree()
	return snapshot.StateRoot(k.tree.cells.Root(), k.tree.mailboxes.Root(), snapshot.Root(alarmLeaves(k.scheduled, k.timers, k.now)))
}

// refreshTree brings the tree up to date.
func (k *kernel) refreshTree() {
	if k.tree == nil {
		k.tree = new(stateTree)
		for _, c := range k.cells { // order cannot show: the tree is the same
			k.setLeaves(c)
		}
		return
	}
	for _, c := range k.tree.stale {
		k.setLeaves(c)
	}
	k.settleTree()
}

// setLeaves puts a cell into the tree as it is.
func (k *kernel) setLeaves(c *cell) {
	var code Hash
	if rule := k.rules.reducers[c.id.Reducer]; rule != nil {
		code = rule.hash
	}
	k.setLeavesUnder(code, c)
}

// setLeavesUnder puts a cell into the tree whose reducer has some code.
func (k *kernel) setLeavesUnder(code Hash, c *cell) {
	key := cellLeafKey(c.name)
	if !c.born {
		k.tree.cells.Delete(key)
		k.tree.mailboxes.Delete(key)
		return
	}
	k.scratch = appendCellLeaf(k.scratch[:0], code, c)
	k.tree.cells.Set(key, canon.Sum(k.scratch))
	if c.mail.len() == 0 {
		k.tree.mailboxes.Delete(key)
		return
	}
	k.scratch = appendMailLeaf(k.scratch[:0], c)
	k.tree.mailboxes.Set(key, canon.Sum(k.scratch))
}

func cellLeafKey(name string) Hash { return canon.Sum([]byte(name)) }

// appendCellLeaf appends [n, h, H(state) or zeros, reducer hash, parked].
func appendCellLeaf(b []byte, code Hash, c *cell) []byte {
	var state Hash
	if len(c.state) > 0 {
		state = canon.Sum(c.state)
	}
	b = canon.AppendArray(b, 5)
	b = canon.AppendUint(b, c.n)
	b = canon.AppendBytes(b, c.history[:])
	b = canon.AppendBytes(b, state[:])
	b = canon.AppendBytes(b, code[:])
	return canon.AppendBool(b, c.parked)
}

// appendMailLeaf appends [[name, data], …] in the order of the mailbox.
func appendMailLeaf(b []byte, c *cell) []byte {
	b = canon.AppendArray(b, c.mail.len())
	for _, x := range c.mail.all() {
		b = canon.AppendArray(b, 2)
		b = canon.AppendText(b, x.name)
		b = canon.AppendRaw(b, x.data)
	}
	return b
}

// alarmLeaves returns a leaf for every timer and scheduled event. They come in
// the order in which they will happen, are keyed by their place in it, and
// count in remaining ticks: [remaining, [cell, …], name, data].
func alarmLeaves(scheduled, timers alarms, now manifest.Tick) []snapshot.Leaf {
	var leaves []snapshot.Leaf
	for i, h := range []alarms{scheduled, timers} {
		for j, x := range sortedAlarms(h) {
			b := canon.AppendArray(nil, 4)
			b = canon.AppendUint(b, uint64(x.at-now))
			b = appendTexts(b, cellNames(x.to))
			b = canon.AppendText(b, x.name)
			b = canon.AppendRaw(b, x.data)
			key := binary.BigEndian.AppendUint64([]byte{byte(i)}, uint64(j))
			leaves = append(leaves, snapshot.Leaf{Key: canon.Sum(key), Value: canon.Sum(b)})
		}
	}
	return leaves
}

func sortedAlarms(h alarms) alarms {
	sorted := slices.Clone(h)
	slices.SortFunc(sorted, func(a, b alarm) int {
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
