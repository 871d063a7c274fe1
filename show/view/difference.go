package view

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// Comparison says how two moments differ, of one world or of two.
type Comparison struct {
	A       Standing                    `json:"a"`
	B       Standing                    `json:"b"`
	Same    bool                        `json:"same"`
	Parted  journal.Parting             `json:"parted"`
	Cells   ComparedCells               `json:"cells"`
	Intents Differing[IntentDifference] `json:"intents"`
	Cost    struct {                    // of effects, since the two parted
		A receipt.Cost `json:"a"`
		B receipt.Cost `json:"b"`
	} `json:"cost"`
	Timers    world.AlarmChange `json:"timers"`
	Scheduled world.AlarmChange `json:"scheduled"`
	LeftOut   LeftOut           `json:"left_out"`

	Found world.Difference `json:"-"` // all of it, where Cells are bounded
}

// LeftOut says how many differences there are besides those that are told of.
type LeftOut struct {
	Cells   int `json:"cells"`
	Intents int `json:"intents"`
}

// Most bounds what is told of a comparison, all of which is found in any case. What is 0
// bounds nothing.
type Most struct {
	Cells   uint64
	Intents uint64 // of those that were added, are gone, and have changed, each
	Bytes   int    // of states and params, but for the first
}

// Standing is one of the moments.
type Standing struct {
	Dir       string        `json:"dir"` // empty: the world is gone
	WorldID   string        `json:"world_id"`
	At        journal.Seq   `json:"at"` // the last record that was looked at
	Time      manifest.Tick `json:"time"`
	Manifest  journal.Hash  `json:"manifest"`
	StateRoot journal.Hash  `json:"state_root"`
}

// Differing are things that differ, by what has become of them.
type Differing[T any] struct {
	Added   []T `json:"added"`
	Gone    []T `json:"gone"`
	Changed []T `json:"changed"`
}

// ComparedCells are the cells that differ.
type ComparedCells struct {
	Differing[CellDifference]
	Histories int `json:"histories"` // look the same and came there by other events
}

// CellDifference is a cell that is not the same at both moments.
type CellDifference struct {
	Cell   string        `json:"cell"`
	Change string        `json:"change"` // added, gone or changed
	A      *CellLine     `json:"a"`      // null: it was not there
	B      *CellLine     `json:"b"`      // likewise
	State  []StateChange `json:"state"`  // where the states differ
}

// StateChange is one place in which two states differ.
type StateChange struct {
	Path string        `json:"path"`        // a JSON pointer; empty: the whole
	A    *journal.Data `json:"a,omitempty"` // absent: there is nothing at the path
	B    *journal.Data `json:"b,omitempty"` // likewise
}

// IntentDifference is an intent with different outcomes on the two sides, or on one side only.
type IntentDifference struct {
	Cell       string       `json:"cell"`
	Kind       string       `json:"kind"`
	Params     journal.Data `json:"params"`
	Occurrence uint64       `json:"occurrence"`
	A          *IntentSide  `json:"a"` // null: it was not asked for
	B          *IntentSide  `json:"b"` // likewise
}

// IntentSide is where an intent stands at one of the moments.
type IntentSide struct {
	Key     receipt.Key     `json:"key"`
	Record  journal.Seq     `json:"record"`  // that made it
	State   receipt.State   `json:"state"`   // as it is shown
	Outcome receipt.Outcome `json:"outcome"` // empty while there is none
	Reason  string          `json:"reason"`
}

// CellComparison says how a cell's state differs between two moments.
type CellComparison struct {
	Cell  string        `json:"cell"`
	A     journal.Seq   `json:"a"` // the records that were looked at
	B     journal.Seq   `json:"b"`
	Same  bool          `json:"same"`
	State []StateChange `json:"state"`
}

// Side is a moment in a comparison, with its journal.
type Side struct {
	Journal
	Moment *world.Moment
}

// lastRecord is the last record that belongs to it.
func (s *Side) lastRecord() journal.Seq { return s.Moment.Head().ID }

// Compare compares two moments, but for cells that are left out by name.
func Compare(a, b *Side, most Most, left ...string) (*Comparison, error) {
	d := world.Compare(a.Moment, b.Moment, left...)
	x := &Comparison{A: a.standing(), B: b.standing(), Same: d.Same(), Timers: d.Timers, Scheduled: d.Scheduled, Found: d}
	t := teller{Most: most}
	x.Cells = t.cells(&d)
	var err error
	if x.Parted, err = journal.PartingOf(a.Local, b.Local, a.lastRecord(), b.lastRecord()); err != nil {
		return nil, err
	}
	if x.Cost.A, err = a.spent(x.Parted.Common); err != nil {
		return nil, err
	}
	if x.Cost.B, err = b.spent(x.Parted.Common); err != nil {
		return nil, err
	}
	x.Intents, err = t.intents(&d, a, b)
	x.LeftOut = t.left
	return x, err
}

