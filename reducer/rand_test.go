package reducer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
)

func draw(t *testing.T, s reducer.Seed, below uint64, n int) []uint64 {
	t.Helper()
	r := s.New()
	out := make([]uint64, n)
	for i := range out {
		v, err := r.Below(below)
		require.NoError(t, err)
		require.Less(t, v, below)
		out[i] = v
	}
	return out
}

func TestRandDependsOnWorldCellAndStep(t *testing.T) {
	base := reducer.Seed{World: 42, Cell: reducer.Cell{Reducer: "agent", Key: "ann"}, Step: 3}
	first := draw(t, base, 1<<62, 4)
	require.Equal(t, first, draw(t, base, 1<<62, 4))
	for _, change := range []func(*reducer.Seed){
		func(s *reducer.Seed) { s.World = 43 },
		func(s *reducer.Seed) { s.Step = 4 },
		func(s *reducer.Seed) { s.Cell.Key = "bob" },
		func(s *reducer.Seed) { s.Cell.Reducer = "other" },
	} {
		other := base
		change(&other)
		require.NotEqual(t, first, draw(t, other, 1<<62, 4))
	}
}

func TestBelowCoversItsRange(t *testing.T) {
	seed := reducer.Seed{World: 1, Cell: reducer.Cell{Reducer: "a", Key: "b"}, Step: 1}
	var seen [6]int
	for _, v := range draw(t, seed, 6, 6000) {
		seen[v]++
	}
	for _, n := range seen {
		require.InDelta(t, 1000, n, 200)
	}
	require.Equal(t, []uint64{0, 0, 0}, draw(t, seed, 1, 3))
	_, err := seed.New().Below(0)
	require.Error(t, err)
}

// TestRandVectors holds the generator to numbers of a second implementation,
// written in another language from the C2SP chacha8rand specification.
func TestRandVectors(t *testing.T) {
	ann := reducer.Seed{World: 42, Cell: reducer.Cell{Reducer: "agent", Key: "ann"}, Step: 3}
	require.Equal(t, []uint64{279, 930, 799, 532, 620, 131, 739, 567}, draw(t, ann, 1000, 8))
	other := reducer.Seed{Cell: reducer.Cell{Reducer: "a", Key: "é"}}
	require.Equal(t, []uint64{1, 4, 5, 2, 5, 4, 0, 4}, draw(t, other, 6, 8))
	sum := uint64(0)
	for _, v := range draw(t, ann, 1<<32, 500) { // beyond the first refill
		sum += v
	}
	require.EqualValues(t, 1047269638352, sum)
}
