package host

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Recording answers effects with what is written down: in a cassette, in the answers of a stub, or
// of another world or run, see Config.Recording. It does not change and is safe for concurrent use.
type Recording struct {
	name  string
	world bool // NewRecording made it
	schema
	lines  []line                  // in the order of the file
	places map[receipt.Request]int // in lines
}

// Recorded is an answer of a Recording: the request and its result.
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

// Request returns the request of the answer.
func (a *Recorded) Request() receipt.Request {
	return receipt.Request{Cell: a.Cell, Kind: a.Kind, Params: canon.Sum(a.Params), Occurrence: a.Occurrence}
}

// NewRecording indexes answers by what they answer. Of several to the same the last one counts:
// what came before it was rolled back. name stands in a [MissError] in the place of a file.
func NewRecording(name string, answers iter.Seq2[Recorded, error]) (*Recording, error) {
	r := &Recording{name: name, world: true, places: make(map[receipt.Request]int)}
	for a, err := range answers {
		if err == nil && !a.Unanswered {
			err = a.Result.check()
		}
		if err != nil {
			return nil, fmt.Errorf("host: recording %s: %w", name, err)
		}
		at := a.Request()
		if before, taken := r.places[at]; !taken {
			r.places[at] = len(r.lines)
			r.lines = append(r.lines, line{Recorded: a})
		} else if !a.Unanswered {
			r.lines[before] = line{Recorded: a}
		}
	}
	return r, nil
}

// readRecording reads a file of JSON lines.
func readRecording(file string, data []byte, s schema) (*Recording, error) {
	lines, err := readLines(file, data, s)
	if err != nil {
		return nil, err
	}
	r := &Recording{name: file, schema: s, lines: lines, places: make(map[receipt.Request]int, len(lines))}
	counted := make(map[receipt.Request]uint64)
	for i := range lines {
		l := &lines[i]
		at := l.Request()
		if s.stub && l.Params == nil {
			at.Params = canon.Hash{}
		} else if !s.stub && !l.placed {
			l.Occurrence = counted[at]
			counted[at]++
			at.Occurrence = l.Occurrence
		}
		if before, taken := r.places[at]; taken {
			return nil, lineError(file, l.number, fmt.Errorf("line %d answers the same already", lines[before].number))
		}
		r.places[at] = i
	}
	return r, nil
}

// find returns the line of what an intent asks for, or nil.
func (r *Recording) find(in *receipt.Intent) *line {
	at := in.Request()
	if r.stub {
		at = receipt.Request{Kind: at.Kind, Params: at.Params}
	}
	i, ok := r.places[at]
	if !ok && r.stub {
		i, ok = r.places[receipt.Request{Kind: at.Kind}]
	}
	if !ok {
		return nil
	}
	return &r.lines[i]
}

// answers reports whether a line answers effects that are declared so now; zero: however they were.
func (l *line) answers(means canon.Hash) bool {
	return !l.Unanswered && (l.Means.IsZero() || means.IsZero() || l.Means == means)
}

// Miss returns what is to be said of an intent that has no answer, and nil of one that
// has, where the effect is declared so now.
func (r *Recording) Miss(p *receipt.Permit, now *manifest.Effect) *MissError {
	_, miss := r.answer(p, now.Means())
	return miss
}

func (r *Recording) answer(p *receipt.Permit, means canon.Hash) (Result, *MissError) {
	l := r.find(&p.Intent)
	if l != nil && l.answers(means) {
		return l.Result, nil
	}
	e := &MissError{
		File: r.name, Recorded: r.world, Cell: p.Cell, Step: p.Step, Kind: p.Kind, Params: p.Params, Occurrence: p.Occurrence,
	}
	switch {
	case l == nil:
		e.Nearest, e.Differs = r.nearest(p)
	case l.Unanswered:
		e.Unanswered, e.Nearest = true, "it has asked for the same, and nothing is recorded of what came of that"
	default:
		e.OtherConfig = true
		e.Nearest = "it has asked for the same under another config of " + p.Kind + ", and what that answered is no answer to this one"
	}
	return Result{}, e
}

// nearest describes the line that is most like what p asks for, and returns where their params differ: the same
// but for the occurrence, the same kind from the same cell, the same from another
// cell, the same kind; and of these the last with the most bytes in common.
func (r *Recording) nearest(p *receipt.Permit) (text string, differs *canon.Change) {
	const kind, params, cell = 1, 2, 4
	best, most, common, equal := -1, 0, 0, 0
	for i, l := range r.lines {
		if l.Kind != p.Kind || l.Unanswered {
			continue
		}
		like := kind
		if l.Cell == p.Cell {
			like |= cell
		}
		if bytes.Equal(l.Params, p.Params) {
			like |= params
		}
		if like == kind|params|cell {
			equal++
		}
		if n := inCommon(l.Params, p.Params); like > most || like == most && n >= common && like != kind|params|cell {
			best, most, common = i, like, n
		}
	}
	if best < 0 {
		return fmt.Sprintf("it has nothing of kind %s", p.Kind), nil
	}
	l := &r.lines[best]
	if changes := canon.Changes(p.Params, l.Params); len(changes) > 0 {
		differs = &changes[0]
	}
	switch {
	case most == kind|params|cell:
		return fmt.Sprintf("it answers this for other occurrences: %d, the first %s", equal, l.where()), differs
	case r.stub:
		return fmt.Sprintf("nearest is the one %s: params %s", l.where(), brief(l.Params)), differs
	default:
		return fmt.Sprintf("nearest is the one %s: cell %s, params %s", l.where(), l.Cell, brief(l.Params)), differs
	}
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

// where says how to find a line: in its file, or in a world.
func (l *line) where() string {
	if l.number == 0 {
		return fmt.Sprintf("with occurrence %d", l.Occurrence)
	}
	return fmt.Sprintf("in line %d", l.number)
}
