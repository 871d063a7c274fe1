// Package worldtest runs worlds in memory, for tests: of worldkernel itself and
// of worlds that its users write.
//
// A test loads a world directory (or makes a manifest of its own), scripts what
// the outside answers, submits events, runs ticks and looks at cells:
//
//	w := worldtest.Load(t, "testdata/shop", worldtest.Options{
//		Answer: func(p receipt.Permit) worldtest.Reply { return worldtest.OK("done") },
//	})
//	w.Submit("order.placed", map[string]any{"customer": "ada"})
//	w.Run()
//	require.JSONEq(t, `{"orders": 1}`, w.State("customer/ada"))
//	w.RequireReplay()
//
// Every reduction runs twice, and a difference fails the step.
package worldtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/memory"
	"github.com/worldkernel/worldkernel/world/source"
)

// Options say what a world in memory works with. The zero value performs
// effects with the adapters that its manifest names.
type Options struct {
	ID        string // default "test"
	Reducers  reducer.Registry
	Adapters  map[string]host.Factory         // besides the host's own; nil: none, and live effects are refused
	Verifiers map[string]host.VerifierFactory // likewise
	Answer    Script                          // performs all effects, as deterministic ones, instead of the manifest's adapters
	Outside   *Outside                        // performs all effects, as live ones, instead of Answer
	Journal   *Journal                        // default: a new one
	Seed      *uint64                         // of a Fork; nil: as its parent's
	Clock     *Clock                          // of worlds whose clock is real; nil: their time jumps, as if it were simulated

	// BatchRecords and CheckpointRecords are those of world.Config.
	BatchRecords      int
	CheckpointRecords journal.Seq
	// Memory is that of world.Config: 1 leaves all that it can to the last image.
	Memory int
	// Life is that of world.Config, from the first Crash on.
	Life context.Context
}

// Script answers an effect.
type Script func(p receipt.Permit) Reply

// Reply is what the outside answers.
type Reply struct {
	Status  receipt.Status
	Payload any   // a value with a canonical form
	Err     error // no receipt can be made; the effect stays in flight

	// What else a receipt says: see [receipt.Receipt].
	Class       receipt.Outcome
	Unsent      bool
	Cost        receipt.Cost
	Exact       bool
	StateChange *receipt.StateChange
}

// OK is a reply of success.
func OK(payload any) Reply { return Reply{Status: receipt.StatusOK, Payload: payload} }

// Fail is a reply with status error.
func Fail(payload any) Reply { return Reply{Status: receipt.StatusError, Payload: payload} }

// World is a world in memory. Its methods fail the test on any error; those of
// the embedded World return it.
type World struct {
	*world.World
	Journal *Journal
	t       testing.TB
	cfg     world.Config
}

// Load makes a world of the world.yaml in a directory.
func Load(t testing.TB, dir string, o Options) *World {
	t.Helper()
	var options []source.Option
	for name := range o.Adapters {
		options = append(options, source.WithAdapter(name))
	}
	loaded, err := source.Load(filepath.Join(dir, "world.yaml"), options...)
	require.NoError(t, err)
	return New(t, *loaded.Manifest, loaded.Contents, o)
}

// Caller is the world.yaml of a world that has one effect, declared in a line of YAML.
// Its reducer, in caller.star, gets the events go and may ask for all effects of a kind
// that begins as the one declared.
func Caller(name, effect string) string {
	family, _, _ := strings.Cut(effect, ".")
	return fmt.Sprintf(`world: %s
version: 1
reducers:
  caller: {engine: starlark, source: caller.star, grants: [outside]}
events:
  go:
effects:
  %s
caps:
  outside: {type: any, params: {kinds: ["%s.*"]}}
policies:
  - {name: all, when: "true", decide: allow}
routing:
  - {event: go, reducer: caller, key: event.data.to}
`, name, effect, family)
}

// New makes a world of a manifest and the contents that it names.
func New(t testing.TB, m manifest.Manifest, contents map[manifest.Hash][]byte, o Options) *World {
	t.Helper()
	if o.ID == "" {
		o.ID = "test"
	}
	if o.Journal == nil {
		o.Journal = new(Journal)
	}
	made, err := memory.New(&m, contents, o.inMemory(t))
	require.NoError(t, err)
	return o.world(t, made)
}

// Fork makes another world, which shares the past of w up to now. o.ID is needed;
// o.Journal is not used.
func (w *World) Fork(effects journal.ForkEffects, o Options) *World {
	w.t.Helper()
	o.Journal = w.Journal.Clone()
	made, err := memory.Fork(w.t.Context(), effects, "worldtest", nil, o.inMemory(w.t))
	require.NoError(w.t, err)
	return o.world(w.t, made)
}

