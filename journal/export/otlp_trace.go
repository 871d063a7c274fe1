package export

import (
	"github.com/worldkernel/worldkernel/journal"
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
	past
	young, old map[journal.Seq]place
}

// placeOf returns the place of what a record causes.
func (p *places) placeOf(id journal.Seq) (place, error) { return p.find(id, maxCauses) }

// keepPlace keeps the place of what a record causes that has just been read.
func (p *places) keepPlace(rec *journal.Record) (place, error) { return p.keep(rec, maxCauses) }

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
	rec, err := p.record(id)
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
		asker, err := p.askerOf(rec)
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
