package view

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// Moment is a place in a journal that a person named: a record, or a tick with all
// that happens in it. It stays where it is when the journal grows. The zero value is
// none.
type Moment struct {
	name   string
	record journal.Seq // where it is no tick

	tick        bool
	first, last manifest.Tick // of a range that begins or ends here; they differ for a time between two ticks
}

// IsZero reports whether no moment is named.
func (m Moment) IsZero() bool { return m.name == "" }

// String returns the moment as it was named.
func (m Moment) String() string { return m.name }

// MomentError says that a name is that of no moment of a world.
type MomentError struct {
	Name string
	Rule string // what it would have to be; empty: it does not read as a moment
	Err  error  // journal.ErrNotFound where the journal does not reach there, else one of package snapshot
}

func (e *MomentError) Error() string {
	if e.Rule == "" {
		return fmt.Sprintf("%q is no moment of this world: %v", e.Name, e.Err)
	}
	return e.Rule
}

func (e *MomentError) Unwrap() error { return e.Err }

func beyond(name, format string, args ...any) error {
	return &MomentError{name, fmt.Sprintf(format, args...), journal.ErrNotFound}
}

// HeadName is the last record, and begins what is counted from there.
const HeadName = "head"

// ReadsAsMoment reports whether a name is a moment without being that of a snapshot:
// head, -10, head-10 or t5. Records and times cannot be names of snapshots.
func ReadsAsMoment(name string) bool {
	return name == HeadName || IsBack(name) || numberAfter("t", name)
}

// IsBack reports whether a name counts records back: -10 or head-10.
func IsBack(name string) bool { return numberAfter("-", strings.TrimPrefix(name, HeadName)) }

func numberAfter(sign, name string) bool {
	number, found := strings.CutPrefix(name, sign)
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}

// Moment finds the moment that a person named: a record (120 or #120), a tick (t5), a
// time of the world's calendar (2026-01-01T00:05:00Z), head, so many records before it
// (-10 or head-10), or a snapshot by its name or the beginning of its hash. It need
// not have come yet; see At. The error is a *MomentError.
func (j Journal) Moment(name string) (Moment, error) {
	m := Moment{name: name}
	id, notRecord := strconv.ParseUint(strings.TrimPrefix(name, "#"), 10, 64)
	at, notTime := time.Parse(time.RFC3339, name)
	switch {
	case name == HeadName:
		m.record = j.End()
	case IsBack(name):
		back, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(name, HeadName), "-"), 10, 64)
		if end := uint64(j.End()); err == nil && back < end {
			m.record = journal.Seq(end - back)
		}
	case numberAfter("t", name):
		tick, err := strconv.ParseUint(name[len("t"):], 10, 64)
		if err != nil {
			return m, beyond(name, "there is no tick %s", name[len("t"):])
		}
		m.tick, m.first, m.last = true, manifest.Tick(tick), manifest.Tick(tick)
	case notRecord == nil:
		m.record = journal.Seq(id)
	case notTime == nil:
		return j.momentOf(m, at)
	default:
		s, err := j.Snapshot(name)
		if err != nil {
			return m, &MomentError{Name: name, Err: err}
		}
		m.record = journal.Seq(s.Record)
	}
	return m, nil
}

// momentOf returns the last tick that had come at a time, and the first from there on,
// by the calendar of the manifest in force.
func (j Journal) momentOf(m Moment, at time.Time) (Moment, error) {
	var clock manifest.Clock
	j.Local.View(func(w *world.Moment) { clock = w.Manifest().Clock })
	since := at.Sub(time.Unix(0, clock.Epoch))
	if since < 0 {
		return m, beyond(m.name, "%s is before the world's calendar begins, at %s", m.name, time.Unix(0, clock.Epoch).UTC().Format(time.RFC3339))
	}
	m.tick, m.last = true, manifest.Tick(int64(since)/clock.Tick)
	if m.first = m.last; int64(since)%clock.Tick != 0 {
		m.first++
	}
	return m, nil
}

