package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/serve/gateway"
	"github.com/worldkernel/worldkernel/world/local"
)

// gatewayBench is the size of `bench gateway`.
type gatewayBench struct {
	calls  int
	agents int
	turns  int
	scope
}

const gatewayText = `Model calls through the gateway, beside the same calls direct and through a reverse proxy.

A provider in this process answers at once. One client calls it direct, through
httputil.ReverseProxy and through the gateway, in turn. Likewise tools of an MCP server are
called, direct and through the gateway, over stdio and HTTP. Then many agents call one that
takes 50 ms, and a conversation of many turns that grows to 1 MB is stored, and answered
from the record.`

func newGatewayCommand(p *program) *cobra.Command {
	var b gatewayBench
	var child string
	cmd, f := b.command(p, "gateway", gatewayText, "  bench gateway\n  bench gateway --calls 50 --rounds 1", 3, b.each(b.round))
	f.IntVar(&b.calls, "calls", 300, "how often one client calls, each way")
	f.IntVar(&b.agents, "agents", 64, "how many agents call at once, 20 times each")
	f.IntVar(&b.turns, "turns", 200, "of the conversation that grows to 1 MB")
	f.StringVar(&child, "child", "", "be an MCP server, or stand before one at a `URL`")
	_ = f.MarkHidden("child") // it exists
	inFull := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if child != "" {
			return b.child(cmd.Context(), child)
		}
		return inFull(cmd, args)
	}
	b.profile(f)
	return cmd
}

func (b *gatewayBench) round(ctx context.Context, r *run) {
	provider := newProvider()
	defer provider.Close()
	at, err := url.Parse(provider.URL)
	r.must(err)
	proxy := httptest.NewServer(httputil.NewSingleHostReverseProxy(at))
	defer proxy.Close()
	s := r.session(ctx, "small", provider.URL)
	b.added(r, provider.URL, proxy.URL, s.url)
	b.tools(ctx, r, s.tools)
	s.end()
	b.atOnce(ctx, r, provider.URL)
	b.stored(ctx, r, provider.URL)
}

// whole is an answer that is no stream.
const whole = `{"model":"m","choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`

// newProvider answers a model's calls: at once, or after the time that the path asks for.
func newProvider() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		if bytes.Contains(body, []byte(`"slow"`)) {
			<-time.After(50 * time.Millisecond) // may be late: a model takes its time
		}
		if bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n")
			w.(http.Flusher).Flush() //nolint:forcetypeassert // of this server
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
	}))
}

// agentSession is a session of an agent in a world of its own.
type agentSession struct {
	url   string // in the place of the provider
	tools string // where MCP servers come in
	end   func()
}

// session begins an incarnation of a session in the world of a directory, which it makes where there is none.
func (r *run) session(ctx context.Context, dir, provider string) *agentSession {
	desk, tools := new(relay.Desk), new(outside.Callers)
	opts := local.Options{
		Reducers: reducer.Registry{recorder.Name + "@" + recorder.Version: recorder.New},
		Adapters: map[string]host.Factory{"relay": relay.New(desk), "outside": outside.New(tools)},
	}
	if _, err := os.Stat(r.at(dir)); err != nil {
		r.must(examples.Copy("gateway", r.at(dir)))
		r.must(local.Create(r.at(dir), local.CreateOptions{ID: "bench"}, opts))
	}
	lw := r.open(r.at(dir), opts)
	g, err := gateway.Open(ctx, gateway.Config{World: lw, Desk: desk, Tools: tools, Session: "a", Principal: "bench", Upstream: map[string]string{relay.OpenAI: provider}})
	r.must(err)
	driving, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { _, _ = lw.Drive(driving, local.Course{Stay: true}) })
	server := httptest.NewServer(g)
	at := strings.TrimPrefix(server.URL, "http://")
	return &agentSession{g.URL(at, relay.OpenAI), g.URL(at, "mcp"), func() {
		_, err := g.Close(ctx, 0)
		server.Close()
		cancel()
		beside.Wait()
		r.must(err)
		r.must(lw.Close())
	}}
}

// ask makes a call, and returns how long its first byte and all of it took.
func (r *run) ask(at, body string) (first, whole time.Duration) {
	begun := time.Now()
	resp, err := http.Post(at+"/v1/chat/completions", "application/json", strings.NewReader(body))
	r.must(err)
	_, err = io.ReadFull(resp.Body, make([]byte, 1))
	r.must(err)
	first = time.Since(begun)
	_, err = io.Copy(io.Discard, resp.Body)
	r.must(err)
	r.must(resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		r.must(fmt.Errorf("the call was answered with %s", resp.Status))
	}
	return first, time.Since(begun)
}

func call(n int, more, text string) string {
	return fmt.Sprintf(`{"model":"m",%s"messages":[{"role":"user","content":"%d %s"}]}`, more, n, text)
}

