package host

import (
	"bytes"
	"context"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// recorded answers from a cassette.
type recorded struct {
	file     string
	world    bool       // a Recording
	means    canon.Hash // of the effect now; zero: what it was asked as does not matter
	cassette *cassette
}

// cassette is the index of a cassette; it does not change.
type cassette struct {
	lines  []line // in the order of the file
	places map[place]int
}

// ask is what an intent asks for; place tells equal ones of a cell apart.
type ask struct {
	cell, kind string
	params     canon.Hash
}

type place struct {
	ask
	occurrence uint64
}

// newRecorded returns the factory of one Host's recorded adapters.
func newRecorded() Factory {
	cassettes := make(shared[*cassette])
	return func(s Setup) (Adapter, error) {
		var config struct {
			Cassette string `cbor:"cassette"`
		}
		if err := s.Decode(&config); err != nil {
			return nil, err
		}
		c, err := cassettes.get(s, "cassette", func(data []byte) (*cassette, error) { return readCassette(config.Cassette, data) })
		if err != nil {
			return nil, err
		}
		return &recorded{file: config.Cassette, cassette: c}, nil
	}
}

func readCassette(file string, data []byte) (*cassette, error) {
	lines, err := readLines(file, data, schema{
		required: []string{"cell", "kind", "params", "payload"}, optional: []string{"occurrence", "status", "outcome"}, lost: true,
	})
	if err != nil {
		return nil, err
	}
	c := &cassette{lines: lines, places: make(map[place]int, len(lines))}
	counted := make(map[ask]uint64)
	for i := range lines {
		l := &lines[i]
		at := place{ask: ask{l.cell, l.kind, canon.Sum(l.params)}}
		if !l.placed {
			l.occurrence = counted[at.ask]
			counted[at.ask]++
		}
		at.occurrence = l.occurrence
		if before, taken := c.places[at]; taken {
			return nil, lineError(file, l.number, fmt.Errorf("line %d is occurrence %d of the same already", lines[before].number, l.occurrence))
		}
		c.places[at] = i
	}
	return c, nil
}

func (r *recorded) Deterministic() bool { return true }

func (r *recorded) Perform(_ context.Context, call Call) (Result, error) {
	result, miss := r.answer(&call.Permit)
	if miss != nil {
		return Result{}, miss
	}
	if result.Status == statusLost {
		return Result{}, &DoubtError{Reason: "the recording has no answer: what came of it is not known"}
	}
	return result, nil
}

func (r *recorded) answer(p *receipt.Permit) (Result, *MissError) {
	i, ok := r.cassette.places[placeOf(&p.Intent)]
	if ok && r.answers(i) {
		return r.cassette.lines[i].result, nil
	}
	var e *MissError
	switch {
	case ok && !r.cassette.lines[i].unanswered:
		e = miss(r.file, *p, "it has asked for the same under another config of "+p.Kind+", and what that answered is no answer to this one", nil)
		e.OtherConfig = true
	case ok:
		e = miss(r.file, *p, "it has asked for the same, and nothing is recorded of what came of that", nil)
		e.Unanswered = true
	default:
		nearest, near := r.cassette.nearest(*p)
		e = miss(r.file, *p, nearest, near)
	}
	e.Recorded = r.world
	return Result{}, e
}

// answers reports whether a line answers effects as they are declared now.
func (r *recorded) answers(i int) bool {
	l := &r.cassette.lines[i]
	return !l.unanswered && (l.means.IsZero() || r.means.IsZero() || l.means == r.means)
}

// has reports whether what an intent asks for is known: it is answered, or may be yet.
func (r *recorded) has(in *receipt.Intent) bool {
	i, ok := r.cassette.places[placeOf(in)]
	return ok && (r.cassette.lines[i].unanswered || r.answers(i))
}

func placeOf(in *receipt.Intent) place {
	return place{ask{in.Cell, in.Kind, canon.Sum(in.Params)}, in.Occurrence}
}

// nearest describes and returns the line that is most like what p asks for, nil where
// there is none: the same but for the occurrence, the same kind from the same cell, the same from another
// cell, the same kind; and of these the last with the most bytes in common.
func (c *cassette) nearest(p receipt.Permit) (text string, near *line) {
	const kind, params, cell = 1, 2, 4
	best, most, common, equal := -1, 0, 0, 0
	for i, l := range c.lines {
		if l.kind != p.Kind || l.unanswered {
			continue
		}
		like := kind
		if l.cell == p.Cell {
			like |= cell
		}
		if bytes.Equal(l.params, p.Params) {
			like |= params
		}
		if like == kind|params|cell {
			equal++
		}
		if n := inCommon(l.params, p.Params); like > most || like == most && n >= common && like != kind|params|cell {
			best, most, common = i, like, n
		}
	}
	if best < 0 {
		return fmt.Sprintf("it has nothing of kind %s", p.Kind), nil
	}
	l := &c.lines[best]
	if most == kind|params|cell {
		return fmt.Sprintf("it answers this for other occurrences: %d, the first %s", equal, l.where()), l
	}
	return fmt.Sprintf("nearest is the one %s: cell %s, params %s", l.where(), l.cell, brief(l.params)), l
}

// inCommon returns how many bytes a and b begin and end with alike.
func inCommon(a, b []byte) int {
	n, most := 0, min(len(a), len(b))
	for n < most && a[n] == b[n] {
		n++
	}
	end := 0
	for end < most-n && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return n + end
}

// where says how to find a line. A Recording has none.
func (l *line) where() string {
	if l.number == 0 {
		return fmt.Sprintf("with occurrence %d", l.occurrence)
	}
	return fmt.Sprintf("in line %d", l.number)
}
