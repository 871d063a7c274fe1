package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
)

// What falls due for a cell stands in an image beside the cell: the events that are
// scheduled for it in one list, its timers in another, each a version like that of a cell,
// under a name that no cell has. So an image costs what changed, and one cell can be read
// without what falls due for all others. A list is a canonical array, in the order in which
// its alarms fall due, each
//
//	[at, record, [cell, …], name, data]     and the tag behind it of a timer that has one
//
// What goes to several cells stands in the lists of all. An alarm leaves its list with the
// next version of it, and no version is made because one has fallen due: who reads a list
// leaves out what is due at the tick of the image or before. Only what a redaction may be
// about is taken out at once; see mayBeDestroyed.
//
// In images of version 1 the core has all alarms, and there are no lists.
const (
	scheduledList = "scheduled:"
	timersList    = "timers:"
)

// alarmLists says of which cells images have lists, and whether the next image has to have
// them anew. Where cells may leave memory it need not know of lists in which all is due.
type alarmLists struct {
	scheduled, timers map[string]bool

	partial bool // it may not know of some
}

func newAlarmLists() alarmLists {
	return alarmLists{scheduled: make(map[string]bool), timers: make(map[string]bool)}
}

// kinds pairs the lists with what their names begin with.
func (l *alarmLists) kinds() [2]alarmListKind {
	return [2]alarmListKind{{scheduledList, l.scheduled}, {timersList, l.timers}}
}

type alarmListKind struct {
	prefix string
	cells  map[string]bool
}

// names returns the names of the lists that it knows of.
func (l *alarmLists) names() (names []string) {
	for _, kind := range l.kinds() {
		for cell := range kind.cells { // order cannot show: they are looked up
			names = append(names, kind.prefix+cell)
		}
	}
	return names
}

// forget has it know no more of lists that the last image has, and in which all is due: those
// of cells that are not alarmed.
func (l *alarmLists) forget(here map[string]*cell) {
	for _, kind := range l.kinds() {
		for name, changed := range kind.cells { // order cannot show: each by itself
			if c := here[name]; !changed && (c == nil || !c.alarmed) {
				delete(kind.cells, name)
				l.partial = true
			}
		}
	}
}

// listsThen returns the names of the lists that a snapshot may have, but for those in which all
// was due then.
func (a *calendar) listsThen(s *snapshot.Snapshot) []string {
	names := a.lists.names()
	if !a.lists.partial {
		return names
	}
	for _, kind := range a.lists.kinds() {
		for v, err := range a.store.images.CellVersions(kind.prefix, journal.Last) {
			var waits []imageAlarm
			if err == nil && v.At <= journal.Seq(s.Record) { // it is as it was
				waits, err = decodeAlarms(&v, manifest.Tick(s.Time))
			}
			if err != nil {
				a.store.fail(err)
				return nil
			}
			_, known := kind.cells[strings.TrimPrefix(v.Cell, kind.prefix)]
			if !known && (len(waits) > 0 || v.At > journal.Seq(s.Record)) {
				names = append(names, v.Cell)
			}
		}
	}
	return names
}

// mayBeDestroyed reports whether the payload of an alarm's record may lie beside the record,
// so that somebody may have it destroyed once it has been handled.
func (x *alarm) mayBeDestroyed() bool {
	const rest = 64 // numbers, and the heads of items
	size := rest + len(x.name) + len(x.tag) + len(x.data)
	for _, c := range x.to {
		size += len(c.name) + len("...")
	}
	return size > journal.MaxInlineBytes
}

// touchLists has the next image have all lists anew.
func (a *calendar) touchLists() {
	for i, waiting := range []alarms{a.scheduled, a.timers} {
		lists := a.lists.kinds()[i].cells
		for cell := range lists { // order cannot show: each by itself
			lists[cell] = true
		}
		for _, x := range waiting {
			touchList(lists, x.to)
		}
	}
}

// touchList has the next image have the lists of some cells anew.
func touchList(lists map[string]bool, of []*cell) {
	for _, c := range of {
		lists[c.name] = true
	}
}

// imageLists returns the lists that changed since the last image, by name.
func (a *calendar) imageLists() []journal.CellVersion {
	var out []journal.CellVersion
	for i, waiting := range []alarms{a.scheduled, a.timers} {
		kind := a.lists.kinds()[i]
		of := make(map[string]alarms)
		for cell, changed := range kind.cells { // order cannot show: sorted below
			if changed {
				of[cell], kind.cells[cell] = nil, false
			}
		}
		if len(of) == 0 {
			continue
		}
		for _, x := range waiting {
			for i, c := range x.to {
				again := slices.ContainsFunc(x.to[:i], func(before *cell) bool { return before.name == c.name })
				if _, changed := of[c.name]; changed && !again {
					of[c.name] = append(of[c.name], x)
				}
			}
		}
		for _, cell := range slices.Sorted(maps.Keys(of)) {
			out = append(out, journal.CellVersion{Cell: kind.prefix + cell, Bytes: appendAlarms(nil, imageAlarms(of[cell]))})
		}
	}
	return out
}

