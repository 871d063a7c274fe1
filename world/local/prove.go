package local

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
)

// ErrNoReceipt says that no receipt has ended an intent: nobody has performed it, or
// not yet.
var ErrNoReceipt = errors.New("it has no receipt")

// ProveRecord proves to somebody who has nothing else of the world that a record is
// in its history. It signs a checkpoint of all that has happened for it. The error
// is journal.ErrNotFound where there is no such record.
func (lw *World) ProveRecord(id journal.Seq) (*verify.Proof, error) {
	data, err := lw.store.Record(id)
	if err != nil {
		return nil, err
	}
	rec, err := journal.DecodeRecord(data)
	if err != nil {
		return nil, err
	}
	signed, p, err := lw.proof()
	if err != nil {
		return nil, err
	}
	p.Record, p.Bytes = id, data
	if !rec.Blob.IsZero() {
		// What was redacted is not shown; that the record is there is proven all the same.
		if p.Payload, err = lw.store.Blob(rec.Blob); err != nil && !errors.Is(err, journal.ErrRedacted) {
			return nil, err
		}
	}
	p.Inclusion, err = lw.Inclusion(id, journal.Seq(signed.Size))
	if p.Inclusion == nil {
		p.Inclusion = tlog.RecordProof{} // the only record
	}
	return p, err
}

// ProveReceipt proves what ended an intent, as ProveRecord does. The error is
// ErrNoReceipt where no receipt did.
func (lw *World) ProveReceipt(key receipt.Key) (*verify.Proof, error) {
	var e receipt.Entry
	var found bool
	lw.View(func(w *world.Moment) { e, found = w.Intent(key) })
	if !found {
		return nil, fmt.Errorf("intent %s: %w", key, journal.ErrNotFound)
	}
	at := journal.Seq(e.Finished)
	if at == 0 {
		return nil, fmt.Errorf("intent %s: %w", key, ErrNoReceipt)
	}
	p, err := lw.ProveRecord(at)
	if err != nil {
		return nil, err
	}
	if rec, err := journal.DecodeRecord(p.Bytes); err != nil || rec.Kind != journal.KindFinished {
		return nil, errors.Join(err, fmt.Errorf("intent %s: %w: record #%d has ended it", key, ErrNoReceipt, at))
	}
	return p, nil
}

// ProveCell proves what a cell was when a snapshot was made, or that it was not
// there, as ProveRecord does of the snapshot's record. The errors of the name are
// those of package snapshot.
func (lw *World) ProveCell(cell reducer.Cell, name string) (*verify.Proof, error) {
	s, err := lw.findSnapshot(name)
	if err != nil {
		return nil, err
	}
	m, err := lw.At(journal.Seq(s.Record))
	if err != nil {
		return nil, err
	}
	p, err := lw.ProveRecord(journal.Seq(s.Record))
	if err != nil {
		return nil, err
	}
	p.Cell = &verify.ProofOfCell{Name: cell.String()}
	if leaf, there := m.Leaf(cell); there {
		view, _ := m.Cell(cell)
		p.Cell.Present, p.Cell.Leaf, p.Cell.State = true, &leaf, view.State
	}
	p.Cell.Proof, err = m.Prove(cell).Encode()
	return p, err
}

// ProveConsistency proves that a kept checkpoint belongs to this history: every earlier record is
// unchanged. The errors are those of package checkpoint, ErrOtherHistory where it is not, and
// journal.ErrNotFound where the history has not come that far.
func (lw *World) ProveConsistency(older []byte) (*verify.Proof, error) {
	was, err := checkpoint.Parse(older)
	if err != nil {
		return nil, err
	}
	signed, p, err := lw.proof()
	if err != nil {
		return nil, err
	}
	if err := lw.has(journal.Seq(was.Size)); err != nil {
		return nil, err
	}
	tree, err := lw.store.TreeAt(journal.Seq(was.Size))
	if err != nil {
		return nil, err
	}
	if tree.Root() != was.Root || was.World != signed.World {
		return nil, fmt.Errorf("%w: the checkpoint of #%d is another's", ErrOtherHistory, was.Size)
	}
	p.Older = string(older)
	if p.Signers, err = lw.signersOf(signed.Note, older); err != nil {
		return nil, err
	}
	p.Consistency, err = lw.Consistency(journal.Seq(was.Size), journal.Seq(signed.Size))
	if p.Consistency == nil {
		p.Consistency = tlog.TreeProof{} // it is the same checkpoint
	}
	return p, err
}

// proof signs what has happened, and begins a proof with it.
func (lw *World) proof() (*store.Signed, *verify.Proof, error) {
	signed, err := lw.Checkpoint()
	if err != nil {
		return nil, nil, err
	}
	p := &verify.Proof{World: signed.World, Checkpoint: string(signed.Note)}
	p.Signers, err = lw.signersOf(signed.Note)
	return signed, p, err
}

// signersOf returns which of the world's keys have signed some checkpoints, as text.
func (lw *World) signersOf(notes ...[]byte) (texts []string, err error) {
	keys, err := lw.Signers()
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		by, err := checkpoint.Open(note, keys...)
		if err != nil {
			return nil, err
		}
		for _, key := range by.By {
			text, err := checkpoint.FormatKey(by.World, key)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts, nil
}
