package worldtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/verify"
)

// Runs of the simulations: without SEED a look, with SEED a search. In so many as a look
// has, each fault strikes.
const (
	fewWorlds  = 150
	fewEffects = 400
	fewForged  = 60
	manyRuns   = 5000
)

// errLate is the answer that has not come yet.
var errLate = errors.New("no answer yet")

// TestSimulation lives random worlds twice: once in peace, and once with a
// journal that fails, crashes, answers that come late, interruptions, and
// receipts that nobody should take. Both must come to the same journal.
//
// Run n of SEED=s is the first run of SEED=s+n. SIM_RUNS says how many to do.
func TestSimulation(t *testing.T) {
	first, runs := fault.Seeds(t, fewWorlds, manyRuns)
	loaded, err := source.Load(filepath.Join("testdata", "bots", "world.yaml"))
	require.NoError(t, err)
	seed := first
	defer func() {
		if t.Failed() {
			t.Logf("SEED=%d fails; to see it again: make sim SEED=%d", seed, seed)
		}
	}()
	total := fault.NewStruck(fault.Worlds)
	for ; seed < first+uint64(runs); seed++ {
		simulate(t, seed, loaded, total)
	}
	t.Logf("SEED=%d: %d runs\n%s", first, runs, total)
	if runs >= fewWorlds { // the simulation does what it is for
		require.Empty(t, total.Never())
	}
}

// simulate lives one random world.
func simulate(t *testing.T, seed uint64, loaded *source.Loaded, total *fault.Struck) {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := *loaded.Manifest
	m.Seed = seed
	m.Limits.InFlight = uint64(1 + rng.IntN(4))
	m.Limits.EventsPerTick = uint64(1 + rng.IntN(30))
	m.Limits.Mailbox = uint64(4 + rng.IntN(60))
	m.Defaults.SnapshotEvery = uint64(rng.IntN(2) * (100 + rng.IntN(100)))
	m.Defaults.Retention.MaxSnapshots = uint64(1 + rng.IntN(4))
	script := plan(rng)

	peace := New(t, m, loaded.Contents, Options{Answer: fate})
	results := make([]result, len(script))
	for i := range script {
		results[i] = live(t, peace, &script[i])
	}
	peace.Run()

	s := &simulation{t: t, rng: rng, total: total, journal: new(Journal), ledger: make(map[receipt.Key]*told)}
	s.w = New(t, m, loaded.Contents, Options{
		Journal: s.journal, Answer: s.perform,
		BatchRecords: 1 + rng.IntN(12), CheckpointRecords: journal.Seq(1 + rng.IntN(60)),
		Memory: int(seed % 2), // half of them leave to their images what they can
	})
	s.journal.FailAppend = func(int) error { return s.fail(false) }
	s.journal.FailWait = func(int) error { return s.fail(true) }
	s.journal.FailRead = s.failRead
	for i := range script {
		s.live(&script[i], results[i])
	}
	s.patiently(func() (bool, error) { return s.w.Idle(), s.w.World.Run(s.context()) })
	s.journal.FailAppend, s.journal.FailWait, s.journal.FailRead = nil, nil, nil
	require.Equal(t, intents(peace), intents(s.w))
	s.w.Crash()

	s.judge()
	require.Equal(t, peace.StateRoot(), s.w.StateRoot())
	require.Equal(t, peace.Journal.Records(), s.journal.Records(), "a disturbance shows in the journal")
	require.Equal(t, s.proof(peace).ExecutionHash, s.proof(s.w).ExecutionHash)
	s.w.RequireReplay()
	s.w.RequireMoments(rng)
	if seed%4 < 2 && s.w.RequireSpilling(1<<rng.IntN(15)) > 0 {
		total.Count("replayed beyond memory")
	}
	if rng.IntN(4) == 0 {
		forkOff(t, rng, s.w, total)
	}
}

// forkOff lives on in a fork, and requires that neither world takes the other's
// receipts.
func forkOff(t *testing.T, rng *rand.Rand, parent *World, total *fault.Struck) {
	before := parent.Status()
	effects := []journal.ForkEffects{journal.ForkHold, journal.ForkLive, journal.ForkRecorded}[rng.IntN(3)]
	if effects == journal.ForkHold {
		total.Count("fork on hold")
	}
	child := parent.Fork(effects, Options{ID: "child", Answer: fate})
	script := plan(rng)
	for i := range script {
		live(t, child, &script[i])
	}
	child.Run()
	child.RequireReplay()
	child.RequireMoments(rng)
	require.Equal(t, before, parent.Status())
	for _, stored := range child.Journal.Records() {
		rec, err := journal.DecodeRecord(stored.Bytes)
		require.NoError(t, err)
		if rec.Kind != journal.KindFinished {
			continue
		}
		require.NoError(t, rec.Load(child.Journal))
		body, err := rec.Body()
		require.NoError(t, err)
		r, err := receipt.Decode(body.(*journal.Finished).Receipt)
		require.NoError(t, err)
		mine, other := child.cfg.Keys, parent.cfg.Keys
		if stored.ID <= before.Head.ID {
			mine, other = other, mine
		} else {
			require.NotEqual(t, journal.ForkHold, effects, "nothing was allowed")
		}
		require.NoError(t, mine.Verify(r))
		require.Error(t, other.Verify(r))
	}
}

// action is one thing that a user does to a world.
type action struct {
	name  string // of the event; "": step; or snapshot, rollback or adopt
	fresh bool   // rollback: with other keys
	data  any
	after manifest.Tick // 0: at once
}

