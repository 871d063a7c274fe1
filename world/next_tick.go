package world

import "github.com/worldkernel/worldkernel/manifest"

// NextTick returns the tick that World.Next will run if the outside brings
// nothing before; false: none, it waits or is idle.
func (m *Moment) NextTick() (manifest.Tick, bool) {
	k := m.k
	if k.canGoOn() {
		if k.rules.manifest.Clock.Real() {
			return k.now, true
		}
		return k.tickAfter(), true
	}
	at, ok := k.nextAlarm()
	// Time does not jump to where a budget renews while what holds it may come back.
	underWay := len(k.ledger.InFlight())+len(k.ledger.Waiting()) > 0
	if wake, waits := k.wake(!underWay); waits && (!ok || wake < at) {
		at, ok = wake, true
	}
	return max(at, k.tickAfter()), ok
}

// canGoOn reports whether a tick would give a cell its turn or permit an effect,
// whichever it is.
func (k *kernel) canGoOn() bool {
	return k.scheduler.ready() > 0 || k.canGrant()
}

// NextDue returns the tick in which something falls due by itself: a timer, a
// scheduled event, or the end of the wait for a person's approval. It may be past:
// nobody has run the world since.
func (m *Moment) NextDue() (manifest.Tick, bool) {
	at, ok := m.k.nextAlarm()
	if deadline, asked := m.k.ledger.NextDeadline(); asked && (!ok || deadline < uint64(at)) {
		at, ok = manifest.Tick(deadline), true
	}
	return at, ok && m.k.reaches(at)
}

// NextWake returns the tick in which NextDue, or in which an intent can be attempted that
// waits for the rate of its kind or for a budget to renew.
func (m *Moment) NextWake() (manifest.Tick, bool) {
	at, ok := m.NextDue()
	if wake, waits := m.k.wake(true); waits && (!ok || wake < at) {
		return wake, true
	}
	return at, ok
}

// Time returns the tick that was run last.
func (m *Moment) Time() manifest.Tick { return m.k.now }
