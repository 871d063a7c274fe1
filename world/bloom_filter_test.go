package world

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
)

func TestSeenForgetsNothingAndTakesFewOthersForSeen(t *testing.T) {
	of := func(i int) uint64 { return hashOf(reducer.Cell{Reducer: "agent", Key: strconv.Itoa(i)}) }
	var s BloomFilter
	require.False(t, s.Has(of(0)))
	const n = 3 * firstLayer // more than a layer
	for i := range n {
		s.Add(of(i))
	}
	wrong := 0
	for i := range n {
		require.True(t, s.Has(of(i)))
		if s.Has(of(n + i)) {
			wrong++
		}
	}
	require.Less(t, wrong, n/50)
}

// What leaves memory again and again takes room once.
func TestSeenGrowsWithWhatIsNewAlone(t *testing.T) {
	var s BloomFilter
	for range firstLayer {
		s.Add(1)
		s.Add(2)
	}
	require.Equal(t, firstLayer-2, s.room)
}
