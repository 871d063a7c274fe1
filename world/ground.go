package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// ground is what all parts of a kernel share: what is written, which histories there are, and
// the rules in force. A part knows the ground and the parts below it, never the kernel.
type ground struct {
	recorder
	histories

	id        string // the world's
	seed      uint64
	lineage   receipt.History
	rules     *rules
	since     journal.Seq // the last record of what put the rules in force
	ticked    journal.Seq // the clock.advanced since which it is now
	paranoid  bool
	still     bool          // since clock.advanced, until the next: nothing is permitted
	stills    uint          // who holds the world, see Hold: its ticks permit nothing; not in the journal but by these
	replaying bool          // a key that is revoked now was good when its receipts came
	weigh     func() uint64 // returns about how many bytes the kernel holds
	scratch   []byte
	emitted   journal.IntentEmitted // the last that was noted: so it needs no memory of its own
}

// inForce returns what proposals are measured by.
func (g *ground) inForce() governance.InForce {
	return governance.InForce{
		World: g.id, Manifest: g.rules.hash, Since: uint64(g.since), Governance: g.rules.manifest.Governance,
	}
}

// over reports whether nothing goes on. It is asked before every turn.
func (g *ground) over() bool {
	if g.rules.guard == nil {
		return false
	}
	g.rules.guard.weigh(g)
	return g.rules.guard.ended() != nil
}

// tail returns the part of a payload that holds data, its last item. Under a guard it is
// a copy: else the smallest would hold all that was written beside it.
func (g *ground) tail(payload []byte, data journal.Data) journal.Data {
	t := journal.Data(payload[len(payload)-max(len(data), 1):])
	if g.rules.guard.bounded() {
		t = slices.Clone(t)
	}
	return t
}

// reaches reports whether the clock comes to a tick. What the journal has for one that does
// not come is never due: under another clock it may have been to come.
func (g *ground) reaches(at manifest.Tick) bool {
	return at <= max(g.now, g.rules.manifest.Clock.Last())
}

// tickGoesOn reports whether the present tick can go on: with a real clock any can, and at the
// end of a clock its last, in which time stands.
func (g *ground) tickGoesOn() bool {
	clock := g.rules.manifest.Clock
	return clock.Real() || g.now >= clock.Last()
}

// tickAfter returns the tick that comes after the present one.
func (g *ground) tickAfter() manifest.Tick {
	return max(g.now, min(g.now.Plus(1), g.rules.manifest.Clock.Last()))
}
