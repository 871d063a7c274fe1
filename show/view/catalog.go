package view

import (
	"context"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// Cataloged says what a record did to a snapshot that is kept.
type Cataloged struct {
	Name   string      `json:"name"`
	Record journal.Seq `json:"record"`
}

// Pinned says whether a snapshot stays whatever the retention says.
type Pinned struct {
	Cataloged
	Pinned bool `json:"pinned"`
}

// Prune deletes a snapshot named by a person, with the data that only this snapshot needs.
func (j Journal) Prune(ctx context.Context, name, actor string) (Cataloged, error) {
	return j.catalog(name, func(w *world.World, s *snapshot.Snapshot) (journal.Seq, error) {
		return w.Prune(ctx, journal.SnapshotPruned{Name: s.Name, Actor: actor})
	})
}

// Pin keeps the snapshot that a person named whatever the retention says, or lets the
// retention decide again.
func (j Journal) Pin(ctx context.Context, name string, pinned bool, actor string) (Pinned, error) {
	done, err := j.catalog(name, func(w *world.World, s *snapshot.Snapshot) (journal.Seq, error) {
		return w.Pin(ctx, journal.SnapshotPinned{Name: s.Name, Pinned: pinned, Actor: actor})
	})
	return Pinned{done, pinned}, err
}

// catalog has change write a record about the snapshot that a person named.
func (j Journal) catalog(name string, change func(*world.World, *snapshot.Snapshot) (journal.Seq, error)) (done Cataloged, err error) {
	err = j.Local.Update(func(w *world.World) error {
		s, err := w.FindSnapshot(name)
		if err == nil {
			done.Name = s.Name
			done.Record, err = change(w, &s)
		}
		return err
	})
	return done, err
}
