package host

import (
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Recording answers effects with what the outside answered in another world,
// or in another run: see Config.Recording. It does not change and is safe for
// concurrent use.
type Recording struct {
	name     string
	cassette *cassette
}

// Recorded is one answer of a Recording: what asked, and what came of it.
type Recorded struct {
	Cell, Kind string
	Params     receipt.Data
	Occurrence uint64
	Result     Result
	Means      canon.Hash // what the effect was declared as when it was asked, see manifest.Effect.Means; zero: it does not matter

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
		l := line{cell: a.Cell, kind: a.Kind, params: a.Params, occurrence: a.Occurrence, result: a.Result, unanswered: a.Unanswered, means: a.Means}
		if before, taken := c.places[at]; taken {
			if !a.Unanswered {
				c.lines[before] = l
			}
			continue
		}
		c.places[at] = len(c.lines)
		c.lines = append(c.lines, l)
	}
	return &Recording{name, c}, nil
}

// under returns what answers effects that are declared so now; zero: whatever they were.
func (r *Recording) under(means canon.Hash) *recorded {
	return &recorded{file: r.name, world: true, cassette: r.cassette, means: means}
}

// Miss returns what is to be said of an intent that has no answer, and nil of one that
// has, where the effect is declared so now.
func (r *Recording) Miss(p *receipt.Permit, now *manifest.Effect) *MissError {
	_, err := r.under(now.Means()).answer(p)
	return err
}