func (s *Side) spent(since journal.Seq) (receipt.Cost, error) {
	spent, err := journal.Spent(s.Local, since, s.lastRecord())
	return spent.Cost, err
}

func (s *Side) standing() Standing {
	st := s.Moment.Status()
	return Standing{
		Dir: s.Local.Dir(), WorldID: st.ID, At: s.lastRecord(), Time: st.Time, Manifest: st.Manifest, StateRoot: s.Moment.StateRoot(),
	}
}

// String says which moment it is.
func (s Standing) String() string {
	text := fmt.Sprintf("#%d, tick %d of world %s", s.At, s.Time, s.WorldID)
	if s.Dir != "" {
		text += " in " + s.Dir
	}
	return text
}

// ByName returns all cells that differ, by name.
func (c *ComparedCells) ByName() []CellDifference {
	all := slices.Concat(c.Added, c.Gone, c.Changed)
	slices.SortFunc(all, func(a, b CellDifference) int { return strings.Compare(a.Cell, b.Cell) })
	return all
}

// teller tells of differences as far as it may.
type teller struct {
	Most
	bytes int // told so far
	left  LeftOut
}

// room reports whether something else of a length may be told of.
func (t *teller) room(bytes int) bool {
	fits := t.Bytes == 0 || t.bytes == 0 || t.bytes+bytes <= t.Bytes
	if fits {
		t.bytes += bytes
	}
	return fits
}

// cells returns the first cells that differ, by name.
func (t *teller) cells(d *world.Difference) ComparedCells {
	type found struct {
		change string
		a, b   *world.CellView
	}
	all := make(map[string]found)
	for i := range d.CellsAdded {
		all[d.CellsAdded[i].Cell.String()] = found{"added", nil, &d.CellsAdded[i]}
	}
	for i := range d.CellsGone {
		all[d.CellsGone[i].Cell.String()] = found{"gone", &d.CellsGone[i], nil}
	}
	for i := range d.CellsChanged {
		x := &d.CellsChanged[i]
		all[x.A.Cell.String()] = found{"changed", &x.A, &x.B}
	}
	told := ComparedCells{Differing: none[CellDifference](), Histories: d.Histories}
	into := map[string]*[]CellDifference{"added": &told.Added, "gone": &told.Gone, "changed": &told.Changed}
	for n, name := range slices.Sorted(maps.Keys(all)) {
		x := all[name]
		c := differenceOf(x.change, x.a, x.b)
		if t.Cells > 0 && uint64(n) == t.Cells || !t.room(c.bytes()) {
			t.left.Cells = len(all) - n
			break
		}
		*into[x.change] = append(*into[x.change], c)
	}
	return told
}

// bytes is about how long what a difference quotes is.
func (d *CellDifference) bytes() (n int) {
	for _, x := range d.State {
		n += len(x.Path)
		for _, data := range []*journal.Data{x.A, x.B} {
			if data != nil {
				n += len(*data)
			}
		}
	}
	return n
}

// none is nothing that differs: lists, and no null, as JSON.
func none[T any]() Differing[T] { return Differing[T]{[]T{}, []T{}, []T{}} }

// differenceOf compares a cell at both moments; nil: it was not there.
func differenceOf(change string, a, b *world.CellView) CellDifference {
	d := CellDifference{Change: change}
	var states [2]journal.Data
	for i, x := range []struct {
		cell *world.CellView
		line **CellLine
	}{{a, &d.A}, {b, &d.B}} {
		if x.cell == nil {
			continue
		}
		line := LineOfCell(*x.cell)
		d.Cell, *x.line, states[i] = line.Cell, &line, x.cell.State
	}
	d.State = stateChanges(states[0], states[1])
	return d
}

// stateChanges returns where two states differ; see canon.Changes.
func stateChanges(a, b journal.Data) []StateChange {
	out := []StateChange{}
	for _, c := range canon.Changes(a, b) {
		x := StateChange{Path: c.Path}
		if c.A != nil {
			x.A = &c.A
		}
		if c.B != nil {
			x.B = &c.B
		}
		out = append(out, x)
	}
	return out
}

