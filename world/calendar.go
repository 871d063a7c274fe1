package world

import (
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// calendar has everything with a due tick: timers, by tag, and submitted events.
type calendar struct {
	*roster

	scheduled alarms // submitted events of future ticks
	timers    alarms
	tagged    map[timerTag]*alarm // the timers with a tag
	lists     alarmLists          // how both lie in images
}

// timerTag names a waiting timer: a cell has at most one timer with a tag.
type timerTag struct{ cell, tag string }

// nextAlarm returns the tick at which the next timer or scheduled event is due.
func (a *calendar) nextAlarm() (manifest.Tick, bool) {
	var at manifest.Tick
	found := false
	for _, h := range []alarms{a.scheduled, a.timers} {
		if len(h) > 0 && (!found || h[0].at < at) {
			at, found = h[0].at, true
		}
	}
	return at, found && a.reaches(at)
}

// setTimers replaces all timers.
func (a *calendar) setTimers(timers alarms) {
	a.timers, a.tagged = timers, nil
	for _, x := range timers {
		a.tag(x)
	}
}

func (a *calendar) tag(x *alarm) {
	if x.tag == "" {
		return
	}
	if a.tagged == nil {
		a.tagged = make(map[timerTag]*alarm)
	}
	a.tagged[timerTag{x.to[0].name, x.tag}] = x
}

// untag undoes tag.
func (a *calendar) untag(x *alarm) {
	if x.tag != "" {
		delete(a.tagged, timerTag{x.to[0].name, x.tag})
	}
}

// setTimer sets a timer of a step. A timer with a tag replaces the cell's timer with that tag.
func (a *calendar) setTimer(c *cell, t *reducer.Timer, step journal.Seq) {
	b := journal.TimerSet{
		Version: journal.V(journal.BodyVersion), Cell: c.name, Name: t.Name, Deadline: a.now.Plus(t.After), Tag: t.Tag, Data: t.Data,
	}
	if t.Tag != "" {
		if was := a.stopTimer(c, t.Tag); was != 0 {
			a.writeCancelled(c, t.Tag, was, nil, step)
		}
	}
	id, payload := a.write(journal.KindTimer, step, b.Append(a.body[:0]))
	x := &alarm{
		at: b.Deadline, record: id, to: []*cell{c}, name: strings.Clone(t.Name), tag: strings.Clone(t.Tag), data: a.tail(payload, t.Data),
	}
	heap.Push(&a.timers, x)
	a.tag(x)
	touchList(a.lists.timers, x.to)
}

// stopTimer removes the cell's timer with a tag and returns the record that set it, or 0.
func (a *calendar) stopTimer(c *cell, tag string) journal.Seq {
	x := a.tagged[timerTag{c.name, tag}]
	if x == nil {
		return 0
	}
	heap.Remove(&a.timers, x.place)
	a.untag(x)
	touchList(a.lists.timers, x.to)
	return x.record
}

func (a *calendar) writeCancelled(c *cell, tag string, timer journal.Seq, receipts []journal.Seq, step journal.Seq) {
	if receipts == nil {
		receipts = []journal.Seq{}
	}
	a.writeRecord(journal.KindTagCancelled, step, &journal.TagCancelled{
		Version: journal.V(journal.BodyVersion), Cell: c.name, Tag: tag, Timer: timer, Receipts: receipts,
	})
}

// checkTimers checks the timers that a step sets, and the tags that it cancels.
func (a *calendar) checkTimers(c *cell, out *reducer.Output) error {
	limits := &a.rules.manifest.Limits
	if slices.Contains(out.Cancels, "") {
		return errors.New("cancel: the tag is empty")
	}
	n := uint64(len(a.timers))
	for i := range out.Timers {
		if t := &out.Timers[i]; a.tagged[timerTag{c.name, t.Tag}] == nil { // else the timer replaces another
			n++
		}
	}
	if n > limits.Alarms && len(out.Timers) > 0 {
		return fmt.Errorf("timer: %w: limits.alarms is %d, with these there would be %d timers", reducer.ErrLimit, limits.Alarms, n)
	}
	for _, t := range out.Timers {
		if err := comes(a.rules.manifest.Clock, a.now.Plus(t.After), "timer "+t.Name); err != nil {
			return err
		}
		switch {
		case t.After == 0:
			return fmt.Errorf("timer %s: a timer waits at least 1 tick", t.Name)
		case t.Name == "" || t.Name == reducer.ReceiptEvent:
			return fmt.Errorf("timer: %q is not a name for a timer's event", t.Name)
		case uint64(len(t.Data)) > limits.Payload:
			return fmt.Errorf("timer %s: %w: limits.payload is %d bytes, the data has %d", t.Name, reducer.ErrLimit, limits.Payload, len(t.Data))
		}
	}
	return nil
}

func (a *calendar) restoreAlarms(saved []imageAlarm) (alarms, error) {
	out := make(alarms, 0, len(saved)) // sorted, so a heap already
	for i, x := range saved {
		next := &alarm{at: x.At, record: x.Record, name: x.Name, tag: x.Tag, data: x.Data, place: i}
		for _, name := range x.To {
			c, err := a.recipient(name)
			if err != nil {
				return nil, err
			}
			next.to = append(next.to, c)
		}
		out = append(out, next)
	}
	return out, nil
}

// shifted returns the alarms of a snapshot, moved so that each has as many ticks left as it had then.
func (a *calendar) shifted(p *past, saved []imageAlarm) (alarms, error) {
	saved = slices.Clone(saved)
	for i := range saved {
		saved[i].At = a.now.Plus(saved[i].At - p.core.Now)
	}
	return a.restoreAlarms(saved)
}

// dropUnused drops unused cells from memory if cells take more than most bytes. It frees a quarter more than
// needed, so that it does not run with every image. Everything must be in an image of the journal before.
func (a *calendar) dropUnused(most int) {
	if a.cells.bytes <= most {
		return
	}
	if a.tree != nil {
		a.refreshTree()
		if a.tree.cells.Len() > most/(2*treeBytes) {
			a.dropTree()
		}
	}
	mark := func(alarmed bool) {
		for _, waiting := range []alarms{a.scheduled, a.timers} {
			for _, x := range waiting {
				for _, c := range x.to {
					c.alarmed = alarmed
				}
			}
		}
	}
	mark(true) // alarms hold their cells
	a.cells.drop(most - most/4)
	a.lists.forget(a.cells.here)
	mark(false)
}
