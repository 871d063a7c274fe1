package world

import (
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
)

// Moment is a world at one moment, for looking at. It is not safe for concurrent
// use.
type Moment struct {
	k        *kernel
	past     journal.History       // that led there
	registry reducer.Registry      // what Go reducers there are
	performs Performs              // what effects; nil: any
	bounds   Bounds                // of candidates
	queued   func() receipt.Queued // what the host has not begun; nil: nothing
}

// Status says where a world stands.
type Status struct {
	World         string // the manifest's name
	ID            string
	Time          manifest.Tick
	Head          journal.Head
	Manifest      journal.Hash
	Version       uint64 // the manifest's
	Cells         int
	EventsPending int // in mailboxes and scheduled
	Halted        int // cells
	Timers        int
	Snapshots     int
	Intents       map[receipt.State]int // also those that are receipt.StateCancelled
	Idle          bool
	Resting       map[string]journal.Seq // capabilities, since records: what is asked for under them waits for a person
}

// Status returns where the world stands.
func (m *Moment) Status() Status {
	k := m.k
	s := Status{
		World: k.rules.manifest.World, ID: k.id, Time: k.now, Head: k.head(),
		Manifest: k.rules.hash, Version: k.rules.manifest.Version,
		EventsPending: len(k.scheduled), Halted: len(k.halted), Timers: len(k.timers), Snapshots: k.catalog.Len(),
		Intents: make(map[receipt.State]int), Idle: m.Idle(), Resting: maps.Clone(k.rests),
	}
	for _, c := range k.cells.here { // order cannot show: a sum; a cell with mail is here
		s.EventsPending += c.mail.len()
	}
	s.Cells = k.cells.born()
	for _, state := range append(receipt.States(), receipt.StateCancelled) {
		s.Intents[state] = k.ledger.Count(state)
	}
	return s
}

// Head returns the last record that the moment knows.
func (m *Moment) Head() journal.Head { return m.k.head() }

// Unread returns why something of the world could not be read that it has left to its last
// image; nil: everything could. What the methods have returned since is not to be believed.
func (m *Moment) Unread() error { return m.k.store.err }

// InHistory reports whether a record is part of the history that led to the moment: of no
// part that a rollback left.
func (m *Moment) InHistory(record journal.Seq) bool { return m.k.inHistory(record, m.k.last) }

// Idle reports whether nothing can happen without another input: no event that
// can be handled, no effect under way, no timer. Halted cells do not count.
func (m *Moment) Idle() bool {
	k := m.k
	return k.scheduler.ready() == 0 && len(k.scheduled) == 0 && len(k.timers) == 0 &&
		len(k.ledger.Open()) == 0 && len(k.ledger.Waiting()) == 0 && len(k.ledger.InFlight()) == 0
}

// CellView is a cell as it stands. Its slices are the caller's.
type CellView struct {
	Cell   reducer.Cell
	N      uint64       // steps taken
	State  journal.Data // empty where the cell has none
	Mail   []MailView
	Halted bool

	// What falls due for it later, in that order. Cells leaves both empty.
	Scheduled []AlarmView // events
	Timers    []AlarmView
}

// AlarmView is an event that falls due for a cell.
type AlarmView struct {
	Record journal.Seq   `json:"record"` // event.submitted or timer.set
	At     manifest.Tick `json:"at"`
	Name   string        `json:"name"`
	Tag    string        `json:"tag,omitempty"` // of a timer that has one
	Data   journal.Data  `json:"data"`
}

// MailView shows an event in the mailbox of a cell.
type MailView struct {
	Record journal.Seq  `json:"record"`
	Name   string       `json:"name"`
	Data   journal.Data `json:"data"`
}

// Cell returns a cell as it stands.
func (m *Moment) Cell(id reducer.Cell) (CellView, bool) {
	c := m.k.cells.get(id)
	if c == nil || !c.born {
		return CellView{}, false
	}
	v := c.view()
	v.Scheduled, v.Timers = alarmViews(m.k.scheduled.alarmsOf(c), m.k.now), alarmViews(m.k.timers.alarmsOf(c), m.k.now)
	return v, true
}

// alarmsOf returns what falls due for a cell.
func (a alarms) alarmsOf(c *cell) (out alarms) {
	for _, x := range a {
		if slices.ContainsFunc(x.to, func(to *cell) bool { return to.name == c.name }) {
			out = append(out, x)
		}
	}
	return out
}

// alarmViews returns what falls due after a tick, in that order.
func alarmViews(waiting alarms, after manifest.Tick) (out []AlarmView) {
	for _, x := range sortedAlarms(waiting) {
		if x.at > after {
			out = append(out, AlarmView{Record: x.record, At: x.at, Name: x.name, Tag: x.tag, Data: slices.Clone(x.data)})
		}
	}
	return out
}

