package world

import (
	"container/heap"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
)

// timerTag names a timer that waits: of a cell's no two have the same tag.
type timerTag struct{ cell, tag string }

// setTimers puts others in the place of all timers.
func (k *kernel) setTimers(timers alarms) {
	k.timers, k.tagged = timers, nil
	for _, x := range timers {
		k.tag(x)
	}
}

func (k *kernel) tag(x *alarm) {
	if x.tag == "" {
		return
	}
	if k.tagged == nil {
		k.tagged = make(map[timerTag]*alarm)
	}
	k.tagged[timerTag{x.to[0].name, x.tag}] = x
}

// untag undoes tag, of a timer that waits no more.
func (k *kernel) untag(x *alarm) {
	if x.tag != "" {
		delete(k.tagged, timerTag{x.to[0].name, x.tag})
	}
}

// setTimer sets a timer of a step. With a tag it takes the place of the cell's timer of
// that tag.
func (k *kernel) setTimer(c *cell, t *reducer.Timer, step journal.Seq) {
	b := journal.TimerSet{
		Version: journal.V(journal.BodyVersion), Cell: c.name, Name: t.Name, Deadline: k.now.Plus(t.After), Tag: t.Tag, Data: t.Data,
	}
	if t.Tag != "" {
		if was := k.stopTimer(c, t.Tag); was != 0 {
			k.writeCancelled(c, t.Tag, was, nil, step)
		}
	}
	id, payload := k.write(journal.KindTimer, step, b.Append(k.body[:0]))
	x := &alarm{
		at: b.Deadline, record: id, to: []*cell{c}, name: strings.Clone(t.Name), tag: strings.Clone(t.Tag), data: k.tail(payload, t.Data),
	}
	heap.Push(&k.timers, x)
	k.tag(x)
	touchList(k.lists.timers, x.to)
}

// stopTimer takes away the timer that a cell has under a tag, and returns the record
// that set it; 0: there is none.
func (k *kernel) stopTimer(c *cell, tag string) journal.Seq {
	x := k.tagged[timerTag{c.name, tag}]
	if x == nil {
		return 0
	}
	heap.Remove(&k.timers, x.place)
	k.untag(x)
	touchList(k.lists.timers, x.to)
	return x.record
}

func (k *kernel) writeCancelled(c *cell, tag string, timer journal.Seq, receipts []journal.Seq, step journal.Seq) {
	if receipts == nil {
		receipts = []journal.Seq{}
	}
	k.note(journal.KindTagCancelled, step, &journal.TagCancelled{
		Version: journal.V(journal.BodyVersion), Cell: c.name, Tag: tag, Timer: timer, Receipts: receipts,
	})
}
