package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

type prompt struct{}

func (prompt) Perform(context.Context, host.Call) (host.Result, error) {
	return host.Result{Status: receipt.StatusOK}, nil
}

// adapted returns a new world that has an adapter perform tool.a; effect is what its
// manifest says of that.
func adapted(t *testing.T, effect, name string, adapter host.Adapter) *local.World {
	t.Helper()
	dir := files(t)
	path := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	yaml := strings.Replace(string(text), "tool.a: {adapter: stub, config: {script: answers.star}}", "tool.a: "+effect, 1)
	require.NotEqual(t, string(text), yaml)
	require.NoError(t, os.WriteFile(path, []byte(yaml), 0o600))
	opts := local.Options{Adapters: map[string]host.Factory{
		name: func(host.Setup) (host.Adapter, error) { return adapter, nil },
	}}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "test", Keyring: ring(t, "test", 1)}, opts))
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	return w
}

// keepRunning runs a world until ctx ends.
func keepRunning(ctx context.Context, t *testing.T, w *local.World) {
	t.Helper()
	for ctx.Err() == nil {
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("run: %v", err)
			return
		}
	}
}

// TestManyDriveAWorldAtOnce has one goroutine run a world and wait for the
// outside while others send, step and look. All of them wait for the journal and
// for the host now and then; nobody may be left waiting.
func TestManyDriveAWorldAtOnce(t *testing.T) {
	w := adapted(t, "{adapter: prompt}", "prompt", prompt{})

	const senders, events = 4, 40
	ctx, stop := context.WithCancel(t.Context())
	var runner, group sync.WaitGroup
	runner.Go(func() { keepRunning(ctx, t, w) })
	for i := range senders {
		group.Go(func() {
			for range events {
				ask := []any{map[string]any{"effect": "tool.a", "param": "x"}, map[string]any{"effect": "tool.b", "param": "x"}}
				if _, err := w.Submit(ctx, "go", map[string]any{"to": string(rune('a' + i)), "do": ask}); err != nil {
					t.Errorf("submit: %v", err)
				}
				if i == 0 {
					if err := w.Step(ctx); err != nil {
						t.Errorf("step: %v", err)
					}
				}
			}
		})
	}
	group.Wait()
	stop()
	runner.Wait()
	require.NoError(t, w.Run(t.Context()))
	s := w.Status()
	require.True(t, s.Idle)
	require.Equal(t, 2*senders*events, s.Intents[receipt.StateCommitted])
	require.NoError(t, w.Close())
}
