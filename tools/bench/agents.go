package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/llm"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// agentsBench is the size of `bench agents`.
type agentsBench struct {
	agents  []int
	thought time.Duration
	scope
}

const agentsText = `Agents that ask a model at once, beside a bare client that does.

So many agents in Starlark each ask a model on this machine one thing, all at the same
time: it thinks for a second before it answers. They ask again three seconds later, and
again at once, on the connections that are there. Beside them in the same run, as many
goroutines send the same requests with net/http and keep nothing. The model is another
process; what it takes of the processors is not counted, but its use of them is felt.

Memory is what the heap has grown by when all agents have their first answers and no
connection is kept any more, with the world still open.`

// idle is longer than adapters keep connections for.
const idle = 3 * time.Second

func newAgentsCommand(p *program) *cobra.Command {
	var b agentsBench
	var child bool
	cmd, f := b.command(p, "agents", agentsText, "  bench agents\n  bench agents --agents 1000 --rounds 5", 1, b.each(b.round))
	inFull := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if child {
			return runModel(cmd.Context(), b.thought)
		}
		return inFull(cmd, args)
	}
	f.IntSliceVar(&b.agents, "agents", []int{100, 1000, 10_000}, "how many")
	f.DurationVar(&b.thought, "thought", time.Second, "how long the model thinks")
	f.BoolVar(&child, "child", false, "be the model, and print where")
	_ = f.MarkHidden("child") // it exists
	return cmd
}

// runModel answers chat completions after a while.
func runModel(ctx context.Context, thought time.Duration) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(thought) //nolint:forbidigo // it thinks
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","model":"m","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"So it is."}}],`+
			`"usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14}}`)
	})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if _, err := fmt.Fprintln(os.Stdout, "http://"+listener.Addr().String()+"/v1"); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

const thinker = `
def reduce(ctx, state, event):
    if event.name == "agent.begun":
        ctx.effect("model.ask", {"messages": [{"role": "user", "content": "Is it so?"}]})
        return {"heard": state["heard"] if state else 0}
    return {"heard": state["heard"] + 1}
`

// thinkerRules are those of agents that ask a model.
func thinkerRules(model string) string {
	return rules("agent", inStarlark+", grants: [model]", "agent.begun") + fmt.Sprintf(`effects:
  model.ask: {adapter: llm, config: {base_url: "%s", model: m}, idempotent: true}
caps:
  model: {type: llm, params: {providers: ["127.0.0.1"], models: [m]}}
policies:
  - {name: asking, when: "true", decide: allow}
`, model)
}

// round measures each number of agents.
func (b *agentsBench) round(ctx context.Context, r *run) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server, model := r.self(ctx, "agents", "--child", "--thought", b.thought.String())
	for _, n := range b.agents {
		r.in(fmt.Sprint(n), func() { r.agents(ctx, model, n) })
	}
	stop()
	_ = server.Wait() // it was interrupted
}

// reaches of a wave of agents, by their number.
var reaches = map[int]string{100: "<= 1.2", 1000: "<= 1.5", 10_000: "<= 3"} //nolint:gochecknoglobals // a table

// agents has n agents ask, and n goroutines of a bare client.
func (r *run) agents(ctx context.Context, model string, n int) {
	name := fmt.Sprintf("%d agents ", n)
	bare := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	for _, wave := range []string{"", "again "} {
		m := measure(func() { r.must(bareWave(ctx, bare, model, n)) })
		r.add(name+wave+"bare client", "s", "", m.Wall.Seconds())
		r.add(name+wave+"bare client CPU", "us/call", "", float64(m.CPU.Microseconds())/float64(n))
	}
	bare.CloseIdleConnections()
	before := heap()
	lw := r.world(r.at("world"), thinkerRules(model), thinker, local.Options{Adapters: map[string]host.Factory{"llm": llm.New}})
	wave := func(name string, calls int) {
		r.begin(ctx, lw, n, 1)
		m := measure(func() { r.must(lw.Run(ctx)) })
		if done := lw.Status().Intents[receipt.StateCommitted]; done != calls {
			r.must(fmt.Errorf("%d calls of %d are committed", done, calls))
		}
		r.add(name, "s", reaches[n], m.Wall.Seconds())
		r.add(name+"CPU", "us/call", "", float64(m.CPU.Microseconds())/float64(n))
	}
	wave(name, n)
	time.Sleep(idle) //nolint:forbidigo // until connections are let go
	r.add(name+"memory", "bytes/agent", "<= 4096", float64(heap()-before)/float64(n))
	wave(name+"later ", 2*n)
	wave(name+"again ", 3*n)
	r.must(lw.Close())
}

// heap returns how many bytes live on it.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// bareWave sends n requests at once.
func bareWave(ctx context.Context, client *http.Client, model string, n int) error {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"Is it so?"}]}`)
	failed := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, model+"/chat/completions", bytes.NewReader(body))
			if err != nil {
				failed[i] = err
				return
			}
			req.Header.Set("Content-Type", "application/json")
			res, err := client.Do(req)
			if err != nil {
				failed[i] = err
				return
			}
			var answer struct{ ID string }
			failed[i] = errors.Join(json.NewDecoder(res.Body).Decode(&answer), res.Body.Close())
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
