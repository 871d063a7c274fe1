package world_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// plain is a world whose cells keep what comes, and do nothing besides.
const plain = `
world: w
version: 1
reducers:
  r: {engine: starlark, source: r.star}
  still: {engine: starlark, source: still.star}
events:
  go:
  more:
routing:
  - {event: go, reducer: r, key: event.data.to}
  - {event: more, reducer: still, key: '"one"'}
`

// raised are limits that bound next to nothing.
const raised = "limits: {gas: 10000000000, memory: 17179869184, value: 64MiB, state: 64MiB, events: 1048576}"

const keeps = "def reduce(ctx, state, event):\n    return event.data\n"

// rulesOf reads rules: a world.yaml and the program of its reducer r.
func rulesOf(t *testing.T, yaml, program string, files ...string) (*manifest.Manifest, map[manifest.Hash][]byte) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"world.yaml": yaml, "r.star": program, "still.star": keeps} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for i := 0; i < len(files); i += 2 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600))
	}
	loaded, err := source.Load(filepath.Join(dir, "world.yaml"))
	require.NoError(t, err)
	return loaded.Manifest, loaded.Contents
}

// unlived is a journal with the beginning of a tick that nobody has lived through: the
// rules of whoever replays it are run, whatever they come to.
type unlived struct{ *worldtest.Journal }

func (j unlived) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for s, err := range j.Journal.Scan(after) {
			if !yield(s, err) {
				return
			}
		}
		head := j.Head()
		chain := canon.ResumeChain(head.Root)
		for i, body := range []struct {
			kind journal.Kind
			body journal.Body
		}{
			{journal.KindAdvanced, &journal.Advanced{Version: journal.V(journal.BodyVersion), To: 1}},
			{journal.KindStepped, &journal.Stepped{Version: journal.V(journal.BodyVersion), Cell: "r/a", N: 1}},
		} {
			id := head.ID + journal.Seq(i) + 1
			data := canon.AppendEnvelope(nil, canon.Envelope{
				ID: uint64(id), Time: 1, Kind: string(body.kind), Payload: journal.Append(nil, body.body),
			})
			root := chain.Add(uint64(id), string(body.kind), data)
			rec, err := journal.DecodeRecord(data)
			if !yield(journal.Scanned{ID: id, Record: rec, Bytes: data, Link: [journal.LinkBytes]byte(root[:journal.LinkBytes])}, err) {
				return
			}
		}
	}
}

// expensive are rules that would take all of a machine.
func expensive() map[string]struct{ bound, yaml, program string } {
	rich := strings.Replace(plain, "source: r.star}", "source: r.star, "+raised+"}", 1)
	type rules = struct{ bound, yaml, program string }
	return map[string]rules{
		"a loop without end": {"gas", rich, `
def reduce(ctx, state, event):
    while True:
        pass
`},
		"texts that nobody keeps": {"memory", rich, `
def reduce(ctx, state, event):
    for _ in range(1000000000):
        x = "a" * 10000000
`},
		"one list of millions": {"memory", rich, `
def reduce(ctx, state, event):
    x = []
    while True:
        x += [[1, 2, 3, 4]]
`},
	}
}

// Rules of somebody else have the gas and the memory that their reader gives them,
// whatever they give themselves, also where others were applied before.
func TestReplayOfAStrangersRulesIsBounded(t *testing.T) {
	for name, x := range expensive() {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, applied=%t", name, applied), func(t *testing.T) { replayIsBounded(t, x.bound, x.yaml, x.program, applied) })
		}
	}
}

