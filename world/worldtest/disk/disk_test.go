// Package disk has a world live on a disk that fails: see docs/testing.md.
package disk

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world"
)

// Runs of the simulation: without SEED a look, in which each fault strikes; with SEED a
// search.
const (
	fewRuns  = 300
	manyRuns = 5000
)

// TestSimulationOfDisks lives worlds over the store, on files in memory. To each process
// the disk does one thing; then the next one opens what is left. All that was acknowledged
// is there, nothing was performed without a permit that is there, and the journal replays.
// Between two processes a file is damaged: the store, or verification, names that, or all
// is as before.
//
// SEED and SIM_RUNS are as for TestSimulation.
func TestSimulationOfDisks(t *testing.T) {
	first, runs := fault.Seeds(t, fewRuns, manyRuns)
	struck := fault.NewStruck(fault.Disks)
	seed := first
	defer func() {
		if t.Failed() {
			t.Logf("SEED=%d fails; to see it again: make sim SEED=%d", seed, seed)
		}
	}()
	for ; seed < first+uint64(runs); seed++ {
		l := &life{t: t, rng: rand.New(rand.NewPCG(seed, 3)), struck: struck}
		l.live()
	}
	t.Logf("SEED=%d: %d runs\n%s", first, runs, struck)
	if runs >= fewRuns {
		require.Empty(t, struck.Never())
	}
}

// life is one world and its disk.
type life struct {
	t      *testing.T
	rng    *rand.Rand
	struck *fault.Struck

	mem   *vfs.MemFS
	older *vfs.MemFS // at some earlier time
	next  uint64     // number of an order

	mu        sync.Mutex
	acked     journal.Head
	performed []attempt
}

// troubles are those that strike at an operation.
var troubles = []string{
	"power cut, unsynced lost", "power cut, unsynced mixed", "power cut, unsynced kept", "write fails", tornWrite,
	"sync fails", "read fails", "open fails", "rename fails", "remove fails", "disk full", "disk dead",
}

func (l *life) live() {
	l.mem = vfs.NewCrashableMem()
	require.NoError(l.t, l.mem.MkdirAll(dir, 0o755))
	root, err := l.mem.OpenDir("")
	require.NoError(l.t, err)
	require.NoError(l.t, root.Sync())
	require.NoError(l.t, root.Close())
	l.create()
	for range 1 + l.rng.IntN(4) {
		name := troubles[l.rng.IntN(len(troubles))]
		from := 1 + l.rng.Int64N(40)
		if l.rng.IntN(2) == 0 {
			from = 1 + l.rng.Int64N(6)
		}
		l.process(newFailing(l.mem, trouble{name, from}, l.rng))
		left, acked := l.clone(100), l.acked
		l.survived()
		switch l.rng.IntN(4) {
		case 0:
			l.damage(left, acked)
		case 1:
			l.damage(l.clone(100), l.acked)
		}
	}
}

func (l *life) create() {
	s, err := store.Create(dir, options(newFailing(l.mem, trouble{}, l.rng)))
	require.NoError(l.t, err)
	m := rules()
	w, err := world.Create(config(s, l.perform), world.Genesis{ID: worldID, Seed: 1, Manifest: &m})
	require.NoError(l.t, err)
	l.acked = w.Status().Head
	require.NoError(l.t, s.Close())
	l.older = l.clone(100)
}

// clone copies the disk as a crash may leave it.
func (l *life) clone(unsynced int) *vfs.MemFS {
	return l.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: l.rng})
}

// process is one process on a disk that fails. It ends by an error, by the end that the
// store asks for, or at a power cut, and leaves the disk so.
func (l *life) process(disk *failing) {
	var then []attempt
	var acked journal.Head
	disk.before = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		acked, then = l.acked, l.performed[:len(l.performed):len(l.performed)]
	}
	end := make(chan error, 8)
	opts := options(disk)
	opts.Fatal = func(err error) {
		disk.dead.Store(true)
		end <- err
		select {}
	}
	seed := l.rng.Uint64()
	go func() { end <- l.act(disk, opts, rand.New(rand.NewPCG(seed, 0))) }()
	<-end //nolint:errcheck // however it ended: what is left is judged
	disk.dead.Store(true)
	disk.mu.Lock()
	defer disk.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if disk.hit.Load() {
		l.struck.Count(disk.trouble.fault)
	}
	if disk.cut != nil {
		l.mem, l.acked, l.performed = disk.cut, acked, then
		return
	}
	l.struck.Count("process killed")
	unsynced := 50 * l.rng.IntN(3)
	if disk.trouble.fault == "sync fails" {
		unsynced = 0
	}
	l.mem = l.clone(unsynced)
}

