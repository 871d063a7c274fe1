package world

import (
	"container/heap"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// scheduler keeps the order in which cells handle events. Cells take turns in the order in which they became
// ready, each handles one event a round, and so the order follows from the journal.
type scheduler struct {
	queue []*cell // ready cells; the first of them take part in the round
	first int
	left  int // number of cells with a turn left in this round; 0: at a barrier
}

func (s *scheduler) ready() int { return len(s.queue) - s.first }

func (s *scheduler) push(c *cell) {
	c.queued = true
	s.queue = append(s.queue, c)
}

// next removes and returns the cell whose turn it is.
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

// remove removes a cell whose mailbox was emptied.
func (s *scheduler) remove(c *cell) {
	at := slices.Index(s.queue[s.first:], c)
	s.queue = slices.Delete(s.queue, s.first+at, s.first+at+1)
	if at < s.left {
		s.left--
	}
	c.queued = false
}

// alarm is a timer, or a submitted event, that falls due at a tick.
type alarm struct {
	at     manifest.Tick
	record journal.Seq // timer.set or event.submitted
	to     []*cell
	name   string
	tag    string // of a timer; "": none
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

// due removes and yields the alarms that are due at a tick, in their order.
func (a *alarms) due(now manifest.Tick) iter.Seq[*alarm] {
	return func(yield func(*alarm) bool) {
		for more := true; more && len(*a) > 0 && (*a)[0].at <= now; {
			more = yield(heap.Pop(a).(*alarm)) //nolint:forcetypeassert // Push takes nothing else
		}
	}
}

// remove removes and returns the alarm that a record has set, or nil.
func (a *alarms) remove(record journal.Seq) *alarm {
	for i, x := range *a {
		if x.record == record {
			heap.Remove(a, i)
			return x
		}
	}
	return nil
}
