// Package api serves worlds over HTTP: JSON, server-sent events for whoever follows a journal, and
// metrics. openapi.yaml, which it serves too, is what it promises. As a Go package it is a part of
// worldctl, and not an API.
//
// Who may do what is in tokens (see Tokens); the table of routes names the scope of
// each. A world's answers are those of `worldctl -o json`, hashes in hex, errors
// Problems. Nothing is sent that names a secret, and a path of the machine to nobody
// but who came by a code (see Session).
//
//	s, err := api.New(api.Config{Worlds: []*local.World{w}, Tokens: tokens})
//	srv := s.HTTPServer()
//	err = srv.Serve(listener) // until another goroutine calls srv.Shutdown(ctx)
//	err = s.Close()           // then the worlds can be closed
package api

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/local"
)

// Config names the worlds of a server, its callers and its limits. All fields but Worlds and Tokens may be
// left out.
type Config struct {
	Worlds       []*local.World // from the beginning; no two with the same id; the server does not close them
	Tokens       *Tokens        // nil: nobody gets in
	Log          *slog.Logger   // a line for every request; nil: nobody reads it
	AllowedHosts []string       // that Host and Origin may name besides loopback, as clients write them: a name, or name:port
	OpenMetrics  bool           // /metrics asks for no token
	Sessions     *Sessions      // of people with browsers; nil: there are none
	Page         http.Handler   // what they look at, below /ui/; nil: there is none
	Forks        string         // the directory in which forks are made; empty: none are
	Limits       Limits
	Stores       Stores // who serves the worlds that this server does not; nil: nobody

	// Health returns why the server as a whole is not well, or what keeps some of its worlds from going on, for
	// anybody to read; nil: it is well.
	Health  func() (waits []string, err error)
	Metrics prometheus.Gatherer // told beside those of worlds; nil: none
}

// Server serves worlds. It is safe for concurrent use.
type Server struct {
	cfg      Config
	tokens   atomic.Pointer[Tokens]
	worlds   hosts
	routes   []route
	mux      *http.ServeMux
	document document

	connected     *connections
	requests      *slots
	followers     *slots
	waits         *slots // of workers
	verifications *slots // and of shadows
	health        *slots
	strangers     *strangers
	probes        *strangers // who ask /healthz
	turns         *slots     // of calls that work
	between       *http.Transport

	life context.Context // ends with the server
	end  context.CancelFunc
}

// New returns a server. Close ends it.
func New(cfg Config) (*Server, error) {
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l := &cfg.Limits
	s := &Server{
		cfg: cfg, worlds: hosts{all: make(map[string]*hosted)}, routes: routes(), mux: http.NewServeMux(),
		connected: newConnections(l.Connections), requests: newSlots("requests", l.Requests, l),
		followers: newSlots("followers", l.Followers, l), waits: newSlots("waits", l.Waits, l),
		verifications: newSlots("verifications", l.Verifications, l),
		turns:         newSlots("turns", l.Turns, l),
		between:       newBetween(l),
		health:        newSlots("health", Slots{All: l.Health, Token: l.Health + 1, World: l.Health}, l),
	}
	s.turns.queued = math.MaxInt // who waits for one has a slot of another kind
	var err error
	if s.document, err = readDocument(); err != nil {
		return nil, err
	}
	for i := range s.routes {
		s.handle(&s.routes[i])
	}
	s.tokens.Store(cfg.Tokens)
	s.life, s.end = context.WithCancel(context.Background())
	s.strangers, s.probes = newStrangers(s.life, l), newStrangers(s.life, l)
	for _, lw := range cfg.Worlds {
		if err := s.Add(lw); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Handler answers requests.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// HTTPServer returns a server of Handler with the limits that belong to
// connections. Its Shutdown ends the streams of followers and waits for the other
// requests.
func (s *Server) HTTPServer() *http.Server {
	l := s.cfg.Limits
	srv := &http.Server{
		Handler:   s.Handler(),
		ConnState: s.connected.state,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ReadHeaderTimeout: l.Head, ReadTimeout: l.Read, WriteTimeout: l.Answer + l.Flush, IdleTimeout: l.Idle, MaxHeaderBytes: l.HeaderBytes,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
	srv.RegisterOnShutdown(s.end)
	return srv
}

// SetTokens takes others from now on than those in the Config. What the bearer of a
// token that is gone still follows ends before the next record.
func (s *Server) SetTokens(t *Tokens) { s.tokens.Store(t) }

// Close ends the streams of followers and what the server does by itself. Requests
// that are being answered go on; wait for them before the worlds are closed, with
// http.Server.Shutdown.
func (s *Server) Close() error {
	s.end()
	s.between.CloseIdleConnections()
	for _, h := range s.worlds.sorted() {
		h.working.Wait()
	}
	return nil
}

// ended returns why the world's journal takes no more; nil: it does.
func (h *hosted) ended() error {
	if f := h.stopped.Load(); f != nil {
		return f
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := h.Local.Await(now, journal.Last); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
