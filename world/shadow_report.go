package world

import (
	"cmp"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// reporter gathers what is otherwise in a shadow.
type reporter struct {
	governance.Report

	open map[string][]*loose // deeds that the other side has not done, by what they are; oldest first
	next uint64

	turns map[turn]Seq // of the history, that the shadow did not take alike at the same place
}

// turn is what a cell does with an event.
type turn struct {
	cell  string
	event Seq
}

// loose is a deed without its counterpart.
type loose struct {
	deed
	side side
	n    uint64
}

// side says in which of the two something was done.
type side uint8

const (
	inHistory side = iota
	inShadow
)

func newReporter(r governance.Report) *reporter {
	return &reporter{Report: r, open: make(map[string][]*loose), turns: make(map[turn]Seq)}
}

// add takes a deed that the other side has not done at the same place. It may do so
// at another, before or after.
func (r *reporter) add(d *deed, by side) {
	if by == inHistory && (d.rec.Kind == KindStepped || d.rec.Kind == KindFailed) {
		r.turns[turn{d.cell, d.event}] = d.at
	}
	if d.kind == deedOther {
		return
	}
	what := d.identity()
	if waiting := r.open[what]; len(waiting) > 0 && waiting[0].side != by {
		other := waiting[0]
		if r.open[what] = waiting[1:]; len(waiting) == 1 {
			delete(r.open, what)
		}
		if by == inShadow {
			r.decided(&other.deed, d)
		} else {
			r.decided(d, &other.deed)
		}
		return
	}
	r.next++
	r.open[what] = append(r.open[what], &loose{deed: *d, side: by, n: r.next})
}

// identity is what a deed has in common with its counterpart.
func (d *deed) identity() string {
	b := []byte{byte(d.kind), 0}
	switch d.kind {
	case deedIntent:
		if d.again {
			b[1] = 1
		}
		return string(d.request.append(b))
	case deedFailure:
		x, _ := d.body.(*Failed)
		return string(canon.AppendUint(canon.AppendText(b, d.cell), x.N))
	default:
		return string(append(b, d.essence...))
	}
}

// decided compares what the gate has said of an intent in the history and in the
// shadow.
func (r *reporter) decided(then, now *deed) {
	if then.decision == now.decision {
		return
	}
	in := ofIntent(now)
	x := governance.DecisionDifference{
		Cell: in.Cell, Kind: in.Kind, Tag: in.Tag, Params: in.Params, Occurrence: in.Occurrence,
		Was: then.decision, Is: now.decision, Rules: []string{}, Record: uint64(then.at),
	}
	switch b := now.body.(type) {
	case *IntentEmitted:
		x.Rules = append(x.Rules, b.Rules...)
	case *IntentParked:
		x.Rules = append(x.Rules, b.Rules...)
	case *IntentDenied:
		x.Code, x.Rules = b.Code, append(x.Rules, b.Rules...)
	}
	note(r, &r.Counts.Decisions, &r.Decisions, x)
}

// note counts a difference, and lists it while there is room.
func note[T any](r *reporter, count *uint64, list *[]T, x T) {
	*count++
	if len(*list) < governance.MaxListed {
		*list = append(*list, x)
	}
	b, err := canon.Marshal(x)
	if err != nil {
		b = []byte(err.Error()) // it cannot be: all of it is text and numbers
	}
	r.All = canon.Sum(append(r.All[:], b...))
}

func (r *reporter) refused(record Seq, err error) {
	note(r, &r.Counts.Refused, &r.Refused, governance.Refusal{Record: uint64(record), Error: excerpt(err.Error())})
}

// leftOver reports the deeds that only one side has done.
func (r *reporter) leftOver() {
	var all []*loose
	for _, rest := range r.open { // order cannot show: sorted below
		all = append(all, rest...)
	}
	slices.SortFunc(all, func(a, b *loose) int { return cmp.Compare(a.n, b.n) })
	for _, x := range all {
		switch {
		case x.kind == deedEvent && x.side == inHistory:
			note(r, &r.Counts.EventsGone, &r.EventsGone, ofEvent(&x.deed))
		case x.kind == deedEvent:
			note(r, &r.Counts.EventsNew, &r.EventsNew, ofEvent(&x.deed))
		case x.kind == deedFailure && x.side == inHistory:
			note(r, &r.Counts.Mended, &r.Mended, ofFailure(&x.deed))
		case x.kind == deedFailure:
			if at, ok := r.turns[turn{x.cell, x.event}]; ok {
				x.at = at
			}
			note(r, &r.Counts.Failed, &r.Failed, ofFailure(&x.deed))
		case x.again: // it was decided once more on one side: that it was parked there says all
		case x.side == inHistory:
			note(r, &r.Counts.IntentsGone, &r.IntentsGone, ofIntent(&x.deed))
		default:
			note(r, &r.Counts.IntentsNew, &r.IntentsNew, ofIntent(&x.deed))
		}
	}
}

func ofEvent(d *deed) governance.EventDifference {
	x := governance.EventDifference{Cell: d.cell, Record: uint64(d.at)}
	if b, ok := d.body.(*Emitted); ok {
		x.Name, x.To, x.Data = b.Name, b.To, quoted(b.Data)
	}
	return x
}

func ofFailure(d *deed) governance.Failure {
	x := governance.Failure{Cell: d.cell, Record: uint64(d.at), Event: uint64(d.event)}
	if b, ok := d.body.(*Failed); ok {
		x.Step, x.Error = b.N, excerpt(b.Error)
	}
	return x
}

func ofIntent(d *deed) governance.IntentDifference {
	x := governance.IntentDifference{
		Cell: d.cell, Kind: d.request.kind, Occurrence: d.request.occurrence, Decision: d.decision, Record: uint64(d.at),
	}
	switch b := d.body.(type) {
	case *IntentEmitted:
		x.Tag, x.Params = b.Tag, quoted(b.Params)
	case *IntentParked:
		x.Tag, x.Params = b.Tag, quoted(b.Params)
	case *IntentDenied:
		x.Tag, x.Params = b.Tag, quoted(b.Params)
	}
	return x
}

// quoted returns the beginning of data as JSON.
func quoted(data Data) string {
	if len(data) == 0 {
		return ""
	}
	text, err := data.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return excerpt(string(text))
}

// ended reports whether an intent waits for nothing any more.
func ended(e *receipt.Entry) bool {
	return e.State == receipt.StateCommitted || e.State == receipt.StateFailed || e.State == receipt.StateDenied
}

// validPrefix returns at most n bytes of a text, whole characters.
func validPrefix(text string, n int) string {
	return strings.ToValidUTF8(text[:n], "")
}

// done returns the report.
func (r *reporter) done() *governance.Report { return &r.Report }

// compareCells reports the cells that are others now, and those that wait for what
// the history cannot tell.
func (s *shadow) compareCells() {
	waits := s.compareWaits()
	var d Difference
	d.compareCells(s.was.sortedCells(), s.sortedCells())
	var all []governance.CellDifference
	for _, v := range d.CellsGone {
		all = append(all, governance.CellDifference{Cell: v.Cell.String(), What: "gone", StepsWas: v.N, ParkedWas: v.Parked})
	}
	for _, v := range d.CellsAdded {
		x := governance.CellDifference{Cell: v.Cell.String(), What: "new", StepsIs: v.N, ParkedIs: v.Parked}
		x.State, x.More = stateChanges(nil, v.State)
		all = append(all, x)
	}
	for _, c := range d.CellsChanged {
		x := governance.CellDifference{
			Cell: c.A.Cell.String(), What: "changed", StepsWas: c.A.N, StepsIs: c.B.N, ParkedWas: c.A.Parked, ParkedIs: c.B.Parked,
		}
		x.State, x.More = stateChanges(c.A.State, c.B.State)
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b governance.CellDifference) int { return strings.Compare(a.Cell, b.Cell) })
	for _, x := range all {
		x.Unknown = waits[x.Cell]
		note(s.report, &s.report.Counts.Cells, &s.report.Cells, x)
	}
}

