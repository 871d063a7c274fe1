package world

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
)

// A saved snapshot is canonical CBOR items, one after the other (RFC 8742):
//
//	["worldkernel/snapshot/v1", world, name, record, at, time, chain root,
//	 state root, manifest hash, [[reducer, hash], …], number of cells]
//	[cell, n, h, state or null, parked, [[name, data], …]]     each cell, by name
//	[[scheduled, …], [timer, …]]     each [remaining ticks, [cell, …], name, data]
//
// Its state root follows from the items after the first and the hashes of the
// reducers. docs/journal-format.md says how.
const savedFormat = "worldkernel/snapshot/v1"

// ErrNotSaved says that bytes are not a saved snapshot, or not as they were saved.
var ErrNotSaved = errors.New("this is not a saved snapshot, or not as it was saved")

type savedHead struct {
	_        struct{} `cbor:",toarray"`
	Format   string
	World    string
	Name     string
	Record   uint64
	At       uint64
	Time     uint64
	Root     journal.Hash
	State    journal.Hash
	Manifest journal.Hash
	Reducers []savedReducer
	Cells    uint64
}

type savedReducer struct {
	_    struct{} `cbor:",toarray"`
	Name string
	Code journal.Hash
}

type savedCell struct {
	_       struct{} `cbor:",toarray"`
	Cell    string
	N       uint64
	History journal.Hash
	State   journal.Data // null where the cell has none
	Parked  bool
	Mail    []savedMail
}

type savedMail struct {
	_    struct{} `cbor:",toarray"`
	Name string
	Data journal.Data
}

// savedAlarm is what appendAlarm appends.
type savedAlarm struct {
	Remaining manifest.Tick
	To        []string
	Name      string
	Data      journal.Data
	Tag       string
}

type savedAlarms struct {
	_         struct{} `cbor:",toarray"`
	Scheduled []savedAlarm
	Timers    []savedAlarm
}

// SavedSnapshot is what a saved snapshot holds.
type SavedSnapshot struct {
	head   savedHead
	cells  []savedCell
	alarms savedAlarms
}

// SaveSnapshot returns the bytes of a snapshot whose image is kept. The world named is
// the one that they are saved from.
func SaveSnapshot(h journal.History, world string, s snapshot.Snapshot) ([]byte, error) {
	x, err := savedFrom(h, world, s)
	if err != nil {
		return nil, err
	}
	if err := x.check(); err != nil {
		return nil, err
	}
	return x.encode()
}

// ReadSaved reads what SaveSnapshot wrote: it has the state root that it names. All
// errors are ErrNotSaved.
func ReadSaved(data []byte) (*SavedSnapshot, error) {
	x, err := decodeSaved(data)
	if err == nil {
		err = x.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	return x, nil
}

// World returns the id of the world that it was saved from.
func (x *SavedSnapshot) World() string { return x.head.World }

// Hash returns what it is called by: see snapshot.Snapshot.
func (x *SavedSnapshot) Hash() journal.Hash { return x.head.hash() }

// Compare returns ErrNotSaved where a snapshot with the same hash has another head in
// a journal than in the file.
func (x *SavedSnapshot) Compare(h journal.History, s snapshot.Snapshot) error {
	own, err := savedFrom(h, x.head.World, s) // a fork has the snapshots of its parent
	if err != nil {
		return err
	}
	want, err := canon.Marshal(own.head)
	if err != nil {
		return err
	}
	if got, err := canon.Marshal(x.head); err != nil || !bytes.Equal(want, got) {
		return fmt.Errorf("%w: what it says of %s does not match the journal", ErrNotSaved, s.Name)
	}
	return nil
}

// hash is what snapshot.created makes of the same: see snapshot.Snapshot.
func (h *savedHead) hash() journal.Hash {
	x := journal.SnapshotCreated{Name: h.Name, At: journal.Seq(h.At), ChainRoot: h.Root, StateRoot: h.State, Cells: h.Cells}
	return x.SnapshotHash()
}

// savedFrom reads what is saved of a snapshot from its image.
func savedFrom(h journal.History, world string, s snapshot.Snapshot) (*SavedSnapshot, error) {
	img, err := h.Image(journal.Seq(s.Record))
	if err == nil && (img == nil || img.Head.ID != journal.Seq(s.Record)) {
		err = journal.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("the image of snapshot %s: %w", s.Name, err)
	}
	x := &SavedSnapshot{head: savedHead{
		Format: savedFormat, World: world, Name: s.Name, Record: s.Record, At: s.At, Time: s.Time,
		Root: s.Root, State: s.State, Cells: s.Cells,
	}}
	if err := x.take(img); err != nil {
		return nil, fmt.Errorf("the image of snapshot %s: %w", s.Name, err)
	}
	m, err := manifestOf(x.head.Manifest, h)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Reducers)) {
		x.head.Reducers = append(x.head.Reducers, savedReducer{Name: name, Code: codeHash(m.Reducers[name])})
	}
	return x, nil
}

// take takes from an image what its state root is computed of.
func (x *SavedSnapshot) take(img *journal.Image) error {
	parts, err := partsOf(img)
	if err != nil {
		return err
	}
	x.head.Manifest = parts.core.Manifest
	remaining := func(list []imageAlarm) (out []savedAlarm) {
		for _, a := range list {
			out = append(out, savedAlarm{Remaining: a.At - parts.core.Now, To: a.To, Name: a.Name, Data: a.Data, Tag: a.Tag})
		}
		return out
	}
	x.alarms = savedAlarms{Scheduled: remaining(parts.scheduled), Timers: remaining(parts.timers)}
	for i := range parts.cells {
		v := &parts.cells[i]
		var of imageCell
		if err := canon.Unmarshal(v.Bytes, &of); err != nil {
			return fmt.Errorf("cell %s: %w", v.Cell, err)
		}
		if of.Unborn {
			continue
		}
		c := savedCell{Cell: v.Cell, N: of.N, History: of.History, State: of.State, Parked: of.Parked}
		for _, m := range of.Mail {
			c.Mail = append(c.Mail, savedMail{Name: m.Name, Data: m.Data})
		}
		x.cells = append(x.cells, c)
	}
	return nil
}
