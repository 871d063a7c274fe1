package host

import (
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// Recording answers effects with what the outside answered in another world,
// or in another run: see Config.Recording. It does not change and is safe for
// concurrent use.
type Recording struct{ recorded recorded }

// Recorded is one answer of a Recording: what asked, and what came of it.
type Recorded struct {
	Cell, Kind string
	Params     receipt.Data
	Occurrence uint64
	Result     Result
}

// NewRecording indexes answers by cell, kind, params and occurrence. Of several
// to the same the last one counts: what came before it was rolled back. name
// stands in a [MissError] in the place of a cassette's file.
func NewRecording(name string, answers iter.Seq2[Recorded, error]) (*Recording, error) {
	c := &cassette{places: make(map[place]int)}
	for a, err := range answers {
		if err == nil {
			err = a.Result.check()
		}
		if err != nil {
			return nil, fmt.Errorf("host: recording %s: %w", name, err)
		}
		at := place{ask{a.Cell, a.Kind, canon.Sum(a.Params)}, a.Occurrence}
		l := line{cell: a.Cell, kind: a.Kind, params: a.Params, occurrence: a.Occurrence, result: a.Result}
		if before, taken := c.places[at]; taken {
			c.lines[before] = l
			continue
		}
		c.places[at] = len(c.lines)
		c.lines = append(c.lines, l)
	}
	return &Recording{recorded{file: name, world: true, cassette: c}}, nil
}
