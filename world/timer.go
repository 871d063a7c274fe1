package world

import (
	"container/heap"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
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
		Version: journal.V(journal.BodyVersion), Cell: c.name, Name: t.Name, Deadline: k.now + t.After, Tag: t.Tag, Data: t.Data,
	}
	if t.Tag != "" {
		b.V = journal.TaggedTimerVersion
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
	return x.record
}

// cancelTags takes back what a cell has asked for, in the steps before, under the tags
// that a step cancels: the timer does not fire, and receipts that have come are told
// apart.
func (k *kernel) cancelTags(c *cell, step journal.Seq) {
	receipts := c.mail.cancel(k.out.Cancels)
	for _, tag := range k.out.Cancels {
		if timer := k.stopTimer(c, tag); timer != 0 || receipts[tag] != nil {
			k.writeCancelled(c, tag, timer, receipts[tag], step)
		}
	}
}

func (k *kernel) writeCancelled(c *cell, tag string, timer journal.Seq, receipts []journal.Seq, step journal.Seq) {
	if receipts == nil {
		receipts = []journal.Seq{}
	}
	k.note(journal.KindCancelled, step, &journal.TagCancelled{
		Version: journal.V(journal.BodyVersion), Cell: c.name, Tag: tag, Timer: timer, Receipts: receipts,
	})
}

// cancel has the receipts of some tags that wait, and are not told apart yet, be told
// apart. It returns what brought them, by tag.
func (m *mailbox) cancel(tags []string) map[string][]journal.Seq {
	records := make(map[string][]journal.Seq, len(tags))
	for _, tag := range tags {
		records[tag] = nil
	}
	for i, x := range m.all() {
		if x.name != reducer.ReceiptEvent || isCancelled(x.data) {
			continue
		}
		if of, wanted := records[tagOf(x.data)]; wanted {
			m.all()[i].data = cancelled(x.data)
			records[tagOf(x.data)] = append(of, x.record)
		}
	}
	return records
}

// tagOf returns the tag of a receipt event.
func tagOf(data journal.Data) string {
	raw, err := canon.Lookup(data, "tag")
	if err != nil {
		return ""
	}
	return canon.NewReader(raw).Text()
}

// isCancelled reports whether the data of a receipt event is what cancelled returns.
func isCancelled(data journal.Data) bool { return data[0] == receiptHead+1 }

// cancelled returns the data of a receipt event that its cell is to tell apart: it has
// cancelled the effect.
func cancelled(data journal.Data) journal.Data {
	b := make([]byte, 0, len(data)+16)
	b = append(append(b, receiptHead+1), data[1:]...)
	return canon.AppendBool(canon.AppendText(b, "cancelled"), true) // the longest key is the last
}

// receiptHead begins the data of a receipt event: a map of 4.
const receiptHead = 0xa4
