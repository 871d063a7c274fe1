package world

import (
	"container/heap"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// scheduler keeps the order in which cells handle events. That order is a fact
// of the journal: cells take turns in the order in which they became ready,
// one event each a round.
type scheduler struct {
	queue []*cell // ready cells; the first of them take part in the round
	first int
	left  int // how many have a turn left in this round; 0: at a barrier
}

func (s *scheduler) ready() int { return len(s.queue) - s.first }

func (s *scheduler) push(c *cell) {
	c.queued = true
	s.queue = append(s.queue, c)
}

// next takes the cell whose turn it is.
func (s *scheduler) next() *cell {
	c := s.queue[s.first]
	s.queue[s.first] = nil
	s.first++
	s.left--
	if s.first == len(s.queue) {
		s.queue, s.first = s.queue[:0], 0
	} else if s.first >= 1024 && 2*s.first >= len(s.queue) {
		n := copy(s.queue, s.queue[s.first:])
		clear(s.queue[n:])
		s.queue, s.first = s.queue[:n], 0
	}
	c.queued = false
	return c
}

// remove takes out a cell whose events were taken away.
func (s *scheduler) remove(c *cell) {
	at := slices.Index(s.queue[s.first:], c)
	s.queue = slices.Delete(s.queue, s.first+at, s.first+at+1)
	if at < s.left {
		s.left--
	}
	c.queued = false
}

// alarm is something that happens at a tick: a timer fires, or a submitted
// event falls due.
type alarm struct {
	at     manifest.Tick
	record journal.Seq // timer.set or event.submitted
	to     []*cell
	name   string
	tag    string // of a timer; empty: it has none
	data   journal.Data
	place  int // in the heap
}

// alarms is a heap in the order of at, then record.
type alarms []*alarm

func (a alarms) Len() int { return len(a) }
func (a alarms) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].record < a[j].record
}

func (a alarms) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push is for package heap.
func (a *alarms) Push(x any) {
	added := x.(*alarm)
	added.place = len(*a)
	*a = append(*a, added)
}

// Pop is for package heap.
func (a *alarms) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return x
}

func (a *alarms) add(x alarm) { heap.Push(a, &x) }

// due takes the alarms that are due at a tick, one after the other.
func (a *alarms) due(now manifest.Tick) iter.Seq[*alarm] {
	return func(yield func(*alarm) bool) {
		for more := true; more && len(*a) > 0 && (*a)[0].at <= now; {
			more = yield(heap.Pop(a).(*alarm)) //nolint:forcetypeassert // Push takes nothing else
		}
	}
}

// remove takes out the alarm that a record has set, and returns it; nil: there is none.
func (a *alarms) remove(record journal.Seq) *alarm {
	for i, x := range *a {
		if x.record == record {
			heap.Remove(a, i)
			return x
		}
	}
	return nil
}
