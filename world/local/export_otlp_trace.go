package local

import (
	"errors"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// Bounds of looking for the trace of a record.
const (
	maxPlaces = 1 << 16 // kept at least, and at most twice as many
	maxCauses = 1 << 12 // followed where they are not kept: further back a trace begins in the middle
)

// place is where what a record causes stands: in the trace that began with one
// record, under the span of another. 0 is under none.
type place struct {
	trace  journal.Seq
	under  journal.Seq
	beside journal.Seq // of a step: under what it stands itself
	answer journal.Seq // whose span tells how the effect went that the cell is told of
	event  string      // that the record brings to a cell
}

// places finds places. A trace begins with what comes from outside: an event, an
// operator's effect, and a timer, so that what sets its own timer for ever makes
// no endless trace. A receipt belongs to the step that asked for it, and the step
// that it leads to stands beside that one: a cell that asks again and again is a
// list, not a ladder.
//
// The last places are kept. Others are read again from the journal, back to
// one that is, or to the beginning: none of it depends on what is kept but where
// maxCauses ends it.
type places struct {
	lw         *World
	young, old map[journal.Seq]place
}

// of returns the place of what a record causes.
func (p *places) of(id journal.Seq) (place, error) { return p.find(id, maxCauses) }

// note keeps the place of what a record causes that has just been read.
func (p *places) note(rec *journal.Record) (place, error) { return p.keep(rec, maxCauses) }

func (p *places) find(id journal.Seq, most int) (place, error) {
	if at, ok := p.young[id]; ok {
		return at, nil
	}
	if at, ok := p.old[id]; ok {
		return at, nil
	}
	if id == 0 || most == 0 {
		return place{trace: id}, nil
	}
	rec, err := p.lw.record(id)
	if err != nil {
		return place{}, err
	}
	return p.keep(rec, most)
}

func (p *places) keep(rec *journal.Record, most int) (place, error) {
	at, err := p.compute(rec, most-1)
	if err != nil {
		return place{}, err
	}
	if len(p.young) >= maxPlaces || p.young == nil {
		p.young, p.old = make(map[journal.Seq]place), p.young
	}
	p.young[rec.ID] = at
	return at, nil
}

func (p *places) compute(rec *journal.Record, most int) (place, error) {
	switch rec.Kind {
	case journal.KindSubmitted, journal.KindOperator, journal.KindFired:
		event, err := eventOf(rec)
		return place{trace: rec.ID, under: rec.ID, beside: rec.ID, event: event}, err
	case journal.KindStepped:
		at, err := p.find(rec.CausedBy, most)
		return place{trace: at.trace, under: rec.ID, beside: at.under}, err
	case journal.KindEmitted:
		event, err := eventOf(rec)
		if err != nil {
			return place{}, err
		}
		at, err := p.find(rec.CausedBy, most)
		at.event = event
		return at, err
	case journal.KindTimer:
		return p.find(rec.CausedBy, most)
	default:
		asker, err := p.lw.askerOf(rec)
		if err != nil || asker == 0 {
			return place{trace: rec.ID}, err // what a rollback brings back, say
		}
		at, err := p.find(asker, most)
		at = place{trace: at.trace, under: at.beside, beside: at.beside, event: reducer.ReceiptEvent}
		if rec.Kind == journal.KindFinished || rec.Kind == journal.KindDenied {
			at.answer = rec.ID
		}
		return at, err
	}
}

// eventOf returns the name of the event that a record brings, "" where that was
// redacted.
func eventOf(rec *journal.Record) (string, error) {
	if rec.Payload == nil {
		return "", nil
	}
	body, err := rec.Body()
	switch b := body.(type) {
	case *journal.Submitted:
		return b.Name, nil
	case *journal.Emitted:
		return b.Name, nil
	case *journal.TimerFired:
		return b.Name, nil
	default:
		return "", err
	}
}

// record reads a record with its payload, which is nil where it was redacted.
func (lw *World) record(id journal.Seq) (*journal.Record, error) {
	data, err := lw.store.Record(id)
	if err != nil {
		return nil, err
	}
	rec, err := journal.DecodeRecord(data)
	if err != nil {
		return nil, err
	}
	if err := rec.Load(lw.store); err != nil && !errors.Is(err, journal.ErrRedacted) {
		return nil, err
	}
	return &rec, nil
}

// askerOf returns the step, or whatever else it was, that had asked for the
// intent of a record, the last time before it; 0 where the record is about none.
func (lw *World) askerOf(rec *journal.Record) (journal.Seq, error) {
	e, ok := lw.intentOf(rec)
	if !ok {
		return 0, nil
	}
	asked, err := lw.askedFor(&e, rec.ID)
	if err != nil || asked == nil {
		return 0, err
	}
	return asked.CausedBy, nil
}

// askedFor returns the record that says, the last time up to another, that an
// intent was asked for; nil where there is none.
func (lw *World) askedFor(e *receipt.Entry, upTo journal.Seq) (*journal.Record, error) {
	var last journal.Seq
	for _, id := range e.Asked {
		if journal.Seq(id) <= upTo {
			last = journal.Seq(id)
		}
	}
	if last == 0 {
		return nil, nil
	}
	return lw.record(last)
}

// intentOf returns what the ledger knows of the intent that a record is about.
// Where the record was redacted the ledger still knows which intent it ended.
func (lw *World) intentOf(rec *journal.Record) (receipt.Entry, bool) {
	if rec.Payload != nil {
		key, _, ok := journal.IntentOf(rec.Kind, rec.Payload)
		if !ok {
			return receipt.Entry{}, false
		}
		return lw.intent(receipt.Key{Hash: key})
	}
	lw.mu.Lock()
	all := lw.w.Intents()
	lw.mu.Unlock()
	for _, e := range all {
		if e.Finished == uint64(rec.ID) || e.Emitted == uint64(rec.ID) {
			return e, true
		}
	}
	return receipt.Entry{}, false
}

// intent returns what the ledger knows of an intent.
func (lw *World) intent(key receipt.Key) (receipt.Entry, bool) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Intent(key)
}
