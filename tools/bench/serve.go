package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// serveBench is the size of `bench serve`.
type serveBench struct {
	clients int
	pause   time.Duration // of a client between two events
	span    time.Duration
	events  int // of each client; 0: as many as it can in span
	scope
}

const serveText = `Events of many clients over HTTP, beside the same within the process.

A world is served on loopback, as worldctl serve does, and driven meanwhile. Every
client submits numbered events, each when the one before is accepted, which is durable
then. One more follows the journal as a stream, and one opens a stream and does not
read it. Afterwards cells, journal and stream are checked: every event that was
accepted is there once, in the order of its client. Clients and server share this
machine's processors.

Beside it in the same round as many clients submit to a world of the same kind without
HTTP. The medians of the rounds are shown.`

func newServeCommand(p *program) *cobra.Command {
	var b serveBench
	cmd, f := b.command(p, "serve", serveText, "  bench serve\n  bench serve --clients 8 --for 5s --rounds 3", 1, b.run)
	f.IntVar(&b.clients, "clients", 64, "how many clients")
	f.DurationVar(&b.span, "for", 30*time.Second, "for how long they submit, each way; as 30s")
	return cmd
}

// clientEvent is an event of a client.
type clientEvent struct {
	Of string `cbor:"to" json:"to"` // the client, and its cell
	N  uint64 `cbor:"n" json:"n"`   // from 0
}

// tally is what has come of a client.
type tally struct {
	Count uint64 `cbor:"count"`
	Wrong uint64 `cbor:"wrong"` // events that were not the next one
}

func tallied(_ *reducer.Context, t tally, e clientEvent) (tally, error) {
	if e.N != t.Count {
		t.Wrong++
	}
	t.Count++
	return t, nil
}

// tallies makes a world that counts the events of each client.
func (r *run) tallies(dir string) *local.World {
	return r.world(dir, rules("tally", inGo("tally"), "client.sent"), "", tallyOptions())
}

// run measures both ways, round by round.
func (b *serveBench) run(ctx context.Context, r *run) {
	if b.clients < 1 || b.rounds < 1 {
		r.must(errors.New("there is nothing to measure: type --clients 64 --rounds 1"))
	}
	b.each(b.round)(ctx, r)
}

func (b *serveBench) round(ctx context.Context, r *run) {
	served, direct := b.served(ctx, r), b.direct(ctx, r)
	served.add(r, "served")
	direct.add(r, "direct")
	r.add("served / direct", "ratio", "", served.perSecond()/direct.perSecond())
}

// served has the clients submit over HTTP.
func (b *serveBench) served(ctx context.Context, r *run) *submitted {
	lw := r.tallies(r.at("served"))
	var s *submitted
	serving(ctx, r, lw, b.clients, func(client *benchClient) (err error) {
		s, err = b.followed(ctx, client, r)
		return err
	})
	r.must(errors.Join(s.check(ctx, lw), lw.Close()))
	return s
}

// serving serves a world, and drives it, while a client uses it.
func serving(ctx context.Context, r *run, lw *local.World, clients int, use func(*benchClient) error) {
	secret, hash := api.NewToken()
	tokens, err := api.ParseTokens(fmt.Appendf(nil, "bench %s,%s %s *", api.ScopeRead, api.ScopeSubmit, hash))
	r.must(err)
	server, err := api.New(api.Config{Worlds: []*local.World{lw}, Tokens: tokens})
	r.must(err)
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	r.must(err)
	srv := server.HTTPServer()
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(listener) }) // always an error; requests fail with another
	stop := driven(ctx, lw)
	err = use(newBenchClient("http://"+listener.Addr().String()+"/api/worlds/"+lw.Status().ID, secret, clients))
	err = errors.Join(err, stop(), srv.Close())
	serving.Wait()
	r.must(errors.Join(err, server.Close()))
}

// driven keeps a world running until stop, which returns why it could not go on.
func driven(ctx context.Context, lw *local.World) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for {
			before := lw.Head().ID
			p, err := lw.Next(ctx)
			if err == nil && (p == world.Waiting || p == world.Idle) {
				err = lw.Await(ctx, before) // this world has no effects to wait for
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return lw.Sync()
	}
}

