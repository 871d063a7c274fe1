package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryFaultSaysWhatItIsAndWhoStrikes(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range kinds() {
		require.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		require.NotEmpty(t, k.Says, k.Name)
		require.NotEmpty(t, k.By, k.Name)
		require.Subset(t, []Simulation{Worlds, Effects, Lives, Programs, Disks, Kills}, k.By, k.Name)
	}
	require.GreaterOrEqual(t, len(seen), 40)
}

func TestStruckCountsTheFaultsOfItsSimulation(t *testing.T) {
	s := NewStruck(Worlds)
	require.Contains(t, s.Never(), "append lost")
	require.NotContains(t, s.Never(), "process stopped", "others strike with it")
	s.Count("append lost")
	require.NotContains(t, s.Never(), "append lost")
	require.Contains(t, s.String(), "        1  append lost\n")
	require.Panics(t, func() { s.Count("process stopped") })
	require.Panics(t, func() { s.Count("no such fault") })
}
