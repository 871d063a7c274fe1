package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// spans writes what happened in a world as spans, as docs/exports.md says: one
// for each record that ends something, with the id of that record.
type spans struct {
	past
	places places
	inForce
	worlds []ownedFrom                 // whose the records are
	open   map[receipt.Key]startedSpan // attempts in flight
}

// ownedFrom is a world that records belong to, from one of them on.
type ownedFrom struct {
	from journal.Seq
	id   string
}

// OTLP writes a span a line, in the JSON encoding of OpenTelemetry's protocol.
func OTLP(h journal.History, l Ledger) Writer {
	p := past{h, l}
	return (&spans{past: p, places: places{past: p}, open: make(map[receipt.Key]startedSpan)}).write
}

func (x *spans) write(out *bufio.Writer, rec *journal.Record, _ []byte) error {
	before := x.world
	if err := x.follow(rec, x); err != nil {
		return err
	}
	if x.world != before {
		x.worlds = append(x.worlds, ownedFrom{rec.ID, x.world})
	}
	s, err := x.spanOf(rec)
	if err != nil || s == nil {
		return err
	}
	var line otlpRequest
	resource := &line.Spans[0]
	resource.Resource.Attributes.text("service.name", x.manifest.World)
	resource.Resource.Attributes.text("worldkernel.world", x.world)
	scope := &resource.Scopes[0]
	scope.Scope.Name, scope.Schema, scope.Spans[0] = "worldkernel", otlpSchema, s
	return json.NewEncoder(out).Encode(line)
}

// spanOf returns the span that a record ends, or nil.
func (x *spans) spanOf(rec *journal.Record) (*otlpSpan, error) {
	switch rec.Kind {
	case journal.KindSubmitted, journal.KindOperator, journal.KindFired:
		return x.rootSpan(rec)
	case journal.KindStepped, journal.KindFailed:
		return x.stepSpan(rec)
	case journal.KindEmitted:
		_, err := x.places.keepPlace(rec)
		return nil, err
	case journal.KindStarted:
		return nil, x.start(rec)
	case journal.KindFinished, journal.KindLate, journal.KindExpired, journal.KindDenied:
		return x.effectSpan(rec)
	default:
		return nil, nil
	}
}

// span returns the span of a record that has taken no time.
func (x *spans) span(rec *journal.Record, name string, kind otlpSpanKind) *otlpSpan {
	s := &otlpSpan{Name: name, Kind: kind, ID: x.spanID(rec.ID), Start: x.nanos(rec)}
	s.End = s.Start
	s.Attributes.number("worldkernel.record", uint64(rec.ID))
	s.Attributes.number("worldkernel.tick", uint64(rec.Time))
	s.Attributes.yes("worldkernel.redacted", rec.Payload == nil)
	return s
}

// stand puts a span where what a record causes stands.
func (x *spans) stand(s *otlpSpan, at place) {
	s.Trace = x.traceID(at.trace)
	if at.under != 0 {
		s.Parent = x.spanID(at.under)
	}
}

// rootSpan is the span of what comes from outside or from a timer: it begins a
// trace.
func (x *spans) rootSpan(rec *journal.Record) (*otlpSpan, error) {
	at, err := x.places.keepPlace(rec)
	if err != nil {
		return nil, err
	}
	s := x.span(rec, "", otlpInternal)
	s.Trace = x.traceID(rec.ID)
	switch rec.Kind {
	case journal.KindOperator:
		s.Name = "operator"
		if rec.Payload != nil {
			body, err := rec.Body()
			if err != nil {
				return nil, err
			}
			s.Attributes.text("worldkernel.actor", body.(*journal.OperatorEffect).Actor)
		}
		return s, nil
	case journal.KindFired:
		s.Name = "timer " + at.event
		set, err := x.places.placeOf(rec.CausedBy)
		if err != nil {
			return nil, err
		}
		if set.under != 0 {
			s.Links = []otlpLink{{Trace: x.traceID(set.trace), ID: x.spanID(set.under)}}
		}
	default:
		s.Name, s.Kind = "event "+at.event, otlpConsumer
	}
	if at.event == "" {
		s.Name = s.Name[:len(s.Name)-1]
	}
	s.Attributes.text("worldkernel.event", at.event)
	return s, nil
}

// stepSpan is the span of a turn of a cell.
func (x *spans) stepSpan(rec *journal.Record) (*otlpSpan, error) {
	body, err := rec.Body()
	if err != nil {
		return nil, err
	}
	at, err := x.places.placeOf(rec.CausedBy)
	if err != nil {
		return nil, err
	}
	s := x.span(rec, "", otlpInternal)
	x.stand(s, at)
	a := &s.Attributes
	a.number("worldkernel.caused_by", uint64(rec.CausedBy))
	a.text("worldkernel.event", at.event)
	name := ""
	switch b := body.(type) {
	case *journal.Stepped:
		name = b.Cell
		a.text("worldkernel.cell", name)
		a.number("worldkernel.step", b.N)
		a.text("worldkernel.outcome", string(b.Outcome))
		a.number("worldkernel.gas", b.Gas)
		if _, err := x.places.keepPlace(rec); err != nil {
			return nil, err
		}
	case *journal.Failed:
		name = b.Cell
		a.text("worldkernel.cell", name)
		a.number("worldkernel.step", b.N)
		a.text("worldkernel.outcome", string(receipt.OutcomePermanentFailure))
		a.yes("worldkernel.halted", b.Halted)
		s.fail("reducer_failed", b.Error)
	}
	cell, err := reducer.ParseCell(name)
	s.Name = "reduce " + cell.Reducer
	if at.answer != 0 {
		s.Links = []otlpLink{{Trace: s.Trace, ID: x.spanID(at.answer)}}
	}
	return s, err
}

// nanos returns the time of a record: the world's calendar, and as many
// nanoseconds as the record's number, so that the order within a tick can be
// seen.
func (x *spans) nanos(rec *journal.Record) string {
	return unixNanos(x.manifest.Clock.At(rec.Time) + int64(rec.ID))
}

// traceID and spanID return the first 16 and 8 bytes of
// H( world id ‖ 0x00 ‖ record in decimal ), with the id of the world that the
// record belongs to: a fork's are its parent's up to where it begins.
func (x *spans) traceID(id journal.Seq) string { return x.recordID(id, 16) }
func (x *spans) spanID(id journal.Seq) string  { return x.recordID(id, 8) }

func (x *spans) recordID(id journal.Seq, size int) string {
	whose := ""
	for _, r := range slices.Backward(x.worlds) {
		if r.from <= id {
			whose = r.id
			break
		}
	}
	h := sha256.Sum256(strconv.AppendUint([]byte(whose+"\x00"), uint64(id), 10))
	return hex.EncodeToString(h[:size])
}
