package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/serve/worker"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// many is a number that the environment may raise.
func many(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// TestWhoRepeatsUnderAKeyOverHandoversSubmitsOnce: whatever a request is answered while its world
// moves, what is asked again under the same key is there once.
func TestWhoRepeatsUnderAKeyOverHandoversSubmitsOnce(t *testing.T) {
	url := create(t, 1)
	nodes := []*running{run(t, url, "one", time.Hour)}
	nodes[0].owns(1)
	nodes = append(nodes, run(t, url, "two", time.Hour))
	submit := func(at *running, key string) (int, uint64) {
		status, answer := at.ask("POST", "/api/worlds/w0/events", counting, "Idempotency-Key", key)
		id, _ := answer["id"].(float64)
		return status, uint64(id)
	}
	var stop atomic.Bool
	var keys atomic.Int64 // that were answered twice
	var all sync.WaitGroup
	ids := make([]map[string]uint64, 3)
	for i := range ids {
		ids[i] = map[string]uint64{}
		all.Go(func() {
			for n := 0; !stop.Load() && !t.Failed(); n++ {
				key := fmt.Sprint(i, "-", n)
				for said := 0; said < 2 && !t.Failed(); { // each is answered twice
					status, id := submit(nodes[(n+said)%2], key)
					switch {
					case status == http.StatusServiceUnavailable:
					case status != http.StatusCreated || ids[i][key] != 0 && ids[i][key] != id:
						t.Errorf("%s: %d, #%d and #%d", key, status, ids[i][key], id)
					default:
						ids[i][key] = id
						said++
					}
				}
				keys.Add(1)
			}
		})
	}
	for i := range many(t, "HANDOVERS", 3) {
		nodes[(i+1)%2].take(nodes[i%2], "w0")
	}
	require.Eventually(t, func() bool { return keys.Load() >= 10 }, 5*time.Minute, 10*time.Millisecond)
	stop.Store(true)
	all.Wait()
	want := 1 // that create submitted
	for i := range ids {
		want += len(ids[i])
	}
	status, cell := nodes[0].ask("GET", "/api/worlds/w0/cell?cell=counter/tea", "")
	require.Equal(t, http.StatusOK, status)
	require.Eventually(t, func() bool {
		_, cell = nodes[0].ask("GET", "/api/worlds/w0/cell?cell=counter/tea", "")
		return fmt.Sprint(cell["n"]) == fmt.Sprint(want)
	}, time.Minute, 10*time.Millisecond, "%v of %d", cell, want)
}

// take has a node take a world over from another one.
func (r *running) take(from *running, id string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		o, err := r.store.Owner(r.t.Context(), id)
		if err == nil && o.Here && r.service.Serves(id) {
			return true
		}
		_, err = r.store.Want(r.t.Context(), from.store.Name())
		require.NoError(r.t, err)
		return false
	}, time.Minute, 10*time.Millisecond)
}

const caller = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return (state or 0) + 1
    ctx.effect("tool.a", event.data["n"])
    return state or 0
