package world

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// TestRoomForAMillionEventsIsFoundInOneLook would take hours if each event were held against each other.
func TestRoomForAMillionEventsIsFoundInOneLook(t *testing.T) {
	k := newKernel(nil, false)
	k.rules = &rules{manifest: &manifest.Manifest{Limits: manifest.Limits{Mailbox: 2}}}
	for n := range 1_000_000 {
		k.plan.targets = append(k.plan.targets, newCell(reducer.Cell{Reducer: "bot", Key: strconv.Itoa(n)}, receipt.History{}))
	}
	c, _ := k.full(k.plan.targets)
	require.Nil(t, c)
	k.plan.targets = append(k.plan.targets, k.plan.targets[7], k.plan.targets[8], k.plan.targets[8])
	c, most := k.full(k.plan.targets)
	require.Equal(t, "bot/8", c.name)
	require.EqualValues(t, 2, most)
}
