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
// A world may have millions of resting cells, so a cell holds by pointers what most resting cells do not have.
type cell struct {
	name    string // "reducer/key"
	state   []byte // canonical; empty: the cell has no state
	n       uint64 // steps taken
	history receipt.History
	mail    mailbox
	asks    *asks       // its effects and budget; nil: none
	changed journal.Seq // the last record when it changed: see touch
	bytes   uint32      // its part of cells.bytes
	halted  bool        // stopped before the first event of its mailbox
	queued  bool        // in the scheduler's queue
	born    bool        // an event has reached it, and no rollback undid that
	dirty   bool        // changed since the last checkpoint
	stale   bool        // changed since the state root was last computed
	used    bool        // looked up since the last cells.drop
	alarmed bool        // a timer or scheduled event is for it: see calendar.dropUnused
	saved   bool        // in some image
}

// asks has the intents that a cell waits for, and its budget.
type asks struct {
	awaits    []receipt.Key       // intents whose end the cell has not been told
	cancelled []receipt.Key       // of awaits, those that the cell has cancelled
	account   *governance.Account // of the cell's budget; nil: unused
}

// asked identifies a kind of effect with its params: the first 16 bytes of H(kind ‖ 0x00 ‖ params).
type asked = [16]byte

func newCell(id reducer.Cell, lineage receipt.History) *cell {
	return &cell{name: id.String(), history: lineage}
}

func (c *cell) id() reducer.Cell {
	name, key, _ := strings.Cut(c.name, "/") // no reducer's name has a slash
	return reducer.Cell{Reducer: name, Key: key}
}

// asked returns the cell's asks to read.
func (c *cell) asked() asks {
	if c.asks == nil {
		return asks{}
	}
	return *c.asks
}

// toAsk returns the cell's asks to change, and makes them if there are none.
func (c *cell) toAsk() *asks {
	if c.asks == nil {
		c.asks = new(asks)
	}
	return c.asks
}

// size returns the approximate memory of a cell in bytes.
func (c *cell) size() int {
	n := cellBytes + len(c.name) + len(c.state)
	for _, x := range c.mail.pending() {
		n += mailBytes + len(x.data)
	}
	return n
}

// rests reports whether a cell is idle and unchanged since the last image.
func (c *cell) rests() bool {
	return !c.dirty && !c.stale && !c.queued && !c.halted && !c.alarmed && c.mail.len() == 0
}

// mail is one event that waits for a cell.
type mail struct {
	record journal.Seq // the record that brought the event; the cause of the step
	name   string
	data   journal.Data
}

// mailbox is a FIFO queue. The zero value is empty.
type mailbox struct{ *queue }

// queue holds the events of a mailbox; an empty mailbox has none.
type queue struct {
	items []mail
	first int
	one   [1]mail // first memory of items, for the frequent case of one event
}

// queues keeps spare queues for reuse, because most cells rest most of the time. Nil keeps none.
type queues struct {
	spare []*queue
	room  int // capacity of all spare queues, in events
}

// mostRoom is the upper bound of queues.room.
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

// remove removes the i-th waiting event.
func (m *mailbox) remove(i int) { m.items = slices.Delete(m.items, m.first+i, m.first+i+1) }

func (m *mailbox) pending() []mail {
	if m.queue == nil {
		return nil
	}
	return m.items[m.first:]
}

// nextHistory returns the cell's history with one more event, H(h ‖ canonical[name, key, data]), and the scratch
// buffer for reuse.
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
	var buf [1024]byte // keeps the common case off the heap
	h := canon.SumBehind(append(append(buf[:0], kind...), 0), params)
	return asked(h[:16])
}

// await adds an intent to those that the cell waits for.
func (c *cell) await(key receipt.Key) {
	of := c.toAsk()
	of.awaits = append(of.awaits, key)
}

// awaited removes an intent from those that the cell waits for, and returns the data of the receipt event that
// tells the cell its end.
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

// takeBack removes a receipt event from the mailbox and returns its data. The cell waits for the intent again.
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

// cancel marks the waiting receipts with these tags as cancelled. It returns, by tag, the records that brought the
// receipts marked now.
func (m *mailbox) cancel(tags []string) map[string][]journal.Seq {
	records := make(map[string][]journal.Seq, len(tags))
	for _, tag := range tags {
		records[tag] = nil
	}
	for i, x := range m.pending() {
		if x.name != reducer.ReceiptEvent || isCancelled(x.data) {
			continue
		}
		tag := tagOf(x.data)
		if of, is := records[tag]; is {
			m.pending()[i].data = cancelled(x.data)
			records[tag] = append(of, x.record)
		}
	}
	return records
}

// receiptEvent returns the data of a receipt event.
func receiptEvent(tag, kind string, status receipt.Status, payload journal.Data) journal.Data {
	b := make([]byte, 0, 48+len(tag)+len(kind)+len(payload))
	b = canon.AppendMap(b, 4) // keys in canonical order: the shorter first
	b = canon.AppendText(canon.AppendText(b, "tag"), tag)
	b = canon.AppendText(canon.AppendText(b, "kind"), kind)
	b = canon.AppendText(canon.AppendText(b, "status"), string(status))
	return canon.AppendRaw(canon.AppendText(b, "payload"), payload)
}

// tagOf returns the tag of a receipt event.
func tagOf(data journal.Data) string {
	raw, err := canon.Lookup(data, "tag")
	if err != nil {
		return ""
	}
	return canon.NewReader(raw).Text()
}

// receiptHead begins the data of a receipt event: a map of 4 pairs, or of 5 if it is marked as cancelled.
const receiptHead = 0xa4

func isCancelled(data journal.Data) bool { return data[0] == receiptHead+1 }

// cancelled returns the data of a receipt event with the mark that its cell has cancelled the intent.
func cancelled(data journal.Data) journal.Data {
	if isCancelled(data) {
		return data
	}
	return slices.Concat(journal.Data{receiptHead + 1}, data[1:], cancelledPair())
}

// cancelledPair is the mark of a cancelled receipt event. It stands last, because its key is the longest.
func cancelledPair() journal.Data {
	return canon.AppendBool(canon.AppendText(nil, "cancelled"), true)
}

func isOperators(e *receipt.Entry) bool {
	return operatorsCell(e.Intent.Cell)
}

func operatorsCell(name string) bool {
	return reducerOf(name) == reducer.Operator
}

// reducerOf returns the reducer in a cell's name, which is valid.
func reducerOf(name string) string {
	of, _, _ := strings.Cut(name, "/")
	return of
}