// Cells returns all cells as they stand, sorted by name.
func (m *Moment) Cells() []CellView {
	cells := m.k.sortedCells(nil)
	out := make([]CellView, len(cells))
	for i, c := range cells {
		out[i] = c.view()
	}
	return out
}

// HaltedCells returns the cells that wait for a person, sorted by name. They cost nothing
// for the others.
func (m *Moment) HaltedCells() []CellView {
	var out []CellView
	for _, c := range m.k.haltedCells() {
		out = append(out, c.view())
	}
	return out
}

// haltedCells returns the cells that wait for a person, by name.
func (r *roster) haltedCells() []*cell {
	return slices.SortedFunc(maps.Values(r.halted), func(a, b *cell) int { return strings.Compare(a.name, b.name) })
}

// Undecided returns the ledger's entries of the intents that await a person or are in doubt, each
// in the order in which they were emitted. They cost nothing for the others.
func (m *Moment) Undecided() []receipt.Entry {
	var out []receipt.Entry
	for _, s := range []receipt.State{receipt.StateAwaitingApproval, receipt.StateAwaitingAnswer, receipt.StateAwaitingConfirmation, receipt.StateInDoubt} {
		for _, e := range m.k.ledger.In(s) {
			out = append(out, *e)
		}
	}
	return out
}

func (c *cell) view() CellView {
	v := CellView{Cell: c.id(), N: c.n, State: slices.Clone(c.state), Halted: c.halted}
	for _, x := range c.mail.pending() {
		v.Mail = append(v.Mail, MailView{Record: x.record, Name: x.name, Data: slices.Clone(x.data)})
	}
	return v
}

// Intents returns the ledger's entries in the order of their intents.
func (m *Moment) Intents() []receipt.Entry {
	all := m.k.ledger.Select(nil)
	out := make([]receipt.Entry, len(all))
	for i, e := range all {
		out[i] = *e
	}
	return out
}

// Intent returns the ledger's entry of an intent.
func (m *Moment) Intent(key receipt.Key) (receipt.Entry, bool) {
	e := m.k.ledger.Entry(key)
	if e == nil {
		return receipt.Entry{}, false
	}
	return *e, true
}

// InDoubt counts the effects in doubt that a person has to decide about, and those
// whose verifiers are asked first.
func (m *Moment) InDoubt() (undecided, asked int) {
	for _, e := range m.k.ledger.In(receipt.StateInDoubt) {
		if e.Waiting {
			asked++
		} else {
			undecided++
		}
	}
	return undecided, asked
}

// InFlight returns the permits of the effects in flight, in their order.
func (m *Moment) InFlight() []receipt.Permit {
	var out []receipt.Permit
	for _, e := range m.k.ledger.InFlight() {
		out = append(out, m.k.permit(e))
	}
	return out
}

// Waiting returns the intents that wait for their next attempt.
func (m *Moment) Waiting() []receipt.Intent {
	var out []receipt.Intent
	for _, e := range m.k.ledger.Waiting() {
		out = append(out, e.Intent)
	}
	return out
}

// StateRoot returns the root of cells, mailboxes and timers; see package
// snapshot. It costs time in proportion to the number of cells.
func (m *Moment) StateRoot() journal.Hash { return m.k.stateRoot() }

// Manifest returns the manifest in force. The caller must not change it.
func (m *Moment) Manifest() *manifest.Manifest { return m.k.rules.manifest }

// Snapshots returns the snapshots that are kept, oldest first.
func (m *Moment) Snapshots() []snapshot.Snapshot { return m.k.catalog.All() }

// FindSnapshot returns the snapshot that a name, or the beginning of a hash, means;
// the errors are those of package snapshot.
func (m *Moment) FindSnapshot(name string) (snapshot.Snapshot, error) { return m.k.catalog.Find(name) }

// Leaf returns what the state root says of a cell, and whether it is there.
func (m *Moment) Leaf(cell reducer.Cell) (CellLeaf, bool) {
	c := m.k.cells.get(cell)
	if c == nil || !c.born {
		return CellLeaf{}, false
	}
	return c.leaf(m.k.codeOf(c)), true
}

// Prove proves what a cell is, or that it is not there, against the state root.
func (m *Moment) Prove(cell reducer.Cell) snapshot.StateProof {
	m.k.refreshTree()
	return snapshot.StateProof{
		Cells: m.k.tree.cells.Root(), Mailboxes: m.k.tree.mailboxes.Root(),
		Timers: snapshot.Root(alarmLeaves(m.k.scheduled, m.k.timers, m.k.now)),
		Cell:   m.k.tree.cells.Prove(cellLeafKey(cell.String())),
	}
}
