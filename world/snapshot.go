package world

import (
	"cmp"
	"context"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
)

// Snapshot makes a snapshot of the world as it is; name may be empty. It is
// durable on return. Errors of the name are those of package snapshot.
func (w *World) Snapshot(ctx context.Context, name, label, actor string) (snapshot.Snapshot, error) {
	if err := w.atNow(ctx); err != nil {
		return snapshot.Snapshot{}, err
	}
	if actor == "" {
		return snapshot.Snapshot{}, refuse(ErrNoReason, "actor", "say who makes the snapshot")
	}
	if w.k.execution != nil {
		return snapshot.Snapshot{}, notKept(w.k.last)
	}
	if err := w.snapshot(journal.SnapshotCreated{Name: name, Label: label, Actor: actor}); err != nil {
		return snapshot.Snapshot{}, err
	}
	s := w.k.catalog.Last()
	return s, nil
}

// snapshot makes a snapshot and stores its image.
func (w *World) snapshot(b journal.SnapshotCreated) error {
	if err := w.k.snapshot(b); err != nil {
		return err
	}
	return w.Checkpoint()
}

// autoSnapshot makes the snapshot that is due by the manifest's snapshot_every. It is called at every boundary
// between ticks, so the place of a snapshot depends on the journal alone.
func (w *World) autoSnapshot() error {
	k := w.k
	every := journal.Seq(k.rules.manifest.Defaults.SnapshotEvery)
	if every == 0 || k.tickOpen() {
		return nil
	}
	last := k.catalog.Last()
	if k.last-journal.Seq(last.Record) < every {
		return nil
	}
	return w.snapshot(journal.SnapshotCreated{})
}

// Pin exempts a snapshot from the retention, or ends the exemption. It returns the record.
func (w *World) Pin(ctx context.Context, b journal.SnapshotPinned) (journal.Seq, error) {
	return w.change(ctx, func() error { return w.k.pin(b) })
}

// Prune lets a snapshot go. It returns the record.
func (w *World) Prune(ctx context.Context, b journal.SnapshotPruned) (journal.Seq, error) {
	return w.change(ctx, func() error { return w.k.prune(b) })
}

// Retain sets the number of snapshots that are kept. It returns the record, and the names of the snapshots
// that this prunes.
func (w *World) Retain(ctx context.Context, b journal.SnapshotRetention) (id journal.Seq, pruned []string, err error) {
	id, err = w.change(ctx, func() error {
		pruned, err = w.k.retain(b)
		return err
	})
	return id, pruned, err
}

// change makes a change between ticks and returns the first record of f. On return the change is durable, and
// images that it makes superfluous are gone.
func (w *World) change(ctx context.Context, f func() error) (journal.Seq, error) {
	id, err := w.input(ctx, f)
	if err != nil {
		return 0, err
	}
	return id, w.Checkpoint()
}

// input lets f write an input between ticks and returns the first record of f.
func (w *World) input(ctx context.Context, f func() error) (journal.Seq, error) {
	if err := w.atNow(ctx); err != nil {
		return 0, err
	}
	id := w.k.last + 1
	return id, w.judged(f())
}

// snapshot writes a snapshot.created. Its image is the kernel right after it.
func (k *kernel) snapshot(b journal.SnapshotCreated) error {
	if b.Name == "" {
		b.Name = k.catalog.NextName()
	}
	if err := k.catalog.Check(b.Name); err != nil {
		return refuse(err, "name", "%q", b.Name)
	}
	b.V, b.Label, b.Actor = journal.BodyVersion, journal.Text(b.Label), journal.Text(b.Actor)
	b.At, b.ChainRoot = k.last, k.root()
	if k.execution == nil { // else nobody can return to it
		b.StateRoot = k.stateRoot()
	}
	b.Cells = uint64(k.cells.born())
	k.catalog.SetMax(k.maxSnapshots())
	b.Pruned = named(k.catalog.Add(snapshot.Snapshot{
		Name: b.Name, Record: uint64(k.last + 1), At: uint64(b.At), Time: uint64(k.now),
		Root: b.ChainRoot, State: b.StateRoot, Cells: b.Cells, Label: b.Label, Hash: b.SnapshotHash(),
	}))
	k.noteInput(journal.KindSnapshot, &b)
	return nil
}

func (k *kernel) maxSnapshots() uint64 {
	if k.retention != 0 {
		return k.retention
	}
	return cmp.Or(k.rules.manifest.Defaults.Retention.MaxSnapshots, manifest.DefaultMaxSnapshots)
}

func (k *kernel) pin(b journal.SnapshotPinned) error {
	if err := k.catalog.Pin(b.Name, b.Pinned); err != nil {
		return refuse(err, "name", "%q", b.Name)
	}
	b.V, b.Actor = journal.BodyVersion, journal.Text(b.Actor)
	k.noteInput(journal.KindPinned, &b)
	return nil
}

func (k *kernel) prune(b journal.SnapshotPruned) error {
	if err := k.catalog.Prune(b.Name); err != nil {
		return refuse(err, "name", "%q", b.Name)
	}
	b.V, b.Actor = journal.BodyVersion, journal.Text(b.Actor)
	k.noteInput(journal.KindPruned, &b)
	return nil
}

func (k *kernel) retain(b journal.SnapshotRetention) ([]string, error) {
	if b.Max == 0 {
		return nil, refuse(ErrRetention, "max", "0")
	}
	k.retention = b.Max
	b.V, b.Actor = journal.BodyVersion, journal.Text(b.Actor)
	b.Pruned = named(k.catalog.SetMax(b.Max))
	k.noteInput(journal.KindRetention, &b)
	return b.Pruned, nil
}

// named returns names as a record holds them: an empty list, never null.
func named(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

// keeps returns the heads of the images, before the one of now, that a rollback or
// a shadow may still ask for.
func (k *kernel) keeps() []journal.Seq {
	var out []journal.Seq
	for _, record := range k.catalog.Records() {
		if journal.Seq(record) != k.last {
			out = append(out, journal.Seq(record))
		}
	}
	if k.since > 1 && k.since != k.last {
		out = append(out, k.since)
		slices.Sort(out)
	}
	return out
}
