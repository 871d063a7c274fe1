package measure

import (
	"slices"

	"github.com/worldkernel/worldkernel/manifest"
)

// When says at which ticks is measured. The zero value is at none.
type When struct {
	Every manifest.Tick   // at 0 and each that it divides; 0: none
	Ticks []manifest.Tick // at these, ascending
	End   bool            // at the end
}

// Next returns the first tick from one on at which is measured; false: there is none.
func (w *When) Next(from manifest.Tick) (next manifest.Tick, ok bool) {
	if i, _ := slices.BinarySearch(w.Ticks, from); i < len(w.Ticks) {
		next, ok = w.Ticks[i], true
	}
	if w.Every > 0 {
		rest := from % w.Every
		at := from
		if rest > 0 {
			at += w.Every - rest
		}
		if at >= from && (!ok || at < next) {
			next, ok = at, true
		}
	}
	return next, ok
}
