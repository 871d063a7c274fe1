package world

import (
	"cmp"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	session "github.com/worldkernel/worldkernel/reducer/recorder"
)

// reporter gathers the differences of a shadow.
type reporter struct {
	governance.Report

	most int // differences of a kind that are listed

	scratch, sum []byte

	open map[string][]*loose // derived records without a counterpart so far, by identity; oldest first
	next uint64
}

// turn is what a cell does with an event.
type turn struct {
	cell  string
	event journal.Seq
}

// loose is a derived record without its counterpart.
type loose struct {
	derived
	side side
	n    uint64
}

// side is the history or the shadow.
type side uint8

const (
	inHistory side = iota
	inShadow
)

func newReporter(r governance.Report, most int) *reporter {
	return &reporter{Report: r, most: cmp.Or(most, governance.MaxListed), open: make(map[string][]*loose)}
}

// add takes a derived record that the other side does not have at the same place. The other side may have it
// at another place, before or after.
func (r *reporter) add(d *derived, by side) {
	what := d.identity(r.scratch[:0])
	if r.scratch = what; len(what) == 0 {
		return
	}
	if waiting := r.open[string(what)]; len(waiting) > 0 && waiting[0].side != by {
		other := waiting[0]
		if r.open[string(what)] = waiting[1:]; len(waiting) == 1 {
			delete(r.open, string(what))
		}
		if by == inShadow {
			r.decided(&other.derived, d, what)
		} else {
			r.decided(d, &other.derived, what)
		}
		return
	}
	r.next++
	r.open[string(what)] = append(r.open[string(what)], &loose{derived: *d, side: by, n: r.next})
}

// identity appends what a derived record has in common with its counterpart, and nothing for a record that
// needs no counterpart.
func (d *derived) identity(b []byte) []byte {
	switch d.rec.Kind {
	case journal.KindEmitted:
		return append(canon.AppendText(append(b, 'e'), d.stepper), d.rec.Payload...)
	case journal.KindFailed:
		return appendPlaces(append(b, 'f'), &d.rec, []int{1, 2}) // cell, n
	case journal.KindIntent, journal.KindAwaitingApproval, journal.KindDenied:
		class := byte('i')
		if d.again {
			class = 'a'
		}
		places := said(d.rec.Kind)
		return appendPlaces(append(b, class), &d.rec, []int{3, 4, 7, places[len(places)-1]}) // cell, kind, occurrence, params
	default:
		return b
	}
}

// decided compares what the gate has said of an intent in the history and in the
// shadow.
func (r *reporter) decided(then, now *derived, what []byte) {
	was, is := then.verdict(), now.verdict()
	if was == is {
		return
	}
	noteDifference(r, &r.Counts.Decisions, &r.Decisions, append(what, byte(was), byte(is)), func() governance.DecisionDifference {
		in := ofIntent(now)
		return governance.DecisionDifference{
			Cell: in.Cell, Kind: in.Kind, Tag: in.Tag, Params: in.Params, Occurrence: in.Occurrence,
			Was: was.String(), Is: is.String(), Code: in.code, Rules: in.rules, Record: uint64(then.at),
		}
	})
}

// noteDifference counts a difference, and lists it while there is room. what identifies it in the hash of all
// differences.
func noteDifference[T any](r *reporter, count *uint64, list *[]T, what []byte, x func() T) {
	*count++
	if len(*list) < r.most {
		*list = append(*list, x())
	}
	r.sum = append(append(r.sum[:0], r.All[:]...), what...)
	r.All = canon.Sum(r.sum)
}

func (r *reporter) refused(record journal.Seq, err error) {
	noteDifference(r, &r.Counts.Refused, &r.Refused, canon.AppendUint(nil, uint64(record)), func() governance.Refusal {
		return governance.Refusal{Record: uint64(record), Error: excerpt(err.Error())}
	})
}

// leftOver reports the derived records that only one side has.
func (r *reporter) leftOver() {
	var all []*loose
	for _, rest := range r.open { // order cannot show: sorted below
		all = append(all, rest...)
	}
	slices.SortFunc(all, func(a, b *loose) int { return cmp.Compare(a.n, b.n) })
	for _, x := range all {
		r.report(&x.derived, x.side)
	}
}

