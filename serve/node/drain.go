package node

// drain gives all worlds up when the node ends, at once, so that other nodes have them: each when its
// effects under way have ended, or have had the time that their hosts give them.
func (n *Node) drain() {
	n.mu.Lock()
	n.closed = true // nothing more is begun
	n.mu.Unlock()
	n.work.Wait()
	for _, w := range n.worlds() {
		n.work.Go(func() { n.giveUp(w, givenEnd, "") })
	}
	n.work.Wait()
}
