package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// ground is shared by all parts of a kernel: the recorder, the histories, and the rules in force. A part
// knows the ground and the parts below it, never the kernel.
type ground struct {
	recorder
	histories

	id        string // the world's
	seed      uint64
	lineage   receipt.History
	rules     *rules
	since     journal.Seq // last record of the input that put the rules in force
	ticked    journal.Seq // the clock.advanced that began the present tick
	paranoid  bool
	still     bool          // the present tick permits no effect
	stills    uint          // number of holders of the world, see Hold: while there is one, ticks are still
	replaying bool          // receipts of a key that was revoked later are accepted
	weigh     func() uint64 // returns the approximate memory of the kernel in bytes
	scratch   []byte
	emitted   journal.IntentEmitted // scratch: the body of the last intent.emitted
}

// inForce returns the rules in force, as proposals are compared with them.
func (g *ground) inForce() governance.InForce {
	return governance.InForce{
		World: g.id, Manifest: g.rules.hash, Since: uint64(g.since), Governance: g.rules.manifest.Governance,
	}
}

// over reports whether the guard ends the work: a signal came, or memory is used up. It is called before
// every turn.
func (g *ground) over() bool {
	if g.rules.guard == nil {
		return false
	}
	g.rules.guard.weigh(g)
	return g.rules.guard.ended() != nil
}

// tail returns the last item of a payload, data. Under a guard it is a copy, because a slice would keep
// the whole buffer in memory.
func (g *ground) tail(payload []byte, data journal.Data) journal.Data {
	t := journal.Data(payload[len(payload)-max(len(data), 1):])
	if g.rules.guard.bounded() {
		t = slices.Clone(t)
	}
	return t
}

// reaches reports whether the clock ever comes to a tick. A timer set under an earlier clock may lie
// beyond the end of the present one; then it is never due.
func (g *ground) reaches(at manifest.Tick) bool {
	return at <= max(g.now, g.rules.manifest.Clock.Last())
}

// tickGoesOn reports whether the present tick can go on after its end: any tick of a real clock, and the
// last tick of a clock.
func (g *ground) tickGoesOn() bool {
	clock := g.rules.manifest.Clock
	return clock.Real() || g.now >= clock.Last()
}

// tickAfter returns the tick that comes after the present one.
func (g *ground) tickAfter() manifest.Tick {
	return max(g.now, min(g.now.Plus(1), g.rules.manifest.Clock.Last()))
}
