package kill

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

const taskRules = `world: tasks
reducers:
  worker: {engine: starlark, source: worker.star, grants: [desk]}
events:
  go:
effects:
  tool.long:
    adapter: mcp
    config: {url: "%s", tool: long}
    retry: {attempts: 1}
caps:
  desk: {type: any, params: {kinds: [tool.long]}}
policies:
  - {name: all, when: 'true', decide: allow}
routing:
  - {event: go, reducer: worker, key: event.data.n}
`

// worker asks for one task, and counts what it is told of it.
const worker = `def reduce(ctx, state, event):
    state = state or {"told": []}
    if event.name == "receipt":
        state["told"].append(event.data["status"])
    else:
        ctx.effect("tool.long", {"arguments": {"n": ctx.key}}, tag = "t")
    return state
`

// office is a server of MCP with a tool that is always a task. It outlives the worlds that
// ask it, and keeps each task at work for so many questions.
type office struct {
	server *httptest.Server
	asked  chan string // the task of each question that came, as far as somebody reads them

	mu    sync.Mutex
	rng   *rand.Rand
	calls map[string]int // of the tool, by its argument
	work  map[string]int // questions until a task has ended
	ended int            // tasks that somebody wanted cancelled
}

func newOffice(t *testing.T, seed uint64) *office {
	t.Helper()
	o := &office{asked: make(chan string, 1<<10), rng: rand.New(rand.NewPCG(seed, 11)), calls: make(map[string]int), work: make(map[string]int)}
	o.server = httptest.NewServer(o)
	t.Cleanup(o.server.Close)
	return o
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			TaskID    string            `json:"taskId"`
			Arguments map[string]string `json:"arguments"`
		} `json:"params"`
	}
	if json.NewDecoder(r.Body).Decode(&msg) != nil || msg.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, msg.ID, o.answer(msg.Method, msg.Params.TaskID, msg.Params.Arguments["n"]))
}

func (o *office) answer(method, id, n string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch method {
	case "initialize":
		return `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"office","version":"1"}}`
	case "tools/list":
		return `"result":{"tools":[{"name":"long","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`
	case "tools/call":
		o.calls[n]++
		id = fmt.Sprintf("task-%s-%d", n, o.calls[n])
		o.work[id] = 3 + o.rng.IntN(12)
		return `"result":{"task":` + taskOf(id, "working") + `}`
	case "tasks/get":
		o.tell(id)
		if o.work[id]--; o.work[id] > 0 {
			return `"result":` + taskOf(id, "working")
		}
		return `"result":` + taskOf(id, "completed")
	case "tasks/result":
		o.tell(id)
		return `"result":{"content":[{"type":"text","text":"` + id + `"}]}`
	}
	if method == "tasks/cancel" {
		o.ended++
	}
	return `"error":{"code":-32601,"message":"no such method"}`
}

