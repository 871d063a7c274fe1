package world

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// compare compares what followed from an input, or one turn, in the history and in
// the shadow, and begins the next.
func (s *shadow) compare() error {
	mine := s.records[s.mine:]
	if s.together && slices.EqualFunc(s.unit, mine, func(x Scanned, y Stored) bool { return bytes.Equal(x.Bytes, y.Bytes) }) {
		s.aligned = s.last
	} else if err := s.part(mine); err != nil {
		return err
	}
	s.unit, s.records, s.mine, s.again = s.unit[:0], s.records[:0], 0, false
	s.blobs, s.tasks = nil, nil
	return nil
}

// part compares two units that are not byte for byte the same.
func (s *shadow) part(mine []Stored) error {
	s.together = false
	theirs, err := s.doneThen()
	if err != nil {
		return err
	}
	ours, err := s.doneNow(mine)
	if err != nil {
		return err
	}
	for len(theirs) > 0 && len(ours) > 0 && theirs[0].same(&ours[0]) {
		s.equate(ours[0].rec.ID, theirs[0].rec.ID)
		if ours[0].kind == deedIntent {
			s.asks(&ours[0], theirs[0].key)
		}
		theirs, ours = theirs[1:], ours[1:]
	}
	if len(theirs) == 0 && len(ours) == 0 {
		return nil
	}
	s.diverge(theirs, ours)
	if len(theirs) > 0 && len(ours) > 0 && ours[0].cell == theirs[0].cell && ours[0].event == theirs[0].event {
		ours[0].at = theirs[0].at
	}
	for i := range theirs {
		if b, ok := theirs[i].body.(*IntentEnded); ok {
			s.owe(b.Key, theirs[i].rec.ID)
		}
		s.report.add(&theirs[i], inHistory)
	}
	for i := range ours {
		if ours[i].kind == deedIntent {
			s.asks(&ours[i], s.theirs(&ours[i]))
		}
		s.report.add(&ours[i], inShadow)
	}
	return nil
}

// deed is a derived record, as far as it counts: without numbers, gas and what is
// made of the chain.
type deed struct {
	rec     Record
	at      Seq // of the history: that it is, or in whose place it is, or that led to it
	event   Seq // of the history, of a turn: what was handled, or what led to that
	kind    deedKind
	cell    string // whose it is, or that emitted it
	essence []byte // what is the same where the deed is
	body    Body

	request  request     // of an intent
	key      receipt.Key // likewise
	decision string      // likewise: allow, deny or require_approval
	again    bool        // likewise: it was asked for before
}

type deedKind uint8

const (
	deedOther deedKind = iota
	deedEvent
	deedIntent
	deedFailure
)

// same reports whether two deeds are one.
func (d *deed) same(o *deed) bool {
	return d.rec.Kind == o.rec.Kind && d.decision == o.decision && (bytes.Equal(d.rec.Payload, o.rec.Payload) || bytes.Equal(d.essence, o.essence))
}

// doneThen returns the deeds of the history in this unit.
func (s *shadow) doneThen() ([]deed, error) {
	out := make([]deed, 0, len(s.unit))
	stepper := ""
	for i := range s.unit {
		rec := s.unit[i].Record
		if err := rec.Load(s.h); err != nil {
			return nil, err
		}
		d, err := s.deed(rec, &stepper)
		if err != nil {
			return nil, err
		}
		if d != nil {
			d.at, d.event = rec.ID, rec.CausedBy
			out = append(out, *d)
		}
	}
	return out, nil
}

// doneNow returns the deeds of the shadow.
func (s *shadow) doneNow(mine []Stored) ([]deed, error) {
	out := make([]deed, 0, len(mine))
	stepper := ""
	for i := range mine {
		rec, err := DecodeRecord(mine[i].Bytes)
		if err != nil {
			return nil, err
		}
		if err := rec.Load(BlobList(s.blobs)); err != nil {
			return nil, err
		}
		d, err := s.deed(rec, &stepper)
		if err != nil {
			return nil, err
		}
		if d != nil {
			d.at = s.origin(rec.CausedBy)
			d.event = d.at
			out = append(out, *d)
		}
	}
	return out, nil
}

