package world

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
)

// FoldCell is CellAt without falling back on At.
func FoldCell(h CellHistory, known Landmarks, id reducer.Cell, at journal.Seq, registry reducer.Registry) (CellView, bool, error) {
	f := newCellFold(h, id, min(at, known.Head), registry, nil)
	if err := f.run(&known); err != nil {
		return CellView{}, false, err
	}
	return f.view()
}

// ErrWhole is what FoldCell says where At has to be asked.
func ErrWhole() error { return errWhole }

// EachMoment folds a journal from record 1 and visits what At says at each record.
func EachMoment(h journal.History, registry reducer.Registry, visit func(at journal.Seq, m *Moment)) error {
	k := newKernel(nil, false)
	created, err := firstRecord(h)
	if err != nil {
		return err
	}
	if k.rules, err = rulesOf(created.Manifest, h, registry, nil); err != nil {
		return err
	}
	f := folding{kernel: k, h: h}
	f.cfg = ReplayConfig{Registry: registry, Visit: func(s journal.Scanned) error {
		if err := k.deliverRecalled(h); err != nil {
			return err
		}
		visit(s.ID, &Moment{k: k})
		return nil
	}}
	return f.fold(journal.Head{})
}