`

// outside is what effects of worlds change: it counts, and answers when it is let.
type outside struct {
	mu    sync.Mutex
	calls map[string]int // by external key
	held  int
	let   chan struct{}
}

func (o *outside) adapters() map[string]host.Factory {
	return map[string]host.Factory{"outside": func(host.Setup) (host.Adapter, error) { return o, nil }}
}

// Perform implements host.Adapter.
func (o *outside) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	o.mu.Lock()
	o.calls[call.External]++
	o.held++
	let := o.let
	o.mu.Unlock()
	select {
	case <-let:
	case <-ctx.Done():
		return host.Result{}, ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held--
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.AppendText(nil, "done"))}, nil
}

func (o *outside) holds(n int) func() bool {
	return func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.held == n
	}
}

// answer lets all that is held be answered.
func (o *outside) answer() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.let)
	o.let = make(chan struct{})
}

// twice is how many calls there were more than one for their keys.
func (o *outside) twice() (n, all int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, calls := range o.calls {
		n += calls - 1
	}
	return n, len(o.calls)
}

// asking makes worlds whose effects workers perform.
func asking(t *testing.T, direct string, n int) {
	t.Helper()
	require.NoError(t, pglog.Init(t.Context(), direct))
	s, err := shared.Open(t.Context(), direct, shared.Options{Copies: t.TempDir()})
	require.NoError(t, err)
	defer s.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{local.ManifestFile: worldtest.Caller("calling", "tool.a: {adapter: outside, timeout: 20m}"), "caller.star": caller} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	opts := options()
	opts.Adapters = new(outside).adapters()
	loaded, err := local.Load(filepath.Join(dir, local.ManifestFile), opts)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, s.Create(t.Context(), fmt.Sprintf("w%d", i), loaded, local.CreateOptions{}, opts))
	}
}

func forWorkers(v *api.Service) {
	v.Options.Remote, v.Options.Adapters = true, new(outside).adapters()
}

// works has a worker work for all worlds through a node.
func (o *outside) works(t *testing.T, at *running, worlds int) {
	t.Helper()
	ids := make([]string, worlds)
	for i := range ids {
		ids[i] = fmt.Sprintf("w%d", i)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	cfg := worker.Config{
		Server: at.url, Token: at.secret, Dir: t.TempDir(), Worlds: ids, Adapters: o.adapters(), Workers: 2 * worlds, Grace: time.Second,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Trust: trust.All(),
	}
	go func() { done <- worker.Run(ctx, cfg) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

// came waits until so many effects of a world are committed, and none is in doubt.
func (r *running) came(world string, n int) {
	r.t.Helper()
	var intents map[string]any
	require.Eventually(r.t, func() bool {
		_, status := r.ask("GET", "/api/worlds/"+world, "")
		intents, _ = status["intents"].(map[string]any)
		return fmt.Sprint(intents["committed"]) == strconv.Itoa(n)
	}, 2*time.Minute, 20*time.Millisecond, "%s: %v", world, intents)
	require.EqualValues(r.t, 0, intents["in_doubt"], world)
}

// epochs is how often the worlds of the store have changed hands.
func (r *running) epochs() (n int) {
	r.t.Helper()
	for w, err := range r.store.List(r.t.Context()) {
		require.NoError(r.t, err)
		n += int(w.Epoch)
	}
	return n
}

// TestHandoversWhileWorkersHoldAttempts: what a worker elsewhere has acquired it goes on with and hands in,
// whoever owns the world then, and through whichever node.
func TestHandoversWhileWorkersHoldAttempts(t *testing.T) {
	handovers := many(t, "HANDOVERS", 4)
	worlds := min(handovers, 20)
	direct := pgtest.URL(t)
	asking(t, direct, worlds)
	nodes := []*running{run(t, direct, "one", time.Hour, forWorkers), run(t, direct, "two", time.Hour, forWorkers)}
	o := &outside{calls: map[string]int{}, let: make(chan struct{})}
	o.works(t, nodes[0], worlds)
	o.works(t, nodes[1], worlds)
	moved := 0
	for round := 1; moved < handovers; round++ {
		for i := range worlds {
			require.Eventually(t, func() bool {
				status, _ := nodes[i%2].ask("POST", fmt.Sprintf("/api/worlds/w%d/events", i), fmt.Sprintf(`{"event":"go","data":{"to":"a","n":%d}}`, round),
					"Idempotency-Key", strconv.Itoa(round))
				return status == http.StatusCreated
			}, 2*time.Minute, 10*time.Millisecond)
		}
		require.Eventually(t, o.holds(worlds), 2*time.Minute, 10*time.Millisecond)
		before := nodes[0].epochs()
		require.Eventually(t, func() bool {
			for i, n := range nodes {
				if _, err := n.store.Want(t.Context(), nodes[1-i].store.Name()); err != nil {
					return false
				}
			}
			return nodes[0].epochs() >= before+worlds
		}, 2*time.Minute, 200*time.Millisecond)
		moved += nodes[0].epochs() - before
		o.answer()
		for i := range worlds {
			nodes[(i+1)%2].came(fmt.Sprintf("w%d", i), round)
		}
	}
	twice, all := o.twice()
	require.Zero(t, twice)
	t.Logf("%d handovers, %d attempts held over them: 0 in doubt, 0 twice", moved, all)
}

// TestAWorkerHandsInThroughAnotherNodeWhatItHeldWhenTheOwnerWasLost: the owner, cut off from the
// store, is one that is there no more.
func TestAWorkerHandsInThroughAnotherNodeWhatItHeldWhenTheOwnerWasLost(t *testing.T) {
	server := pgtest.Start(t)
	direct := server.URL(t)
	asking(t, direct, 1)
	var cut atomic.Bool
	proxy := server.Proxy(t, func([]byte) pgtest.Fault {
		if cut.Load() {
			return pgtest.Lost
		}
		return pgtest.None
	})
	lost := run(t, proxy.URL(direct), "lost", time.Hour, forWorkers)
	status, answer := lost.ask("POST", "/api/worlds/w0/events", `{"event":"go","data":{"to":"a","n":1}}`)
	require.Equal(t, http.StatusCreated, status, answer)
	other := run(t, direct, "other", time.Hour, forWorkers)
	o := &outside{calls: map[string]int{}, let: make(chan struct{})}
	o.works(t, other, 1)
	require.Eventually(t, o.holds(1), 2*time.Minute, 10*time.Millisecond)
	require.Empty(t, other.worlds())
	cut.Store(true)
	other.owns(1) // when the lease is over
	o.answer()
	other.came("w0", 1)
	twice, all := o.twice()
	require.Zero(t, twice)
	require.Equal(t, 1, all)
	var expired int
	for r, err := range other.service.Worlds()[0].Local.Scan(0) {
		require.NoError(t, err)
		if r.Record.Kind == journal.KindExpired {
			expired++
		}
	}
	require.Zero(t, expired, "it was adopted")
	cut.Store(false)
	lost.owns(0)
}
