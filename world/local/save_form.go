package local

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/snapshot"
)

// readSaved reads a saved snapshot that has the state root that it names. All its
// errors are ErrNotSaved.
func readSaved(r io.Reader) (*saved, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	data, err := io.ReadAll(io.LimitReader(zip, MaxSavedBytes+1))
	if err == nil && len(data) > MaxSavedBytes {
		err = fmt.Errorf("it holds more than %d bytes", MaxSavedBytes)
	}
	var x *saved
	if err == nil {
		x, err = decodeSaved(data)
	}
	if err == nil {
		err = x.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	return x, nil
}

// encode returns the items of a file, one after the other.
func (x *saved) encode() ([]byte, error) {
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
func decodeSaved(data []byte) (*saved, error) {
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
	x := new(saved)
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
func (x *saved) check() error {
	if n := uint64(len(x.cells)); n != x.head.Cells {
		return fmt.Errorf("it names %d cells and has %d", x.head.Cells, n)
	}
	if root := x.stateRoot(); root != x.head.State {
		return fmt.Errorf("its content has state root %s, not %s", root, x.head.State)
	}
	return nil
}

func (x *saved) stateRoot() journal.Hash {
	code := make(map[string]journal.Hash, len(x.head.Reducers))
	for _, r := range x.head.Reducers {
		code[r.Name] = r.Code
	}
	var cells, mailboxes []snapshot.Leaf
	for i := range x.cells {
		c := &x.cells[i]
		key := canon.Sum([]byte(c.Cell))
		reducer, _, _ := strings.Cut(c.Cell, "/")
		cells = append(cells, snapshot.Leaf{Key: key, Value: c.leaf(code[reducer])})
		if len(c.Mail) > 0 {
			mailboxes = append(mailboxes, snapshot.Leaf{Key: key, Value: c.mailLeaf()})
		}
	}
	return snapshot.StateRoot(snapshot.Root(cells), snapshot.Root(mailboxes), snapshot.Root(x.alarms.leaves()))
}

// leaf returns the value of a cell's leaf: H of [n, h, H(state) or zeros, reducer
// hash, parked].
func (c *savedCell) leaf(code journal.Hash) journal.Hash {
	var state journal.Hash
	if string(c.State) != canon.Null {
		state = canon.Sum(c.State)
	}
	b := canon.AppendArray(nil, 5)
	b = canon.AppendUint(b, c.N)
	b = canon.AppendBytes(b, c.History[:])
	b = canon.AppendBytes(b, state[:])
	b = canon.AppendBytes(b, code[:])
	return canon.Sum(canon.AppendBool(b, c.Parked))
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

// leaves returns the leaves of scheduled events and timers: under H(0 ‖ i) and
// H(1 ‖ i) the H of [remaining ticks, [cell, …], name, data].
func (x *savedAlarms) leaves() []snapshot.Leaf {
	var leaves []snapshot.Leaf
	for kind, list := range [][]savedAlarm{x.Scheduled, x.Timers} {
		for i, a := range list {
			b := canon.AppendArray(nil, 4)
			b = canon.AppendUint(b, uint64(a.Remaining))
			b = canon.AppendArray(b, len(a.To))
			for _, cell := range a.To {
				b = canon.AppendText(b, cell)
			}
			b = canon.AppendText(b, a.Name)
			b = canon.AppendRaw(b, a.Data)
			key := binary.BigEndian.AppendUint64([]byte{byte(kind)}, uint64(i))
			leaves = append(leaves, snapshot.Leaf{Key: canon.Sum(key), Value: canon.Sum(b)})
		}
	}
	return leaves
}
