package world

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// CellHistory is a History with an index by cell.
type CellHistory interface {
	journal.History
	// CellRecords yields the ids after one of the records that concern a cell, in
	// order, as EachCell and IntentOf say. An error ends it.
	CellRecords(cell string, after journal.Seq) iter.Seq2[journal.Seq, error]
	// IntentVersion returns an intent's ledger entry as it was in the last image
	// before a record, or at it, that it changed in; nil where there is none.
	IntentVersion(key journal.Hash, at journal.Seq) (*journal.IntentVersion, error)
}

// Landmarks are what concerns every cell, and so stands in the index of none.
type Landmarks struct {
	Head      journal.Seq   // nothing is known of what comes later
	Images    []journal.Seq // heads of the images that may be there, ascending
	Rollbacks []journal.Seq // records, ascending
	Manifest  journal.Hash  // in force at Head
}

// Landmarks returns the landmarks of all durable records. The slices are the caller's.
func (w *World) Landmarks() Landmarks {
	l := Landmarks{Head: w.durable, Manifest: w.k.rules.hash}
	for _, record := range w.k.catalog.Records() {
		l.Images = append(l.Images, journal.Seq(record))
	}
	if len(l.Images) == 0 || l.Images[len(l.Images)-1] < w.saved {
		l.Images = append(l.Images, w.saved)
	}
	for _, t := range w.k.rollbacks {
		l.Rollbacks = append(l.Rollbacks, t.Record)
	}
	return l
}

// CellAt returns a cell as it was after a record, and what was written at once
// with it: what At(h, at, registry).Cell(id) would say. It folds the cell's own
// records since the last image before, and everything only where these do not
// tell; see errWhole. When ctx ends, so does that, within a step too.
func CellAt(ctx context.Context, h CellHistory, known Landmarks, id reducer.Cell, at journal.Seq, registry reducer.Registry) (CellView, bool, error) {
	if at = min(at, known.Head); at == 0 {
		return CellView{}, false, nil
	}
	f := newCellFold(h, id, at, registry, newGuard(ctx, Bounds{}))
	if f.run(&known) == nil {
		return f.view()
	}
	m, err := At(ctx, h, at, registry) // also after a fault: what there is to say about it, At says
	if err != nil {
		return CellView{}, false, err
	}
	v, ok := m.Cell(id)
	return v, ok, nil
}

// errWhole says that a cell's own records do not tell what it was. A rollback
// lies between, which changes cells without naming them; or the outside's word
// was held back or told again, which is the ledger's to say; or a step came to
// another state than its record names.
var errWhole = errors.New("world: the whole world has to be folded")

// cellFold folds one cell: in a kernel that has no other, what its records say happens to it.
type cellFold struct {
	k         *kernel
	h         CellHistory
	registry  reducer.Registry
	at        journal.Seq
	cell      *cell                         // of k once an event has reached it
	everyone  *cell                         // stands for each cell of its reducer
	base      journal.Seq                   // the head of the image that it began with; 0: none
	intents   map[receipt.Key]cellFoldAsked // asked for since base
	manifests []journal.Hash                // manifests that may be in force, and are not tried yet
	guard     *guard                        // of whoever asks; nil: nobody ends it
}

// cellFoldAsked is what a cell is told of its intent besides what became of it.
type cellFoldAsked struct{ tag, kind string }

func newCellFold(h CellHistory, id reducer.Cell, at journal.Seq, registry reducer.Registry, g *guard) *cellFold {
	f := &cellFold{
		k: newKernel(nil, false), h: h, registry: registry, at: at, everyone: everyone(id.Reducer), guard: g,
		cell: newCell(id, receipt.History{}), intents: make(map[receipt.Key]cellFoldAsked),
	}
	f.k.rules = &rules{guard: g} // until the first step
	return f
}

func (f *cellFold) view() (CellView, bool, error) {
	m := Moment{k: f.k}
	v, ok := m.Cell(f.cell.id())
	return v, ok, nil
}

// run folds the cell up to f.at and the end of its unit.
func (f *cellFold) run(known *Landmarks) error {
	if f.cell.id().Reducer == reducer.Operator {
		return nil // its records are those of a person
	}
	created, err := firstRecord(f.h)
	if err != nil {
		return err
	}
	if err := checkKernel(created.Kernel); err != nil {
		return err
	}
	f.k.seed, f.manifests = created.Seed, []journal.Hash{created.Manifest}
	last, err := journal.Read(f.h, f.at)
	if err != nil {
		return err
	}
	found, err := f.firstImage(known.Images)
	if found || err != nil {
		f.k.now = last.Time
		return err
	}
	if slices.ContainsFunc(known.Rollbacks, func(r journal.Seq) bool { return f.base < r && r <= f.at }) {
		return errWhole
	}
	f.manifests = append(f.manifests, known.Manifest)
	if err := f.fold(known.Head); err != nil {
		return err
	}
	f.advance(last.Time)   // that of all its unit
	return f.guard.ended() // then something may not have been delivered
}

