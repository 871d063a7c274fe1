package world

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
)

// turning is where a rollback led: the history before Record goes on from To.
type turning struct {
	_      struct{} `cbor:",toarray"`
	Record journal.Seq
	To     journal.Seq
}

// histories has the rollbacks so far, which part the journal into histories, and the snapshots.
type histories struct {
	rollbacks []turning
	fresh     []journal.Seq // records of rollbacks with fresh effects
	catalog   snapshot.Catalog
}

// inHistory reports whether a record belongs to the history that led to another.
func (h *histories) inHistory(record, of journal.Seq) bool {
	for _, t := range slices.Backward(h.rollbacks) {
		if t.Record > of {
			continue
		}
		if record >= t.Record {
			break
		}
		of = t.To
	}
	return record <= of
}

// common returns the last record that the histories of two records share.
func (h *histories) common(now, of journal.Seq) journal.Seq {
	if h.inHistory(of, now) {
		return of
	}
	var last journal.Seq
	for _, t := range h.rollbacks { // histories part where a rollback led
		if t.To > last && h.inHistory(t.To, of) && h.inHistory(t.To, now) {
			last = t.To
		}
	}
	return last
}

// past is the state at a snapshot, as far as a rollback needs it.
type past struct {
	to snapshot.Snapshot
	*imageParts
	cells   map[reducer.Cell]*cell  // cells that changed since, as they were; cells made since are missing
	changed []*cell                 // cells that changed since, as they are, by name
	left    []*receipt.Entry        // intents of a history that is left, and not of the returning one
	back    []*receipt.Entry        // intents of the returning history, and not of the present one
	unbegun map[*receipt.Entry]bool // of left: in flight, and taken back by the host
	settled journal.Seq             // up to here the ledger knows which intents belong to the present history
	answers map[receipt.Key]*answered
	codes   map[string]journal.Hash // code at the snapshot, of reducers with other code now
}

// readPast reads the past of a rollback. part is History.Part, or that of a fold.
func (k *kernel) readPast(h journal.History, b *journal.RolledBack, part func(journal.Seq, []string) (*journal.Image, error)) (*past, error) {
	s, err := k.catalog.Find(b.Snapshot)
	if err != nil {
		return nil, refuse(err, "name", "%q", b.Snapshot)
	}
	p := &past{
		to: s, settled: k.common(k.last, journal.Seq(s.Record)), cells: make(map[reducer.Cell]*cell),
		answers: make(map[receipt.Key]*answered), unbegun: make(map[*receipt.Entry]bool),
	}
	p.changed = k.cells.bringChanged(journal.Seq(s.Record), func(*cell) bool { return true })
	slices.SortFunc(p.changed, func(a, b *cell) int { return cmp.Compare(a.name, b.name) })
	img, err := part(journal.Seq(s.Record), append(cellNames(p.changed), k.listsThen(&s)...))
	if err == nil {
		err = k.store.err
	}
	if err == nil {
		p.imageParts, err = partsOf(img)
	}
	if err != nil {
		return nil, fmt.Errorf("world: snapshot %s: %w", s.Name, err)
	}
	for i := range p.imageParts.cells {
		c, err := decodeCell(&p.imageParts.cells[i])
		if err != nil {
			return nil, fmt.Errorf("world: snapshot %s: cell %s: %w", s.Name, p.imageParts.cells[i].Cell, err)
		}
		p.cells[c.id()] = c
	}
	if p.codes, err = k.codesThen(h, p.core.Manifest); err != nil {
		return nil, fmt.Errorf("world: snapshot %s: %w", s.Name, err)
	}
	if err := k.ledger.bringAsked(h, min(k.common(k.last, journal.Seq(s.Record)), p.settled)); err != nil {
		return nil, err
	}
	p.findLeft(&k.effects)
	p.findUnbegun(&k.effects, b)
	if b.Compensate {
		err = p.readAnswers(&k.effects, h)
	}
	return p, err
}

// codesThen returns the code of reducers under an earlier manifest, if they have other code now.
func (k *kernel) codesThen(blobs journal.Blobs, then journal.Hash) (map[string]journal.Hash, error) {
	if then == k.rules.hash {
		return nil, nil
	}
	m, err := manifestOf(then, blobs)
	if err != nil {
		return nil, err
	}
	codes := make(map[string]journal.Hash)
	for name, def := range m.Reducers { // order cannot show: a map of them
		if rule := k.rules.reducers[name]; rule == nil || rule.hash != codeHash(def) {
			codes[name] = codeHash(def)
		}
	}
	for name := range k.rules.reducers { // order cannot show: likewise
		if _, was := m.Reducers[name]; !was {
			codes[name] = journal.Hash{}
		}
	}
	return codes, nil
}

// ofOtherCode returns the returning cells, as they were, whose states were made by other code than today's.
func (p *past) ofOtherCode() []*cell {
	var out []*cell
	for _, c := range p.cells { // order cannot show: migrate sorts
		if _, other := p.codes[c.id().Reducer]; other && c.born {
			out = append(out, c)
		}
	}
	return out
}