func taskOf(id, status string) string {
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"createdAt":"x","lastUpdatedAt":"x","ttl":null,"pollInterval":1}`, id, status)
}

func (o *office) tell(id string) {
	select {
	case o.asked <- id:
	default:
	}
}

// TestTasksOfAServerOutliveKills runs a world whose effects are tasks of an MCP server, and
// kills it again and again while the server is at work or is asked for the result. The
// server has seen one call of each, every cell is told one end, nothing was in doubt, and
// the journal verifies.
//
// Life n of SEED=s is the first of SEED=s+n; KILLS says how many kills there are to be in
// both tests: one in twenty is here, and a life has eight at the most.
func TestTasksOfAServerOutliveKills(t *testing.T) {
	const few, share, most, tasks = 5, 20, 8, 4
	r := &run{program: program(t), struck: fault.NewStruck(fault.Kills), verbs: make(map[string]int), usual: make(map[string]time.Duration)}
	kills := max(few, environ(t, "KILLS", fewKills)/share)
	for seed := uint64(environ(t, "SEED", 1)); r.kills < kills; seed++ {
		l := &taskLife{life: &life{t: t, rng: rand.New(rand.NewPCG(seed, 10)), run: r, base: home(t)}, office: newOffice(t, seed)}
		l.begin(tasks)
		for n := 0; n < min(most, kills); n++ {
			if !l.killed(tasks) {
				break
			}
		}
		l.judge(tasks)
		if t.Failed() {
			t.Fatalf("%s\nto see such a life again: make kill KILLS=1 SEED=%d", strings.Join(l.story, "\n"), seed)
		}
	}
	t.Logf("%d kills in %d commands", r.kills, r.commands)
}

type taskLife struct {
	*life
	office *office
	begun  bool // the journal has all tasks
}

// begin makes the world, with an order for each task.
func (l *taskLife) begin(tasks int) {
	l.dir = filepath.Join(l.base, "world")
	require.NoError(l.t, os.MkdirAll(l.dir, 0o700))
	for name, text := range map[string]string{"world.yaml": fmt.Sprintf(taskRules, l.office.server.URL), "worker.star": worker} {
		require.NoError(l.t, os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600))
	}
	l.must("init", l.dir)
	for n := range tasks {
		l.must("send", "go", fmt.Sprintf(`{"n": "%d"}`, n))
	}
}

// killed runs the world, and kills it some time after some questions have come: after one
// about each task where the journal may not have them all. It reports whether the world was
// killed before it ended.
func (l *taskLife) killed(tasks int) bool {
	l.t.Helper()
	cmd := l.command("run")
	require.NoError(l.t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // its state says how it ended
	}()
	about := make(map[string]bool)
	for n := 1 + l.rng.IntN(2*tasks); n > 0 || !l.begun && len(about) < tasks; n-- {
		select {
		case id := <-l.office.asked:
			about[id] = true
		case <-done:
			require.Zero(l.t, cmd.ProcessState.ExitCode())
			return false
		}
	}
	l.begun = true
	select {
	case <-done:
	case <-time.After(time.Duration(l.rng.Int64N(int64(30 * time.Millisecond)))):
		_ = cmd.Process.Kill()
	}
	<-done
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		require.Zero(l.t, code)
		return false
	}
	l.run.killed("run with tasks")
	l.tell([]string{"run"}, "killed")
	return true
}

// judge lets everything end, and holds the journal against what the server has seen.
func (l *taskLife) judge(tasks int) {
	l.t.Helper()
	l.must("run")
	l.must("replay")
	l.verified(l.dir)
	require.Zero(l.t, l.office.ended)
	require.Len(l.t, l.office.calls, tasks)
	for n, times := range l.office.calls {
		require.Equal(l.t, 1, times, "calls of %s", n)
	}
	w, err := local.OpenReadOnly(l.dir, local.Options{})
	require.NoError(l.t, err)
	defer func() { require.NoError(l.t, w.Close()) }()
	ends := make(map[receipt.Key]int)
	for r, err := range w.Scan(0) {
		require.NoError(l.t, err)
		require.NotEqual(l.t, journal.KindInDoubt, r.Record.Kind, "record #%d", r.ID)
		body, err := r.Record.LoadBody(w)
		require.NoError(l.t, err)
		if b, ok := body.(*journal.Finished); ok {
			rec, err := receipt.Decode(b.Receipt)
			require.NoError(l.t, err)
			if rec.Status == receipt.StatusOK {
				ends[rec.Key]++
			}
		}
	}
	w.View(func(m *world.Moment) {
		for _, e := range m.Intents() {
			require.Equal(l.t, receipt.StateCommitted, e.State)
			require.Equal(l.t, 1, ends[e.Intent.Key], "final receipts of %s", e.Intent.Step)
		}
		require.Len(l.t, m.Cells(), tasks)
		for _, c := range m.Cells() {
			text, err := canon.ToJSON(c.State)
			require.NoError(l.t, err)
			require.JSONEq(l.t, `{"told": ["ok"]}`, string(text), c.Cell)
		}
	})
}
