package world_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestShadowOfARealClockIsTheHistory: what came into the world waited until somebody ran it,
// and so it does in the shadow; what fell due meanwhile came at its time.
func TestShadowOfARealClockIsTheHistory(t *testing.T) {
	w, clock := realBots(t, worldtest.Options{})
	w.Submit("go", order{To: "a", Do: []act{{Timer: 5}, {Effect: "tool.a"}}})
	clock.Move(3 * time.Second) // nobody runs it
	w.Submit("go", order{To: "b", Do: []act{{Timer: 2}}})
	clock.Move(10 * time.Second)
	w.Submit("go", order{To: "a", Say: "later"})
	w.Drive()
	clock.Move(time.Second)
	w.Submit("go", order{To: "b", Say: "last"})

	same := *w.Manifest()
	r, err := w.Rehearse(t.Context(), &same, nil, world.ShadowConfig{})
	require.NoError(t, err)
	requireNoOp(t, r)

	other := same
	other.Policies = []manifest.Policy{{Name: "none", When: "true", Decide: manifest.DecideDeny}}
	r, err = w.Rehearse(t.Context(), &other, nil, world.ShadowConfig{})
	require.NoError(t, err)
	require.False(t, r.NoOp())
	require.EqualValues(t, 1, r.Counts.Decisions)
}
