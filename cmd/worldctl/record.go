package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// entry is one record with its payload decoded.
type entry struct {
	world.Record
	raw  []byte
	body world.Body
}

// recordLine is a record as `tail -o jsonl` prints it.
type recordLine struct {
	ID       world.Seq     `json:"id"`
	Time     manifest.Tick `json:"time"`
	Kind     world.Kind    `json:"kind"`
	CausedBy world.Seq     `json:"caused_by"`
	Payload  world.Body    `json:"payload"`
	Raw      []byte        `json:"raw"` // prints as base64
}

// MarshalJSON makes an entry print as a recordLine, not as its Record.
func (e *entry) MarshalJSON() ([]byte, error) {
	return marshal(recordLine{e.ID, e.Time, e.Kind, e.CausedBy, e.body, e.raw})
}

// journal reads the records of a world one by one.
type journal struct{ lw *local.World }

// entry reads a record.
func (j journal) entry(id world.Seq) (*entry, error) {
	raw, err := j.lw.Store().Record(id)
	if err != nil {
		return nil, err
	}
	return j.decode(raw)
}

func (j journal) decode(raw []byte) (*entry, error) {
	rec, err := world.DecodeRecord(raw)
	if err != nil {
		return nil, err
	}
	if err := rec.Load(j.lw.Store()); err != nil {
		return nil, err
	}
	body, err := rec.Body()
	if err != nil {
		return nil, err
	}
	return &entry{Record: rec, raw: raw, body: body}, nil
}

// find reads the record that a person named, as #123 or 123.
func (j journal) find(name string) (*entry, error) {
	id, err := parseRecord(name)
	if err != nil {
		return nil, err
	}
	e, err := j.entry(id)
	if errors.Is(err, world.ErrNotFound) {
		return nil, hinted(fmt.Errorf("there is no record #%d", id), "worldctl tail --limit 10 shows the last ones, up to #%d", j.lw.Store().Head().ID)
	}
	return e, err
}

func parseRecord(name string) (world.Seq, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(name, "#"), 10, 64)
	if err != nil {
		return 0, usagef("write the id of a record, as worldctl tail prints it", "%q is not a record: want #123 or 123", name)
	}
	return world.Seq(id), nil
}

// ledger returns what the ledger knows of all intents, in their order.
func ledger(lw *local.World) []receipt.Entry {
	var entries []receipt.Entry
	_ = lw.View(func(w *world.World) error { // the function never errs
		entries = w.Intents()
		return nil
	})
	return entries
}

// ofCell returns the ids of all records that tell what a cell did and what
// happened to it, in order: those that name it, what its steps brought about,
// and the invocations that it asked for.
func (j journal) ofCell(cell string) ([]world.Seq, error) {
	var ids []world.Seq
	for id, err := range j.lw.Store().CellRecords(cell) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
		if ids, err = j.broughtAbout(ids, cell, id); err != nil {
			return nil, err
		}
	}
	for _, e := range ledger(j.lw) {
		if e.Intent.Cell != cell {
			continue
		}
		for _, id := range []uint64{e.Started, e.Finished} {
			if id != 0 {
				ids = append(ids, world.Seq(id))
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// broughtAbout appends the records that follow from a cell's step: they stand
// right after it.
func (j journal) broughtAbout(ids []world.Seq, cell string, step world.Seq) ([]world.Seq, error) {
	e, err := j.entry(step)
	if err != nil {
		return nil, err
	}
	if b, ok := e.body.(*world.Stepped); !ok || b.Cell != cell {
		return ids, nil
	}
	last := j.lw.Store().Head().ID
	for id := step + 1; id <= last; id++ {
		next, err := j.entry(id)
		if err != nil {
			return nil, err
		}
		if next.CausedBy != step && (next.Kind != world.KindDropped || next.CausedBy < step) {
			break
		}
		ids = append(ids, id)
	}
	return ids, nil
}