// result is what an action comes to in peace.
type result struct {
	time    manifest.Tick
	events  int // records of actions that are no steps
	refused error
}

// plan makes up what a user does.
func plan(rng *rand.Rand) []action {
	actions := make([]action, 4+rng.IntN(12))
	for i := range actions {
		if rng.IntN(4) == 0 {
			continue // a step
		}
		d := &actions[i]
		if i > 0 && rng.IntN(4) == 0 {
			d.name = []string{"snapshot", "snapshot", "rollback", "rollback", "adopt"}[rng.IntN(5)]
			d.fresh = rng.IntN(4) == 0
			continue
		}
		d.name = []string{"go", "go", "go", "both", "skip", "lost"}[rng.IntN(6)]
		d.data = map[string]any{"to": cellName(rng), "do": acts(rng, 3)}
		if rng.IntN(4) == 0 {
			d.after = manifest.Tick(rng.IntN(4))
		}
	}
	return actions
}

func cellName(rng *rand.Rand) string { return string(rune('a' + rng.IntN(4))) }

// acts makes up what an event tells a bot to do.
func acts(rng *rand.Rand, depth int) []any {
	out := make([]any, rng.IntN(4))
	for i := range out {
		act := map[string]any{}
		switch rng.IntN(12) {
		case 0:
			act["fail"] = "told to"
		case 1:
			act["delete"] = true
		case 2:
			act["random"] = 100
		case 3, 4:
			act["timer"] = 1 + rng.IntN(3)
			act["tag"] = []string{"", cellName(rng)}[rng.IntN(2)]
			if rng.IntN(3) == 0 {
				act = map[string]any{"cancel": cellName(rng)}
			}
		case 5, 6, 7, 8:
			act["effect"] = []string{"tool.a", "tool.b", "tool.bad", "other.x"}[rng.IntN(4)]
			act["param"] = cellName(rng)
		default:
			act["emit"] = []string{"ping", "ping", "both", "lost"}[rng.IntN(4)]
			act["to"] = cellName(rng)
		}
		if depth > 0 {
			act["do"] = acts(rng, depth-1)
		}
		out[i] = act
	}
	return out
}

// fate is what the outside answers, to the same effect always the same.
func fate(p receipt.Permit) Reply {
	switch p.Key.Hash[0] % 4 {
	case 0:
		return Fail("no")
	case 1:
		return Reply{Status: receipt.StatusTimeout}
	default:
		return OK(map[string]any{"occurrence": p.Occurrence})
	}
}

// live does an action in peace.
func live(t *testing.T, w *World, d *action) result {
	err := do(context.Background(), t, w, d)
	if input := new(world.InputError); !errors.As(err, &input) {
		require.NoError(t, err)
	}
	return result{time: w.Status().Time, events: events(w), refused: err}
}

// do does an action.
func do(ctx context.Context, t *testing.T, w *World, d *action) error {
	switch d.name {
	case "":
		return w.World.Step(ctx)
	case "snapshot":
		_, err := w.Snapshot(ctx, "", "", "ada")
		return err
	case "rollback":
		b := journal.RolledBack{Snapshot: "none", Actor: "ada", Reason: "so", Ack: true, Fresh: d.fresh}
		if all := w.Snapshots(); len(all) > 0 {
			b.Snapshot = all[len(all)/2].Name
		}
		_, _, err := w.Rollback(ctx, b)
		return err
	}
	if d.name == "adopt" {
		next := *w.Manifest()
		next.Version++
		next.Limits.InFlight = 1 + next.Version%4
		return Adopt(ctx, w.World, &next, nil)
	}
	_, err := w.World.Submit(ctx, submission(t, w, d))
	return err
}

func submission(t *testing.T, w *World, d *action) world.Submission {
	data, err := canon.Marshal(d.data)
	require.NoError(t, err)
	s := world.Submission{Name: d.name, Data: data}
	if d.after > 0 {
		s.At = w.Status().Time + d.after
	}
	return s
}

// intents returns what a world says of its intents, and of those that rollbacks would leave.
func intents(w *World) (all [][]byte) {
	entries := w.Intents()
	for i := range entries {
		all = append(all, entries[i].Append(nil))
	}
	for _, s := range w.Snapshots() {
		left, err := w.Leaves(journal.RolledBack{Snapshot: s.Name})
		require.NoError(w.t, err)
		data, err := canon.Marshal(left)
		require.NoError(w.t, err)
		all = append(all, data)
	}
	return all
}

// events counts the records in a world's journal of actions that are no steps.
func events(w *World) int {
	n := 0
	for _, stored := range w.Journal.Records() {
		rec, err := journal.DecodeRecord(stored.Bytes)
		require.NoError(w.t, err)
		switch rec.Kind {
		case journal.KindSubmitted, journal.KindRollback, journal.KindApplied:
			n++
		case journal.KindSnapshot:
			body, err := rec.Body()
			require.NoError(w.t, err)
			if b, ok := body.(*journal.SnapshotCreated); ok && b.Actor != "" {
				n++
			}
		}
	}
	return n
}

// proof verifies a world's journal.
func (s *simulation) proof(w *World) *verify.Report {
	r, err := verify.Verify(s.t.Context(), w.Journal, verify.Config{Keys: w.cfg.Keys, Anchor: w.Status().Head})
	require.NoError(s.t, err)
	require.True(s.t, r.OK, "%v", r.Faults)
	return r
}
