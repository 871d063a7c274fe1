package world

import (
	"context"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
)

// PrintsOf takes steps again and returns what they print, in their order. records are
// cell.stepped or cell.failed, ascending; of others nothing is printed. It folds the world
// from the images before them, within bounds: what needs more ends with a *BoundError. The
// error wraps journal.ErrRedacted where a payload that
// this needs is gone.
func PrintsOf(ctx context.Context, h journal.History, known Landmarks, records []journal.Seq, registry reducer.Registry, b Bounds) ([]Printed, error) {
	var heard []Printed
	for len(records) > 0 {
		next, _ := slices.BinarySearch(known.Images, records[0]) // the first image that has the step in it
		n := len(records)
		if next < len(known.Images) {
			n, _ = slices.BinarySearch(records, known.Images[next]+1)
		}
		img, err := h.Image(records[0] - 1)
		if err != nil {
			return nil, err
		}
		_, err = loadThrough(h, img, ReplayConfig{
			Registry: registry, To: records[n-1], guard: newGuard(ctx, b),
			OnPrint: func(p Printed) {
				if _, ok := slices.BinarySearch(records[:n], p.Record); ok {
					heard = append(heard, p)
				}
			},
		})
		if err != nil {
			return nil, err
		}
		records = records[n:]
	}
	return heard, nil
}
