package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// Who could make a tick come again would have its timers and its approvals expire in
// it a second time.
func TestATickComesOnce(t *testing.T) {
	w := bots(t)
	w.Step(2)
	w.Submit("go", order{To: "a"})
	at := w.Journal.Head().ID
	require.EqualValues(t, 2, w.Time())
	for _, to := range []manifest.Tick{0, 1, 2} {
		requireForgeryFound(t, forged(t, w.Journal, at, journal.KindAdvanced, &journal.Advanced{Version: journal.V(1), To: to}), world.ErrBadTick)
	}
	w.Step(1)
	require.EqualValues(t, 3, w.Time())
}
