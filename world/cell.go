package world

import (
	"crypto/sha256"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// cell is one keyed instance of a reducer, in memory.
type cell struct {
	id      reducer.Cell
	name    string // "reducer/key"; id's strings are parts of it
	state   []byte // canonical; empty where the cell has none
	n       uint64 // steps taken
	history receipt.History
	mail    mailbox
	parked  bool        // stopped before the first event of its mailbox
	queued  bool        // among the ready
	born    bool        // false: nothing has reached it yet, or a rollback undid that
	dirty   bool        // changed since the last checkpoint
	stale   bool        // changed since the state root was last computed
	used    bool        // somebody has asked for it: see cells.drop
	alarmed bool        // something falls due for it: see kernel.shelve
	bytes   int         // that cells counts it with
	changed journal.Seq // it is as it was when this record was written, or younger
	// asked counts the intents of the cell's history by kind and params.
	asked     map[asked]uint64
	awaits    []receipt.Key       // intents whose end it has not been told
	cancelled []receipt.Key       // those of them that it has cancelled
	account   *governance.Account // of the cell's budget; nil: nothing was drawn from it
}

// asked stands for a kind of effect and its params: the first 16 bytes of
// H(kind ‖ 0x00 ‖ params).
type asked [16]byte

func newCell(id reducer.Cell, lineage receipt.History) *cell {
	name := id.String()
	cut := len(id.Reducer)
	id = reducer.Cell{Reducer: id.Reducer, Key: name[cut+1:]}
	return &cell{id: id, name: name, history: lineage}
}

// size returns about how many bytes a cell takes.
func (c *cell) size() int {
	n := cellBytes + len(c.name) + len(c.state) + askedBytes*len(c.asked)
	for _, x := range c.mail.all() {
		n += mailBytes + len(x.data)
	}
	return n
}

// rests reports whether nothing is under way with a cell that is as the last image has it.
func (c *cell) rests() bool {
	return !c.dirty && !c.stale && !c.queued && !c.parked && !c.alarmed && c.mail.len() == 0
}

// mail is one event that waits for a cell.
type mail struct {
	record journal.Seq // what brought it; the cause of the step
	name   string
	data   journal.Data
}

// mailbox is a FIFO queue. The zero value is empty.
type mailbox struct {
	items []mail
	first int
}

func (m *mailbox) len() int { return len(m.items) - m.first }

func (m *mailbox) front() *mail { return &m.items[m.first] }

func (m *mailbox) push(x mail) { m.items = append(m.items, x) }

func (m *mailbox) pop() {
	m.items[m.first] = mail{}
	m.first++
	if m.first == len(m.items) {
		m.items, m.first = m.items[:0], 0
	} else if m.first >= 64 && 2*m.first >= len(m.items) {
		m.items = slices.Delete(m.items, 0, m.first)
		m.first = 0
	}
}

// remove takes out the i-th event that waits.
func (m *mailbox) remove(i int) { m.items = slices.Delete(m.items, m.first+i, m.first+i+1) }

func (m *mailbox) all() []mail { return m.items[m.first:] }

// nextHistory returns the cell's history with one more event:
// H(h ‖ canonical[name, key, data]). The scratch buffer is returned for reuse.
func (c *cell) nextHistory(scratch []byte, x *mail) (receipt.History, []byte) {
	b := append(scratch[:0], c.history[:]...)
	if c.history.IsZero() {
		b = b[:0] // the lineage is empty at first
	}
	b = canon.AppendArray(b, 3)
	b = canon.AppendText(b, x.name)
	b = canon.AppendText(b, c.id.Key)
	b = canon.AppendRaw(b, x.data)
	return sha256.Sum256(b), b
}

func askedFor(kind string, params journal.Data) asked {
	b := make([]byte, 0, len(kind)+1+len(params))
	b = append(append(b, kind...), 0)
	h := canon.Sum(append(b, params...))
	return asked(h[:16])
}
