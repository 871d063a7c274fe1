package local_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// line is a live adapter that does what the params say.
type line struct{ begun chan<- string }

func (l line) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	what := call.Permit.Tag
	l.begun <- what
	if what == "silent" {
		<-ctx.Done()
		return host.Result{}, ctx.Err()
	}
	r := host.Result{
		Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Unsent: true,
		ExternalRef: "ref-7", StateChange: &receipt.StateChange{Resource: "line", ETag: "1"},
	}
	if what == "ok" {
		r.Status, r.Class, r.Unsent = receipt.StatusOK, "", false
	}
	return r, nil
}

// lines returns options with the adapter line, and where it says what it begins.
func lines() (local.Options, <-chan string) {
	begun := make(chan string, 64)
	return local.Options{
		Grace: time.Nanosecond, // what still runs when a world is closed is nobody's
		Adapters: map[string]host.Factory{
			"line": func(host.Setup) (host.Adapter, error) { return line{begun}, nil },
		},
	}, begun
}

// alive makes a world whose effects are live, and lets a record of most kinds
// come about that they bring; the last effect is in flight.
func alive(t *testing.T, opts local.Options, begun <-chan string) *local.World {
	t.Helper()
	dir := files(t)
	path := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	yaml := strings.ReplaceAll(string(text), "{adapter: stub, config: {script: answers.star}}", "{adapter: line, retry: {attempts: 2, backoff: 1ns}}")
	yaml = strings.Replace(yaml, "policies:\n", "policies:\n  - {name: ask, when: 'intent.kind == \"tool.b\"', decide: require_approval}\n", 1)
	require.NoError(t, os.WriteFile(path, []byte(yaml), 0o600))
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "test", Keyring: ring(t, "test", 1)}, opts))
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	ask := func(kind, param string) map[string]any { return map[string]any{"effect": kind, "param": param} }
	submit := func(do ...any) {
		_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": do})
		require.NoError(t, err)
	}
	submit(ask("tool.a", "ok"), ask("tool.a", "busy"), ask("tool.b", "ok"), ask("tool.b", "no"))
	require.NoError(t, w.Run(t.Context()))
	var all []receipt.Entry
	w.View(func(w *world.Moment) { all = w.Intents() })
	for i, how := range []journal.Resolution{journal.Approve, journal.Disapprove} {
		e := all[2+i]
		require.NoError(t, w.Update(func(w *world.World) error {
			return worldtest.ErrorOf(w.Resolve(t.Context(), journal.Resolved{Key: e.Intent.Key, How: how, Params: e.Params, Actor: "ada", Reason: "so"}))
		}))
	}
	err = w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Emit(t.Context(), journal.OperatorEffect{Actor: "ada", Kind: "tool.a", Cap: "tools", Reason: "so"}))
	})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	submit(ask("tool.a", "silent"))
	for p := world.Ticked; p != world.Waiting; {
		p, err = w.Next(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, w.Sync()) // what is durable begins
	for what := range begun {
		if what == "silent" {
			break
		}
	}
	return w
}

func TestExportOfLiveEffectsComesBackByteForByte(t *testing.T) {
	opts, begun := lines()
	w := alive(t, opts, begun)
	var text, all bytes.Buffer
	require.NoError(t, w.Export(&text, local.JSONLines, nil))
	require.NoError(t, w.ExportBundle(t.Context(), &all, local.BundleOptions{}))
	before := w.Status()
	require.Equal(t, 1, before.Intents[receipt.StateInFlight])
	require.NoError(t, w.Close())
	somewhere := opts
	somewhere.Log = func([]byte) (journal.Log, error) { return nil, errors.ErrUnsupported }
	for _, kind := range []journal.Kind{
		journal.KindWaiting, journal.KindDue, journal.KindAwaitingApproval, journal.KindResolved, journal.KindOperator, journal.KindDenied,
	} {
		require.Contains(t, text.String(), string(kind))
	}
	again := filepath.Join(t.TempDir(), "again")
	require.NoError(t, local.Import(t.Context(), again, &all, ring(t, "test", 1), somewhere, nil), "into the directory, where what was in flight is known")
	w, err := local.Open(again, opts)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, w.Export(&out, local.JSONLines, nil))
	require.True(t, bytes.HasPrefix(out.Bytes(), text.Bytes()))
	require.Equal(t, 1, w.Status().Intents[receipt.StateInDoubt], "what was in flight there is in doubt here")
	r, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.NoError(t, w.Close())
}

// TestWhoClosesAWorldKnowsWhatIsLeftInDoubt: its grace is over before the effect ends.
func TestWhoClosesAWorldKnowsWhatIsLeftInDoubt(t *testing.T) {
	opts, begun := lines()
	w := alive(t, opts, begun)
	dir, flying := w.Dir(), 0
	w.View(func(w *world.Moment) { flying = len(w.InFlight()) })
	require.Equal(t, 1, flying)
	require.NoError(t, w.Close())
	require.Len(t, w.Left(), 1)

	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	require.Equal(t, 1, w.Status().Intents[receipt.StateInDoubt])
	require.NoError(t, w.Close())
	require.Empty(t, w.Left(), "it was left before")
}
