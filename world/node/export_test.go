package node

import "github.com/worldkernel/worldkernel/world/shared"

// Stores are those that could be used.
func (s *Nodes) Stores() (all []*shared.Store) {
	for _, n := range s.nodes() {
		all = append(all, n.Store)
	}
	return all
}

// HaveRoom has the worlds of all stores be so many at most.
func (s *Nodes) HaveRoom(worlds int) { s.room = worlds }
