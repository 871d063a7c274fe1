package world

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// ListsInMemory returns of how many lists of alarms a world knows.
func (w *World) ListsInMemory() int { return len(w.k.lists.scheduled) + len(w.k.lists.timers) }

// WithoutPastAlarms returns what an image has of cells, its lists without what has fallen
// due: that is in them until they are written anew. Empty ones are left out.
func WithoutPastAlarms(t *testing.T, img *journal.Image) (out []journal.CellVersion) {
	t.Helper()
	parts, err := partsOf(img)
	require.NoError(t, err)
	for _, v := range img.Cells {
		if strings.HasPrefix(v.Cell, scheduledList) || strings.HasPrefix(v.Cell, timersList) {
			list, err := decodeAlarms(&v, parts.core.Now)
			require.NoError(t, err)
			require.Equal(t, v.Bytes, appendAlarms(nil, allAlarms(t, &v)), "a list is written one way")
			if len(list) == 0 {
				continue
			}
			v.Bytes = appendAlarms(nil, list)
		}
		out = append(out, v)
	}
	return out
}

// allAlarms returns a list with what is due at tick 1 or later, which is all.
func allAlarms(t *testing.T, v *journal.CellVersion) []imageAlarm {
	t.Helper()
	list, err := decodeAlarms(v, 0)
	require.NoError(t, err)
	return list
}