// added measures what the gateway adds to a call, beside syncs of the same disk.
func (b *gatewayBench) added(r *run, provider, proxy, through string) {
	var direct, gated, first, streamed []float64
	syncs := r.syncs(b.calls, func(n int) {
		_, whole := r.ask(provider, call(n, "", ""))
		direct = append(direct, whole.Seconds())
		_, whole = r.ask(through, call(n, "", ""))
		gated = append(gated, whole.Seconds())
		begun, _ := r.ask(provider, call(n, `"stream":true,`, ""))
		first = append(first, begun.Seconds())
		begun, _ = r.ask(through, call(n, `"stream":true,`, ""))
		streamed = append(streamed, begun.Seconds())
	})
	sync := quantile(syncs, 50)
	r.add("a sync of this disk, median", "ms", "", 1000*sync)
	r.add("a call direct, median", "ms", "", 1000*quantile(direct, 50))
	r.add("added by the gateway, median, less two syncs", "ms", "<= 1", 1000*(quantile(gated, 50)-quantile(direct, 50)-2*sync))
	r.add("added by the gateway, 99 of 100, less two syncs", "ms", "<= 5", 1000*(quantile(gated, 99)-quantile(direct, 99)-2*quantile(syncs, 99)))
	r.add("first streamed byte, added, median, less a sync", "ms", "<= 1", 1000*(quantile(streamed, 50)-quantile(first, 50)-sync))

	text := strings.Repeat("lorem ipsum ", 50_000/12)
	cost := func(name, at string, from int) float64 {
		return b.measurePart(r, name, func() {
			for n := range b.calls {
				r.ask(at, call(from+n, "", text))
			}
		}).CPU.Seconds()
	}
	alone, proxied, judged := cost("direct", provider, 0), cost("proxy", proxy, 0), cost("gateway", through, b.calls)
	r.add("CPU of a call with 50 KB: gateway / reverse proxy", "ratio", "<= 3", judged/proxied)
	r.add("CPU that it adds to a call direct", "ms", "", 1000*(judged-alone)/float64(b.calls))
}

// syncs does something a number of times, and returns how long a sync of the disk took after each.
func (r *run) syncs(times int, work func(n int)) (took []float64) {
	f, err := os.Create(r.at("sync"))
	r.must(err)
	for n := range times {
		work(n)
		at := time.Now()
		_, err := f.WriteAt(make([]byte, 4096), int64(n)*4096)
		r.must(err)
		r.must(f.Sync())
		took = append(took, time.Since(at).Seconds())
	}
	r.must(f.Close())
	return took
}

// quantile returns the value that so many of a hundred are not above.
func quantile(values []float64, of int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*of/100)]
}

// atOnce measures many agents that each call a provider of 50 ms as often as they can.
func (b *gatewayBench) atOnce(ctx context.Context, r *run, provider string) {
	const each = 20
	rate := func(name, at string) float64 {
		var all sync.WaitGroup
		failed := make(chan error, b.agents)
		m := b.measurePart(r, name, func() {
			for agent := range b.agents {
				all.Go(func() {
					for n := range each {
						resp, err := http.Post(at+"/v1/chat/completions", "application/json", strings.NewReader(call(agent*each+n, "", `","name":"slow`)))
						if err != nil {
							failed <- err
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
						if resp.StatusCode != http.StatusOK {
							failed <- fmt.Errorf("a call was answered with %s", resp.Status)
							return
						}
					}
				})
			}
			all.Wait()
		})
		select {
		case err := <-failed:
			r.must(err)
		default:
		}
		return float64(b.agents*each) / m.Wall.Seconds()
	}
	s := r.session(ctx, "many", provider)
	direct, through := rate("agents-direct", provider), rate("agents", s.url)
	s.end()
	r.add(fmt.Sprintf("%d agents at once, direct", b.agents), "calls/s", "", direct)
	r.add("through the gateway / direct", "ratio", ">= 0.95", through/direct)
}

// stored measures what a conversation that grows takes on disk, and how fast it is answered from the record.
func (b *gatewayBench) stored(ctx context.Context, r *run, provider string) {
	ask := func(at string) (longest int) {
		said := ""
		for turn := range b.turns {
			text := pseudo(turn, 1_000_000/b.turns)
			if turn > 0 {
				said += `,{"role":"assistant","content":"hello"},`
			}
			said += `{"role":"user","content":"` + text + `"}`
			body := `{"model":"m","messages":[` + said + `]}`
			r.ask(at, body)
			longest = len(body)
		}
		return longest
	}
	s := r.session(ctx, "long", provider)
	information := ask(s.url) + b.turns*len(whole) // whoever asks again gets an answer byte for byte
	s.end()
	size, err := sizeOf(r.at("long"))
	r.must(err)
	r.add(fmt.Sprintf("stored for a conversation of %d turns / its information", b.turns), "ratio", "<= 1.3", float64(size)/float64(information))
	s = r.session(ctx, "long", "http://127.0.0.1:1") // nobody: the record answers
	served := b.measurePart(r, "served", func() { ask(s.url) })
	s.end()
	r.add(fmt.Sprintf("%d recorded calls served", b.turns), "s", "<= 2", served.Wall.Seconds())
}

// pseudo returns a text of a turn that nothing makes shorter.
func pseudo(turn, length int) string {
	rng := rand.New(rand.NewPCG(uint64(turn), 1)) //nolint:gosec // the same each time, and no secret
	text := make([]byte, length)
	for i := range text {
		text[i] = byte('a' + rng.IntN(26))
	}
	return string(text)
}
