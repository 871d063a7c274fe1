package world

import "github.com/worldkernel/worldkernel/manifest"

// NextTick returns the tick that World.Next will run if the outside brings
// nothing before; false: none, it waits or is idle.
func (m *Moment) NextTick() (manifest.Tick, bool) {
	k := m.k
	if k.scheduler.ready() > 0 || k.ledger.NextOpen(k.rules.manifest.Limits.InFlight) != nil {
		return k.now + 1, true
	}
	at, ok := k.nextAlarm()
	return max(at, k.now+1), ok
}

// Time returns the tick that was run last.
func (m *Moment) Time() manifest.Tick { return m.k.now }