// followed has the clients submit while others follow.
func (b *serveBench) followed(ctx context.Context, client *benchClient, r *run) (*submitted, error) {
	good, err := client.follow(ctx)
	if err != nil {
		return nil, err
	}
	slow, err := client.follow(ctx)
	if err != nil {
		return nil, errors.Join(err, good.Close())
	}
	var seen []journal.Seq
	var failed error
	var following sync.WaitGroup
	following.Go(func() { seen, failed = readFollowed(good) })
	s, err := b.load(ctx, client.submit)
	if err == nil {
		_, err = client.submit(ctx, clientEvent{Of: lastClient})
	}
	if err != nil {
		_ = good.Close() // which ends the follower
	}
	following.Wait()
	if err = errors.Join(err, failed, good.Close()); err != nil {
		return nil, errors.Join(err, slow.Close())
	}
	if len(seen) != len(s.took)+1 {
		err = fmt.Errorf("%d events were accepted and %d followed", len(s.took)+1, len(seen))
	}
	dropped := 0.
	if _, tooSlow := readFollowed(slow); tooSlow != nil {
		dropped = 1
	}
	r.add("readers that do not read, dropped", "of 1", "", dropped)
	return s, errors.Join(err, slow.Close())
}

// direct has the clients submit to a world that is driven in the same way, without
// HTTP.
func (b *serveBench) direct(ctx context.Context, r *run) *submitted {
	lw := r.tallies(r.at("direct"))
	stop := driven(ctx, lw)
	s, err := b.load(ctx, func(ctx context.Context, e clientEvent) (journal.Seq, error) {
		return lw.Submit(ctx, "client.sent", e)
	})
	r.must(errors.Join(err, stop()))
	r.must(errors.Join(s.check(ctx, lw), lw.Close()))
	return s
}

// submitted is what clients have had accepted.
type submitted struct {
	accepted []uint64 // events, by client
	ids      []journal.Seq
	took     []time.Duration // each of them
	wall     time.Duration
}

// load has every client submit its events, one after the other.
func (b *serveBench) load(ctx context.Context, submit func(context.Context, clientEvent) (journal.Seq, error)) (*submitted, error) {
	parts, errs := make([]submitted, b.clients), make([]error, b.clients)
	var working sync.WaitGroup
	began := time.Now()
	for i := range b.clients {
		working.Go(func() {
			p, from := &parts[i], "c"+strconv.Itoa(i)
			for n := uint64(0); errs[i] == nil; n++ {
				if b.events > 0 && n == uint64(b.events) || b.events == 0 && time.Since(began) >= b.span {
					return
				}
				start := time.Now()
				var id journal.Seq
				if id, errs[i] = submit(ctx, clientEvent{from, n}); errs[i] == nil {
					p.ids, p.took = append(p.ids, id), append(p.took, time.Since(start))
				}
				time.Sleep(b.pause) //nolint:forbidigo // it has something else to do
			}
		})
	}
	working.Wait()
	s := &submitted{wall: time.Since(began)}
	for _, p := range parts {
		s.accepted = append(s.accepted, uint64(len(p.took)))
		s.ids, s.took = append(s.ids, p.ids...), append(s.took, p.took...)
	}
	slices.Sort(s.took)
	return s, errors.Join(errs...)
}

func (s *submitted) perSecond() float64 { return float64(len(s.took)) / s.wall.Seconds() }

// part returns how many milliseconds a part of the events did not take longer than.
func (s *submitted) part(percent int) float64 {
	if len(s.took) == 0 {
		return 0
	}
	return float64(s.took[(len(s.took)-1)*percent/100].Microseconds()) / 1000
}

// add adds the figures.
func (s *submitted) add(r *run, how string) {
	r.add(how+" events", "events/s", "", s.perSecond())
	r.add(how+" p50", "ms", "", s.part(50))
	r.add(how+" p99", "ms", "", s.part(99))
}

// errNotExact says that events were lost, doubled or disordered.
var errNotExact = errors.New("the world does not have what was accepted")

// check holds a world to what was accepted, each once and in the order of its client.
func (s *submitted) check(ctx context.Context, lw *local.World) error {
	if err := lw.Run(ctx); err != nil {
		return err
	}
	slices.Sort(s.ids)
	if n := len(slices.Compact(s.ids)); n != len(s.took) {
		return fmt.Errorf("%w: %d events have %d records", errNotExact, len(s.took), n)
	}
	return holdTallies(lw, s.accepted)
}

// holdTallies holds the cells of clients to what was accepted of each.
func holdTallies(lw *local.World, accepted []uint64) error {
	cells := make([]world.CellView, len(accepted))
	lw.View(func(w *world.Moment) {
		for i := range cells {
			cells[i], _ = w.Cell(reducer.Cell{Reducer: "tally", Key: "c" + strconv.Itoa(i)})
		}
	})
	for i, want := range accepted {
		var got tally
		if len(cells[i].State) > 0 {
			var err error
			if got, err = reducer.Decode[tally](cells[i].State); err != nil {
				return err
			}
		}
		if got != (tally{Count: want}) {
			return fmt.Errorf("%w: of client %d %d events were accepted, %d came, %d of them not in their turn",
				errNotExact, i, want, got.Count, got.Wrong)
		}
	}
	return nil
}
