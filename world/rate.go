package world

import "github.com/worldkernel/worldkernel/manifest"

// pace is when the next attempt of a kind of effect with a rate may start: a bucket of
// tokens that holds what one tick brings. Each attempt takes Per/Calls ticks of it, so
// that those that start in any Per ticks in a row are at most Calls.
type pace struct {
	_    struct{} `cbor:",toarray"`
	At   manifest.Tick
	Part uint64 // beyond At, in Calls-ths of a tick
}

// paceOf returns the first tick in which another attempt of a kind may start; 0: any.
func (g *gate) paceOf(kind string) manifest.Tick {
	if rule := g.rules.effects[kind]; rule == nil || rule.Rate.Calls == 0 {
		return 0
	}
	return g.paces[kind].At
}

// step notes that an attempt of a kind starts.
func (g *gate) step(kind string) {
	rule := g.rules.effects[kind]
	if rule == nil || rule.Rate.Calls == 0 {
		return
	}
	rate, p := rule.Rate, g.paces[kind]
	if p.At < g.now {
		p.At, p.Part = g.now, 0
	}
	p.Part += uint64(rate.Per) % rate.Calls
	p.At = p.At.Plus(rate.Per/manifest.Tick(rate.Calls) + manifest.Tick(p.Part/rate.Calls))
	p.Part %= rate.Calls
	if g.paces == nil {
		g.paces = make(map[string]pace)
	}
	g.paces[kind] = p
}
