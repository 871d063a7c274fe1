package world

import (
	"bytes"
	"cmp"
	"context"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Preview is what an apply of a manifest would come to.
type Preview struct {
	Cells   uint64     // whose states its code takes over
	First   []Takeover // of them, by name; at most governance.MaxListed
	Open    Opened     // what becomes of the intents that are not begun
	Moved   uint64     // timers, and events that are due later: the clock changes, and each keeps its tick
	Refused error      // why it would be refused all the same: an *InputError of ErrUnderWay, or what Config.Performs says
}

// Takeover is what the code of other rules makes of a cell's state.
type Takeover struct {
	Cell  string              `json:"cell"`
	State []governance.Change `json:"state"` // where the states differ; at most governance.MaxChanges
	More  uint64              `json:"more"`  // places that State leaves out
}

// PreviewApply says what an apply of a manifest would come to now. The world, which view lets
// it look at, goes on meanwhile: it is looked at for as long as it takes to copy the
// states that are migrated. contents are those that next names and the history may not
// hold.
//
// The code is that of somebody who asks for it to be put in force: it runs within
// Config.Bounds, those of gas for all of it together. The error is a *BoundError, that
// of ctx, or an *InputError of ErrMigration where a cell cannot be taken over: then next
// would not be applied.
func PreviewApply(
	ctx context.Context, view func(look func(*Moment)), next *manifest.Manifest, contents map[manifest.Hash][]byte,
) (*Preview, error) {
	encoded, err := next.Encode()
	if err != nil {
		return nil, err
	}
	var with Moment // but for its kernel, which goes on
	view(func(m *Moment) { with = *m })
	g := newGuard(ctx, with.bounds)
	blobs := overlaid{contents, with.past}
	candidate, err := compileCandidate(next, canon.Sum(encoded), blobs, with.registry, g)
	if err != nil {
		return nil, err
	}
	p := new(Preview)
	var apart *kernel
	var cells []*cell
	view(func(m *Moment) {
		p.Refused, p.Open = m.k.fits(candidate), m.k.foreseeOpen(candidate, m.Queued())
		if m.k.rules.manifest.Clock != next.Clock {
			p.Moved = uint64(len(m.k.timers) + len(m.k.scheduled))
		}
		apart, cells, err = m.k.apart(candidate)
	})
	if err != nil {
		return nil, err
	}
	p.Refused = cmp.Or(p.Refused, with.canPerform(candidate, blobs.Blob))
	g.share()
	all, err := apart.migrate(candidate, cells)
	if err != nil {
		return nil, err
	}
	for _, x := range all[:min(len(all), governance.MaxListed)] {
		t := Takeover{Cell: x.cell.name}
		t.State, t.More = stateChanges(x.cell.state, x.state)
		p.First = append(p.First, t)
	}
	p.Cells = uint64(len(all))
	return p, g.ended()
}

// apart returns the cells whose states the code of other rules migrates, and a kernel to
// migrate them with, that have nothing in common with those that go on.
func (k *kernel) apart(next *rules) (*kernel, []*cell, error) {
	other := newKernel(nil, k.paranoid)
	other.last, other.now = k.last, k.now
	var cells []*cell
	for _, c := range k.otherCode(next) {
		if _, migrates := next.reducers[c.id().Reducer].impl.(reducer.Migrator); !migrates {
			continue
		}
		if err := next.guard.keep(cellBytes+uint64(len(c.state)), "the states to migrate"); err != nil {
			return nil, nil, err
		}
		cells = append(cells, &cell{name: c.name, n: c.n, state: bytes.Clone(c.state)})
	}
	return other, cells, nil
}
