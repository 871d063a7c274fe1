package api

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

// Busy fills the slots of requests until what it returns is called.
func (s *Server) Busy() (free func()) {
	for range cap(s.requests) {
		s.requests <- struct{}{}
	}
	return func() {
		for range cap(s.requests) {
			<-s.requests
		}
	}
}

// Verifying takes the turn of who verifies a world until what it returns is called.
func (s *Server) Verifying(world string) (done func()) {
	s.worlds[world].verifying <- struct{}{}
	return func() { <-s.worlds[world].verifying }
}

// VerificationOf and WithoutPaths are tested by themselves.
var (
	VerificationOf = verificationOf
	WithoutPaths   = withoutPaths
)
