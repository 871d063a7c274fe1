package api

import (
	"context"
	"time"
)

// RouteOf is a route, for tests of what all of them have in common.
type RouteOf struct {
	Method, Path string
	Scope        Scope
	Query        []string
}

// RoutesOf returns all routes.
func RoutesOf() []RouteOf {
	var out []RouteOf
	for _, rt := range routes() {
		out = append(out, RouteOf{rt.method, rt.path, rt.scope, rt.query})
	}
	return out
}

func (s *Server) slotsOf(kind string) *slots {
	return map[string]*slots{
		"requests": s.requests, "followers": s.followers, "waits": s.waits, "verifications": s.verifications, "health": s.health,
		"turns": s.turns,
	}[kind]
}

// Queued returns how many calls wait for a slot of a kind.
func (s *Server) Queued(kind string) int {
	of := s.slotsOf(kind)
	of.mu.Lock()
	defer of.mu.Unlock()
	return len(of.queue)
}

// Used returns how many slots of a kind a token has.
func (s *Server) Used(kind, token string) int {
	of := s.slotsOf(kind)
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.tokens[token]
}

// Idle counts the connections of a token that have no request.
func (s *Server) Idle(token string) (n int) {
	s.connected.mu.Lock()
	defer s.connected.mu.Unlock()
	for _, x := range s.connected.open {
		if x.token == token && !x.busy {
			n++
		}
	}
	return n
}

// Busy has a token hold slots of a kind, about a world, until what it returns is called.
func (s *Server) Busy(kind, token, world string, n int) (free func()) {
	of := s.slotsOf(kind)
	var held []func()
	for range n {
		free, err := of.takeSlot(context.Background(), token, world)
		if err != nil {
			panic(err)
		}
		held = append(held, free)
	}
	return func() {
		for _, free := range held {
			free()
		}
	}
}

// Verifying takes the turn of who verifies a world until what it returns is called.
func (s *Server) Verifying(world string) (done func()) {
	s.worlds.get(world).verifying <- struct{}{}
	return func() { <-s.worlds.get(world).verifying }
}

// Inside reports whether somebody asks something of a world.
func (v *Service) Inside(world string) bool {
	h := v.serving.server.worlds.get(world)
	if !h.inside.TryLock() {
		return true
	}
	h.inside.Unlock()
	return false
}

// VerificationOf and WithoutPaths are tested by themselves.
var (
	VerificationOf = verificationOf
	WithoutPaths   = withoutPaths
)

// SetClock has the sessions go by a clock.
func (s *Sessions) SetClock(clock func() time.Time) { s.clock = clock }
