package world

import (
	"cmp"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// reporter gathers what is otherwise in a shadow.
type reporter struct {
	governance.Report

	scratch, sum []byte

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
			r.decided(&other.deed, d, what)
		} else {
			r.decided(d, &other.deed, what)
		}
		return
	}
	r.next++
	r.open[string(what)] = append(r.open[string(what)], &loose{deed: *d, side: by, n: r.next})
}

// identity appends what a deed has in common with its counterpart; nothing where
// nobody asks whether it has one.
func (d *deed) identity(b []byte) []byte {
	switch d.rec.Kind {
	case KindEmitted:
		return append(canon.AppendText(append(b, 'e'), d.stepper), d.rec.Payload...)
	case KindFailed:
		return appendPlaces(append(b, 'f'), &d.rec, []int{1, 2}) // cell, n
	case KindIntent, KindParked, KindDenied:
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
func (r *reporter) decided(then, now *deed, what []byte) {
	was, is := then.verdict(), now.verdict()
	if was == is {
		return
	}
	note(r, &r.Counts.Decisions, &r.Decisions, append(what, byte(was), byte(is)), func() governance.DecisionDifference {
		in := ofIntent(now)
		return governance.DecisionDifference{
			Cell: in.Cell, Kind: in.Kind, Tag: in.Tag, Params: in.Params, Occurrence: in.Occurrence,
			Was: was.String(), Is: is.String(), Code: in.code, Rules: in.rules, Record: uint64(then.at),
		}
	})
}

// note counts a difference, and lists it while there is room. what stands for it
// among all.
func note[T any](r *reporter, count *uint64, list *[]T, what []byte, x func() T) {
	*count++
	if len(*list) < governance.MaxListed {
		*list = append(*list, x())
	}
	r.sum = append(append(r.sum[:0], r.All[:]...), what...)
	r.All = canon.Sum(r.sum)
}

func (r *reporter) refused(record Seq, err error) {
	note(r, &r.Counts.Refused, &r.Refused, canon.AppendUint(nil, uint64(record)), func() governance.Refusal {
		return governance.Refusal{Record: uint64(record), Error: excerpt(err.Error())}
	})
}

// leftOver reports the deeds that only one side has done.
func (r *reporter) leftOver() {
	var all []*loose
	for _, rest := range r.open { // order cannot show: sorted below
		all = append(all, rest...)
	}
	slices.SortFunc(all, func(a, b *loose) int { return cmp.Compare(a.n, b.n) })
	for _, x := range all {
		r.report(&x.deed, x.side)
	}
}

// report reports a deed that only one side has done.
func (r *reporter) report(d *deed, by side) {
	what := append(d.identity(nil), byte(by))
	event := func() governance.EventDifference { return ofEvent(d) }
	failure := func() governance.Failure { return ofFailure(d) }
	intent := func() governance.IntentDifference { return ofIntent(d).IntentDifference }
	switch kind := d.rec.Kind; {
	case kind == KindEmitted && by == inHistory:
		note(r, &r.Counts.EventsGone, &r.EventsGone, what, event)
	case kind == KindEmitted:
		note(r, &r.Counts.EventsNew, &r.EventsNew, what, event)
	case kind == KindFailed && by == inHistory:
		note(r, &r.Counts.Mended, &r.Mended, what, failure)
	case kind == KindFailed:
		note(r, &r.Counts.Failed, &r.Failed, what, failure)
	case d.again: // it was decided once more on one side: that it was parked there says all
	case by == inHistory:
		note(r, &r.Counts.IntentsGone, &r.IntentsGone, what, intent)
	default:
		note(r, &r.Counts.IntentsNew, &r.IntentsNew, what, intent)
	}
}

func ofEvent(d *deed) governance.EventDifference {
	x := governance.EventDifference{Cell: d.stepper, Record: uint64(d.at)}
	if b, ok := d.body().(*Emitted); ok {
		x.Name, x.To, x.Data = b.Name, b.To, quoted(b.Data)
	}
	return x
}

func ofFailure(d *deed) governance.Failure {
	x := governance.Failure{Record: uint64(d.at), Event: uint64(d.event)}
	if b, ok := d.body().(*Failed); ok {
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

func ofIntent(d *deed) asking {
	x := asking{rules: []string{}}
	switch b := d.body().(type) {
	case *IntentEmitted:
		x.Cell, x.Kind, x.Tag, x.Params, x.Occurrence = b.Cell, b.Kind, b.Tag, quoted(b.Params), b.Occurrence
		x.rules = append(x.rules, b.Rules...)
	case *IntentParked:
		x.Cell, x.Kind, x.Tag, x.Params, x.Occurrence = b.Cell, b.Kind, b.Tag, quoted(b.Params), b.Occurrence
		x.rules = append(x.rules, b.Rules...)
	case *IntentDenied:
		x.Cell, x.Kind, x.Tag, x.Params, x.Occurrence = b.Cell, b.Kind, b.Tag, quoted(b.Params), b.Occurrence
		x.code, x.rules = b.Code, append(x.rules, b.Rules...)
	}
	x.Decision, x.Record = d.verdict().String(), uint64(d.at)
	return x
}

// body decodes the record; nil where it cannot be.
func (d *deed) body() Body {
	body, err := d.rec.Body()
	if err != nil {
		return nil // it was written here, or has been replayed
	}
	return body
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
	var all []CellChange // where one side has none it is the zero CellView
	for _, v := range d.CellsGone {
		all = append(all, CellChange{A: v})
	}
	for _, v := range d.CellsAdded {
		all = append(all, CellChange{B: v})
	}
	all = append(all, d.CellsChanged...)
	slices.SortFunc(all, func(a, b CellChange) int { return strings.Compare(a.name(), b.name()) })
	var what []byte
	for i := range all {
		c := &all[i]
		what = append(append(canon.AppendText(what[:0], c.name()), c.A.State...), c.B.State...)
		note(s.report, &s.report.Counts.Cells, &s.report.Cells, what, func() governance.CellDifference {
			return c.report(waits[c.name()])
		})
	}
}

func (c *CellChange) name() string { return cmp.Or(c.A.Cell, c.B.Cell).String() }

func (c *CellChange) report(unknown bool) governance.CellDifference {
	x := governance.CellDifference{
		Cell: c.name(), What: "changed", StepsWas: c.A.N, StepsIs: c.B.N, ParkedWas: c.A.Parked, ParkedIs: c.B.Parked, Unknown: unknown,
	}
	switch none := (reducer.Cell{}); {
	case c.B.Cell == none:
		x.What = "gone"
		return x
	case c.A.Cell == none:
		x.What = "new"
	}
	x.State, x.More = stateChanges(c.A.State, c.B.State)
	return x
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
		note(s.report, &s.report.Counts.Unknown, &s.report.Unknown, key.Hash[:], func() governance.Unknown {
			return governance.Unknown{Cell: e.Intent.Cell, Kind: e.Intent.Kind, Params: quoted(e.Intent.Params), Why: why}
		})
	}
	return waits
}
