package world

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// cell is one keyed instance of a reducer, in memory.
//
// A world may have millions that rest, so a cell holds by pointers what most do not have then.
type cell struct {
	name    string // "reducer/key"
	state   []byte // canonical; empty where the cell has none
	n       uint64 // steps taken
	history receipt.History
	mail    mailbox
	asks    *asks       // what it has asked of the outside; nil: nothing
	changed journal.Seq // it is as it was when this record was written, or younger
	bytes   uint32      // that cells counts it with
	halted  bool        // stopped before the first event of its mailbox
	queued  bool        // among the ready
	born    bool        // false: nothing has reached it yet, or a rollback undid that
	dirty   bool        // changed since the last checkpoint
	stale   bool        // changed since the state root was last computed
	used    bool        // somebody has asked for it: see cells.drop
	alarmed bool        // something falls due for it: see kernel.shelve
	saved   bool        // some image has it
}

// asks is what a cell has asked of the outside.
type asks struct {
	awaits    []receipt.Key       // intents whose end it has not been told
	cancelled []receipt.Key       // those of them that it has cancelled
	account   *governance.Account // of the cell's budget; nil: nothing was drawn from it
}

// asked stands for a kind of effect and its params: the first 16 bytes of
// H(kind ‖ 0x00 ‖ params).
type asked = [16]byte

func newCell(id reducer.Cell, lineage receipt.History) *cell {
	return &cell{name: id.String(), history: lineage}
}

func (c *cell) id() reducer.Cell {
	name, key, _ := strings.Cut(c.name, "/") // no name of a reducer has one
	return reducer.Cell{Reducer: name, Key: key}
}

// asked returns what a cell has asked of the outside, for looking at.
func (c *cell) asked() asks {
	if c.asks == nil {
		return asks{}
	}
	return *c.asks
}

// toAsk returns what a cell has asked of the outside, for changing it.
func (c *cell) toAsk() *asks {
	if c.asks == nil {
		c.asks = new(asks)
	}
	return c.asks
}

// size returns about how many bytes a cell takes.
func (c *cell) size() int {
	n := cellBytes + len(c.name) + len(c.state)
	for _, x := range c.mail.pending() {
		n += mailBytes + len(x.data)
	}
	return n
}

// rests reports whether nothing is under way with a cell that is as the last image has it.
func (c *cell) rests() bool {
	return !c.dirty && !c.stale && !c.queued && !c.halted && !c.alarmed && c.mail.len() == 0
}

// mail is one event that waits for a cell.
type mail struct {
	record journal.Seq // what brought it; the cause of the step
	name   string
	data   journal.Data
}

// mailbox is a FIFO queue. The zero value is empty.
type mailbox struct{ *queue }

// queue is what a mailbox has while events wait in it.
type queue struct {
	items []mail
	first int
	one   [1]mail // what items begins with: mostly one event waits, and is where its queue is
}

// queues are those that no mailbox has at the moment: most cells rest most of the time. Nil
// keeps none.
type queues struct {
	spare []*queue
	room  int // for events, in all of them
}

// mostRoom is how many events all queues that are kept have room for at most.
const mostRoom = 1 << 19

func (q *queues) get() *queue {
	if q == nil || len(q.spare) == 0 {
		x := new(queue)
		x.items = x.one[:0]
		return x
	}
	last := len(q.spare) - 1
	x := q.spare[last]
	q.spare, q.room = q.spare[:last], q.room-cap(x.items)
	return x
}

func (q *queues) put(x *queue) {
	if q != nil && q.room+cap(x.items) <= mostRoom {
		q.spare, q.room = append(q.spare, x), q.room+cap(x.items)
	}
}

func (m *mailbox) len() int { return len(m.pending()) }

func (m *mailbox) front() *mail { return &m.items[m.first] }

func (m *mailbox) push(x mail, from *queues) {
	if m.queue == nil {
		m.queue = from.get()
	}
	m.items = append(m.items, x)
}

func (m *mailbox) pop(to *queues) {
	m.items[m.first] = mail{}
	m.first++
	if m.first == len(m.items) {
		m.items, m.first = m.items[:0], 0
		to.put(m.queue)
		m.queue = nil
	} else if m.first >= 64 && 2*m.first >= len(m.items) {
		m.items = slices.Delete(m.items, 0, m.first)
		m.first = 0
	}
}

// remove takes out the i-th event that waits.
func (m *mailbox) remove(i int) { m.items = slices.Delete(m.items, m.first+i, m.first+i+1) }

func (m *mailbox) pending() []mail {
	if m.queue == nil {
		return nil
	}
	return m.items[m.first:]
}

// nextHistory returns the cell's history with one more event:
// H(h ‖ canonical[name, key, data]). The scratch buffer is returned for reuse.
func (c *cell) nextHistory(scratch []byte, x *mail) (receipt.History, []byte) {
	b := append(scratch[:0], c.history[:]...)
	if c.history.IsZero() {
		b = b[:0] // the lineage is empty at first
	}
	b = canon.AppendArray(b, 3)
	b = canon.AppendText(b, x.name)
	b = canon.AppendText(b, c.id().Key)
	b = canon.AppendRaw(b, x.data)
	return sha256.Sum256(b), b
}

func askedFor(kind string, params journal.Data) asked {
	b := make([]byte, 0, len(kind)+1+len(params))
	b = append(append(b, kind...), 0)
	h := canon.Sum(append(b, params...))
	return asked(h[:16])
}

// await puts an intent on the list of those whose end a cell waits for.
func (c *cell) await(key receipt.Key) {
	of := c.toAsk()
	of.awaits = append(of.awaits, key)
}

// awaited takes an intent off the list of those whose end a cell waits for, and returns
// what the cell is told of it.
func (c *cell) awaited(key receipt.Key, data journal.Data) journal.Data {
	same := func(k receipt.Key) bool { return k == key }
	of := c.toAsk()
	of.awaits = slices.DeleteFunc(of.awaits, same)
	if slices.Contains(of.cancelled, key) {
		of.cancelled = slices.DeleteFunc(of.cancelled, same)
		return cancelled(data)
	}
	return data
}

// takeBack takes a receipt out of the mailbox again, whose end the cell then waits for
// as before, and returns what it would have been told.
func (c *cell) takeBack(key receipt.Key, at int) journal.Data {
	data := c.mail.pending()[at].data
	c.mail.remove(at)
	c.await(key)
	if isCancelled(data) {
		c.asks.cancelled = append(c.asks.cancelled, key)
		data = append(journal.Data{receiptHead}, data[1:len(data)-len(cancelledPair())]...)
	}
	return data
}
