package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// crowdBench is the size of `bench crowd`.
type crowdBench struct {
	honest, slow, greedy int
	pause                time.Duration
	span                 time.Duration
	asks                 string // what greedy clients ask for
	scope
}

const crowdText = `Honest clients of a server, alone and in a crowd of slow and greedy ones.

A world is served and driven in a process of its own, as worldctl serve does. Honest
clients submit an event each, wait for its answer, and pause. Then slow and greedy
clients come, from another process, each kind with a token of its own. Slow ones send
heads and bodies as slowly as they may, do not read pages, or follow without reading.
Greedy ones ask as fast as they are answered, whatever Retry-After says: for pages,
events, bulks and verifications of the same world.

Clients and server share this machine's processors. What that alone comes to is
measured, too: with the same crowd at another server beside it.`

func newCrowdCommand(p *program) *cobra.Command {
	var b crowdBench
	var child, token string
	cmd, f := b.command(p, "crowd", crowdText, "  bench crowd\n  bench crowd --for 10s --rounds 3 --asks page,event", 1, b.each(b.round))
	inFull := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case child == "":
			return inFull(cmd, args)
		case token == "":
			return runServed(cmd.Context(), child)
		}
		return b.runCrowd(cmd.Context(), child, strings.Split(token, ","))
	}
	f.IntVar(&b.honest, "honest", 8, "how many honest clients")
	f.IntVar(&b.slow, "slow", 64, "how many slow clients")
	f.IntVar(&b.greedy, "greedy", 64, "how many greedy clients")
	f.DurationVar(&b.pause, "pause", 20*time.Millisecond, "of an honest client between two requests")
	f.DurationVar(&b.span, "for", 20*time.Second, "how long to measure, alone and in the crowd")
	f.StringVar(&b.asks, "asks", "page,event,bulk,verify,malformed,stranger", "what greedy clients ask for, in turns")
	f.StringVar(&child, "child", "", "serve `DIR`, or be the crowd of a URL")
	f.StringVar(&token, "tokens", "", "`TOKENS` of the crowd")
	_, _ = f.MarkHidden("child"), f.MarkHidden("tokens") // they exist
	return cmd
}

// tallyOptions opens a world of tallies.
func tallyOptions() local.Options {
	return local.Options{Reducers: reducer.Registry{"tally@1": reducer.Typed(1, tallied)}}
}

// servedWorldDir and servedTokens are what a process serves, in its directory.
const (
	servedWorldDir = "world"
	servedTokens   = "tokens"
)

// runServed serves the world in a directory, and prints where.
func runServed(ctx context.Context, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, servedTokens))
	if err != nil {
		return err
	}
	tokens, err := api.ParseTokens(text)
	if err != nil {
		return err
	}
	v := &api.Service{Config: api.Config{Tokens: tokens}, Options: tallyOptions(), Serving: func(url string) error {
		_, err := fmt.Fprintln(os.Stdout, url)
		return err
	}}
	if err := v.Open(ctx, filepath.Join(dir, servedWorldDir)); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err == nil {
		err = v.Serve(ctx, listener)
	}
	return errors.Join(err, v.Close(), v.Failed())
}

