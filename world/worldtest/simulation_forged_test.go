package worldtest

import (
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/verify"
)

// TestSimulationOfForgedJournals changes records of random lives, computes the chain anew, and
// requires that verification says the same of them whether all that it knows is in memory or
// what it can is put aside.
//
// SEED and SIM_RUNS are as for TestSimulation.
func TestSimulationOfForgedJournals(t *testing.T) {
	first, runs := fault.Seeds(t, fewForged, manyRuns)
	loaded, err := source.Load(filepath.Join("testdata", "bots", "world.yaml"))
	require.NoError(t, err)
	total, struck := make(map[string]int), fault.NewStruck(fault.Effects)
	found := make(map[string]int)
	for seed := first; seed < first+uint64(runs); seed++ {
		s := newLiveSimulation(t, seed, loaded, total, struck)
		s.disturb()
		s.settle()
		rng := rand.New(rand.NewPCG(seed, 3))
		for range 4 {
			x := &forged{History: s.w.Journal, records: slices.Clone(s.w.Journal.Records())}
			for range 1 + rng.IntN(3) {
				x.forge(t, rng)
			}
			requireFoundAside(t, s.w, x, 1<<(rng.IntN(2)*rng.IntN(17)), found)
		}
		if t.Failed() {
			t.Logf("SEED=%d fails; to see it again: make sim SEED=%d", seed, seed)
		}
	}
	t.Logf("SEED=%d: %d runs: %v", first, runs, found)
	if runs >= fewForged { // the simulation does what it is for
		for _, what := range []string{"duplicate", "orphan", "replay", "put aside"} {
			require.NotZero(t, found[what], what)
		}
	}
}

// requireFoundAside verifies a forged journal of a world in memory, and with so many bytes of it.
func requireFoundAside(t *testing.T, w *World, x *forged, memory int, found map[string]int) {
	t.Helper()
	cfg := verify.Config{Keys: w.cfg.Keys, Registry: w.cfg.Registry}
	want, err := verify.Verify(t.Context(), x, cfg)
	require.NoError(t, err)
	spills := &Spills{Memory: memory}
	cfg.Spilling = spills.Spilling()
	got, err := verify.Verify(t.Context(), x, cfg)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Zero(t, spills.Open)
	found["put aside"] += spills.Made
	found["duplicate"] += len(want.Ledger.DuplicateKeys)
	found["orphan"] += len(want.Ledger.OrphanKeys)
	if !want.Replay.OK {
		found["replay"]++
	}
}

// forged is a journal of which somebody has changed records.
type forged struct {
	journal.History
	records []journal.Stored
}

// forge says a record again, leaves one out, has two change places, or puts the payload of one
// into another of its kind, and numbers and links all anew.
func (x *forged) forge(t *testing.T, rng *rand.Rand) {
	t.Helper()
	at, other := 1+rng.IntN(len(x.records)-1), 1+rng.IntN(len(x.records)-1)
	switch rng.IntN(6) {
	case 0, 1, 2:
		x.records = slices.Insert(x.records, max(at, other), x.records[min(at, other)])
	case 3:
		x.records = slices.Delete(x.records, at, at+1)
	case 4:
		x.records[at], x.records[other] = x.records[other], x.records[at]
	case 5:
		from, to := x.envelope(t, at), x.envelope(t, other)
		for i := 1; from.Kind != to.Kind && i < len(x.records); i++ {
			from = x.envelope(t, i)
		}
		to.Payload, to.Blob, to.BlobSize = from.Payload, from.Blob, from.BlobSize
		x.records[other].Bytes = canon.AppendEnvelope(nil, to)
	}
	chain := new(canon.Chain)
	for i := range x.records {
		e := x.envelope(t, i)
		e.ID = uint64(i + 1)
		s := journal.Stored{ID: journal.Seq(e.ID), Bytes: canon.AppendEnvelope(nil, e)}
		s.Root = chain.Add(e.ID, e.Kind, s.Bytes)
		x.records[i] = s
	}
}

func (x *forged) envelope(t *testing.T, i int) canon.Envelope {
	t.Helper()
	e, err := canon.DecodeEnvelope(x.records[i].Bytes)
	require.NoError(t, err)
	return e
}

// Record implements journal.History.
func (x *forged) Record(id journal.Seq) ([]byte, error) {
	if id == 0 || int(id) > len(x.records) {
		return nil, journal.ErrNotFound
	}
	return x.records[id-1].Bytes, nil
}

// Scan implements journal.History.
func (x *forged) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for _, s := range x.records[min(int(after), len(x.records)):] {
			if !yield(journal.NewScanned(s.ID, s.Bytes, s.Root[:]), nil) {
				return
			}
		}
	}
}
