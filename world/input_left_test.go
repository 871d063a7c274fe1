package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestCancellingEndsWhatAsks: it was attempted, so no step can ask for it anew, and nobody is
// asked any more.
func TestCancellingEndsWhatAsks(t *testing.T) {
	p, key := asked(t)
	p.cancel()
	p.tells("x0 rejected cancelled")
	require.ErrorIs(t, p.answer(key, map[string]any{"yes": true}), world.ErrNotWaiting)
	p.Drive()
	p.stands(key, receipt.StateFailed, 1)
	p.requireSound()
}

// TestRollbackListsWhatAsks: nobody knows what a tool did before it asked. The step that asks
// again goes on with the same question, and the answer is to that.
func TestRollbackListsWhatAsks(t *testing.T) {
	p := live(t)
	p.Submit("go", order{To: "a", Say: "on"})
	p.Drive()
	p.snapshot("noon")
	key := p.ask()
	p.out.Reply(p.performing(), asksToConfirm(t, "s1"))
	p.Drive()
	b := p.back("noon")
	require.Len(t, b.Abandoned, 1)
	require.Equal(t, key, b.Abandoned[0].Key)
	p.crash()
	require.Equal(t, key, p.ask(), "the same step")
	p.stands(key, receipt.StateAwaitingAnswer, 1)
	require.NoError(t, p.answer(key, map[string]any{"yes": true}))
	p.Drive()
	require.Len(t, p.performing().Inputs, 1)
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
	p.requireSound()
}

// TestForkGoesOnWithWhatAsks only by a person's answer there, under a key of its own.
func TestForkGoesOnWithWhatAsks(t *testing.T) {
	for _, effects := range []journal.ForkEffects{journal.ForkLive, journal.ForkHold} {
		t.Run(string(effects), func(t *testing.T) {
			p, key := asked(t)
			out := new(worldtest.Outside)
			f := &play{out: out, t: t, World: p.Fork(effects, worldtest.Options{ID: "child", Outside: out, Reducers: botRegistry()})}
			f.Drive()
			e := f.entry(key)
			require.Equal(t, receipt.StateAwaitingAnswer, e.State)
			require.Empty(t, out.Performed)
			require.NoError(t, f.answer(key, map[string]any{"yes": true}))
			f.Drive()
			require.Len(t, f.performing().Inputs, 1)
			f.reply(worldtest.OK(nil))
			f.tells("x0 ok")
		})
	}
}