// self starts this program again, and returns the first line that it prints.
func (r *run) self(ctx context.Context, args ...string) (cmd *exec.Cmd, said string) {
	self, err := os.Executable()
	r.must(err)
	cmd = exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	r.must(err)
	r.must(cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Scan()
	return cmd, lines.Text()
}

// served is a server in a process of its own, and what the crowd and the others need
// to be its clients.
type served struct {
	process *exec.Cmd
	world   string   // its URL
	secrets []string // of honest, slow and greedy clients
}

// serveTallies serves a world of tallies that has a past, in a directory.
func (b *crowdBench) serveTallies(ctx context.Context, r *run, dir string) *served {
	r.must(os.MkdirAll(dir, 0o700))
	lw := r.tallies(filepath.Join(dir, servedWorldDir))
	for i := range 20_000 { // what pages and verifications have to do with
		r.must(lw.Update(func(w *world.World) error {
			_, err := w.Accept(ctx, world.Submission{Name: "client.sent", Data: journalData(clientEvent{"before" + strconv.Itoa(i%100), uint64(i / 100)})})
			return err
		}))
	}
	r.must(errors.Join(lw.Run(ctx), lw.Close()))
	var tokens strings.Builder
	s := &served{secrets: make([]string, 3)}
	for i, name := range []string{"honest", "slow", "greedy"} {
		secret, hash := api.NewToken()
		s.secrets[i] = secret
		fmt.Fprintf(&tokens, "%s read,submit %s *\n", name, hash)
	}
	r.must(os.WriteFile(filepath.Join(dir, servedTokens), []byte(tokens.String()), 0o600))
	process, url := r.self(ctx, "crowd", "--child", dir)
	s.process, s.world = process, url+"/api/worlds/"+lw.Status().ID
	return s
}

func (b *crowdBench) round(ctx context.Context, r *run) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server, other := b.serveTallies(ctx, r, r.at("server")), b.serveTallies(ctx, r, r.at("other"))
	client := newBenchClient(server.world, server.secrets[0], b.honest)
	_, err := b.ask(ctx, client, "warm", time.Second)
	r.must(err)
	alone, err := b.ask(ctx, client, "alone", b.span)
	r.must(err)
	elsewhere := b.beside(ctx, r, client, "elsewhere", other)
	crowded := b.beside(ctx, r, client, "crowded", server)
	stop()
	_, _ = server.process.Wait(), other.process.Wait() // they were interrupted
	alone.add(r, "alone")
	elsewhere.add(r, "crowd elsewhere")
	crowded.add(r, "in the crowd")
	r.add("p99 in the crowd / alone", "ratio", "<= 3", crowded.part(99)/alone.part(99))
	r.add("p99 in the crowd / elsewhere", "ratio", "", crowded.part(99)/elsewhere.part(99))
}

// beside has the honest clients submit while a server has a crowd.
func (b *crowdBench) beside(ctx context.Context, r *run, client *benchClient, as string, of *served) *submitted {
	crowd, _ := r.self(ctx, "crowd", "--child", of.world, "--tokens", strings.Join(of.secrets[1:], ","), "--slow", strconv.Itoa(b.slow),
		"--greedy", strconv.Itoa(b.greedy), "--asks", b.asks, "--for", (b.span + 4*time.Second).String())
	time.Sleep(2 * time.Second) //nolint:forbidigo // until all are there, some of whom are never answered
	did, err := b.ask(ctx, client, as, b.span)
	r.must(errors.Join(err, crowd.Wait()))
	return did
}

// ask has the honest clients submit for a while.
func (b *crowdBench) ask(ctx context.Context, client *benchClient, as string, span time.Duration) (*submitted, error) {
	load := serveBench{clients: b.honest, pause: b.pause, span: span}
	return load.load(ctx, func(ctx context.Context, e clientEvent) (journal.Seq, error) {
		e.Of = as + e.Of
		return client.submit(ctx, e)
	})
}

// answers counts what greedy clients were answered.
type answers struct{ ok, refused, failed atomic.Int64 }

func (a *answers) count(res *http.Response, err error) {
	switch {
	case err != nil:
		a.failed.Add(1)
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable:
		a.refused.Add(1)
	default:
		a.ok.Add(1)
	}
}

// runCrowd is slow and greedy for a while.
func (b *crowdBench) runCrowd(ctx context.Context, at string, tokens []string) error {
	ctx, cancel := context.WithTimeout(ctx, b.span)
	defer cancel()
	fmt.Fprintln(os.Stdout, "here")
	var all sync.WaitGroup
	for i := range b.slow {
		all.Go(func() { slowly(ctx, at, tokens[0], i) })
	}
	greedy, asks := newBenchClient(at, tokens[1], b.greedy), strings.Split(b.asks, ",")
	var said answers
	for i := range b.greedy {
		all.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				greedily(ctx, greedy, asks[n%len(asks)], n, &said)
			}
		})
	}
	all.Wait()
	fmt.Fprintf(os.Stderr, "greedy clients were answered %d times, refused %d times\n", said.ok.Load(), said.refused.Load())
	return nil
}
