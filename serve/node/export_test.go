package node

import (
	"context"
	"time"

	"github.com/worldkernel/worldkernel/serve/shared"
)

// Stores are those that could be used.
func (s *Nodes) Stores() (all []*shared.Store) {
	for _, n := range s.nodes() {
		all = append(all, n.Store)
	}
	return all
}

// HaveRoom has the worlds of all stores be so many at most.
func (s *Nodes) HaveRoom(worlds int) { s.room = worlds }

// Pauses are pauses under a clock of the test.
type Pauses struct{ pauses }

// NewPauses returns none.
func NewPauses(now func() time.Time) *Pauses { return &Pauses{pauses{now, map[string]*pause{}}} }

// Begin begins one.
func (p *Pauses) Begin(id string, why error) time.Duration { return p.beginPause(id, why) }

// Why says why a world rests.
func (p *Pauses) Why(id string) string { return p.why(id) }

// Resting lists those that rest.
func (p *Pauses) Resting() []string { return p.resting() }

// Told is what others are told.
func (p *Pauses) Told() string { return p.describeResting() }

// GoesOn notes that a world was opened.
func (p *Pauses) GoesOn(id string) { p.goesOn(id) }

// Forget forgets what has gone on.
func (p *Pauses) Forget(opens func(string) bool) { p.forget(opens) }

// Most is how many worlds are opened or closed at once.
const Most = most

// Places are those of a node without a store.
type Places struct {
	n   *Node
	ctx context.Context
}

// NewPlaces returns free ones.
func NewPlaces(ctx context.Context) *Places {
	return &Places{&Node{places: make(chan struct{}, most), under: map[string]chan struct{}{}}, ctx}
}

// Do opens or closes a world.
func (p *Places) Do(id string, work func()) { p.n.do(p.ctx, id, work) }

// Taken is how many are not free.
func (p *Places) Taken() int { return len(p.n.places) }

// Wait waits until nothing is under way.
func (p *Places) Wait() { p.n.work.Wait() }
