package worldctl

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	faults "github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

const sinkManifest = `world: sink
version: 1
reducers:
  cell: {engine: starlark, source: cell.star, grants: [sink]}
events:
  cell.begun:
effects:
  sink.put:
    adapter: http
    config: {url: "http://127.0.0.1:%[1]s/put", method: POST}
    retry: {attempts: 100, backoff: 2ms}
    %[2]s
caps:
  sink:
    type: http
    params: {schemes: [http], hosts: ["127.0.0.1"], ports: [%[1]s], methods: [POST], paths: [/put]}
    %[3]s
policies:
  - {name: puts, when: 'intent.kind == "sink.put"', decide: allow}
routing:
  - {event: cell.begun, reducer: cell, key: event.data.to}
limits: {in_flight: %[4]d}
`

// sinkReducer asks for one effect after the other, each when the one before is
// answered.
const sinkReducer = `def reduce(ctx, state, event):
    if event.name == "receipt":
        status = event.data["status"]
        state[status] = state.get(status, 0) + 1
    else:
        state = {"next": 0, "effects": event.data["effects"]}
    if state["next"] < state["effects"]:
        ctx.effect("sink.put", {"json": {"cell": ctx.key, "n": state["next"]}})
        state["next"] += 1
    return state
`

// sinkWorld is a world whose cells put numbers into a sink.
type sinkWorld struct {
	t              *testing.T
	dir            string
	sink           *sink
	cells, effects int
}

// newSinkWorld makes the world. effect and capability are added to what the
// manifest says of them.
func newSinkWorld(t *testing.T, s *sink, cells, effects, inFlight int, effect, capability string) *sinkWorld {
	t.Helper()
	w := &sinkWorld{t, filepath.Join(t.TempDir(), "w"), s, cells, effects}
	makeWorld(t, w.dir, map[string]string{
		"world.yaml": fmt.Sprintf(sinkManifest, s.port(), effect, capability, inFlight), "cell.star": sinkReducer,
	})
	w.begin(0)
	return w
}

// begin lets cells begin, from a number on.
func (w *sinkWorld) begin(from int) {
	w.t.Helper()
	var begun strings.Builder
	for i := range w.cells {
		fmt.Fprintf(&begun, `{"event": "cell.begun", "data": {"to": "%d", "effects": %d}}`+"\n", from+i, w.effects)
	}
	worldctl(w.t, strings.NewReader(begun.String()), "-w", w.dir, "send", "-")
}

// makeWorld makes a world of a few files in a new directory.
func makeWorld(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o700))
	}
	worldctl(t, nil, "init", dir)
}

