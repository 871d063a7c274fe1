package memory_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/memory"
)

// doubtful answers cell a, and cannot tell what came of what others ask.
type doubtful struct{}

func (doubtful) Deterministic() bool { return true }

func (doubtful) Perform(_ context.Context, call host.Call) (host.Result, error) {
	if call.Permit.Cell != "asker/a" {
		return host.Result{}, &host.DoubtError{Reason: "nobody can tell"}
	}
	payload, err := canon.Marshal(1)
	return host.Result{Status: receipt.StatusOK, Payload: payload}, err
}

// ordered is a host that answers when all that is under way has an answer, the first or the
// last of them first.
type ordered struct {
	world.Host

	lastFirst bool
	underWay  int
	came      []receipt.Answer
}

func (h *ordered) Start(tasks []receipt.Task) {
	for _, t := range tasks {
		if t.Work == receipt.Perform {
			h.underWay++
		}
	}
	h.Host.Start(tasks)
}

func (h *ordered) Answers() ([]receipt.Answer, error) {
	answers, err := h.Host.Answers()
	h.came = append(h.came, answers...)
	if err != nil || len(h.came) < h.underWay {
		return nil, err
	}
	out := h.came
	h.came, h.underWay = nil, 0
	slices.SortFunc(out, func(a, b receipt.Answer) int {
		if h.lastFirst {
			a, b = b, a
		}
		return map[bool]int{true: 1, false: -1}[a.Lost != ""] - map[bool]int{true: 1, false: -1}[b.Lost != ""]
	})
	return out, nil
}

const askers = `world: askers
version: 1
reducers:
  asker: {engine: starlark, source: asker.star, grants: [all]}
events:
  go:
effects:
  ask: {adapter: stub, config: {script: never.star}, on_in_doubt: fail}
caps:
  all: {type: any, params: {kinds: [ask]}}
policies:
  - {name: all, when: "true", decide: allow}
routing:
  - {event: go, reducer: asker, key: event.data.to}
`

const asker = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return event.data["status"]
    ctx.effect("ask", {})
    return "asked"
`

// A deterministic attempt that is in doubt is told in its turn, as one that has a receipt:
// whichever answer comes first, the tick waits for each of them, and for none for ever.
func TestDoubtAboutADeterministicAttemptHasItsTurn(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(askers), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "asker.star"), []byte(asker), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "never.star"), []byte("def answer(kind, params, n): fail('doubtful answers')\n"), 0o600))
	loaded := load(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // so that waiting for ever fails
	defer cancel()
	lived := func(lastFirst bool) (kinds []journal.Kind, hash canon.Hash) {
		var j memory.Journal
		w := makeOf(t, loaded, memory.Options{Journal: &j, Host: func(cfg host.Config) (world.Host, error) {
			cfg.Instead = map[string]host.Adapter{"ask": doubtful{}}
			h, err := host.New(cfg)
			return &ordered{Host: h, lastFirst: lastFirst}, err
		}})
		for _, cell := range []string{"c", "a", "b"} {
			data, err := canon.Marshal(map[string]any{"to": cell})
			require.NoError(t, err)
			_, err = w.Submit(ctx, world.Submission{Name: "go", Data: data})
			require.NoError(t, err)
		}
		require.NoError(t, w.Run(ctx))
		for _, s := range j.Records() {
			rec, err := journal.DecodeRecord(s.Bytes)
			require.NoError(t, err)
			kinds = append(kinds, rec.Kind)
		}
		require.Zero(t, w.Status().Intents[receipt.StateInFlight])
		hash, err := w.ExecutionHash()
		require.NoError(t, err)
		return kinds, hash
	}
	kinds, hash := lived(false)
	other, same := lived(true)
	require.Equal(t, kinds, other)
	require.Equal(t, hash, same)
	require.Contains(t, kinds, journal.KindInDoubt)
}