// world returns a world that was made, for a test.
func (o Options) world(t testing.TB, made *memory.World) *World {
	t.Cleanup(func() { require.NoError(t, made.Close()) })
	cfg := made.Config()
	cfg.Life = o.Life
	return &World{World: made.World, Journal: o.Journal, t: t, cfg: cfg}
}

// inMemory returns what a world works with.
func (o Options) inMemory(t testing.TB) memory.Options {
	t.Helper()
	keys, dir := Keyring(t, o.ID), ""
	if o.Adapters != nil {
		dir = t.TempDir()
	}
	m := memory.Options{
		ID: o.ID, Seed: o.Seed, Reducers: traced(t, o.Reducers), Keys: keys, Paranoid: true, Journal: o.Journal,
		BatchRecords: o.BatchRecords, CheckpointRecords: o.CheckpointRecords, Memory: o.Memory,
		Host: func(cfg host.Config) (world.Host, error) {
			switch {
			case o.Outside != nil:
				o.Outside.open(cfg.World, keys)
				return o.Outside, nil
			case o.Answer != nil:
				return &scripted{world: cfg.World, keys: keys, answer: o.Answer}, nil
			}
			if cfg.Adapters, cfg.Verifiers = o.Adapters, o.Verifiers; o.Adapters != nil {
				cfg.Dir, cfg.EffectLog = dir, filepath.Join(dir, "effects")
			}
			return memory.Performer(cfg)
		},
	}
	if o.Clock != nil {
		m.Now = o.Clock.UnixNano
	}
	return m
}

// Keyring returns the keyring of a world in memory: its secret is made of the
// world's id, so that equal runs give equal journals.
func Keyring(t testing.TB, id string) *receipt.Keyring {
	t.Helper()
	secret := sha256.Sum256([]byte("worldtest " + id))
	keys, err := receipt.NewKeyring(id, []receipt.Epoch{{Number: 1, Secret: secret[:]}})
	require.NoError(t, err)
	return keys
}

// Submit sends an event whose data is any value with a canonical form.
func (w *World) Submit(name string, data any) {
	w.t.Helper()
	require.NoError(w.t, w.TrySubmit(name, data))
}

// TrySubmit is Submit for events that may be refused.
func (w *World) TrySubmit(name string, data any) error {
	b, err := canon.Marshal(data)
	if err != nil {
		return err
	}
	_, err = w.World.Submit(context.Background(), world.Submission{Name: name, Data: b})
	return err
}

// Step runs n ticks.
func (w *World) Step(n int) {
	w.t.Helper()
	for range n {
		require.NoError(w.t, w.World.Step(context.Background()))
	}
}

// Run runs until the world is idle.
func (w *World) Run() {
	w.t.Helper()
	require.NoError(w.t, w.World.Run(context.Background()))
}

// Drive runs until nothing can happen without the outside or another input.
func (w *World) Drive() {
	w.t.Helper()
	for waited := false; ; {
		p, err := w.Next(context.Background())
		require.NoError(w.t, err)
		if p == world.Idle || p == world.Waiting && waited {
			return
		}
		if waited = p == world.Waiting; waited {
			require.NoError(w.t, w.Sync()) // the outside gets what it has to do, and may answer at once
		}
	}
}

// State returns a cell's state as JSON; "": the cell has no state.
func (w *World) State(cell string) string {
	w.t.Helper()
	id, err := reducer.ParseCell(cell)
	require.NoError(w.t, err)
	view, ok := w.Cell(id)
	require.True(w.t, ok, "there is no cell %s", cell)
	if len(view.State) == 0 {
		return ""
	}
	text, err := canon.ToJSON(view.State)
	require.NoError(w.t, err)
	return string(text)
}

// Crash loses everything that is not durable and opens the world again.
func (w *World) Crash() {
	w.t.Helper()
	w.Journal.Crash()
	var err error
	w.World, err = world.Open(w.cfg)
	require.NoError(w.t, err)
}

// RequireReplay requires that replaying the journal from record 1 computes
// every record and the present state.
func (w *World) RequireReplay() {
	w.t.Helper()
	got, err := world.Replay(context.Background(), Chained{w.Journal}, world.ReplayConfig{Keys: w.cfg.Keys, Registry: w.cfg.Registry, Paranoid: true})
	require.NoError(w.t, err)
	require.Equal(w.t, w.Status().Head, got.Head)
	require.Equal(w.t, w.StateRoot(), got.StateRoot)
}

// Kinds returns the kinds of all records, in order.
func (w *World) Kinds() []journal.Kind {
	w.t.Helper()
	var kinds []journal.Kind
	for _, s := range w.Journal.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(w.t, err)
		kinds = append(kinds, rec.Kind)
	}
	return kinds
}
