package world

import (
	"encoding/binary"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/snapshot"
)

// stateRoot returns the root of all that a rollback would return: cells,
// mailboxes, timers and scheduled events. docs/journal-format.md has the leaves.
func (k *kernel) stateRoot() Hash {
	cells := make([]snapshot.Leaf, 0, len(k.cells))
	var mailboxes []snapshot.Leaf
	var b []byte
	for _, c := range k.cells { // order cannot show: Root sorts
		key := canon.Sum([]byte(c.name))
		b = k.appendCellLeaf(b[:0], c)
		cells = append(cells, snapshot.Leaf{Key: key, Value: canon.Sum(b)})
		if c.mail.len() > 0 {
			b = appendMailLeaf(b[:0], c)
			mailboxes = append(mailboxes, snapshot.Leaf{Key: key, Value: canon.Sum(b)})
		}
	}
	return snapshot.StateRoot(snapshot.Root(cells), snapshot.Root(mailboxes), snapshot.Root(k.alarmLeaves()))
}

// appendCellLeaf appends [n, h, H(state) or zeros, reducer hash, parked].
func (k *kernel) appendCellLeaf(b []byte, c *cell) []byte {
	var state, code Hash
	if len(c.state) > 0 {
		state = canon.Sum(c.state)
	}
	if rule := k.rules.reducers[c.id.Reducer]; rule != nil {
		code = rule.hash
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
func (k *kernel) alarmLeaves() []snapshot.Leaf {
	var leaves []snapshot.Leaf
	for i, h := range []alarms{k.scheduled, k.timers} {
		for j, x := range sortedAlarms(h) {
			b := canon.AppendArray(nil, 4)
			b = canon.AppendUint(b, uint64(x.at-k.now))
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
