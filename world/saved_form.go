package world

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
)

// encode returns the items of a file, one after the other.
func (x *SavedSnapshot) encode() ([]byte, error) {
	out, err := canon.Marshal(x.head)
	if err != nil {
		return nil, err
	}
	items := make([]any, 0, len(x.cells)+1)
	for i := range x.cells {
		items = append(items, &x.cells[i])
	}
	for _, item := range append(items, &x.alarms) {
		b, err := canon.Marshal(item)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// decodeSaved is the inverse of encode.
func decodeSaved(data []byte) (*SavedSnapshot, error) {
	r := canon.NewReader(data)
	item := func(what string, into any) error {
		raw := r.Raw()
		if err := r.Err(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := canon.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	x := new(SavedSnapshot)
	if err := item("its head", &x.head); err != nil {
		return nil, err
	}
	if x.head.Format != savedFormat {
		return nil, fmt.Errorf("its format is %q, not %s", x.head.Format, savedFormat)
	}
	last := ""
	for n := range x.head.Cells {
		var c savedCell
		if err := item(fmt.Sprintf("cell %d", n), &c); err != nil {
			return nil, err
		}
		if c.Cell <= last {
			return nil, fmt.Errorf("cell %q follows cell %q", c.Cell, last)
		}
		last = c.Cell
		x.cells = append(x.cells, c)
	}
	if err := item("its timers", &x.alarms); err != nil {
		return nil, err
	}
	return x, r.Close()
}

// check compares the state root of what is in the file with the one in the head.
func (x *SavedSnapshot) check() error {
	if n := uint64(len(x.cells)); n != x.head.Cells {
		return fmt.Errorf("it names %d cells and has %d", x.head.Cells, n)
	}
	if root := x.stateRoot(); root != x.head.State {
		return fmt.Errorf("its content has state root %s, not %s", root, x.head.State)
	}
	return nil
}

func (x *SavedSnapshot) stateRoot() journal.Hash {
	code := make(map[string]journal.Hash, len(x.head.Reducers))
	for _, r := range x.head.Reducers {
		code[r.Name] = r.Code
	}
	var cells, mailboxes []snapshot.Leaf
	for i := range x.cells {
		c := &x.cells[i]
		key := cellLeafKey(c.Cell)
		reducer, _, _ := strings.Cut(c.Cell, "/")
		cells = append(cells, snapshot.Leaf{Key: key, Value: c.leaf(code[reducer])})
		if len(c.Mail) > 0 {
			mailboxes = append(mailboxes, snapshot.Leaf{Key: key, Value: c.mailLeaf()})
		}
	}
	return snapshot.StateRoot(snapshot.Root(cells), snapshot.Root(mailboxes), snapshot.Root(x.alarms.leaves()))
}

// leaf returns the value of a cell's leaf.
func (c *savedCell) leaf(code journal.Hash) journal.Hash {
	l := CellLeaf{N: c.N, History: c.History, Reducer: code, Parked: c.Parked}
	if string(c.State) != canon.Null {
		l.State = canon.Sum(c.State)
	}
	return l.Hash()
}

// mailLeaf returns the value of a mailbox's leaf: H of [[name, data], …].
func (c *savedCell) mailLeaf() journal.Hash {
	b := canon.AppendArray(nil, len(c.Mail))
	for _, m := range c.Mail {
		b = canon.AppendArray(b, 2)
		b = canon.AppendText(b, m.Name)
		b = canon.AppendRaw(b, m.Data)
	}
	return canon.Sum(b)
}

func (a *savedAlarm) append(b []byte) []byte {
	return appendAlarm(b, a.Remaining, a.To, a.Name, a.Data, a.Tag)
}

// MarshalCBOR is for package canon.
func (a savedAlarm) MarshalCBOR() ([]byte, error) { return a.append(nil), nil }

// UnmarshalCBOR is the inverse of MarshalCBOR.
func (a *savedAlarm) UnmarshalCBOR(data []byte) error {
	r := canon.NewReader(data)
	items := r.Array()
	a.Remaining = manifest.Tick(r.Uint())
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		a.To = append(a.To, r.Text())
	}
	a.Name, a.Data = r.Text(), bytes.Clone(r.Raw())
	if items > 4 {
		a.Tag = r.Text()
	}
	if err := r.Close(); err != nil {
		return err
	}
	if !bytes.Equal(data, a.append(nil)) {
		return errors.New("a timer that is not [ticks, cells, name, data] with, perhaps, a tag")
	}
	return nil
}

// leaves returns the leaves of scheduled events and timers.
func (x *savedAlarms) leaves() []snapshot.Leaf {
	var leaves []snapshot.Leaf
	for kind, list := range [][]savedAlarm{x.Scheduled, x.Timers} {
		for i, a := range list {
			leaves = append(leaves, alarmLeaf(kind, i, a.append(nil)))
		}
	}
	return leaves
}
