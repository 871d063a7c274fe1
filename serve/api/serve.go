package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/host"
)

// serve answers a request: whatever is wrong with it is a Problem.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	began := now()
	c := &call{Request: r, server: s}
	c.out = &answerWriter{ResponseWriter: w, call: c}
	harden(w.Header())
	err := s.dispatch(c)
	if err != nil {
		s.slowDown(c, err)
	}
	c.left()
	if err != nil && c.out.status == 0 {
		c.listen(now().Add(s.cfg.Limits.BodyGrace)) // net/http reads what is left of the body first
		c.fail(err)
	}
	s.log(c, err, now().Sub(began))
}

// slowDown has a call that is refused at once wait for its turn: such calls would come
// faster than all others.
func (s *Server) slowDown(c *call, err error) {
	c.holds.Lock()
	entered := c.free != nil
	c.holds.Unlock()
	if c.bearer == nil || entered {
		return
	}
	if f := failureOf(err); f != nil && f.Limit == "" {
		c.token = c.bearer
		_ = c.takeTurn()
	}
}

// harden has a browser take an answer for what it is, and do nothing with it. The page
// says itself what it may do.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
}

// log writes a line about a request: never what is in it.
func (s *Server) log(c *call, err error, took time.Duration) {
	level := slog.LevelInfo
	if err != nil && failureOf(err) == nil {
		level = slog.LevelError
	}
	if !s.cfg.Log.Enabled(c.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", c.Method), slog.String("route", c.pattern()), slog.Int("status", c.out.status),
		slog.Duration("took", took), slog.Int64("bytes", c.out.bytes),
	}
	if c.token != nil {
		attrs = append(attrs, slog.String("token", c.token.name))
	}
	if c.passed != "" {
		attrs = append(attrs, slog.String("passed_to", c.passed))
	}
	if level == slog.LevelError {
		attrs = append(attrs, slog.Any("error", err))
	}
	s.cfg.Log.LogAttrs(context.WithoutCancel(c.Context()), level, "request", attrs...)
}

// dispatch finds the route of a request.
func (s *Server) dispatch(c *call) error {
	kind, secret, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "Bearer") {
		c.bearer = s.tokenWith(sha256.Sum256([]byte(strings.TrimSpace(secret))))
	}
	if err := s.checkHost(c.Request); err != nil { // before it counts: other people's pages send such requests
		return err
	}
	if s.isPage(c.URL.Path) {
		return s.showPage(c)
	}
	if c.URL.Path == healthPath {
		if err := s.probes.admit(c.Request); err != nil {
			return err
		}
	} else if c.bearer == nil {
		if err := s.strangers.admit(c.Request); err != nil {
			return err
		}
	}
	if p := c.URL.EscapedPath(); path.Clean(p) != p { // the mux would send it elsewhere
		return notFound("there is no such path")
	}
	found := &probe{call: c}
	if s.mux.ServeHTTP(found, c.Request); c.route != nil {
		return c.err
	}
	if found.status != http.StatusMethodNotAllowed {
		return notFound("there is no such path")
	}
	f := failed(http.StatusMethodNotAllowed, "method", "this path is not for "+c.Method)
	f.header.Set("Allow", found.header.Get("Allow"))
	return f
}

// probe carries a call through the mux to its route, and finds out what the mux says of
// one that has none.
type probe struct {
	heard
	call *call
}

// heard is an answer that is kept.
type heard struct {
	header http.Header // nil: there is none yet
	status int
	body   bytes.Buffer
}

func (h *heard) Header() http.Header {
	if h.header == nil {
		h.header = make(http.Header)
	}
	return h.header
}

func (h *heard) Write(b []byte) (int, error) { return h.body.Write(b) }
func (h *heard) WriteHeader(status int)      { h.status = status }

// handle adds a route to the mux.
func (s *Server) handle(rt *route) {
	s.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
		c := w.(*probe).call //nolint:forcetypeassert // dispatch made it
		c.Request, c.route = r, rt
		c.err = s.enter(c)
	})
}

// enter lets a caller in who may, and bounds what the request can take.
func (s *Server) enter(c *call) error {
	if err := s.authorize(c); err != nil {
		return err
	}
	if c.route.ofWorld() {
		if err := c.find(); err != nil || c.world == nil {
			return err
		}
		if c.exit != nil {
			defer c.exit()
		}
	}
	if err := c.checkQuery(); err != nil {
		return err
	}
	if err := s.takeSlot(c); err != nil {
		return err
	}
	defer context.AfterFunc(c.Context(), c.left)()
	if c.route.works() {
		if err := c.takeTurn(); err != nil {
			return err
		}
	}
	limit := c.bound()
	ctx, cancel := context.WithTimeout(c.Context(), limit)
	defer cancel()
	if c.route.long && c.world != nil { // nobody waits for that where the world leaves
		defer context.AfterFunc(c.world.life, cancel)()
	}
	c.follow = c.Context()
	c.Request = c.WithContext(ctx)
	err := c.route.answer(c)
	if err != nil && c.world != nil && c.world.leaving.Load() && (ctx.Err() != nil || cutShort(err)) {
		return errMoving()
	}
	return err
}