// stateChanges returns where two states differ, and how many places more there are.
func stateChanges(was, is Data) ([]governance.Change, uint64) {
	all := canon.Changes(was, is)
	out := make([]governance.Change, 0, min(len(all), governance.MaxChanges))
	for _, c := range all[:min(len(all), governance.MaxChanges)] {
		out = append(out, governance.Change{Path: c.Path, Was: quoted(c.A), Is: quoted(c.B)})
	}
	return out, uint64(len(all) - len(out))
}

// compareWaits reports the intents that wait in the shadow and do not in the
// history. It returns the cells that do.
func (s *shadow) compareWaits() map[string]bool {
	waits := make(map[string]bool)
	theirs := make(map[receipt.Key]receipt.Key, len(s.wants))
	for key, mine := range s.wants { // order cannot show: a map of them
		theirs[mine] = key
	}
	for _, key := range s.ledger.Keys() {
		e := s.ledger.Entry(key)
		if e.Abandoned || ended(e) {
			continue
		}
		other, ok := theirs[key]
		if !ok {
			other = key
		}
		then := s.was.ledger.Entry(other)
		if then != nil && !ended(then) {
			continue // it waits there, too
		}
		why := "the history has no answer to it"
		if e.State == receipt.StateParked && e.Deadline != receipt.NoDeadline {
			why = "nobody has approved it in the history"
		}
		waits[e.Intent.Cell] = true
		note(s.report, &s.report.Counts.Unknown, &s.report.Unknown, governance.Unknown{
			Cell: e.Intent.Cell, Kind: e.Intent.Kind, Params: quoted(e.Intent.Params), Why: why,
		})
	}
	return waits
}
