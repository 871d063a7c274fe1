package world

import "github.com/worldkernel/worldkernel/reducer"

// FoldCell is CellAt without falling back on At.
func FoldCell(h CellHistory, known Landmarks, id reducer.Cell, at Seq, registry *reducer.Registry) (CellView, bool, error) {
	f := newCellFold(h, id, min(at, known.Head), registry)
	if err := f.run(&known); err != nil {
		return CellView{}, false, err
	}
	return f.view()
}

// ErrWhole is what FoldCell says where At has to be asked.
func ErrWhole() error { return errWhole }
