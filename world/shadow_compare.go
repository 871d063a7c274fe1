package world

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// compare compares a unit of the history with the shadow's, and begins the next one.
func (s *shadow) compare() error {
	mine := s.records[s.mine:]
	if s.together && slices.EqualFunc(s.then, mine, func(x journal.Scanned, y journal.Stored) bool { return bytes.Equal(x.Bytes, y.Bytes) }) {
		s.aligned = s.last
	} else if err := s.part(mine); err != nil {
		return err
	}
	s.then, s.records, s.mine, s.again = s.then[:0], s.records[:0], 0, false
	s.blobs, s.tasks = nil, nil
	return nil
}

// part compares two units that are not byte for byte the same.
func (s *shadow) part(mine []journal.Stored) error {
	s.together = false
	if err := s.gatherThen(); err != nil {
		return err
	}
	if err := s.gatherNow(mine); err != nil {
		return err
	}
	theirs, ours := s.derivedThen, s.derivedNow
	for len(theirs) > 0 && len(ours) > 0 && theirs[0].same(&ours[0]) {
		s.equate(ours[0].rec.ID, theirs[0].rec.ID)
		if ours[0].intent() && !bytes.Equal(ours[0].rec.Payload, theirs[0].rec.Payload) {
			s.asks(ours[0].key(), theirs[0].key())
		}
		theirs, ours = theirs[1:], ours[1:]
	}
	if len(theirs) == 0 && len(ours) == 0 {
		return nil
	}
	s.diverge(theirs, ours)
	if len(theirs) > 0 && len(ours) > 0 && ours[0].event == theirs[0].event && ours[0].cell() == theirs[0].cell() {
		ours[0].at = theirs[0].at
	}
	for i := range theirs {
		if theirs[i].rec.Kind == journal.KindEnded {
			s.noteAnswer(s.counterpart(theirs[i].key()), theirs[i].key(), theirs[i].rec.ID)
		}
		s.report.add(&theirs[i], inHistory)
	}
	for i := range ours {
		if ours[i].intent() {
			s.asks(ours[i].key(), s.unasked(ours[i].key()))
		}
		s.report.add(&ours[i], inShadow)
	}
	return nil
}

// gatherThen makes s.derivedThen the derived records of the history in this unit.
func (s *shadow) gatherThen() error {
	s.derivedThen = s.derivedThen[:0]
	stepper := ""
	for i := range s.then {
		rec := s.then[i].Record
		if !counts(rec.Kind) {
			continue
		}
		if err := rec.Load(s.h); err != nil {
			return err
		}
		d := derived{rec: rec, at: rec.ID, event: rec.CausedBy, again: s.again}
		if d.noteTurn(&stepper); !d.attempt() || s.counterpart(d.key()) != nil { // else a rollback left the intent, or it is gone
			s.derivedThen = append(s.derivedThen, d)
		}
	}
	return nil
}

// gatherNow makes s.derivedNow the derived records of the shadow.
func (s *shadow) gatherNow(mine []journal.Stored) error {
	s.derivedNow = s.derivedNow[:0]
	stepper := ""
	for i := range mine {
		rec, err := journal.DecodeRecord(mine[i].Bytes)
		if err != nil {
			return err
		}
		if !counts(rec.Kind) {
			continue
		}
		if rec.Kind == journal.KindEnded || rec.Kind == journal.KindDenied {
			s.ends[rec.ID] = bytes.Clone(mine[i].Bytes)
		}
		if err := rec.Load(journal.BlobList(s.blobs)); err != nil {
			return err
		}
		led, _ := s.origin(rec.CausedBy)
		s.derivedNow = append(s.derivedNow, derived{rec: rec, at: led, event: led, again: s.again})
		s.derivedNow[len(s.derivedNow)-1].noteTurn(&stepper)
	}
	return nil
}

// derived is a derived record. Its numbers, its gas and the values made of the chain are not compared.
type derived struct {
	rec     journal.Record
	at      journal.Seq // a record of the history: this one, its counterpart, or its cause
	event   journal.Seq // a record of the history: the event of the turn, or its cause
	stepper string      // the cell whose turn it is; empty: it followed from an input
	again   bool        // an intent: it was asked for before
}

// counts reports whether records of a kind are compared: the rules derive them.
func counts(k journal.Kind) bool {
	return !k.Input() && k != journal.KindStarted && k != journal.KindMigrated
}

// noteTurn notes whose turn it is.
func (d *derived) noteTurn(stepper *string) {
	if d.rec.Kind == journal.KindStepped {
		r := canon.NewReader(d.rec.Payload)
		r.Array()
		r.Uint() // the version
		*stepper = r.Text()
	}
	d.stepper = *stepper
}

// intent reports whether the derived record is a decision about an effect.
func (d *derived) intent() bool {
	return d.rec.Kind == journal.KindIntent || d.rec.Kind == journal.KindDenied || d.rec.Kind == journal.KindAwaitingApproval
}

// attempt reports whether the derived record is the outcome of an attempt.
func (d *derived) attempt() bool {
	return d.rec.Kind == journal.KindWaiting || d.rec.Kind == journal.KindInDoubt || d.rec.Kind == journal.KindEnded
}

