package main

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
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
	return j.load(rec, raw)
}

// load reads the payload of a record.
func (j journal) load(rec world.Record, raw []byte) (*entry, error) {
	if err := rec.Load(j.lw.Store()); err != nil {
		return nil, err
	}
	body, err := rec.Body()
	if err != nil {
		return nil, err
	}
	return &entry{Record: rec, raw: raw, body: body}, nil
}

// scan reads, in order, the records of some kinds that come after one.
func (j journal) scan(after world.Seq, kinds ...world.Kind) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		for s, err := range j.lw.Store().Scan(after) {
			if err == nil {
				err = s.Err
			}
			var e *entry
			switch {
			case err != nil:
			case slices.Contains(kinds, s.Record.Kind):
				e, err = j.load(s.Record, s.Bytes)
			default:
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// invocationKinds returns the kinds of records that name an intent and no cell.
func invocationKinds() []world.Kind {
	return []world.Kind{
		world.KindStarted, world.KindFinished, world.KindExpired, world.KindDue, world.KindLate, world.KindResolved, world.KindConfirmed,
	}
}

// intentOf returns the intent that a record is about, and the attempt where it
// is about one; zero where it is about none.
func intentOf(body world.Body) (receipt.Key, uint64) {
	switch b := body.(type) {
	case *world.Finished:
		return answeredBy(b.Receipt)
	case *world.Late:
		return answeredBy(b.Receipt)
	case *world.Started:
		return b.Key, b.Attempt
	case *world.Expired:
		return b.Key, b.Attempt
	case *world.Due:
		return b.Key, b.Attempt
	case *world.InDoubt:
		return b.Key, b.Attempt
	case *world.IntentWaiting:
		return b.Key, b.Attempt
	case *world.IntentEmitted:
		return b.Key, 0
	case *world.IntentParked:
		return b.Key, 0
	case *world.IntentDenied:
		return b.Key, 0
	case *world.IntentEnded:
		return b.Key, 0
	case *world.Resolved:
		return b.Key, 0
	case *world.Confirmed:
		return b.Key, 0
	}
	return receipt.Key{}, 0
}

// answeredBy returns what a receipt answers. The kernel took it, so that it can
// be read.
func answeredBy(data []byte) (receipt.Key, uint64) {
	r, err := receipt.Decode(data)
	if err != nil {
		return receipt.Key{}, 0
	}
	return r.Key, r.Attempt
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

// entryOf returns what the ledger knows of an intent that it has.
func entryOf(lw *local.World, key receipt.Key) *receipt.Entry {
	var e receipt.Entry
	_ = lw.View(func(w *world.World) error { // the function never errs
		e, _ = w.Intent(key)
		return nil
	})
	return &e
}

// byKey returns what the ledger knows of all intents, by their keys.
func byKey(lw *local.World) map[receipt.Key]*receipt.Entry {
	entries := ledger(lw)
	out := make(map[receipt.Key]*receipt.Entry, len(entries))
	for i := range entries {
		out[entries[i].Intent.Key] = &entries[i]
	}
	return out
}

// ofCell returns the ids of all records that tell what a cell, or an operator,
// did and what happened to it, in order: those that name it, what its steps
// brought about, and what became of the effects that it asked for.
func (j journal) ofCell(cell string) ([]world.Seq, error) {
	var ids []world.Seq
	for id, err := range j.lw.Store().CellRecords(cell, 0) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
		if ids, err = j.broughtAbout(ids, cell, id); err != nil {
			return nil, err
		}
	}
	entries := byKey(j.lw)
	maps.DeleteFunc(entries, func(_ receipt.Key, e *receipt.Entry) bool { return e.Intent.Cell != cell })
	if len(entries) == 0 {
		return ids, nil
	}
	for e, err := range j.scan(0, append(invocationKinds(), world.KindOperator)...) {
		if err != nil {
			return nil, err
		}
		key, _ := intentOf(e.body)
		if entries[key] != nil || submittedBy(e.body, cell) {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// submittedBy reports whether a record is the effect of an operator's.
func submittedBy(body world.Body, cell string) bool {
	b, ok := body.(*world.OperatorEffect)
	return ok && operator(b.Actor) == cell
}

// operator returns what stands in the place of a cell for a person.
func operator(name string) string {
	return reducer.Cell{Reducer: reducer.Operator, Key: name}.String()
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