// deed returns what a record says has been done, or nil: it is no deed of the
// rules. stepper is the cell whose turn it is.
func (s *shadow) deed(rec Record, stepper *string) (*deed, error) {
	switch {
	case rec.Kind.Input(), rec.Kind == KindStarted, rec.Kind == KindMigrated:
		return nil, nil
	}
	body, err := rec.Body()
	if err != nil {
		return nil, err
	}
	d := &deed{rec: rec, cell: *stepper, body: body, again: s.again}
	var b []byte
	switch x := body.(type) {
	case *Stepped:
		*stepper, d.cell = x.Cell, x.Cell
		b = canon.AppendUint(canon.AppendText(b, x.Cell), x.N)
		b = append(append(b, x.Outcome...), x.State[:]...)
	case *Failed:
		d.kind, d.cell = deedFailure, x.Cell
		b = canon.AppendBool(canon.AppendUint(canon.AppendText(b, x.Cell), x.N), x.Parked)
	case *Emitted:
		d.kind = deedEvent
		b = canon.AppendText(canon.AppendText(b, *stepper), x.Name)
		for _, to := range x.To {
			b = canon.AppendText(b, to)
		}
		b = canon.AppendRaw(b, x.Data)
	case *IntentEmitted:
		d.ask(x.Key, x.Cell, x.Kind, x.Params, x.Occurrence, governance.Allow)
		b = canon.AppendText(d.request.append(b), x.Tag)
	case *IntentDenied:
		d.ask(x.Key, x.Cell, x.Kind, x.Params, x.Occurrence, governance.Deny)
		b = canon.AppendText(d.request.append(b), x.Tag)
	case *IntentParked:
		d.ask(x.Key, x.Cell, x.Kind, x.Params, x.Occurrence, governance.RequireApproval)
		b = canon.AppendText(d.request.append(b), x.Tag)
	case *IntentEnded:
		d.cell = x.Cell
		b = canon.AppendRaw(append(append(canon.AppendText(b, x.Cell), x.Status...), x.Outcome...), x.Payload)
	case *IntentWaiting:
		d.cell = x.Cell
		b = append(canon.AppendText(b, x.Cell), x.Outcome...)
	case *InDoubt:
		d.cell = x.Cell
		b = append(canon.AppendText(b, x.Cell), x.Action...)
	default: // numbers and keys are no part of the others
		b = rec.Payload
	}
	d.essence = b
	return d, nil
}

// ask makes the deed an intent.
func (d *deed) ask(key receipt.Key, cell, kind string, params Data, occurrence uint64, v governance.Verdict) {
	d.kind, d.cell, d.key, d.decision = deedIntent, cell, key, v.String()
	d.request = request{cell: cell, kind: kind, params: canon.Sum(params), occurrence: occurrence}
}

func (r *request) append(b []byte) []byte {
	b = canon.AppendText(canon.AppendText(b, r.cell), r.kind)
	return canon.AppendUint(append(b, r.params[:]...), r.occurrence)
}

// diverge notes where the two part for the first time.
func (s *shadow) diverge(theirs, ours []deed) {
	if s.report.Divergence != nil {
		return
	}
	d := &governance.Divergence{Record: uint64(s.at)}
	if len(ours) > 0 {
		d.Cell, d.Computed = ours[0].cell, excerpt(ours[0].text())
		d.Record = uint64(ours[0].at)
	}
	if len(theirs) > 0 {
		d.Cell, d.Recorded = theirs[0].cell, excerpt(theirs[0].text())
		d.Record = uint64(theirs[0].at)
	}
	s.report.Divergence = d
}

// text returns a deed as JSON.
func (d *deed) text() string {
	text, err := d.rec.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// run is a row of records of the shadow that are records of the history, by
// other numbers.
type run struct{ mine, theirs, n Seq }

// equate notes that a record of the shadow is one of the history.
func (s *shadow) equate(mine, theirs Seq) {
	if s.together {
		s.aligned = mine
		return
	}
	if last := len(s.runs) - 1; last >= 0 && s.runs[last].mine+s.runs[last].n == mine && s.runs[last].theirs+s.runs[last].n == theirs {
		s.runs[last].n++
		return
	}
	s.runs = append(s.runs, run{mine: mine, theirs: theirs, n: 1})
}

// origin returns the record of the history that one of the shadow's is, or the last
// one before it: what led to it.
func (s *shadow) origin(mine Seq) Seq {
	if mine <= s.aligned {
		return mine
	}
	after := sort.Search(len(s.runs), func(i int) bool { return s.runs[i].mine > mine })
	if after == 0 {
		return s.aligned
	}
	r := s.runs[after-1]
	return r.theirs + min(mine-r.mine, r.n-1)
}

// excerpt returns the beginning of a text.
func excerpt(text string) string {
	if len(text) <= governance.MaxExcerptBytes {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", validPrefix(text, governance.MaxExcerptBytes), len(text))
}
