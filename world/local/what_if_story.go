package local

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// story is who told whom something, after a record of a world.
type story struct {
	by, to map[string][]saying            // what a cell said, and was told, in the order of the records
	steps  map[string][]stepping          // of a cell
	ticks  []stepping                     // the records that begin them
	asked  map[receipt.StepID]journal.Seq // the records of what cells asked for
	likes  map[[2]string]bool             // reducers of which a cell of the first has ever told one of the second something
	head   stepping
}

// saying is an event that a cell's step emits for another cell.
type saying struct {
	stepping
	from, to string
}

// stepping is a record, and the number of the step that it is part of.
type stepping struct {
	id journal.Seq
	at manifest.Tick
	n  uint64
}

func readStory(lw *World, after journal.Seq) (*story, error) {
	s := &story{
		by: make(map[string][]saying), to: make(map[string][]saying), steps: make(map[string][]stepping),
		asked: make(map[receipt.StepID]journal.Seq), likes: make(map[[2]string]bool),
	}
	var cell string // whose step the records are part of
	for scanned, err := range lw.store.Scan(0) {
		if err = errors.Join(err, scanned.Err); err != nil {
			return nil, err
		}
		rec := scanned.Record
		s.head = stepping{rec.ID, rec.Time, s.head.n}
		switch rec.Kind {
		case journal.KindAdvanced:
			s.ticks = append(s.ticks, s.head)
			continue
		case journal.KindStepped, journal.KindEmitted, journal.KindIntent, journal.KindAwaitingApproval:
		default:
			continue
		}
		body, err := rec.LoadBody(lw.store)
		if errors.Is(err, journal.ErrRedacted) {
			continue // nobody knows what it told whom
		}
		if err != nil {
			return nil, err
		}
		switch b := body.(type) {
		case *journal.Stepped:
			cell, s.head.n = b.Cell, b.N
			if rec.ID > after {
				s.steps[cell] = append(s.steps[cell], s.head)
			}
		case *journal.Emitted:
			s.say(cell, b.To, rec.ID > after)
		case *journal.IntentEmitted:
			s.asked[b.Step] = rec.ID
		case *journal.IntentAwaitingApproval:
			s.asked[b.Step] = rec.ID
		}
	}
	return s, nil
}

func (s *story) say(from string, all []string, after bool) {
	for _, to := range all {
		if to == from {
			continue
		}
		s.likes[[2]string{reducerOf(from), reducerOf(to)}] = true
		if x := (saying{s.head, from, to}); after {
			s.by[from], s.to[to] = append(s.by[from], x), append(s.to[to], x)
		}
	}
}

func reducerOf(cell string) string {
	name, _, _ := strings.Cut(cell, "/")
	return name
}

// step returns the number of the last step that a cell had taken by a record.
func (s *story) step(cell string, by journal.Seq) (n uint64) {
	for _, x := range s.steps[cell] {
		if x.id <= by {
			n = x.n
		}
	}
	return n
}

// since returns the first record of a tick, or of the next that there is.
func (s *story) since(at manifest.Tick) stepping {
	i, _ := slices.BinarySearchFunc(s.ticks, at, func(x stepping, at manifest.Tick) int { return cmp.Compare(x.at, at) })
	if i == len(s.ticks) {
		return s.head
	}
	return s.ticks[i]
}

// tickOf returns the tick that a record is of.
func (s *story) tickOf(id journal.Seq) manifest.Tick {
	i, found := slices.BinarySearchFunc(s.ticks, id, func(x stepping, id journal.Seq) int { return cmp.Compare(x.id, id) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return s.ticks[i].at
}
