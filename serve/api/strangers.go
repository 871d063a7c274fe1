package api

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Strangers bound how many requests are answered in a second that show no token that is
// known; those of /healthz are counted by themselves, with the same bounds.
type Strangers struct {
	All     int // of everybody; 0: 100
	Address int // from one address; 0: a fifth of All
}

// strangers hold requests without a known token to a rate. It is safe for concurrent use.
type strangers struct {
	most Strangers
	wait time.Duration   // of a request that comes too soon
	life context.Context // of the server
	all  *rate.Limiter

	mu        sync.Mutex
	addresses map[netip.Prefix]*rate.Limiter
}

// maxAddresses is how many addresses are remembered at once.
const maxAddresses = 4096

func newStrangers(life context.Context, l *Limits) *strangers {
	return &strangers{
		most: l.Strangers, wait: l.Wait, life: life, all: newRate(l.Strangers.All),
		addresses: make(map[netip.Prefix]*rate.Limiter),
	}
}

func newRate(perSecond int) *rate.Limiter { return rate.NewLimiter(rate.Limit(perSecond), perSecond) }

// admit lets a request in, or has it wait and refuses it. Whoever is refused is
// connected no more: what they have sent already would come at once otherwise.
func (s *strangers) admit(r *http.Request) error {
	name, most, whose := "strangers.address", s.most.Address, "of this address"
	if s.limiterOf(r.RemoteAddr).Allow() {
		if s.all.Allow() {
			return nil
		}
		name, most, whose = "strangers", s.most.All, "of all callers without a token"
	}
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.life.Done():
	}
	f := overLimit(http.StatusTooManyRequests, name, most, whose)
	f.header.Set("Connection", "close")
	return f
}

// limiterOf returns the rate of an address; of IPv6 that of its network, all of which may be
// one caller's.
func (s *strangers) limiterOf(remote string) *rate.Limiter {
	const network = 64 // bits
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	var from netip.Prefix // zero: of whoever has none
	if at, err := netip.ParseAddr(host); err == nil {
		at = at.Unmap().WithZone("")
		from = netip.PrefixFrom(at, min(network, at.BitLen())).Masked()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.addresses[from]
	if limit == nil {
		if len(s.addresses) >= maxAddresses {
			clear(s.addresses) // all together are held to a rate still
		}
		limit = newRate(s.most.Address)
		s.addresses[from] = limit
	}
	return limit
}