// cutShort reports whether an error may come of it that a world leaves.
func cutShort(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, host.ErrClosed)
}

// bound bounds how long the request may take to come and its answer to go, and returns how long it
// may be worked on.
func (c *call) bound() (limit time.Duration) {
	l := &c.server.cfg.Limits
	limit, until := l.Answer, now().Add(l.Read)
	if c.route.long {
		limit = l.Verify
		until = now().Add(limit)
		c.listen(until)
	}
	if p, is := c.Body.(*paced); is { // it has not been read
		p.began, p.until = now(), until
	} else if c.ContentLength != 0 {
		c.Body = &paced{ReadCloser: c.Body, call: c, began: now(), until: until}
	}
	c.deadline(limit + l.Flush)
	return limit
}

// takeSlot gives the call a slot of its kind.
func (s *Server) takeSlot(c *call) error {
	switch {
	case c.route.health:
		return c.takeSlotOf(s.health)
	case c.route.long:
		return c.takeSlotOf(s.verifications)
	}
	return c.takeSlotOf(s.requests)
}

// takeSlotOf gives the call another slot than it has.
func (c *call) takeSlotOf(from *slots) (err error) {
	c.giveBack(&c.free)
	free, err := from.takeSlot(c.Context(), c.holder(), c.about())
	if err == nil {
		c.holds.Lock()
		c.free = free
		c.holds.Unlock()
	}
	return err
}

// authorize finds out who asks, and whether they may.
func (s *Server) authorize(c *call) error {
	scope := c.route.scope
	if scope == scopeOpen || c.route.metrics && s.cfg.OpenMetrics {
		return nil
	}
	if kind, _, _ := strings.Cut(c.Header.Get("Authorization"), " "); !strings.EqualFold(kind, "Bearer") {
		f := failed(http.StatusUnauthorized, "unauthorized", "a bearer token is needed")
		f.header.Set("WWW-Authenticate", `Bearer realm="worldkernel"`)
		return f
	}
	if c.token = c.bearer; c.token == nil {
		f := failed(http.StatusUnauthorized, "unauthorized", "the token is not one that this server takes")
		f.header.Set("WWW-Authenticate", `Bearer realm="worldkernel", error="invalid_token"`)
		return f
	}
	if !c.token.has(scope) && !c.token.has(c.route.or) || c.route.metrics && c.token.worlds != nil {
		f := failed(http.StatusForbidden, "scope", "this takes a token with the scope "+string(scope))
		if c.route.metrics {
			f.Detail += " for all worlds"
		}
		f.header.Set("WWW-Authenticate", `Bearer realm="worldkernel", error="insufficient_scope", scope="`+string(scope)+`"`)
		return f
	}
	return s.connected.admit(c.Context(), c.token.name)
}

// isNumber reports whether a parameter is a number, wherever it can be.
func isNumber(name string) bool {
	switch name {
	case "after", "attempt", "before", "buckets", "caused_by", "depth", "limit", "mail":
		return true
	}
	return false
}

// checkQuery refuses parameters that mean nothing here, which would be mistakes, and what is no number where
// one is asked for.
func (c *call) checkQuery() error {
	if c.URL.RawQuery == "" {
		return nil
	}
	for name, values := range c.URL.Query() { // order cannot show: any of them is reported
		if !slices.Contains(c.route.query, name) {
			return badRequest(name, "this path has no such parameter")
		}
		if len(values) > 1 && name != "kind" && name != "select" {
			return badRequest(name, "this parameter can be there once")
		}
		if values[0] == "" || !isNumber(name) || name == "after" && c.route.named {
			continue
		}
		n, err := strconv.ParseUint(values[0], 10, 64)
		if err != nil {
			return badRequest(name, "it has to be a number")
		}
		if most := c.server.cfg.Limits.Page; name == "limit" && (n == 0 || n > uint64(most)) {
			return badRequest(name, "it has to be from 1 to "+strconv.Itoa(most))
		}
	}
	return nil
}

// answerWriter takes note of what is answered.
type answerWriter struct {
	http.ResponseWriter
	call   *call
	status int // 0: nothing yet
	bytes  int64
}

// Unwrap is for http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *answerWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}
