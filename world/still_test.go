package world_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestAnInputPermitsNothingOnTheWayToNow: whoever brings an input may end at once. What falls
// due before it is handled, and the effects of that wait, through a crash and an image of
// the world too, until somebody drives it: then each is permitted once, and told.
func TestAnInputPermitsNothingOnTheWayToNow(t *testing.T) {
	out := new(worldtest.Outside)
	w, clock := realBots(t, worldtest.Options{Outside: out})
	w.Submit("go", order{To: "a", Do: []act{{Timer: 5, Do: []act{{Effect: "tool.a", Param: "x"}}}}})
	w.Drive()
	clock.Move(time.Minute)
	before := len(w.Kinds())
	for range 3 {
		_, err := w.Resume(context.Background(), reducer.Cell{Reducer: "bot", Key: "a"}, world.SkipEvent, "", "")
		require.ErrorIs(t, err, world.ErrNotHalted)
		require.Equal(t, 1, w.Status().Intents[receipt.StateOpen], "it was asked for")
		require.NotContains(t, w.Kinds()[before:], journal.KindStarted)
		require.NoError(t, w.Checkpoint())
		w.Crash()
		clock.Move(time.Second)
	}
	w.RequireReplay()
	w.Drive()
	out.Reply(out.Task(receipt.Perform), worldtest.OK("done"))
	w.Drive()
	require.JSONEq(t, `{"seen": ["100:go ", "105:alarm after 5", "163:receipt x0 ok"]}`, w.State("bot/a"))
	w.RequireReplay()
}
