package world

import (
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// Status says where a world stands.
type Status struct {
	World         string // the manifest's name
	ID            string
	Time          manifest.Tick
	Head          Head
	Manifest      Hash
	Version       uint64 // the manifest's
	Cells         int
	EventsPending int // in mailboxes and scheduled
	Parked        int // cells
	Timers        int
	Intents       map[receipt.State]int
	Idle          bool
}

// Status returns where the world stands.
func (w *World) Status() Status {
	k := w.k
	s := Status{
		World: k.rules.manifest.World, ID: k.id, Time: k.now, Head: k.head(),
		Manifest: k.rules.hash, Version: k.rules.manifest.Version,
		Cells: len(k.cells), EventsPending: len(k.scheduled), Parked: k.parked, Timers: len(k.timers),
		Intents: make(map[receipt.State]int), Idle: w.Idle(),
	}
	for _, c := range k.cells { // order cannot show: a sum
		s.EventsPending += c.mail.len()
	}
	for _, state := range receipt.States() {
		s.Intents[state] = k.ledger.Count(state)
	}
	return s
}

// Idle reports whether nothing can happen without another input: no event that
// can be handled, no effect under way, no timer. Parked cells do not count.
func (w *World) Idle() bool {
	k := w.k
	return k.scheduler.ready() == 0 && len(k.scheduled) == 0 && len(k.timers) == 0 &&
		len(k.ledger.Open()) == 0 && len(k.ledger.Waiting()) == 0 && len(k.ledger.InFlight()) == 0
}

// CellView is a cell as it stands. Its slices are the caller's.
type CellView struct {
	Cell   reducer.Cell
	N      uint64 // steps taken
	State  Data   // empty where the cell has none
	Mail   []MailView
	Parked bool
}

// MailView is one event that waits for a cell.
type MailView struct {
	Record Seq    `json:"record"`
	Name   string `json:"name"`
	Data   Data   `json:"data"`
}

// Cell returns a cell as it stands.
func (w *World) Cell(id reducer.Cell) (CellView, bool) {
	c := w.k.cells[id]
	if c == nil {
		return CellView{}, false
	}
	return c.view(), true
}

// Cells returns all cells as they stand, sorted by name.
func (w *World) Cells() []CellView {
	cells := make([]*cell, 0, len(w.k.cells))
	for _, c := range w.k.cells { // order cannot show: sorted below
		cells = append(cells, c)
	}
	slices.SortFunc(cells, func(a, b *cell) int { return strings.Compare(a.name, b.name) })
	out := make([]CellView, len(cells))
	for i, c := range cells {
		out[i] = c.view()
	}
	return out
}

func (c *cell) view() CellView {
	v := CellView{Cell: c.id, N: c.n, State: slices.Clone(c.state), Parked: c.parked}
	for _, x := range c.mail.all() {
		v.Mail = append(v.Mail, MailView{Record: x.record, Name: x.name, Data: slices.Clone(x.data)})
	}
	return v
}

// Intents returns the ledger's entries in the order of their intents.
func (w *World) Intents() []receipt.Entry {
	keys := w.k.ledger.Keys()
	out := make([]receipt.Entry, len(keys))
	for i, key := range keys {
		out[i] = *w.k.ledger.Entry(key)
	}
	return out
}

// Intent returns the ledger's entry of an intent.
func (w *World) Intent(key receipt.Key) (receipt.Entry, bool) {
	e := w.k.ledger.Entry(key)
	if e == nil {
		return receipt.Entry{}, false
	}
	return *e, true
}

// InFlight returns the permits of the effects in flight, in their order.
func (w *World) InFlight() []receipt.Permit {
	var out []receipt.Permit
	for _, e := range w.k.ledger.InFlight() {
		out = append(out, w.k.permit(e))
	}
	return out
}

// StateRoot returns the root of cells, mailboxes and timers; see package
// snapshot. It costs time in proportion to the number of cells.
func (w *World) StateRoot() Hash { return w.k.stateRoot() }

// Manifest returns the manifest in force. The caller must not change it.
func (w *World) Manifest() *manifest.Manifest { return w.k.rules.manifest }
