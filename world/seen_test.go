package world

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
)

func TestSeenForgetsNothingAndTakesFewOthersForSeen(t *testing.T) {
	cellOf := func(i int) reducer.Cell { return reducer.Cell{Reducer: "agent", Key: strconv.Itoa(i)} }
	var s seen
	require.False(t, s.has(cellOf(0)))
	const n = 3 * firstLayer // more than a layer
	for i := range n {
		s.add(cellOf(i))
	}
	wrong := 0
	for i := range n {
		require.True(t, s.has(cellOf(i)))
		if s.has(cellOf(n + i)) {
			wrong++
		}
	}
	require.Less(t, wrong, n/50)
}
