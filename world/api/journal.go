package api

import (
	"errors"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// Record is a record of a journal, as `worldctl tail -o jsonl` prints it.
type Record struct {
	ID       world.Seq     `json:"id"`
	Time     manifest.Tick `json:"time"`
	Kind     world.Kind    `json:"kind"`
	CausedBy world.Seq     `json:"caused_by"`
	Payload  world.Body    `json:"payload"`
	Raw      []byte        `json:"raw"`                // the stored bytes; prints as base64
	Redacted bool          `json:"redacted,omitempty"` // then there is no payload
}

// entry is one record with its payload decoded.
type entry struct {
	world.Record
	raw  []byte
	body world.Body // nil where the payload was redacted
}

func (e *entry) wire() Record {
	return Record{e.ID, e.Time, e.Kind, e.CausedBy, e.body, e.raw, e.body == nil}
}

// journal reads the records of a world one by one.
type journal struct{ lw *local.World }

// head returns the last record that can be read.
func (j journal) head() world.Seq { return j.lw.Store().Head().ID }

func (j journal) entry(id world.Seq) (*entry, error) {
	raw, err := j.lw.Store().Record(id)
	if err != nil {
		return nil, err
	}
	rec, err := world.DecodeRecord(raw)
	if err != nil {
		return nil, err
	}
	return j.load(rec, raw)
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

// among reports whether a kind is one of some, of which one may stand for a family
// such as intent.*, or whether there are none.
func among(kinds []world.Kind, kind world.Kind) bool {
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(k world.Kind) bool { return manifest.Match(string(k), string(kind)) })
}

// intentOf returns the intent that a record is about, and the attempt where it is
// about one; zero where it is about none.
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

// answeredBy returns what a receipt answers. The kernel took it, so that it can be
// read.
func answeredBy(data []byte) (receipt.Key, uint64) {
	r, err := receipt.Decode(data)
	if err != nil {
		return receipt.Key{}, 0
	}
	return r.Key, r.Attempt
}

// concerning yields, in order, the records after one that name a cell, or an intent
// of it.
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

// ofIntent yields, in order, the records about an intent from the one on that made
// it, or that approved it.
func (j journal) ofIntent(of *receipt.Entry) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		for e, err := range j.concerning(of.Intent.Cell, world.Seq(of.Emitted)-1) {
			if err == nil {
				if key, _ := intentOf(e.body); key != of.Intent.Key {
					continue
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// ofCell yields, in order, the records after one that tell what a cell, or an
// operator, did and what happened to it: those that concern it, and what its steps
// brought about.
func (j journal) ofCell(cell string, after world.Seq) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		told := after
		rest := func(step world.Seq) bool {
			for e, err := range j.following(step, max(step, told)) {
				if !yield(e, err) || err != nil {
					return false
				}
				told = e.ID
			}
			return true
		}
		step, err := j.stepAt(cell, after)
		if err != nil {
			yield(nil, err)
			return
		}
		if step != 0 && !rest(step) {
			return
		}
		for e, err := range j.concerning(cell, told) {
			switch {
			case err == nil && e.ID <= told:
				continue // it was part of a turn
			case !yield(e, err) || err != nil:
				return
			}
			if told = e.ID; e.Kind == world.KindStepped && !rest(e.ID) {
				return
			}
		}
	}
}

// stepAt returns the step of a cell in whose turn a record was written, or that it
// is; 0: it is in none.
func (j journal) stepAt(cell string, id world.Seq) (world.Seq, error) {
	if id == 0 || id >= j.head() {
		return 0, nil
	}
	e, err := j.entry(id)
	if err == nil && e.Kind != world.KindStepped {
		e, err = j.turn(e)
	}
	if err != nil || e == nil {
		return 0, err
	}
	if b, ok := e.body.(*world.Stepped); !ok || b.Cell != cell {
		return 0, nil
	}
	return e.ID, nil
}

// following yields the records after one that follow at once from a step: the rest
// of its turn.
func (j journal) following(step, after world.Seq) iter.Seq2[*entry, error] {
	return func(yield func(*entry, error) bool) {
		last := j.head()
		for id := after + 1; id <= last; id++ {
			e, err := j.entry(id)
			if err == nil && (e.Kind.Input() || e.CausedBy < step || e.Kind == world.KindStepped || e.Kind == world.KindFailed) {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// turn returns the step in whose turn a record was written, nil where it was in
// none.
func (j journal) turn(e *entry) (*entry, error) {
	var err error
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

// tellsOf reports whether ofCell yields a record.
func (j journal) tellsOf(e *entry, cell string) (bool, error) {
	if slices.Contains(j.cells(e), cell) {
		return true, nil
	}
	step, err := j.turn(e)
	return err == nil && step != nil && slices.Contains(j.cells(step), cell), err
}

// cells returns the cells and operators that a record concerns: it names them, or
// an intent of theirs.
func (j journal) cells(e *entry) []string {
	var cells []string
	_ = world.EachCell(e.Kind, e.Payload, func(cell []byte) { // the payload was read before
		cells = append(cells, string(cell))
	})
	if key, _ := intentOf(e.body); len(cells) == 0 && key != (receipt.Key{}) {
		if of, ok := j.ledgerEntry(key); ok {
			cells = append(cells, of.Intent.Cell)
		}
	}
	return cells
}

// ledgerEntry returns what the ledger knows of an intent.
func (j journal) ledgerEntry(key receipt.Key) (e receipt.Entry, ok bool) {
	_ = j.lw.View(func(w *world.World) error { // the function never errs
		e, ok = w.Intent(key)
		return nil
	})
	return e, ok
}

// ledger returns what the ledger knows of all intents, in the order of the records
// that made them.
func (j journal) ledger() (entries []receipt.Entry) {
	_ = j.lw.View(func(w *world.World) error { // the function never errs
		entries = w.Intents()
		return nil
	})
	return entries
}
