package verify

import (
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// timer is what the journal has said of a timer. Of one whose payload is gone nobody
// knows more than that it was set.
type timer struct {
	cell, name, tag string
	due             manifest.Tick // as timers counts ticks
	gone            bool
	ended           []journal.Seq // records at which it fired or was cancelled: one in each history
}

type timerTag struct{ cell, tag string }

// timers is the part of the proof that knows which timers wait, and what steps cancel. A
// timer waits from its timer.set on until it fires or is cancelled, once in a history.
// Ticks are counted as a history has them: a rollback leads back to the ticks that its
// snapshot had left.
type timers struct {
	all    map[journal.Seq]*timer // by the records that set them
	tagged map[timerTag][]journal.Seq
	due    due
	brings []journal.Seq // the records that can have brought a receipt

	now       manifest.Tick // of the world
	clock     manifest.Tick // of this history
	before    manifest.Tick // likewise, before the last clock.advanced
	still     bool          // the tick permits nothing
	timeless  bool          // nobody knows clock any more
	snapshots map[string]manifest.Tick
	newest    journal.Seq // the last snapshot

	step  journal.Seq // the last one
	cell  string      // of step
	blind journal.Seq // the last rollback that is gone: of what was set before nobody knows whether it waits
	doubt journal.Seq // the last cell.cancelled that is gone: likewise of what has a tag
}

func newTimers() timers {
	return timers{all: make(map[journal.Seq]*timer), tagged: make(map[timerTag][]journal.Seq), snapshots: make(map[string]manifest.Tick)}
}

// bring notes what can bring a cell its receipt.
func (t *timers) bring(record journal.Seq, kind journal.Kind) {
	switch kind { //nolint:exhaustive // no other does
	case journal.KindFinished, journal.KindDenied, journal.KindEnded, journal.KindConfirmed, journal.KindIntent, journal.KindRollback:
		t.brings = append(t.brings, record)
	}
}

// time holds a record against what is known of timers.
func (v *verifier) time(place string, body journal.Body) {
	t := &v.timers
	switch b := body.(type) {
	case *journal.Advanced:
		t.before = t.clock
		t.clock += max(b.To, t.now) - t.now
		t.now = max(b.To, t.now)
		t.still = b.Still
		v.owe()
	case *journal.Started:
		if t.still {
			v.fault(place, "it is permitted in a tick that permits nothing")
		}
	case *journal.Stepped:
		t.step, t.cell = v.now, b.Cell
	case *journal.TimerSet:
		v.setTimer(place, b)
	case *journal.TimerFired:
		v.fired(place, b)
	case *journal.TagCancelled:
		v.cancelledTag(place, b)
	case *journal.IntentCancelled:
		v.byStep(place, b.Cell)
	case *journal.SnapshotCreated:
		t.snapshots[b.Name], t.newest = t.clock, v.now
		t.forget(b.Pruned...)
	case *journal.SnapshotPruned:
		t.forget(b.Name)
	case *journal.SnapshotRetention:
		t.forget(b.Pruned...)
	case *journal.RolledBack:
		if then, known := t.snapshots[b.Snapshot]; known {
			t.clock = then
			t.pass() // what fell due there has fired or not before the snapshot
		} else {
			t.timeless = true
		}
	}
}

func (t *timers) forget(snapshots ...string) {
	for _, name := range snapshots {
		delete(t.snapshots, name)
	}
}

// byStep takes that a step of a cell led to the present record.
func (v *verifier) byStep(place, cell string) {
	if v.cause != v.timers.step || v.timers.cell != "" && v.timers.cell != cell {
		v.fault(place, "the last step is not one of %s that led to it", cell)
	}
}

func (v *verifier) setTimer(place string, b *journal.TimerSet) {
	v.byStep(place, b.Cell)
	t := &v.timers
	x := &timer{cell: b.Cell, name: b.Name, tag: b.Tag}
	if b.Deadline > t.now {
		x.due = t.clock + b.Deadline - t.now
		t.expect(v.now, x.due)
	} else if !t.timeless {
		v.fault(place, "it sets a timer for a tick that has come")
	}
	if b.Tag != "" {
		if v.hasTimer(b.Cell, b.Tag) {
			v.fault(place, "its cell has a timer of tag %q, which was not cancelled", b.Tag)
		}
		tag := timerTag{b.Cell, b.Tag}
		t.tagged[tag] = append(t.tagged[tag], v.now)
	}
	t.all[v.now] = x
}

func (v *verifier) fired(place string, b *journal.TimerFired) {
	t := &v.timers
	x := v.waitingTimer(v.cause)
	switch {
	case x == nil:
		v.fault(place, "there is no timer that waits and was set by what caused it")
		return
	case x.gone:
	case x.cell != b.Cell || x.name != b.Name:
		v.fault(place, "the timer that was set is %s of %s", x.name, x.cell)
	case !t.timeless && (x.due <= t.before || x.due > t.clock):
		v.fault(place, "its timer was set for another tick")
	}
	v.endTimer(v.cause, x)
}

// cancelledTag takes that a step has cancelled, or set anew, a timer, or receipts that wait.
func (v *verifier) cancelledTag(place string, b *journal.TagCancelled) {
	v.byStep(place, b.Cell)
	x := v.waitingTimer(b.Timer)
	switch {
	case b.Timer == 0 && v.hasTimer(b.Cell, b.Tag):
		v.fault(place, "its cell has a timer of tag %q, and it names none", b.Tag)
	case b.Timer == 0 && len(b.Receipts) == 0:
		v.fault(place, "it cancels nothing")
	case b.Timer == 0:
	case x == nil:
		v.fault(place, "timer #%d, which it cancels, does not wait", b.Timer)
	default:
		if !x.gone && (x.cell != b.Cell || x.tag != b.Tag) {
			v.fault(place, "timer #%d, which it cancels, is of %s and has tag %q", b.Timer, x.cell, x.tag)
		}
		v.endTimer(b.Timer, x)
	}
	for _, record := range b.Receipts {
		_, brings := slices.BinarySearch(v.timers.brings, record)
		if !brings || record > v.timers.blind && !v.inHistory(record) {
			v.fault(place, "no record before it can have brought the receipt of record #%d", record)
		}
	}
}

// waitingTimer returns the timer that a record set, if it waits, or may; else nil.
func (v *verifier) waitingTimer(record journal.Seq) *timer {
	x := v.timers.all[record]
	if x == nil || record <= v.timers.blind {
		return x
	}
	if !v.inHistory(record) || slices.ContainsFunc(x.ended, v.inHistory) {
		return nil
	}
	return x
}

// hasTimer reports whether a cell has a timer of a tag, for sure.
func (v *verifier) hasTimer(cell, tag string) bool {
	t := &v.timers
	for _, record := range slices.Backward(t.tagged[timerTag{cell, tag}]) {
		if record <= max(t.blind, t.doubt) {
			return false
		}
		if v.inHistory(record) {
			return !slices.ContainsFunc(t.all[record].ended, v.inHistory)
		}
	}
	return false
}

// endTimer takes that a timer waits no more. No rollback leads to where it does if no
// snapshot was made since it was set: it is forgotten then.
func (v *verifier) endTimer(record journal.Seq, x *timer) {
	t := &v.timers
	if record < t.newest {
		x.ended = append(x.ended, v.now)
		return
	}
	delete(t.all, record)
	if tag := (timerTag{x.cell, x.tag}); x.tag != "" {
		is := func(other journal.Seq) bool { return other == record }
		if t.tagged[tag] = slices.DeleteFunc(t.tagged[tag], is); len(t.tagged[tag]) == 0 {
			delete(t.tagged, tag)
		}
	}
}

// goneTime notes a payload that nobody can read any more.
func (v *verifier) goneTime(kind journal.Kind) {
	t := &v.timers
	switch kind { //nolint:exhaustive // no other is about timers
	case journal.KindTimer:
		t.all[v.now] = &timer{gone: true}
	case journal.KindFired:
		if x := v.waitingTimer(v.cause); x != nil {
			v.endTimer(v.cause, x)
		}
	case journal.KindTagCancelled:
		t.doubt = v.now
	case journal.KindStepped:
		t.step, t.cell = v.now, ""
	case journal.KindSnapshot:
		t.newest = v.now
	case journal.KindAdvanced:
		t.timeless, t.still = true, false
	case journal.KindRollback:
		t.blind, t.timeless = v.now, true
	}
}
