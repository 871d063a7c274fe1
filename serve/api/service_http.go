package api

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/serve/notify"
)

// shutdownPatience is how long requests get to be answered when a service ends.
const shutdownPatience = 10 * time.Second

// Serve serves the worlds and drives them, until ctx ends or none can go on; see Failed.
// It closes the listener.
func (v *Service) Serve(ctx context.Context, listener net.Listener) error {
	server, err := v.server(listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	srv, in := server.HTTPServer(), &gate{next: server.Handler()}
	srv.Handler = in
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	driven, stop := context.WithCancel(ctx)
	v.serving = &serving{ctx: driven, server: server, url: urlOf(listener.Addr())}
	for _, w := range v.worlds {
		v.drive(w)
	}
	err = v.Serving(v.serving.url)
	var keeping sync.WaitGroup
	if err == nil {
		if v.Keep != nil {
			keeping.Go(func() { v.Keep(driven) })
		}
		err = v.await(ctx, server, served, v.idle())
	}
	stop()
	keeping.Wait() // then no world comes or goes
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
	defer cancel()
	if failed := srv.Shutdown(bounded); failed != nil {
		v.Events.Warn("requests were broken off", "error", failed)
		err = errors.Join(err, srv.Close())
	}
	in.shut()
	for _, w := range v.worlds {
		<-w.ended
		w.telling.Wait()
	}
	v.Events.Info("ended", "worlds", len(v.worlds))
	return errors.Join(err, server.Close())
}

// notify tells the log, and whoever else wants to know, of what waits in a world until ctx ends.
func (v *Service) notify(ctx context.Context, w *Running) {
	on := notify.Follow(w.Local, "the world is served", func(line string) { v.Events.Info(line, "world", w.ID) })
	w.telling.Go(func() { on(ctx) })
	if v.Notify != nil {
		at, id := cmp.Or(v.Link, v.serving.url), url.PathEscape(w.ID)
		w.telling.Go(func() { v.Notify.Watch(ctx, w.Local, at+pagePath+"#/"+id+"/inbox", at+linkPath+id+"/") })
	}
}

func (v *Service) server(at net.Addr) (*Server, error) {
	cfg := v.Config
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		cfg.AllowedHosts = append(slices.Clip(cfg.AllowedHosts), at.String()) // an address, which no name server can turn elsewhere
	}
	for _, w := range v.worlds {
		cfg.Worlds = append(cfg.Worlds, w.Local)
	}
	return New(cfg)
}

// urlOf returns where the worlds are, for who is on this machine.
func urlOf(at net.Addr) string {
	host := at.String()
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return "http://" + host
}

// await returns when the service has to end, and reads the token file again meanwhile.
func (v *Service) await(ctx context.Context, server *Server, served <-chan error, idle <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-idle:
			return nil // each world has said why
		case err := <-served:
			return err
		case <-v.Again:
			tokens, err := ReadTokens(v.TokenFile)
			if err != nil {
				v.Events.Error("the token file was not read, and those of before are taken", "error", err)
				continue
			}
			server.SetTokens(tokens)
			v.Events.Info("the token file was read again", "tokens", len(tokens.Lines()))
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
		harden(w.Header())
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
