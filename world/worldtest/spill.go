package worldtest

import (
	"cmp"
	"iter"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
)

// Spills makes places in memory for what replays put aside.
type Spills struct {
	// Memory is that of world.Spilling; 0: 1, all that can be is put aside.
	Memory int
	// Fail, if set, is asked before anything is made, written, read or closed.
	Fail func() error

	Made, Open int

	mu sync.Mutex // verification puts aside from two sides
}

// Spilling has replays put aside what they can.
func (s *Spills) Spilling() world.Spilling {
	return world.Spilling{Memory: cmp.Or(s.Memory, 1), Spill: func() (world.Spill, error) {
		if err := s.fail(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Made++
		s.Open++
		return &spill{j: &Journal{FailRead: s.fail}, of: s}, nil
	}}
}

func (s *Spills) fail() error {
	if s.Fail == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Fail()
}

// spill is a world.Spill in memory.
type spill struct {
	j  *Journal
	of *Spills
}

// Checkpoint implements world.Spill.
func (x *spill) Checkpoint(img *journal.Image) error {
	if err := x.of.fail(); err != nil {
		return err
	}
	x.j.Add(img)
	return nil
}

// Part implements world.Spill.
func (x *spill) Part(at journal.Seq, cells []string) (*journal.Image, error) {
	if err := x.of.fail(); err != nil {
		return nil, err
	}
	return x.j.Part(at, cells)
}

// Close implements world.Spill.
func (x *spill) Close() error {
	x.of.mu.Lock()
	x.of.Open--
	x.of.mu.Unlock()
	return x.of.fail()
}

// Core implements journal.Versions.
func (x *spill) Core(at journal.Seq) (*journal.Image, error) { return x.j.Core(at) }

// CellVersion implements journal.Versions.
func (x *spill) CellVersion(cell string, at journal.Seq) (*journal.CellVersion, error) {
	return x.j.CellVersion(cell, at)
}

// IntentVersion implements journal.Versions.
func (x *spill) IntentVersion(key journal.Hash, at journal.Seq) (*journal.IntentVersion, error) {
	return x.j.IntentVersion(key, at)
}

// CellVersions implements journal.Versions.
func (x *spill) CellVersions(prefix string, at journal.Seq) iter.Seq2[journal.CellVersion, error] {
	return x.j.CellVersions(prefix, at)
}

// IntentVersions implements journal.Versions.
func (x *spill) IntentVersions(at journal.Seq) iter.Seq2[journal.IntentVersion, error] {
	return x.j.IntentVersions(at)
}

// CountVersion implements journal.Versions.
func (x *spill) CountVersion(key journal.CountKey, at journal.Seq) (*journal.CountVersion, error) {
	return x.j.CountVersion(key, at)
}

// CountVersions implements journal.Versions.
func (x *spill) CountVersions(at journal.Seq) iter.Seq2[journal.CountVersion, error] {
	return x.j.CountVersions(at)
}

// RequireSpilling requires that replays and verification of a world come to the same with
// little memory: from record 1, and from every snapshot that is kept. It returns how many
// put something aside.
func (w *World) RequireSpilling(memory int) (made int) {
	w.t.Helper()
	spills := &Spills{Memory: memory}
	cfg := world.ReplayConfig{Keys: w.cfg.Keys, Registry: w.cfg.Registry, Paranoid: true, Spilling: spills.Spilling()}
	froms := []journal.Seq{0}
	for _, s := range w.Snapshots() {
		froms = append(froms, journal.Seq(s.Record))
	}
	for _, cfg.From = range froms {
		got, err := world.Replay(w.t.Context(), w.Journal, cfg)
		require.NoError(w.t, err, "from #%d", cfg.From)
		require.Equal(w.t, w.Status().Head, got.Head)
		require.Equal(w.t, w.StateRoot(), got.StateRoot, "from #%d", cfg.From)
	}
	made = spills.Made
	vc := verify.Config{Keys: w.cfg.Keys, Registry: w.cfg.Registry, Anchor: w.Status().Head}
	want, err := verify.Verify(w.t.Context(), w.Journal, vc)
	require.NoError(w.t, err)
	vc.Spilling = spills.Spilling()
	got, err := verify.Verify(w.t.Context(), w.Journal, vc)
	require.NoError(w.t, err)
	require.Equal(w.t, want, got)
	require.Zero(w.t, spills.Open, "what was put aside is gone")
	return made
}
