package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// submitBench is the size of `bench submit`.
type submitBench struct {
	clients int
	tokens  int
	batch   int
	span    time.Duration
	scope
}

const submitText = `What a submit over HTTP costs: one event a request, and many.

A process of its own has the clients, each with a connection that it keeps, on which it
sends its next request when the one before is answered: the CPU and the objects are the
server's alone. The world is driven meanwhile. Beside it, in the same round, as many
callers submit the same within the process; and a bare server of net/http reads the same
requests, appends them to a file, has all that wait at the same time share one sync, and
answers with as many bytes: that is the limit. Afterwards each event that was accepted
has to be in its cell once, in the order of its client.`

func newSubmitCommand(p *program) *cobra.Command {
	var b submitBench
	var child, secrets string
	cmd, f := b.command(p, "submit", submitText, "  bench submit\n  bench submit --tokens 1 --for 5s --rounds 5", 3, b.each(b.round))
	inFull := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if child != "" {
			return b.runClients(cmd.Context(), child, strings.Split(secrets, ","))
		}
		return inFull(cmd, args)
	}
	f.IntVar(&b.clients, "clients", 64, "how many clients")
	f.IntVar(&b.tokens, "tokens", 4, "over how many tokens, each of which has 16 requests at once at most")
	f.IntVar(&b.batch, "batch", 100, "how many events of a client are one request, where they are many")
	f.DurationVar(&b.span, "for", 5*time.Second, "for how long they submit, each way; as 30s")
	f.StringVar(&child, "child", "", "be the clients of a `URL`")
	f.StringVar(&secrets, "secrets", "", "`TOKENS` that they show")
	_, _ = f.MarkHidden("child"), f.MarkHidden("secrets") // they exist
	return cmd
}

// load is what has come of clients, and what it cost who answered them.
type load struct {
	Accepted []uint64      `json:"accepted"` // events, by client
	Requests int           `json:"requests"`
	P50, P99 float64       // of a request, in milliseconds
	Wall     time.Duration `json:"wall"`
	CPU      time.Duration `json:"cpu"` // of the clients

	cost measured // of the others
}

func (l *load) events() float64 {
	n := uint64(0)
	for _, a := range l.Accepted {
		n += a
	}
	return float64(n)
}

func (l *load) perSecond() float64 { return l.events() / l.Wall.Seconds() }
func (l *load) micros() float64    { return float64(l.cost.CPU.Microseconds()) / l.events() }

func (l *load) add(r *run, how, reach string) {
	r.add(how+", events", "events/s", reach, l.perSecond())
	r.add(how+", p50", "ms", "", l.P50)
	r.add(how+", p99", "ms", "", l.P99)
	r.add(how+", CPU", "us/event", "", l.micros())
	r.add(how+", allocations", "objects/event", "", float64(l.cost.Allocs)/l.events())
}

// round measures each way with one event a request, and with many.
func (b *submitBench) round(ctx context.Context, r *run) {
	for _, way := range []struct {
		name, reach string
		batch       int
	}{{"one by one", ">= 10000", 1}, {"many", ">= 20000", b.batch}} {
		served, direct := b.served(ctx, r, way.name, way.batch), b.direct(ctx, r, way.name, way.batch)
		bare := b.bare(ctx, r, way.name, way.batch)
		served.add(r, way.name+", HTTP", way.reach)
		direct.add(r, way.name+", within the process", "")
		bare.add(r, way.name+", bare server", "")
		r.add(way.name+", HTTP / bare server", "ratio", "", served.perSecond()/bare.perSecond())
		r.add(way.name+", HTTP / bare server, CPU", "ratio", "", served.micros()/bare.micros())
	}
}

// served has the clients submit to a world over HTTP.
func (b *submitBench) served(ctx context.Context, r *run, name string, batch int) *load {
	lw := r.tallies(r.at("served " + name))
	var tokens strings.Builder
	secrets := make([]string, b.tokens)
	for i := range secrets {
		secret, hash := api.NewToken()
		secrets[i] = secret
		fmt.Fprintf(&tokens, "bench%d %s %s *\n", i, api.ScopeSubmit, hash)
	}
	known, err := api.ParseTokens([]byte(tokens.String()))
	r.must(err)
	server, err := api.New(api.Config{Worlds: []*local.World{lw}, Tokens: known})
	r.must(err)
	stop := driven(ctx, lw)
	l := b.asked(ctx, r, server.HTTPServer(), secrets, batch)
	r.must(errors.Join(stop(), server.Close()))
	b.close(ctx, r, lw, l)
	return l
}

