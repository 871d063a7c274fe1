package gateway

import "time"

// With has a group wait for slow servers only so long.
func (g *Group) With(slow time.Duration) *Group {
	g.slow = slow
	return g
}