func imageAlarms(h alarms) []imageAlarm {
	out := make([]imageAlarm, 0, len(h))
	for _, x := range sortedAlarms(h) {
		out = append(out, imageAlarm{At: x.at, Record: x.record, To: cellNames(x.to), Name: x.name, Data: x.data, Tag: x.tag})
	}
	return out
}

func appendAlarms(b []byte, list []imageAlarm) []byte {
	b = canon.AppendArray(b, len(list))
	for i := range list {
		x := &list[i]
		items := 5
		if x.Tag != "" {
			items++
		}
		b = canon.AppendArray(b, items)
		b = canon.AppendUint(b, uint64(x.At))
		b = canon.AppendUint(b, uint64(x.Record))
		b = canon.AppendTexts(b, x.To)
		b = canon.AppendText(b, x.Name)
		b = canon.AppendRaw(b, x.Data)
		if x.Tag != "" {
			b = canon.AppendText(b, x.Tag)
		}
	}
	return b
}

// decodeAlarms is the inverse of appendAlarms, for what is due after a tick. What it
// returns are parts of the data.
func decodeAlarms(v *journal.CellVersion, after manifest.Tick) (list []imageAlarm, err error) {
	r := canon.NewReader(v.Bytes)
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		items := r.Array()
		x := imageAlarm{At: manifest.Tick(r.Uint()), Record: journal.Seq(r.Uint())}
		for m := r.Array(); m > 0 && r.Err() == nil; m-- {
			x.To = append(x.To, r.Text())
		}
		x.Name, x.Data = r.Text(), r.Raw()
		if items > 5 {
			x.Tag = r.Text()
		}
		if r.Err() == nil && (items < 5 || items > 6 || items == 6 && x.Tag == "" || len(x.To) == 0) {
			return nil, fmt.Errorf("%s: alarm #%d is not [at, record, cells, name, data] with, perhaps, a tag", v.Cell, x.Record)
		}
		if x.At > after {
			list = append(list, x)
		}
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", v.Cell, err)
	}
	return list, nil
}

// imageParts are an image that was read.
type imageParts struct {
	core      imageCore
	cells     []journal.CellVersion // without the lists
	scheduled []imageAlarm          // in the order in which they fall due
	timers    []imageAlarm
	lists     alarmLists // that the image has
}

// partsOf reads an image that has all lists.
func partsOf(img *journal.Image) (*imageParts, error) {
	p := &imageParts{lists: newAlarmLists()}
	if err := canon.Unmarshal(img.Core, &p.core); err != nil {
		return nil, err
	}
	if v := p.core.Version; v != imageVersion {
		return nil, fmt.Errorf("unknown version %d", v)
	}
	if err := checkUnderKeys(p.core.Submits); err != nil {
		return nil, err
	}
	for i := range img.Cells {
		v := &img.Cells[i]
		scheduled, isScheduled := strings.CutPrefix(v.Cell, scheduledList)
		timers, isTimers := strings.CutPrefix(v.Cell, timersList)
		var err error
		switch {
		case isScheduled:
			p.lists.scheduled[scheduled] = false
			p.scheduled, err = p.appendOwn(p.scheduled, v, scheduled)
		case isTimers:
			p.lists.timers[timers] = false
			p.timers, err = p.appendOwn(p.timers, v, timers)
		default:
			p.cells = append(p.cells, *v)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, list := range [][]imageAlarm{p.scheduled, p.timers} {
		slices.SortFunc(list, func(a, b imageAlarm) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Record, b.Record)) })
	}
	return p, nil
}

// appendOwn appends the alarms of a list that stand in no other before it: those that go
// to the cell first.
func (p *imageParts) appendOwn(out []imageAlarm, v *journal.CellVersion, cell string) ([]imageAlarm, error) {
	list, err := decodeAlarms(v, p.core.Now)
	for i := range list {
		if list[i].To[0] == cell {
			out = append(out, list[i])
		}
	}
	return out, err
}

// versionIn returns the version of a cell or list in an image, nil where it has none.
func versionIn(img *journal.Image, name string) *journal.CellVersion {
	at := slices.IndexFunc(img.Cells, func(v journal.CellVersion) bool { return v.Cell == name })
	if at < 0 {
		return nil
	}
	return &img.Cells[at]
}