// key returns the key in a record about an intent.
func (d *derived) key() receipt.Key {
	r := canon.NewReader(d.rec.Payload)
	r.Array()
	r.Uint() // the version
	var key receipt.Key
	copy(key.Hash[:], r.Bytes())
	return key
}

// verdict returns what was decided about an intent.
func (d *derived) verdict() governance.Verdict {
	switch d.rec.Kind {
	case journal.KindDenied:
		return governance.Deny
	case journal.KindAwaitingApproval:
		return governance.RequireApproval
	default:
		return governance.Allow
	}
}

// said returns the places, in payloads of a kind, at which equal derived records agree. The intent's number
// and the cost of computing are not among them.
func said(k journal.Kind) []int {
	switch k {
	case journal.KindStepped:
		return []int{1, 2, 3, 4} // cell, n, outcome, state
	case journal.KindFailed:
		return []int{1, 2, 3} // cell, n, halted
	case journal.KindIntent, journal.KindAwaitingApproval:
		return []int{3, 4, 5, 7, 10} // cell, kind, tag, occurrence, params
	case journal.KindDenied:
		return []int{3, 4, 5, 7, 11}
	case journal.KindEnded:
		return []int{2, 4, 5, 6} // cell, status, outcome, payload
	case journal.KindWaiting:
		return []int{2, 4} // cell, outcome
	case journal.KindInDoubt:
		return []int{2, 4} // cell, action
	case journal.KindTagCancelled:
		return []int{1, 2} // cell, tag
	case journal.KindCancelled:
		return []int{2} // cell
	default:
		return nil // all
	}
}

// appendPlaces appends the items at some places of a record's payload, ascending.
func appendPlaces(b []byte, rec *journal.Record, places []int) []byte {
	r := canon.NewReader(rec.Payload)
	n := r.Array()
	for i := 0; i < n && len(places) > 0; i++ {
		item := r.Raw()
		if i == places[0] {
			b, places = append(b, item...), places[1:]
		}
	}
	return b
}

// same reports whether two derived records are equal in all that counts.
func (d *derived) same(o *derived) bool {
	switch {
	case d.rec.Kind != o.rec.Kind:
		return false
	case bytes.Equal(d.rec.Payload, o.rec.Payload):
		return true
	}
	places := said(d.rec.Kind)
	if places == nil {
		return false
	}
	var a, b [256]byte
	return bytes.Equal(appendPlaces(a[:0], &d.rec, places), appendPlaces(b[:0], &o.rec, places))
}

// diverge notes the first difference of history and shadow.
func (s *shadow) diverge(theirs, ours []derived) {
	if s.report.Divergence != nil {
		return
	}
	d := &governance.Divergence{Record: uint64(s.at)}
	if len(ours) > 0 {
		d.Record, d.Cell, d.Computed = uint64(ours[0].at), ours[0].cell(), excerptOf(ours[0].text(), governance.MaxRecordBytes)
	}
	if len(theirs) > 0 {
		d.Record, d.Cell, d.Recorded = uint64(theirs[0].at), theirs[0].cell(), excerptOf(theirs[0].text(), governance.MaxRecordBytes)
	}
	s.report.Divergence = d
}

// cell returns the cell whose record it is.
func (d *derived) cell() string {
	cell := d.stepper
	_ = journal.EachCell(d.rec.Kind, d.rec.Payload, func(name []byte) { // what cannot be read names no cell
		if cell == "" {
			cell = string(name)
		}
	})
	return cell
}

// text returns a derived record as JSON.
func (d *derived) text() string {
	text, err := d.rec.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// run is a row of records of the shadow that equal records of the history with other numbers.
type run struct{ mine, theirs, n journal.Seq }

// numbers say which records of the shadow equal which of the history.
type numbers struct {
	together bool        // so far everything is as in the history, numbers included
	aligned  journal.Seq // up to here the shadow's records have the history's numbers
	runs     []run       // of the records after aligned
}

// equate notes that a record of the shadow equals a record of the history.
func (x *numbers) equate(mine, theirs journal.Seq) {
	if x.together {
		x.aligned = mine
		return
	}
	if last := len(x.runs) - 1; last >= 0 && x.runs[last].mine+x.runs[last].n == mine && x.runs[last].theirs+x.runs[last].n == theirs {
		x.runs[last].n++
		return
	}
	x.runs = append(x.runs, run{mine: mine, theirs: theirs, n: 1})
}

// origin returns the record of the history that a record of the shadow equals, or else follows from: the last
// equal record up to it.
func (x *numbers) origin(mine journal.Seq) (theirs journal.Seq, equal bool) {
	if mine <= x.aligned {
		return mine, true
	}
	after := sort.Search(len(x.runs), func(i int) bool { return x.runs[i].mine > mine })
	if after == 0 {
		return x.aligned, false
	}
	r := x.runs[after-1]
	return r.theirs + min(mine-r.mine, r.n-1), mine-r.mine < r.n
}

// excerpt returns the beginning of a value.
func excerpt(text string) string { return excerptOf(text, governance.MaxExcerptBytes) }

func excerptOf(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
}
