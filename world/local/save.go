package local

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// A saved snapshot is a gzip file of canonical CBOR items, one after the other
// (RFC 8742):
//
//	["worldkernel/snapshot/v1", world, name, record, at, time, chain root,
//	 state root, manifest hash, [[reducer, hash], …], number of cells]
//	[cell, n, h, state or null, parked, [[name, data], …]]     each cell, by name
//	[[scheduled, …], [timer, …]]     each [remaining ticks, [cell, …], name, data]
//
// Its state root follows from the items after the first and the hashes of the
// reducers. docs/journal-format.md says how.
const savedFormat = "worldkernel/snapshot/v1"

// MaxSavedBytes is how much a saved snapshot may hold, uncompressed.
const MaxSavedBytes = 1 << 30

// What a file can be instead of a saved snapshot of this world.
var (
	ErrNotSaved   = errors.New("this is not a saved snapshot, or not as it was saved")
	ErrSavedOther = errors.New("the snapshot was saved from another world")
)

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

type savedAlarm struct {
	_         struct{} `cbor:",toarray"`
	Remaining manifest.Tick
	To        []string
	Name      string
	Data      journal.Data
}

type savedAlarms struct {
	_         struct{} `cbor:",toarray"`
	Scheduled []savedAlarm
	Timers    []savedAlarm
}

// saved is what such a file holds.
type saved struct {
	head   savedHead
	cells  []savedCell
	alarms savedAlarms
}

// SaveSnapshot writes a snapshot that is kept as a file of its own, from which
// ReadSnapshot finds it again.
func (lw *World) SaveSnapshot(w io.Writer, name string) (snapshot.Snapshot, error) {
	var s snapshot.Snapshot
	var err error
	lw.View(func(w *world.Moment) { s, err = w.FindSnapshot(name) })
	if err != nil {
		return s, err
	}
	x, err := lw.snapshotImage(s)
	if err != nil {
		return s, err
	}
	if err := x.check(); err != nil {
		return s, err
	}
	data, err := x.encode()
	if err != nil {
		return s, err
	}
	zip := gzip.NewWriter(w)
	_, err = zip.Write(data)
	return s, errors.Join(err, zip.Close())
}

// ReadSnapshot returns the snapshot of this world that a file of SaveSnapshot
// holds, once it has found that both are the same. The errors are ErrNotSaved,
// ErrSavedOther, and snapshot.ErrNoSnapshot where the world has let it go.
func (lw *World) ReadSnapshot(r io.Reader) (snapshot.Snapshot, error) {
	x, err := readSaved(r)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	var s snapshot.Snapshot
	lw.View(func(w *world.Moment) { s, err = w.FindSnapshot(x.head.hash().String()) })
	if err != nil && x.head.World != lw.keys.World() {
		err = fmt.Errorf("%w: it is of %s, this is %s", ErrSavedOther, x.head.World, lw.keys.World())
	}
	if err != nil {
		return s, err
	}
	own, err := lw.snapshotImage(s)
	if err != nil {
		return s, err
	}
	own.head.World = x.head.World // a fork has the snapshots of its parent
	if want, err := canon.Marshal(own.head); err != nil {
		return s, err
	} else if got, err := canon.Marshal(x.head); err != nil || !bytes.Equal(want, got) {
		return s, fmt.Errorf("%w: what it says of %s does not match the journal", ErrNotSaved, s.Name)
	}
	return s, nil
}

// hash is what snapshot.created makes of the same: see snapshot.Snapshot.
func (h *savedHead) hash() journal.Hash {
	b := canon.AppendArray(nil, 5)
	b = canon.AppendText(b, h.Name)
	b = canon.AppendUint(b, h.At)
	b = canon.AppendBytes(b, h.Root[:])
	b = canon.AppendBytes(b, h.State[:])
	return canon.Sum(canon.AppendUint(b, h.Cells))
}

// snapshotImage reads what a snapshot's file holds from its image.
func (lw *World) snapshotImage(s snapshot.Snapshot) (*saved, error) {
	img, err := lw.store.Image(journal.Seq(s.Record))
	if err == nil && (img == nil || img.Head.ID != journal.Seq(s.Record)) {
		err = journal.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("the image of snapshot %s: %w", s.Name, err)
	}
	x := &saved{head: savedHead{
		Format: savedFormat, World: lw.keys.World(), Name: s.Name, Record: s.Record, At: s.At, Time: s.Time,
		Root: s.Root, State: s.State, Cells: s.Cells,
	}}
	if err := x.take(img); err != nil {
		return nil, fmt.Errorf("the image of snapshot %s: %w", s.Name, err)
	}
	data, err := lw.store.Blob(x.head.Manifest)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", x.head.Manifest, err)
	}
	m, err := manifest.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", x.head.Manifest, err)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Reducers)) {
		def := m.Reducers[name]
		code := def.Source
		if def.Engine == manifest.EngineGo {
			code = canon.Sum([]byte(def.Name + "@" + def.Version))
		}
		x.head.Reducers = append(x.head.Reducers, savedReducer{Name: name, Code: code})
	}
	return x, nil
}

// take takes from the kernel's image what its state root is computed of.
func (x *saved) take(img *journal.Image) error {
	if err := lookup(img.Core, "manifest", &x.head.Manifest); err != nil {
		return err
	}
	var now manifest.Tick
	if err := lookup(img.Core, "now", &now); err != nil {
		return err
	}
	for name, into := range map[string]*[]savedAlarm{"scheduled": &x.alarms.Scheduled, "timers": &x.alarms.Timers} { // order cannot show: one each
		var list []struct {
			At     manifest.Tick `cbor:"at"`
			Record journal.Seq   `cbor:"record"`
			To     []string      `cbor:"to"`
			Name   string        `cbor:"name"`
			Data   journal.Data  `cbor:"data"`
		}
		if err := lookup(img.Core, name, &list); err != nil {
			return err
		}
		for _, a := range list {
			*into = append(*into, savedAlarm{Remaining: a.At - now, To: a.To, Name: a.Name, Data: a.Data})
		}
	}
	for i := range img.Cells {
		if err := x.takeCell(&img.Cells[i]); err != nil {
			return fmt.Errorf("cell %s: %w", img.Cells[i].Cell, err)
		}
	}
	return nil
}

func (x *saved) takeCell(v *journal.CellVersion) error {
	if _, err := canon.Lookup(v.Bytes, "unborn"); err == nil {
		return nil
	}
	c := savedCell{Cell: v.Cell}
	var mail []struct {
		_      struct{} `cbor:",toarray"`
		Record journal.Seq
		Name   string
		Data   journal.Data
	}
	err := cmp.Or(
		lookup(v.Bytes, "n", &c.N), lookup(v.Bytes, "history", &c.History), lookup(v.Bytes, "state", &c.State),
		lookup(v.Bytes, "parked", &c.Parked), lookup(v.Bytes, "mail", &mail),
	)
	for _, m := range mail {
		c.Mail = append(c.Mail, savedMail{Name: m.Name, Data: m.Data})
	}
	x.cells = append(x.cells, c)
	return err
}

// lookup reads one field of a map.
func lookup(data []byte, name string, into any) error {
	field, err := canon.Lookup(data, name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return canon.Unmarshal(field, into)
}