// act does what a process does until something fails.
func (l *life) act(disk *failing, opts store.Options, rng *rand.Rand) error {
	early := rng.IntN(4) == 0 // it strikes while the world is opened
	if early {
		disk.arm()
	}
	s, err := store.Open(dir, opts)
	if err != nil {
		return err
	}
	w, err := world.Open(config(s, func(a attempt) {
		if !disk.dead.Load() {
			l.perform(a)
		}
	}))
	if err != nil {
		return errors.Join(err, s.Close())
	}
	disk.arm()
	for range 3 + rng.IntN(25) {
		if disk.cutNow() {
			break
		}
		if err := l.action(rng, w, s); err != nil && !errors.As(err, new(*world.InputError)) && !errors.As(err, new(*world.SideEffectsError)) {
			return errors.Join(err, s.Close())
		}
		l.acknowledged(disk, w.Status().Head)
	}
	return s.Close()
}

// acknowledged notes where the world is after an action, unless the process is dead.
func (l *life) acknowledged(disk *failing, head journal.Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !disk.dead.Load() {
		l.acked = head
	}
}

func (l *life) perform(a attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.performed = append(l.performed, a)
}

func (f *failing) cutNow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut != nil
}

// action does one thing. Without an error it is acknowledged.
func (l *life) action(rng *rand.Rand, w *world.World, s *store.Store) error {
	ctx := context.Background()
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		l.next++
		o := order{To: string(rune('a' + rng.IntN(3))), N: l.next}
		if rng.IntN(4) == 0 {
			o.Pad = strings.Repeat(strconv.Itoa(int(l.next)), 4<<10)
		}
		_, err := w.Submit(ctx, world.Submission{Name: "order", Data: encoded(o)})
		return err
	case 4, 5, 6, 7:
		return w.Run(ctx)
	case 8:
		_, err := w.Snapshot(ctx, "", "", "ada")
		return err
	case 9:
		if all := w.Snapshots(); len(all) > 0 {
			_, _, err := w.Rollback(ctx, journal.RolledBack{Snapshot: all[rng.IntN(len(all))].Name, Actor: "ada", Reason: "so", Ack: true})
			return err
		}
		return nil
	case 10:
		return w.Checkpoint()
	default:
		_, err := s.Collect()
		return err
	}
}

// survived opens what is left, on a disk that works.
func (l *life) survived() {
	l.t.Helper()
	s, err := store.Open(dir, options(newFailing(l.mem, trouble{}, l.rng)))
	require.NoError(l.t, err)
	_, err = store.Open(dir, options(newFailing(l.mem, trouble{}, l.rng)))
	require.Error(l.t, err, "two processes have one world")
	l.struck.Count("second process refused")
	l.permitted(s)
	performed := len(l.performed)
	w, err := world.Open(config(s, l.perform))
	require.NoError(l.t, err)
	require.Len(l.t, l.performed, performed, "a world that is opened performs nothing again")
	got, err := world.Replay(context.Background(), s, world.ReplayConfig{Keys: keyring(), Registry: registry()})
	require.NoError(l.t, err)
	require.NoError(l.t, w.Sync())
	require.Equal(l.t, w.Status().Head, got.Head)
	require.Equal(l.t, w.StateRoot(), got.StateRoot)
	l.acked = w.Status().Head
	require.NoError(l.t, s.Close())
	l.mem = l.clone(0)
}

// permitted requires that the journal has all that was acknowledged, and a permit for each
// attempt that was performed, once.
func (l *life) permitted(s *store.Store) {
	l.t.Helper()
	require.GreaterOrEqual(l.t, s.Head().ID, l.acked.ID, "acknowledged, and lost")
	permits := make(map[attempt]bool)
	for r, err := range s.Scan(0) {
		require.NoError(l.t, err)
		require.NoError(l.t, r.Err)
		if r.ID == l.acked.ID {
			require.Equal(l.t, l.acked.Root[:journal.LinkBytes], r.Link[:], "another record #%d", r.ID)
		}
		if r.Record.Kind == journal.KindStarted {
			body, err := r.Record.LoadBody(s)
			require.NoError(l.t, err)
			b := body.(*journal.Started)
			permits[attempt{b.Key, b.Attempt, b.Nonce}] = true
		}
	}
	done := make(map[attempt]bool)
	for _, a := range l.performed {
		require.True(l.t, permits[a], "performed without a permit that is durable")
		require.False(l.t, done[a], "performed twice under one permit")
		done[a] = true
	}
}