// starts has worldctl run and returns where it says how it has ended.
func (w *sinkWorld) starts(args ...string) (*exec.Cmd, <-chan error) {
	w.t.Helper()
	cmd := exec.Command("worldctl", append([]string{"-w", w.dir, "run", "-q"}, args...)...)
	cmd.Stderr = w.t.Output()
	require.NoError(w.t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return cmd, done
}

// intentSeen is what a person sees of an intent.
type intentSeen struct {
	Key         string `json:"key"`
	State       string `json:"state"`
	Attempt     uint64 `json:"attempt"`
	ExternalKey string `json:"external_key"`
	Params      struct {
		JSON put `json:"json"`
	} `json:"params"`
}

func (w *sinkWorld) intents(args ...string) []intentSeen {
	w.t.Helper()
	return jsonLines[intentSeen](w.t, worldctl(w.t, nil, append([]string{"-w", w.dir, "intent", "list", "-o", "jsonl"}, args...)...))
}

// decide does what a person does about effects in doubt: looks into the sink's
// log, and says what is there.
func (w *sinkWorld) decide() {
	w.t.Helper()
	w.sink.settle()
	happened := make(map[string]bool)
	for _, p := range w.sink.puts() {
		happened[unattempted(p.Key)] = true
	}
	for _, in := range w.intents("--state", "in_doubt") {
		verdict := []string{"--not-executed"}
		if happened[in.ExternalKey] {
			verdict = []string{"--executed", "--payload", fmt.Sprintf(`{"status": 200, "json": {"n": %d}}`, in.Params.JSON.N)}
		}
		worldctl(w.t, nil, append([]string{"-w", w.dir, "intent", "resolve", in.Key, "--reason", "the sink's log"}, verdict...)...)
	}
}

// unattempted returns an external key without the attempt that it may end with.
func unattempted(key string) string {
	parts := strings.SplitN(key, ":", 4)
	return strings.Join(parts[:min(len(parts), 3)], ":")
}

// finish runs the world and decides what is in doubt until nothing is undecided.
func (w *sinkWorld) finish() {
	w.t.Helper()
	for {
		code, _, said := outcome(w.t, "-w", w.dir, "run")
		doubts := 0
		for _, in := range w.intents() {
			require.Contains(w.t, []string{"committed", "in_doubt"}, in.State, "%+v", in)
			if in.State == "in_doubt" {
				doubts++
			}
		}
		if doubts == 0 {
			require.Equal(w.t, exitOK, code, said)
			return
		}
		require.Equal(w.t, exitUndecided, code, said)
		w.decide()
	}
}

// exact holds the sink's log and the cells to what they had to do. repeats says
// that the sink may have been asked twice under one key.
func (w *sinkWorld) exact(repeats bool) {
	w.t.Helper()
	keys, puts := make(map[string]put), make(map[put]string)
	for _, p := range w.sink.puts() {
		key := unattempted(p.Key)
		p.Key = ""
		if before, known := keys[key]; known {
			require.True(w.t, repeats, "the sink has seen %s twice: %+v and %+v", key, before, p)
			require.Equal(w.t, before, p, "one key means one thing")
		}
		keys[key] = p
		if before, known := puts[p]; known {
			require.Equal(w.t, before, key, "one thing has one key: %+v", p)
		}
		puts[p] = key
	}
	require.Len(w.t, puts, w.cells*w.effects)
	cells := states[map[string]int](w.t, w.dir)
	require.Len(w.t, cells, w.cells)
	for cell, state := range cells {
		require.Equal(w.t, map[string]int{"next": w.effects, "effects": w.effects, "ok": w.effects}, state, cell)
	}
	verified(w.t, w.dir)
	worldctl(w.t, nil, "-w", w.dir, "replay")
}

// states returns what the cells of a world hold.
func states[T any](t *testing.T, dir string) map[string]T {
	t.Helper()
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	out := make(map[string]T)
	lw.View(func(w *world.Moment) {
		for _, c := range w.Cells() {
			text, err := canon.ToJSON(c.State)
			require.NoError(t, err)
			var state T
			require.NoError(t, json.Unmarshal(text, &state))
			out[c.Cell.String()] = state
		}
	})
	require.NoError(t, lw.Close())
	return out
}

// seeded returns the randomness of a test; the environment's SEED repeats it.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		_, err := fmt.Sscan(text, &seed)
		require.NoError(t, err)
	}
	t.Logf("SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// sinkSize is how many cells, effects of each, and kills a test has.
func sinkSize() (cells, effects, kills int) {
	few := int(faults.Stride(3))
	return 50, 20 / few, 20 / few
}

// killed kills the world at random moments and decides what is in doubt then.
func (w *sinkWorld) killed(random *rand.Rand, kills int) {
	w.t.Helper()
	every := w.cells * w.effects / kills
	for i := range kills {
		cmd, done := w.starts()
		ended, _ := w.sink.await(random.IntN(every), done)
		if !ended {
			time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond) //nolint:forbidigo // a random moment, not an event
			require.NoError(w.t, cmd.Process.Kill())
			<-done //nolint:errcheck // however it ended
		}
		if random.IntN(2) == 0 {
			w.decide()
		}
		if i%5 == 0 {
			verified(w.t, w.dir)
		}
	}
	w.finish()
}

func TestSinkIsNeverAskedTwice(t *testing.T) {
	t.Parallel()
	cells, effects, kills := sinkSize()
	w := newSinkWorld(t, newSink(t), cells, effects, 8, "external_key: per_attempt", "")
	w.killed(seeded(t), kills)
	w.exact(false)
}

func TestSinkIsAskedAgainUnderOneKey(t *testing.T) {
	cells, effects, kills := sinkSize()
	w := newSinkWorld(t, newSink(t), cells, effects, 8, "idempotent: true\n    on_in_doubt: retry", "")
	w.killed(seeded(t), kills)
	w.exact(true)
}

func TestKilledSinkIsNeverAskedTwice(t *testing.T) {
	t.Parallel()
	cells, effects, kills := sinkSize()
	random := seeded(t)
	w := newSinkWorld(t, newSink(t), cells, effects, 8, "external_key: per_attempt", "")
	_, done := w.starts()
	for range kills {
		if ended, err := w.sink.await(random.IntN(cells*effects/kills), done); ended {
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, exitUndecided, exit.ExitCode(), "every cell waits for a decision")
			w.decide()
			_, done = w.starts()
		}
		w.sink.kill()
		w.sink.start()
	}
	<-done //nolint:errcheck // however it ended
	w.finish()
	w.exact(false)
}

func TestLateAnswersAreNotAskedForTwice(t *testing.T) {
	t.Parallel()
	cells, effects, _ := sinkSize()
	s := newSink(t, "-slow", "25", "-delay", "1500ms")
	w := newSinkWorld(t, s, cells, effects, 64, "external_key: per_attempt\n    timeout: 500ms", "")
	code, _, said := outcome(t, "-w", w.dir, "run")
	require.Equal(t, exitUndecided, code, said)
	w.finish()
	w.exact(false)
}
