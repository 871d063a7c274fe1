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

	// Unanswered says that nobody knows what came of it, or not yet: Result is nothing.
	// It stands for what has no answer; such an effect is never performed for a Recording.
	Unanswered bool
}

// NewRecording indexes answers by cell, kind, params and occurrence. Of several
// to the same the last one counts: what came before it was rolled back. name
// stands in a [MissError] in the place of a cassette's file.
func NewRecording(name string, answers iter.Seq2[Recorded, error]) (*Recording, error) {
	c := &cassette{places: make(map[place]int)}
	for a, err := range answers {
		if err == nil && !a.Unanswered {
			err = a.Result.check()
		}
		if err != nil {
			return nil, fmt.Errorf("host: recording %s: %w", name, err)
		}
		at := place{ask{a.Cell, a.Kind, canon.Sum(a.Params)}, a.Occurrence}
		l := line{cell: a.Cell, kind: a.Kind, params: a.Params, occurrence: a.Occurrence, result: a.Result, unanswered: a.Unanswered}
		if before, taken := c.places[at]; taken {
			if !a.Unanswered {
				c.lines[before] = l
			}
			continue
		}
		c.places[at] = len(c.lines)
		c.lines = append(c.lines, l)
	}
	return &Recording{recorded{file: name, world: true, cassette: c}}, nil
}

// has reports whether what an intent asks for is known, answered or not.
func (r *Recording) has(in *receipt.Intent) bool {
	_, ok := r.recorded.cassette.places[placeOf(in)]
	return ok
}

// Miss returns what is to be said of an intent that has no answer, and nil of one that
// has.
func (r *Recording) Miss(p *receipt.Permit) *MissError {
	_, err := r.recorded.answer(p)
	return err
}