// asked has a process of clients ask a server, and measures what that costs here.
func (b *submitBench) asked(ctx context.Context, r *run, srv *http.Server, secrets []string, batch int) *load {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	r.must(err)
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(listener) }) // always an error; requests fail with another
	self, err := os.Executable()
	r.must(err)
	clients := exec.CommandContext(ctx, self, "submit", "--child", "http://"+listener.Addr().String()+"/api/worlds/bench/events",
		"--secrets", strings.Join(secrets, ","), "--clients", strconv.Itoa(b.clients), "--batch", strconv.Itoa(batch), "--for", b.span.String())
	clients.Stderr = os.Stderr
	l := new(load)
	l.cost = measure(func() {
		said, err := clients.Output()
		r.must(err)
		r.must(json.Unmarshal(said, l))
	})
	r.must(srv.Close())
	serving.Wait()
	return l
}

// direct has as many callers submit within the process.
func (b *submitBench) direct(ctx context.Context, r *run, name string, batch int) *load {
	lw := r.tallies(r.at("direct " + name))
	stop := driven(ctx, lw)
	l := new(load)
	l.cost = measure(func() {
		var err error
		l, err = b.ask(func(int) (ask, error) {
			return func(e clientEvent) error { return submitDirectly(ctx, lw, e, batch) }, nil
		}, batch)
		r.must(err)
	})
	r.must(stop())
	b.close(ctx, r, lw, l)
	return l
}

func submitDirectly(ctx context.Context, lw *local.World, e clientEvent, batch int) error {
	if batch == 1 {
		_, err := lw.Submit(ctx, "client.sent", e)
		return err
	}
	_, _, err := lw.SubmitAll(ctx, func(yield func(world.Submission, error) bool) {
		for range batch {
			if !yield(world.Submission{Name: "client.sent", Data: journalData(e)}, nil) {
				return
			}
			e.N++
		}
	})
	return err
}

func journalData(e clientEvent) canon.Raw {
	data, err := canon.Marshal(e)
	if err != nil {
		panic(err) // it can be marshalled
	}
	return data
}

// close closes a world that has each event that was accepted once.
func (b *submitBench) close(ctx context.Context, r *run, lw *local.World, l *load) {
	r.must(lw.Run(ctx))
	r.must(holdTallies(lw, l.Accepted))
	r.must(lw.Close())
}

// bare has the same clients ask a server that does nothing but read, sync and answer.
func (b *submitBench) bare(ctx context.Context, r *run, name string, batch int) *load {
	file, err := os.Create(r.at("bare " + name))
	r.must(err)
	log := &groupedLog{File: file, turn: make(chan struct{}, 1)}
	answer := []byte(`{"id":1234567,"event":"client.sent","due":0,"to":["tally/c12"]}` + "\n")
	if batch > 1 {
		answer = []byte(`{"accepted":100,"first":1234567,"last":1234567}` + "\n")
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = log.append(body)
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(answer)))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(answer) // the client finds out
	})}
	l := b.asked(ctx, r, srv, []string{"none"}, batch)
	r.must(file.Close())
	return l
}

// groupedLog is a file whose writers share syncs.
type groupedLog struct {
	*os.File

	turn    chan struct{} // held by who syncs
	mu      sync.Mutex
	waiting []byte
	next    *group // that waits
}

type group struct {
	done chan struct{}
	err  error
}

// append appends bytes, which are durable on return.
func (g *groupedLog) append(b []byte) error {
	g.mu.Lock()
	g.waiting = append(g.waiting, b...)
	if g.next == nil {
		g.next = &group{done: make(chan struct{})}
	}
	mine := g.next
	g.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case g.turn <- struct{}{}:
	}
	defer func() { <-g.turn }()
	g.mu.Lock()
	all, whose := g.waiting, g.next
	g.waiting, g.next = nil, nil
	g.mu.Unlock()
	if whose != nil {
		_, err := g.Write(all)
		whose.err = errors.Join(err, unix.Fdatasync(int(g.Fd())))
		close(whose.done)
	}
	<-mine.done
	return mine.err
}
