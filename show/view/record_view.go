package view

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/columns"
	"github.com/worldkernel/worldkernel/world/local"
)

// RecordView is a record without its stored bytes, and with what its reader would have to look
// up otherwise.
type RecordView struct {
	ID       journal.Seq   `json:"id"`
	Time     manifest.Tick `json:"time"`
	Kind     journal.Kind  `json:"kind"`
	How      string        `json:"how"`   // it came out, in one word; empty: the record has none
	Name     string        `json:"name"`  // of an event, a timer, a tag, a snapshot, the kind of an effect; empty: none
	Cells    []string      `json:"cells"` // that it concerns, or operators
	Key      *receipt.Key  `json:"key"`   // of the intent that it is about; null: none
	CausedBy journal.Seq   `json:"caused_by"`
	Cause    journal.Seq   `json:"cause"` // what caused it or, of an answer, what asked for it; 0: nothing
	What     string        `json:"what"`  // the record in words
	Payload  journal.Body  `json:"payload"`
	Redacted bool          `json:"redacted,omitempty"` // then there is no payload
}

// View returns an entry with what its reader would have to look up.
func (j Journal) View(e *Entry) (t RecordView, err error) {
	t = RecordView{
		ID: e.ID, Time: e.Time, Kind: e.Kind, CausedBy: e.CausedBy, Cells: j.Cells(e), Payload: e.Body, Redacted: e.Body == nil,
		How: string(journal.HowOf(e.Kind, e.Payload)), Name: string(journal.NameOf(e.Kind, e.Payload)),
	}
	if t.Cells == nil {
		t.Cells = []string{}
	}
	if key, _ := e.Intent(); key != (receipt.Key{}) {
		t.Key = &key
		if of, ok := j.LedgerEntry(key); ok && t.Name == "" {
			t.Name = of.Intent.Kind
		}
	}
	if t.Cause, err = j.CauseOf(e); err != nil {
		return t, err
	}
	t.What, err = Describer{Journal: j}.Describe(e)
	return t, err
}

// Columns returns an empty index of the journal's columns.
func (j Journal) Columns() *columns.Index { return columns.New(columned{j.Local}) }

// columned is a world as its columns read it.
type columned struct{ *local.World }

// Intent implements columns.Source.
func (w columned) Intent(key journal.Hash) (cell, kind string) {
	e, _ := Journal{Local: w.World}.LedgerEntry(receipt.Key{Hash: key})
	return e.Intent.Cell, e.Intent.Kind
}