func replayIsBounded(t *testing.T, bounded, yaml, program string, applied bool) {
	m, contents := rulesOf(t, yaml, program)
	w := worldtest.New(t, *m, contents, worldtest.Options{})
	if applied {
		m.Version++
		require.NoError(t, worldtest.Adopt(t.Context(), w.World, m, contents))
	}
	w.Submit("go", map[string]any{"to": "a"})
	at := w.Journal.Head().ID + 1

	bounds := world.Bounds{Gas: 2_000_000, Memory: 2 << 30}
	if bounded == "memory" {
		bounds = world.Bounds{Gas: math.MaxUint64, Memory: 64 << 20}
	}
	_, err := world.Replay(t.Context(), unlived{w.Journal}, world.ReplayConfig{Bounds: bounds})
	var bound *world.BoundError
	require.ErrorAs(t, err, &bound)
	require.Equal(t, bounded, bound.Name)
	require.Equal(t, at, bound.At)
	require.Equal(t, "a step of cell r/a", bound.What)

	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errWaited) // may be late: it has no end
	defer cancel()
	_, err = world.Replay(ctx, unlived{w.Journal}, world.ReplayConfig{})
	require.ErrorIs(t, err, errWaited, "within a step")
}

var errWaited = fmt.Errorf("nobody waits for it any more")

// What the world holds is bounded as a whole, too: no step of these takes much.
func TestWhatAStrangersRulesHoldIsBounded(t *testing.T) {
	for name, x := range map[string]struct{ yaml, program string }{
		"states": {plain, `
def reduce(ctx, state, event):
    return [str(i) for i in range(20000)]
`},
		"events that wait": {plain, `
def reduce(ctx, state, event):
    for i in range(100):
        ctx.emit("more", "x" * 1000)
`},
		"timers": {plain, `
def reduce(ctx, state, event):
    for i in range(50 if event.name == "go" else 0):
        ctx.timer(1000, "t", "x" * 3000)
`},
	} {
		t.Run(name, func(t *testing.T) {
			m, contents := rulesOf(t, x.yaml, x.program)
			w := worldtest.New(t, *m, contents, worldtest.Options{})
			for i := range 40 {
				w.Submit("go", map[string]any{"to": fmt.Sprint(i)})
			}
			w.Run()
			_, err := world.Replay(t.Context(), w.Journal, world.ReplayConfig{Bounds: world.Bounds{Gas: 1_000_000, Memory: 6 << 20}})
			var bound *world.BoundError
			require.ErrorAs(t, err, &bound)
			require.Equal(t, "memory", bound.Name)
			require.Greater(t, bound.Needs, bound.Bound)
			done, err := world.Replay(t.Context(), w.Journal, world.ReplayConfig{Bounds: world.DefaultBounds()})
			require.NoError(t, err)
			require.Equal(t, w.Status().Head, done.Head)
		})
	}
}

// Images of what was are held for rollbacks, and the code of rules that were replaced is not.
func TestImagesAreBoundedAndOldCodeIsNot(t *testing.T) {
	m, contents := rulesOf(t, plain, "def reduce(ctx, state, event):\n    return [str(i) for i in range(5000)]\n")
	w := worldtest.New(t, *m, contents, worldtest.Options{})
	for i := range 20 {
		for n := range 10 {
			w.Submit("go", map[string]any{"to": fmt.Sprint(n)})
		}
		w.Run()
		_, err := w.Snapshot(t.Context(), fmt.Sprint("s", i), "", "a person")
		require.NoError(t, err)
	}
	_, err := world.Replay(t.Context(), w.Journal, world.ReplayConfig{Bounds: world.Bounds{Gas: 1_000_000, Memory: 4 << 20}})
	var bound *world.BoundError
	require.ErrorAs(t, err, &bound)
	_, err = world.Replay(t.Context(), w.Journal, world.ReplayConfig{Bounds: world.Bounds{Gas: 1_000_000, Memory: 64 << 20}})
	require.NoError(t, err)

	m, contents = rulesOf(t, plain, keeps+"#"+strings.Repeat("x", 100<<10)+"\n")
	w = worldtest.New(t, *m, contents, worldtest.Options{})
	for range 6 {
		m.Version++
		require.NoError(t, worldtest.Adopt(t.Context(), w.World, m, contents))
	}
	_, err = world.Replay(t.Context(), w.Journal, world.ReplayConfig{Bounds: world.Bounds{Gas: 1_000_000, Memory: 8 << 20}})
	require.NoError(t, err)
}

