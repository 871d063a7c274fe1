package worldctl

import (
	"cmp"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// comparison says how two moments differ, of one world or of two.
type comparison struct {
	A         standing         `json:"a"`
	B         standing         `json:"b"`
	Same      bool             `json:"same"`
	Parted    world.Parting    `json:"parted"`
	Cells     comparedCells    `json:"cells"`
	Intents   comparedIntents  `json:"intents"`
	Cost      comparedSpending `json:"cost"`
	Timers    alarmDifference  `json:"timers"`
	Scheduled alarmDifference  `json:"scheduled"`

	found world.Difference
	cells []cellDifference // those that are told of, by name
}

// standing is one of the moments.
type standing struct {
	Dir       string        `json:"dir"` // empty: the world is gone
	WorldID   string        `json:"world_id"`
	At        journal.Seq   `json:"at"` // the last record that was looked at
	Time      manifest.Tick `json:"time"`
	Manifest  journal.Hash  `json:"manifest"`
	StateRoot journal.Hash  `json:"state_root"`
}

type comparedCells struct {
	Added     []cellDifference `json:"added"`
	Gone      []cellDifference `json:"gone"`
	Changed   []cellDifference `json:"changed"`
	Histories int              `json:"histories"` // look the same and came there by other events
}

type comparedIntents struct {
	Added   []intentDifference `json:"added"`
	Gone    []intentDifference `json:"gone"`
	Changed []intentDifference `json:"changed"`
}

// intentDifference is an intent that only one side has, or that ended otherwise.
type intentDifference struct {
	Cell       string       `json:"cell"`
	Kind       string       `json:"kind"`
	Params     journal.Data `json:"params"`
	Occurrence uint64       `json:"occurrence"`
	A          *intentSide  `json:"a"` // null: it was not asked for
	B          *intentSide  `json:"b"` // likewise
}

type intentSide struct {
	Key     receipt.Key     `json:"key"`
	Record  journal.Seq     `json:"record"` // that made it
	State   receipt.State   `json:"state"`
	Outcome receipt.Outcome `json:"outcome"` // empty while there is none
	Reason  string          `json:"reason"`
}

// comparedSpending is what effects cost since the two parted.
type comparedSpending struct {
	A receipt.Cost `json:"a"`
	B receipt.Cost `json:"b"`
}

// compare compares two moments. limit bounds the cells that are told of; 0: none.
func compare(a, b *side, limit uint64) (*comparison, error) {
	d := world.Compare(a.moment, b.moment)
	x := &comparison{
		A: a.standing(), B: b.standing(), Same: d.Same(), found: d, cells: differences(&d),
		Timers: alarmDifference(d.Timers), Scheduled: alarmDifference(d.Scheduled),
	}
	if limit > 0 {
		x.cells = x.cells[:min(limit, uint64(len(x.cells)))]
	}
	x.Cells = cellsOf(x.cells, d.Histories)
	var err error
	if x.Parted, err = world.PartingOf(a.Local, b.Local, a.end, b.end); err != nil {
		return nil, err
	}
	for _, s := range []struct {
		of   *side
		cost *receipt.Cost
	}{{a, &x.Cost.A}, {b, &x.Cost.B}} {
		spent, err := world.Spent(s.of.Local, x.Parted.Common, s.of.end)
		if err != nil {
			return nil, err
		}
		*s.cost = spent.Cost
	}
	x.Intents, err = intentsOf(&d, a, b)
	return x, err
}

// String says which moment it is.
func (s standing) String() string {
	text := fmt.Sprintf("#%d, tick %d of world %s", s.At, s.Time, s.WorldID)
	if s.Dir != "" {
		text += " in " + s.Dir
	}
	return text
}

func (s *side) standing() standing {
	st := s.moment.Status()
	return standing{
		Dir: s.Local.Dir(), WorldID: st.ID, At: s.end, Time: st.Time, Manifest: st.Manifest, StateRoot: s.moment.StateRoot(),
	}
}

// cellsOf sorts cells by what has become of them.
func cellsOf(all []cellDifference, histories int) comparedCells {
	out := comparedCells{Added: []cellDifference{}, Gone: []cellDifference{}, Changed: []cellDifference{}, Histories: histories}
	for _, c := range all {
		switch {
		case c.A == nil:
			out.Added = append(out.Added, c)
		case c.B == nil:
			out.Gone = append(out.Gone, c)
		default:
			out.Changed = append(out.Changed, c)
		}
	}
	return out
}

func intentsOf(d *world.Difference, a, b *side) (comparedIntents, error) {
	out := comparedIntents{Added: []intentDifference{}, Gone: []intentDifference{}, Changed: []intentDifference{}}
	for i := range d.IntentsAdded {
		x, err := intentDifferenceOf(nil, &d.IntentsAdded[i], a, b)
		if err != nil {
			return out, err
		}
		out.Added = append(out.Added, x)
	}
	for i := range d.IntentsGone {
		x, err := intentDifferenceOf(&d.IntentsGone[i], nil, a, b)
		if err != nil {
			return out, err
		}
		out.Gone = append(out.Gone, x)
	}
	for i := range d.IntentsChanged {
		x, err := intentDifferenceOf(&d.IntentsChanged[i].A, &d.IntentsChanged[i].B, a, b)
		if err != nil {
			return out, err
		}
		out.Changed = append(out.Changed, x)
	}
	return out, nil
}

func intentDifferenceOf(x, y *receipt.Entry, a, b *side) (intentDifference, error) {
	e := cmp.Or(x, y)
	d := intentDifference{Cell: e.Intent.Cell, Kind: e.Intent.Kind, Occurrence: e.Intent.Occurrence}
	var err error
	if x != nil {
		if d.A, d.Params, err = a.tellIntent(x); err != nil {
			return d, err
		}
	}
	if y != nil {
		d.B, d.Params, err = b.tellIntent(y)
	}
	return d, err
}

// tellIntent returns what is to be said of an intent, and its params.
func (s *side) tellIntent(e *receipt.Entry) (*intentSide, journal.Data, error) {
	line, err := s.IntentLine(e)
	if err != nil {
		return nil, nil, err
	}
	return &intentSide{Key: e.Intent.Key, Record: journal.Seq(e.Emitted), State: e.State, Outcome: e.Outcome, Reason: line.Reason}, line.Params, nil
}

// summary is the whole comparison in one line.
func (x *comparison) summary() string {
	if x.Same {
		return "the same: cells, intents, timers and scheduled events"
	}
	d := &x.found
	line := fmt.Sprintf("cells: %d added, %d gone, %d changed; intents: %d added, %d gone, %d changed",
		len(d.CellsAdded), len(d.CellsGone), len(d.CellsChanged), len(d.IntentsAdded), len(d.IntentsGone), len(d.IntentsChanged))
	return line + "; cost: " + view.Arrow(view.Cost(x.Cost.A), view.Cost(x.Cost.B))
}

func (c *cli) showComparison(x *comparison, a, b *side) {
	fmt.Fprintln(c.stdout, x.summary())
	c.facts([2]any{"a", x.A}, [2]any{"b", x.B},
		[2]any{"parted", fmt.Sprintf("after #%d", x.Parted.Common)},
		[2]any{"a goes on", c.tellRecord(a.records, x.Parted.A)}, [2]any{"b goes on", c.tellRecord(b.records, x.Parted.B)},
		[2]any{"cost since", view.Arrow(view.Cost(x.Cost.A), view.Cost(x.Cost.B))})
	if x.Same {
		return
	}
	c.showDiff(&diffAnswer{Cells: x.cells, Histories: x.Cells.Histories, Timers: x.Timers, Scheduled: x.Scheduled})
	c.showIntents(&x.Intents)
}

// tellRecord says what a record records; 0: there is none.
func (c *cli) tellRecord(j records, id journal.Seq) string {
	if id == 0 {
		return "no further"
	}
	e, err := j.Entry(id)
	if err != nil {
		return err.Error()
	}
	text, err := teller{records: j, full: c.verbose}.tell(e)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("with #%d %s", id, text)
}

func (c *cli) showIntents(x *comparedIntents) {
	var rows []table.Row
	for _, some := range []struct {
		is  string
		all []intentDifference
	}{{"added", x.Added}, {"gone", x.Gone}, {"changed", x.Changed}} {
		for i := range some.all {
			d := &some.all[i]
			params := teller{full: c.verbose}.data(d.Params)
			rows = append(rows, table.Row{d.Cell, d.Kind, params, some.is, d.A.String() + " -> " + d.B.String()})
		}
	}
	if len(rows) == 0 {
		return
	}
	t := c.newTable()
	t.AppendHeader(table.Row{"cell", "asks for", "params", "is", "stands"})
	t.AppendRows(rows)
	t.Render()
}

// String prints where an intent stands, and why where it came to nothing.
func (s *intentSide) String() string {
	switch {
	case s == nil:
		return "not asked"
	case s.Reason != "":
		return string(s.State) + " (" + visible(s.Reason, "") + ")"
	}
	return string(s.State)
}