// firstImage finds the image to begin with. It reports whether that has the cell as
// it was at f.at, and what was to fall due for it.
func (f *cellFold) firstImage(images []journal.Seq) (bool, error) {
	next, _ := slices.BinarySearch(images, f.at)
	if next < len(images) {
		img, err := f.image(images[next])
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return false, err
		}
		if err == nil && (img.Head.ID == f.at || img.sinceBefore(f.cell.name, f.at)) {
			return true, f.restore(img)
		}
	}
	for _, head := range slices.Backward(images[:next]) {
		img, err := f.image(head)
		switch {
		case errors.Is(err, journal.ErrNotFound):
			continue // it was let go
		case err != nil:
			return false, err
		}
		return false, f.restore(img)
	}
	return false, nil
}

// cellImage is an image with no cell but the one that is looked for, and what falls due
// for it.
type cellImage struct {
	*journal.Image
	core struct { // of imageCore: the rest may be large
		Version  uint64
		Seed     uint64
		Manifest journal.Hash
		Now      manifest.Tick
		Recalls  []recall
	}
}

// sinceBefore reports whether nothing that the image has of the cell was written after a
// record.
func (img *cellImage) sinceBefore(cell string, at journal.Seq) bool {
	later := func(v journal.CellVersion) bool { return v.At > at }
	return versionIn(img.Image, cell) != nil && !slices.ContainsFunc(img.Cells, later)
}

func (f *cellFold) image(head journal.Seq) (*cellImage, error) {
	name := f.cell.name
	part, err := f.h.Part(head, []string{name, scheduledList + name, scheduledList + f.everyone.name, timersList + name})
	if err != nil {
		return nil, err
	}
	img := &cellImage{Image: part}
	c := &img.core
	err = errors.Join(coreField(part, "version", &c.Version), coreField(part, "seed", &c.Seed),
		coreField(part, "manifest", &c.Manifest), coreField(part, "now", &c.Now), coreField(part, "recalls", &c.Recalls))
	if err == nil && (c.Version != imageVersion || len(c.Recalls) > 0) {
		err = errWhole
	}
	return img, err
}

// coreField reads one field of an imageCore.
func coreField(img *journal.Image, name string, field any) error {
	item, err := canon.Lookup(img.Core, name)
	if err == nil {
		err = canon.Unmarshal(item, field)
	}
	if err != nil {
		return fmt.Errorf("world: image at #%d: %s: %w", img.Head.ID, name, err)
	}
	return nil
}

// restore makes the cell what it is in an image, with what falls due for it.
func (f *cellFold) restore(img *cellImage) error {
	f.base, f.manifests[0], f.k.seed, f.k.now = img.Head.ID, img.core.Manifest, img.core.Seed, img.core.Now
	name := f.cell.name
	if v := versionIn(img.Image, name); v != nil {
		c, err := decodeCell(v)
		if err != nil {
			return err
		}
		f.cell = c
		f.k.cells.put(c)
	}
	return errors.Join(
		f.restoreAlarms(img, &f.k.scheduled, scheduledList+name, scheduledList+f.everyone.name),
		f.restoreAlarms(img, &f.k.timers, timersList+name))
}

// restoreAlarms adds the alarms of an image's lists, the cell's own list first.
func (f *cellFold) restoreAlarms(img *cellImage, waiting *alarms, lists ...string) error {
	for i, list := range lists {
		v := versionIn(img.Image, list)
		if v == nil {
			continue
		}
		all, err := decodeAlarms(v, img.core.Now)
		if err != nil {
			return err
		}
		for _, x := range all {
			if i == 0 || !slices.Contains(x.To, f.cell.name) { // else it stands in the first list, too
				waiting.add(alarm{at: x.At, record: x.Record, to: f.reached(x.To), name: x.Name, tag: x.Tag, data: x.Data})
			}
		}
	}
	return nil
}

// reached returns the recipients, among these, by which an event reaches the cell.
func (f *cellFold) reached(to []string) (out []*cell) {
	for _, c := range []*cell{f.cell, f.everyone} {
		if slices.Contains(to, c.name) {
			out = append(out, c)
		}
	}
	return out
}