// Candidates are a stranger's as long as nobody has put them in force.
func TestCandidatesAreBounded(t *testing.T) {
	nested := any("end")
	for range 40 {
		nested = map[string]any{"a": nested}
	}
	doubled := `{"$defs": {"x": {"allOf": [{"$ref": "#/$defs/y"}, {"$ref": "#/$defs/y"}]}, "y": {"properties": {"a": {"$ref": "#/$defs/x"}}}}, "$ref": "#/$defs/x"}`
	type candidate struct{ bound, yaml, program string }
	candidates := map[string]candidate{
		"a schema that is evaluated 2^40 times": {"gas", strings.Replace(plain, "  go:\n", "  go: {schema: s.json}\n", 1), keeps},
		"a step that goes from one tick to the next for ever": {"", strings.Replace(plain, `key: '"one"'`, `key: '"a"'`, 1) + "  - {event: more, reducer: r, key: '\"a\"'}\n", `
def reduce(ctx, state, event):
    ctx.emit("more", 1)
`},
		"code of much memory, many times": {"memory", func() string {
			all := strings.Builder{}
			for i := range 100 {
				fmt.Fprintf(&all, "  r%d: {engine: starlark, source: r.star}\n", i)
			}
			return strings.Replace(plain, "reducers:\n", "reducers:\n"+all.String(), 1)
		}(), "x = [str(i) for i in range(10000)]\n" + keeps},
		"routes of many events to one cell": {"memory", func() string {
			events, routes := new(strings.Builder), new(strings.Builder)
			for i := range 700 {
				fmt.Fprintf(events, "  e%d:\n", i)
				fmt.Fprintf(routes, "  - {event: '*', reducer: r, key: '\"k%d\"'}\n", i)
			}
			return strings.Replace(plain, "  more:\n", "  more:\n"+events.String(), 1) + routes.String()
		}(), keeps},
		"a migration to large states": {"memory", plain, "def migrate(state):\n    return [str(i) for i in range(20000)]\n" + keeps},
		"a migration without end":     {"gas", strings.Replace(plain, "source: r.star}", "source: r.star, "+raised+"}", 1), "def migrate(state):\n    while True:\n        pass\n" + keeps},
	}
	for name, x := range expensive() {
		candidates[name] = candidate{x.bound, x.yaml, x.program}
	}
	m, contents := rulesOf(t, plain, keeps)
	w := worldtest.New(t, *m, contents, worldtest.Options{})
	for i := range 100 {
		w.Submit("go", map[string]any{"to": fmt.Sprint(i), "a": nested})
	}
	w.Run()
	_, err := w.Snapshot(t.Context(), "before", "", "a person")
	require.NoError(t, err)
	before := w.Status()
	for name, x := range candidates {
		t.Run(name, func(t *testing.T) {
			next, contents := rulesOf(t, x.yaml, x.program, "s.json", doubled)
			cfg := world.ShadowConfig{Bounds: world.Bounds{Gas: 1_000_000, Memory: 16 << 20}}
			switch x.bound {
			case "gas":
				cfg.Bounds.Memory = 2 << 30
			case "memory":
				cfg.Bounds.Gas = 10_000_000
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errWaited)
			if x.bound == "" {
				ctx, cancel = context.WithTimeoutCause(t.Context(), time.Second, errWaited) // may be late: it has no end
			}
			defer cancel()
			if strings.HasPrefix(name, "a migration") {
				cfg.From = "before"
			}
			_, err := w.Rehearse(ctx, next, contents, cfg)
			if x.bound == "" {
				require.ErrorIs(t, err, errWaited)
			} else {
				var bound *world.BoundError
				require.ErrorAs(t, err, &bound)
				require.Equal(t, x.bound, bound.Name, "%v", err)
			}
			require.Equal(t, before, w.Status())
		})
	}
}