// At returns the record of the moment that a person named: the last that is part of
// it. The error is a *MomentError, also for what has not come yet.
func (j Journal) At(name string) (journal.Seq, error) {
	m, err := j.Moment(name)
	if err != nil {
		return 0, err
	}
	end := j.End()
	if !m.tick {
		switch {
		case m.record == 0 && IsBack(name):
			return 0, beyond(name, "%s is before record #1: the journal ends at #%d", name, end)
		case m.record == 0 || m.record > end:
			return 0, beyond(name, "there is no record #%d: the journal ends at #%d", m.record, end)
		}
		return m.record, nil
	}
	now, err := j.timeOf(end)
	if err != nil {
		return 0, err
	}
	if m.last > now {
		return 0, beyond(name, "tick %d is still to come: the world is at tick %d", m.last, now)
	}
	return j.lastOf(m, end)
}

// EntryAt reads the record of the moment that a person named. The error is that of At.
func (j Journal) EntryAt(name string) (*Entry, error) {
	id, err := j.At(name)
	if err != nil {
		return nil, err
	}
	return j.Entry(id)
}

// firstOf returns the first record of a range that begins at a moment, which may be
// after the end.
func (j Journal) firstOf(m Moment, end journal.Seq) (journal.Seq, error) {
	if m.tick {
		return firstAt(end, m.first, j.timeOf)
	}
	return m.record, nil
}

// lastOf returns the last record of a range that ends at a moment, which may be after
// the end.
func (j Journal) lastOf(m Moment, end journal.Seq) (journal.Seq, error) {
	if m.tick {
		return j.EndOf(m.last, end)
	}
	return m.record, nil
}

// EndOf returns the last record of a tick, of those up to an end, or the last before
// where nothing happened in it.
func (j Journal) EndOf(tick manifest.Tick, end journal.Seq) (journal.Seq, error) {
	if tick == math.MaxUint64 {
		return end, nil
	}
	beyond, err := firstAt(end, tick+1, j.timeOf)
	return beyond - 1, err
}

// timeOf returns the tick of a record.
func (j Journal) timeOf(id journal.Seq) (manifest.Tick, error) {
	raw, err := j.Stored(id)
	if err != nil {
		return 0, err
	}
	rec, err := journal.DecodeRecord(raw)
	return rec.Time, err
}

// firstAt returns the first of the records up to an end whose time is not before
// a tick; the one after the end where there is none. Times never decrease.
func firstAt(end journal.Seq, tick manifest.Tick, timeOf func(journal.Seq) (manifest.Tick, error)) (journal.Seq, error) {
	var failed error
	before := sort.Search(int(end), func(before int) bool {
		if failed != nil {
			return true
		}
		var t manifest.Tick
		t, failed = timeOf(journal.Seq(before) + 1)
		return t >= tick
	})
	return journal.Seq(before) + 1, failed
}

// World returns the world as it was at the moment that a person named. The error is a
// *MomentError where there is none.
func (j Journal) World(moment string) (*world.Moment, error) {
	id, err := j.At(moment)
	if err != nil {
		return nil, err
	}
	m, err := j.Local.At(id)
	if err != nil {
		return nil, fmt.Errorf("the world at #%d: %w", id, err)
	}
	return m, nil
}

// Snapshot finds the snapshot that a person named.
func (j Journal) Snapshot(name string) (s snapshot.Snapshot, err error) {
	j.Local.View(func(w *world.Moment) { s, err = w.FindSnapshot(name) })
	return s, err
}

// SnapshotBefore returns the last snapshot that was made in a record or before it.
func (j Journal) SnapshotBefore(id journal.Seq) (last snapshot.Snapshot, ok bool) {
	j.Local.View(func(w *world.Moment) {
		for _, s := range w.Snapshots() {
			if journal.Seq(s.Record) <= id {
				last, ok = s, true
			}
		}
	})
	return last, ok
}

// Tick names a tick, and the time at which it comes where that is the wall clock's.
func (j Journal) Tick(t manifest.Tick) string {
	name := fmt.Sprintf("tick %d", t)
	if m, _ := j.Local.InForce(); m.Clock.Real() {
		name += ", " + Date(m.Clock, t)
	}
	return name
}

// Date is the time of the calendar at which a tick comes.
func Date(clock manifest.Clock, t manifest.Tick) string {
	return time.Unix(0, clock.At(t)).UTC().Format(time.RFC3339Nano) // which leaves out what is 0
}
