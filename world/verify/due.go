package verify

import (
	"container/heap"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// due knows which timers have to fire in a tick. coming are those after the tick of the
// history that goes on, and past the others, in the order in which they fell due: a rollback
// leads back to before that. Some of both wait no more, or not in this history.
type due struct {
	coming dueHeap
	past   []dueTimer
	owed   []journal.Seq // those that have to fire before anything else comes, in their order
}

type dueTimer struct {
	at     manifest.Tick // as timers counts ticks
	record journal.Seq
}

// expect takes that a timer was set.
func (t *timers) expect(record journal.Seq, at manifest.Tick) {
	d := &t.due
	if len(d.coming)+len(d.past) > 2*len(t.all)+1000 { // most of them have been forgotten
		gone := func(x dueTimer) bool { return t.all[x.record] == nil }
		d.coming, d.past = slices.DeleteFunc(d.coming, gone), slices.DeleteFunc(d.past, gone)
		heap.Init(&d.coming)
	}
	heap.Push(&d.coming, dueTimer{at, record})
}

// pass takes that the tick of the history is another one, and returns the timers that fall
// due on the way to it, if it is later.
func (t *timers) pass() []dueTimer {
	d := &t.due
	for n := len(d.past) - 1; n >= 0 && d.past[n].at > t.clock; n-- {
		heap.Push(&d.coming, d.past[n])
		d.past = d.past[:n]
	}
	from := len(d.past)
	for len(d.coming) > 0 && d.coming[0].at <= t.clock {
		x := heap.Pop(&d.coming).(dueTimer) //nolint:forcetypeassert // Push takes nothing else
		if t.all[x.record] != nil {
			d.past = append(d.past, x)
		}
	}
	return d.past[from:]
}

// owe finds the timers that have to fire in the tick that begins, as far as is known.
func (v *verifier) owe() {
	t := &v.timers
	for _, x := range t.pass() {
		unsure := t.timeless || x.record <= t.blind || x.record <= t.doubt && t.all[x.record].tag != ""
		if !unsure && v.waitingTimer(x.record) != nil {
			t.due.owed = append(t.due.owed, x.record)
		}
	}
}

// lookAtDue takes that a record comes: in a tick that has begun what is due fires first.
func (v *verifier) lookAtDue(place string, kind journal.Kind) {
	d := &v.timers.due
	if len(d.owed) == 0 {
		return
	}
	if kind != journal.KindFired {
		v.fault(place, "timer #%d was due before it, and has not fired", d.owed[0])
		d.owed = nil
		return
	}
	switch i := slices.Index(d.owed, v.cause); i {
	case -1: // of it nobody knows that it is due, or something else is wrong
	case 0:
		d.owed = d.owed[1:]
	default:
		v.fault(place, "timer #%d fires before it", d.owed[0])
		d.owed = slices.Delete(d.owed, i, i+1)
	}
}

// dueHeap has the timer in front that falls due first, of several that which was set first.
type dueHeap []dueTimer

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].record < h[j].record
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(dueTimer)) } //nolint:forcetypeassert // expect pushes nothing else

// Pop is for package heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
