package worldctl

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/worldkernel/worldkernel/world/api"
)

// shutdownPatience is how long requests get to be answered when a service ends.
const shutdownPatience = 10 * time.Second

// run serves the worlds and drives them, until ctx ends or none can go on.
func (v *service) run(ctx context.Context, addr *net.TCPAddr, tokens *api.Tokens) error {
	listener, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return hinted(err, "type --addr with another HOST:PORT; port 0 is any free one")
	}
	server, err := v.server(listener.Addr(), tokens)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	srv, in := server.HTTPServer(), &gate{next: server.Handler()}
	srv.Handler = in
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	driven, stop := context.WithCancel(ctx)
	idle := v.drive(driven, server.Stop)
	err = v.out(v.answer(listener.Addr()))
	if err == nil {
		err = v.await(ctx, server, served, idle)
	}
	stop()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
	defer cancel()
	if failed := srv.Shutdown(bounded); failed != nil {
		v.log.Warn("requests were broken off", "error", failed)
		err = errors.Join(err, srv.Close())
	}
	in.shut()
	<-idle
	v.log.Info("ended", "worlds", len(v.worlds))
	return errors.Join(err, server.Close())
}

func (v *service) server(at net.Addr, tokens *api.Tokens) (*api.Server, error) {
	cfg := api.Config{Tokens: tokens, Log: v.log.requests, AllowedHosts: v.hosts}
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		cfg.AllowedHosts = append(cfg.AllowedHosts, at.String()) // an address, which no name server can turn elsewhere
	}
	for _, w := range v.worlds {
		cfg.Worlds = append(cfg.Worlds, w.lw)
	}
	return api.New(cfg)
}

// answer says where the worlds are.
func (v *service) answer(at net.Addr) serveAnswer {
	host := at.String()
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	a := serveAnswer{URL: "http://" + host}
	for _, w := range v.worlds {
		a.Worlds = append(a.Worlds, servedWorld{ID: w.id, Dir: w.lw.Dir()})
		v.log.Info("serving", "world", w.id, "dir", w.dir, "url", a.URL+"/api/worlds/"+w.id)
	}
	return a
}

// await returns when the service has to end, and reads the token file again where
// SIGHUP asks for that.
func (v *service) await(ctx context.Context, server *api.Server, served <-chan error, idle <-chan struct{}) error {
	again := make(chan os.Signal, 1)
	if v.tokens != "" {
		signal.Notify(again, syscall.SIGHUP)
		defer signal.Stop(again)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-idle:
			return nil // each world has said why
		case err := <-served:
			return err
		case <-again:
			tokens, err := readTokens(v.tokens)
			if err != nil {
				v.log.Error("the token file was not read, and those of before are taken", "error", err)
				continue
			}
			server.SetTokens(tokens)
			v.log.Info("the token file was read again", "tokens", len(tokens.Lines()))
		}
	}
}

// gate lets requests in until it is shut.
type gate struct {
	next   http.Handler
	inside sync.RWMutex // held by every request, to read
	closed bool
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.inside.RLock()
	defer g.inside.RUnlock()
	if g.closed {
		http.Error(w, "the server has ended", http.StatusServiceUnavailable)
		return
	}
	g.next.ServeHTTP(w, r)
}

// shut returns when nobody is inside any more.
func (g *gate) shut() {
	g.inside.Lock()
	defer g.inside.Unlock()
	g.closed = true
}
