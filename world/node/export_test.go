package node

import "github.com/worldkernel/worldkernel/world/shared"

// Stores are those that could be used.
func (s *Nodes) Stores() (all []*shared.Store) {
	for _, n := range s.nodes() {
		all = append(all, n.Store)
	}
	return all
}
