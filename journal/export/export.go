// Package export writes what happened in a world for tools that know nothing of worlds:
// docs/exports.md says field by field what they get. It is a part of worldctl, and not an API.
package export

import (
	"bufio"
	"errors"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Writer writes what a format makes of a record, whose stored bytes it is given, too:
// perhaps nothing. The payload is loaded; nil where it was redacted. Records come in
// their order, from the first on.
type Writer func(out *bufio.Writer, rec *journal.Record, stored []byte) error

// Ledger is what a world knows of its intents.
type Ledger interface {
	Intent(receipt.Key) (receipt.Entry, bool)
	Intents() []receipt.Entry
}

// past is what exported records are about.
type past struct {
	journal.History
	Ledger
}

// record reads a record with its payload, which is nil where it was redacted.
func (p past) record(id journal.Seq) (*journal.Record, error) {
	rec, err := journal.Read(p, id)
	if err != nil {
		return nil, err
	}
	if err := rec.Load(p); err != nil && !errors.Is(err, journal.ErrRedacted) {
		return nil, err
	}
	return &rec, nil
}

// askerOf returns the step, or whatever else it was, that had asked for the
// intent of a record, the last time before it; 0 where the record is about none.
func (p past) askerOf(rec *journal.Record) (journal.Seq, error) {
	e, ok := p.intentOf(rec)
	if !ok {
		return 0, nil
	}
	asked, err := p.askedFor(&e, rec.ID)
	if err != nil || asked == nil {
		return 0, err
	}
	return asked.CausedBy, nil
}

// askedFor returns the record that says, the last time up to another, that an
// intent was asked for; nil where there is none.
func (p past) askedFor(e *receipt.Entry, upTo journal.Seq) (*journal.Record, error) {
	var last journal.Seq
	for _, id := range e.Asked {
		if journal.Seq(id) <= upTo {
			last = journal.Seq(id)
		}
	}
	if last == 0 {
		return nil, nil
	}
	return p.record(last)
}

// intentOf returns what the ledger knows of the intent that a record is about.
// Where the record was redacted the ledger still knows which intent it ended.
func (p past) intentOf(rec *journal.Record) (receipt.Entry, bool) {
	if rec.Payload != nil {
		key, _, ok := journal.IntentOf(rec.Kind, rec.Payload)
		if !ok {
			return receipt.Entry{}, false
		}
		return p.Intent(receipt.Key{Hash: key})
	}
	for _, e := range p.Intents() {
		if e.Finished == uint64(rec.ID) || e.Emitted == uint64(rec.ID) {
			return e, true
		}
	}
	return receipt.Entry{}, false
}

// inForce is what holds where a journal is read: whose it is, and by which rules.
type inForce struct {
	world    string
	manifest *manifest.Manifest
}

// follow takes what a record changes from there on.
func (f *inForce) follow(rec *journal.Record, blobs journal.Blobs) error {
	if !journal.BringsManifest(rec.Kind) || rec.Kind == journal.KindProposed {
		return nil
	}
	body, err := rec.Body()
	if err != nil {
		return err
	}
	switch b := body.(type) {
	case *journal.Created:
		f.world = b.World
	case *journal.Forked:
		f.world = b.World
	}
	hash, _ := journal.ManifestOf(body)
	encoded, err := blobs.Blob(hash)
	if err != nil {
		return err
	}
	f.manifest, err = manifest.Decode(encoded)
	return err
}
