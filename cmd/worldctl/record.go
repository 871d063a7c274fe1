package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	body world.Body // nil where the payload was redacted
}

// recordLine is a record as `tail -o jsonl` prints it.
type recordLine struct {
	ID       world.Seq     `json:"id"`
	Time     manifest.Tick `json:"time"`
	Kind     world.Kind    `json:"kind"`
	CausedBy world.Seq     `json:"caused_by"`
	Payload  world.Body    `json:"payload"`
	Raw      []byte        `json:"raw"`                // prints as base64
	Redacted bool          `json:"redacted,omitempty"` // then there is no payload
}

// MarshalJSON makes an entry print as a recordLine, not as its Record.
func (e *entry) MarshalJSON() ([]byte, error) {
	return marshal(recordLine{e.ID, e.Time, e.Kind, e.CausedBy, e.body, e.raw, e.body == nil})
}

// journal reads the records of a world one by one.
type journal struct{ lw *local.World }

// entry reads a record.
func (j journal) entry(id world.Seq) (*entry, error) {
	raw, err := j.stored(id)
	if err != nil {
		return nil, err
	}
	return j.decode(raw)
}

// end returns the last record, once it is durable: while the world is run, the last
// ones are on their way to where they can be read.
func (j journal) end() world.Seq {
	last := j.lw.Store().Head().ID
	if last > 0 {
		_ = j.lw.Store().Await(context.Background(), last-1) // who reads finds out what is wrong
	}
	return last
}

// stored returns the stored bytes of a record.
func (j journal) stored(id world.Seq) ([]byte, error) {
	raw, err := j.lw.Store().Record(id)
	if errors.Is(err, world.ErrNotFound) && id <= j.end() {
		return j.lw.Store().Record(id)
	}
	return raw, err
}

// made returns the last record of a kind since one for which is holds: what a
// person has just brought about, whatever others have meanwhile.
func (j journal) made(since world.Seq, kind world.Kind, is func(world.Body) bool) (id world.Seq, err error) {
	for e, err := range j.scan(since, kind) {
		if err != nil {
			return 0, err
		}
		if is(e.body) {
			id = e.ID
		}
	}
	return id, nil
}

func (j journal) decode(raw []byte) (*entry, error) {
	rec, err := world.DecodeRecord(raw)
	if err != nil {
		return nil, err
	}
	return j.load(rec, raw)
}

// timeOf returns the time of a record.
func (j journal) timeOf(id world.Seq) (manifest.Tick, error) {
	raw, err := j.stored(id)
	if err != nil {
		return 0, err
	}
	rec, err := world.DecodeRecord(raw)
	return rec.Time, err
}

// load reads the payload of a record.
func (j journal) load(rec world.Record, raw []byte) (*entry, error) {
	if err := rec.Load(j.lw.Store()); errors.Is(err, world.ErrRedacted) {
		return &entry{Record: rec, raw: raw}, nil
	} else if err != nil {
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
	return j.between(after+1, j.end(), kinds)
}

// between reads, in order, the records from one to another, of all kinds or of
// those that are named; see among.
func (j journal) between(from, to world.Seq, kinds []world.Kind) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		for s, err := range j.lw.Store().Scan(from - 1) {
			if err == nil {
				err = s.Err
			}
			var e *entry
			switch {
			case err != nil:
			case s.ID > to:
				return
			case among(kinds, s.Record.Kind):
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

// concerning yields, in order, the records after one that name a cell, or an
// intent of it.
func (j journal) concerning(cell string, after world.Seq) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		for id, err := range j.lw.Store().CellRecords(cell, after) {
			var e *entry
			if err == nil {
				e, err = j.entry(id)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// ofCell yields, in order, the records that tell what a cell, or an operator, did
// and what happened to it: those that concern it, and what its steps brought
// about. It begins with a record or, where that is in the middle of a turn, with
// the step.
func (j journal) ofCell(cell string, from world.Seq) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		step, err := j.turn(from)
		if err != nil {
			yield(nil, err)
			return
		}
		if step != nil {
			from = step.ID
		}
		told := from - 1
		for e, err := range j.concerning(cell, told) {
			switch {
			case err == nil && e.ID <= told:
				continue // it was part of a turn
			case !yield(e, err) || err != nil:
				return
			}
			if told = e.ID; e.Kind != world.KindStepped {
				continue
			}
			for next, err := range j.following(e) {
				if !yield(next, err) || err != nil {
					return
				}
				told = next.ID
			}
		}
	}
}

// following yields the records right behind one that follow from it at once: for
// a step the rest of its turn.
func (j journal) following(e *entry) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		last := j.end()
		for id := e.ID + 1; id <= last; id++ {
			next, err := j.entry(id)
			if err == nil && (next.Kind.Input() || next.CausedBy < e.ID || next.Kind == world.KindStepped || next.Kind == world.KindFailed) {
				return
			}
			if !yield(next, err) || err != nil {
				return
			}
		}
	}
}

// turn returns the step in whose turn a record was written, nil where it was in
// none.
func (j journal) turn(id world.Seq) (*entry, error) {
	e, err := j.entry(id)
	for err == nil && e.CausedBy != 0 {
		dropped := e.Kind == world.KindDropped // by an event, which may have been sent in a turn
		if e, err = j.entry(e.CausedBy); err == nil && e.Kind == world.KindStepped {
			return e, nil
		}
		if !dropped {
			break
		}
	}
	return nil, err
}

// cells returns the cells and operators that a record concerns: it names them, or
// an intent of theirs.
func (j journal) cells(e *entry) []string {
	var cells []string
	_ = world.EachCell(e.Kind, e.Payload, func(cell []byte) { // the payload was read before
		cells = append(cells, string(cell))
	})
	if key, _ := intentOf(e.body); len(cells) == 0 && key != (receipt.Key{}) {
		cells = append(cells, entryOf(j.lw, key).Intent.Cell)
	}
	return cells
}

// operator returns what stands in the place of a cell for a person.
func operator(name string) string {
	return reducer.Cell{Reducer: reducer.Operator, Key: name}.String()
}