func (t *teller) intents(d *world.Difference, a, b *Side) (Differing[IntentDifference], error) {
	out := none[IntentDifference]()
	full := false
	add := func(to *[]IntentDifference, x, y *receipt.Entry) error {
		if full || t.Intents > 0 && uint64(len(*to)) == t.Intents {
			t.left.Intents++
			return nil
		}
		one, err := intentDifferenceOf(a, b, x, y)
		if err != nil {
			return err
		}
		if full = !t.room(len(one.Params)); full {
			t.left.Intents++
			return nil
		}
		*to = append(*to, one)
		return nil
	}
	for i := range d.IntentsAdded {
		if err := add(&out.Added, nil, &d.IntentsAdded[i]); err != nil {
			return out, err
		}
	}
	for i := range d.IntentsGone {
		if err := add(&out.Gone, &d.IntentsGone[i], nil); err != nil {
			return out, err
		}
	}
	for i := range d.IntentsChanged {
		if err := add(&out.Changed, &d.IntentsChanged[i].A, &d.IntentsChanged[i].B); err != nil {
			return out, err
		}
	}
	return out, nil
}

// intentDifferenceOf shows an intent as it stands at two moments; nil: it was not asked for.
func intentDifferenceOf(a, b *Side, x, y *receipt.Entry) (one IntentDifference, err error) {
	for _, s := range []struct {
		of    *Side
		entry *receipt.Entry
		side  **IntentSide
	}{{a, x, &one.A}, {b, y, &one.B}} {
		if s.entry == nil {
			continue
		}
		line, err := s.of.IntentLine(s.entry)
		if err != nil {
			return one, err
		}
		e := &s.entry.Intent
		one.Cell, one.Kind, one.Params, one.Occurrence = e.Cell, e.Kind, line.Params, e.Occurrence
		*s.side = &IntentSide{e.Key, journal.Seq(s.entry.Emitted), line.State, s.entry.Outcome, line.Reason}
	}
	return one, nil
}

// CellStep says what the last step that a cell had taken by a moment changed in its state.
// Where a rollback or other rules have changed that since, it says what they did. The error
// is that of Cell.
func (j Journal) CellStep(cell reducer.Cell, moment string) (*CellComparison, error) {
	is, err := j.Cell(cell, moment)
	if err != nil {
		return nil, err
	}
	step, err := j.lastStep(is.Cell, is.At)
	if err != nil {
		return nil, err
	}
	at := func(id journal.Seq) string { return fmt.Sprintf("#%d", id) }
	if step == 0 {
		return j.CompareCell(cell, at(is.At), at(is.At))
	}
	since, err := j.CompareCell(cell, at(step), at(is.At))
	if err != nil || !since.Same {
		return since, err
	}
	return j.CompareCell(cell, at(step-1), at(step))
}

// lastStep returns the last cell.stepped of a cell up to a record; 0: there is none.
func (j Journal) lastStep(cell string, at journal.Seq) (journal.Seq, error) {
	for back := journal.Seq(1 << 10); ; back <<= 4 {
		after := at - min(at, back)
		var ids []journal.Seq
		for id, err := range j.Local.CellRecords(cell, after) {
			if err != nil {
				return 0, err
			}
			if id > at {
				break
			}
			ids = append(ids, id)
		}
		for _, id := range slices.Backward(ids) {
			raw, err := j.Stored(id)
			if err != nil {
				return 0, err
			}
			if rec, err := journal.DecodeRecord(raw); err != nil || rec.Kind == journal.KindStepped {
				return id, err
			}
		}
		if after == 0 {
			return 0, nil
		}
	}
}

// CompareCell compares the state of a cell at two moments that a person named. The
// error is that of Cell, world.ErrNoCell only where it was there at neither.
func (j Journal) CompareCell(cell reducer.Cell, a, b string) (*CellComparison, error) {
	for _, name := range []string{a, b} { // an empty one is none, and not now
		if _, err := j.At(name); err != nil {
			return nil, err
		}
	}
	was, err := j.Cell(cell, a)
	if err != nil && !errors.Is(err, world.ErrNoCell) {
		return nil, err
	}
	is, other := j.Cell(cell, b)
	if other != nil && (err != nil || !errors.Is(other, world.ErrNoCell)) {
		return nil, other
	}
	changes := stateChanges(was.State, is.State)
	return &CellComparison{Cell: cell.String(), A: was.At, B: is.At, Same: len(changes) == 0, State: changes}, nil
}
