package worldtest

import (
	"cmp"
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
		j := &Journal{FailRead: s.fail}
		return &spill{Versions: j, j: j, of: s}, nil
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
	journal.Versions // of j

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
