package node

import "github.com/worldkernel/worldkernel/journal/pglog"

// doubt notes a node to whose address in the store nothing is sent, and tells of it when that is new.
func (n *Node) doubt(name, why string) {
	n.mu.Lock()
	was := n.doubts[name]
	if n.doubts == nil {
		n.doubts = map[string]string{}
	}
	n.doubts[name] = why
	n.mu.Unlock()
	if was != why {
		n.Events.Error("nothing is sent to the address that the store has of a node", "of", name, "why", why,
			"next", "give all nodes the same passphrase, and have their clocks agree; if they do, somebody else writes to the database")
	}
}

// tellDoubts looks at the addresses of all nodes that live.
func (n *Node) tellDoubts(nodes []pglog.Node) {
	bad := map[string]bool{}
	for _, x := range nodes {
		if x.Alive() && x.Name != n.Store.Name() && x.Unproven != "" {
			bad[x.Name] = true
			n.doubt(x.Name, x.Unproven)
		}
	}
	var good []string
	n.mu.Lock()
	for name := range n.doubts { // order cannot show: they are told apart by their names
		if !bad[name] {
			delete(n.doubts, name)
			good = append(good, name)
		}
	}
	n.mu.Unlock()
	for _, name := range good {
		n.Events.Info("the address that the store has of a node is in order again, or the node is gone", "of", name)
	}
}

// doubtful returns to how many nodes nothing is sent.
func (n *Node) doubtful() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.doubts)
}
