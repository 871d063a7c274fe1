package gateway

import "github.com/worldkernel/worldkernel/host/relay"

// nearest finds the recorded call that is most like a request, and where it differs first.
func (g *Gateway) nearest(r *relay.Asked, d *Divergence) {}