// report reports a derived record that only one side has.
func (r *reporter) report(d *derived, by side) {
	what := append(d.identity(nil), byte(by))
	event := func() governance.EventDifference { return ofEvent(d) }
	failure := func() governance.Failure { return ofFailure(d) }
	intent := func() governance.IntentDifference { return ofIntent(d).IntentDifference }
	switch kind := d.rec.Kind; {
	case kind == journal.KindEmitted && by == inHistory:
		noteDifference(r, &r.Counts.EventsGone, &r.EventsGone, what, event)
	case kind == journal.KindEmitted:
		noteDifference(r, &r.Counts.EventsNew, &r.EventsNew, what, event)
	case kind == journal.KindFailed && by == inHistory:
		noteDifference(r, &r.Counts.Mended, &r.Mended, what, failure)
	case kind == journal.KindFailed:
		noteDifference(r, &r.Counts.Failed, &r.Failed, what, failure)
	case d.again: // it was decided once more on one side: that it awaited approval there says all
	case by == inHistory:
		noteDifference(r, &r.Counts.IntentsGone, &r.IntentsGone, what, intent)
	default:
		noteDifference(r, &r.Counts.IntentsNew, &r.IntentsNew, what, intent)
	}
}

func ofEvent(d *derived) governance.EventDifference {
	x := governance.EventDifference{Cell: d.stepper, Record: uint64(d.at)}
	if b, ok := d.body().(*journal.Emitted); ok {
		x.Name, x.To, x.Data = b.Name, b.To, quoted(b.Data)
	}
	return x
}

func ofFailure(d *derived) governance.Failure {
	x := governance.Failure{Record: uint64(d.at), Event: uint64(d.event)}
	if b, ok := d.body().(*journal.Failed); ok {
		x.Cell, x.Step, x.Error = b.Cell, b.N, excerpt(b.Error)
	}
	return x
}

// asking is an intent with what the gate has said of it.
type asking struct {
	governance.IntentDifference

	code  string
	rules []string
}

func ofIntent(d *derived) asking {
	x := asking{rules: []string{}}
	switch b := d.body().(type) {
	case *journal.IntentEmitted:
		x.Cell, x.Kind, x.Tag, x.Params, x.Occurrence = b.Cell, b.Kind, b.Tag, quoted(b.Params), b.Occurrence
		x.rules = append(x.rules, b.Rules...)
	case *journal.IntentAwaitingApproval:
		x.Cell, x.Kind, x.Tag, x.Params, x.Occurrence = b.Cell, b.Kind, b.Tag, quoted(b.Params), b.Occurrence
		x.rules = append(x.rules, b.Rules...)
	case *journal.IntentDenied:
		x.Cell, x.Kind, x.Tag, x.Params, x.Occurrence = b.Cell, b.Kind, b.Tag, quoted(b.Params), b.Occurrence
		x.code, x.rules = b.Code, append(x.rules, b.Rules...)
	}
	x.Decision, x.Record = d.verdict().String(), uint64(d.at)
	return x
}

// body decodes the record; nil if it cannot be decoded.
func (d *derived) body() journal.Body {
	body, err := d.rec.Body()
	if err != nil {
		return nil // it was written here, or has been replayed
	}
	return body
}

// placeFailures finds the records in which the history handled the events that steps of the shadow fail on.
// After the first difference, turns of history and shadow do not come in pairs.
func (s *shadow) placeFailures() error {
	failed := make(map[turn]*governance.Failure)
	for i := range s.report.Failed {
		x := &s.report.Failed[i]
		failed[turn{x.Cell, journal.Seq(x.Event)}] = x
	}
	if len(failed) == 0 {
		return nil
	}
	for rec, err := range s.h.Scan(journal.Seq(s.report.Divergence.Record) - 1) {
		if err == nil {
			err = rec.Err
		}
		if err != nil {
			return err
		}
		if kind := rec.Record.Kind; kind != journal.KindStepped && kind != journal.KindFailed {
			continue
		}
		d := derived{rec: rec.Record}
		if err := d.rec.Load(s.h); err != nil {
			return err
		}
		what := turn{d.cell(), rec.Record.CausedBy}
		if x := failed[what]; x != nil && s.was.inHistory(rec.ID, s.was.last) {
			x.Record = uint64(rec.ID)
			if delete(failed, what); len(failed) == 0 {
				break
			}
		}
	}
	return nil
}

// quoted returns the beginning of data as JSON, or of what is said in it in an agent's session.
func quoted(data journal.Data) string {
	if len(data) == 0 {
		return ""
	} else if said := session.Spoken(data); said != "" {
		return excerpt(said)
	}
	text, err := data.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return excerpt(string(text))
}

// done returns the report.
func (r *reporter) done() *governance.Report { return &r.Report }
