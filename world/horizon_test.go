package world_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func (p *play) submitAt(at manifest.Tick, h *world.Horizon) error {
	e := world.Submission{Name: "go", Data: mustData(p.t, order{To: "later"}), When: world.When{At: at}, Horizon: h}
	_, err := p.World.World.Submit(p.t.Context(), e)
	_, taken, all := p.SubmitAll(p.t.Context(), func(yield func(world.Submission, error) bool) { yield(e, nil) })
	require.Equal(p.t, err == nil, all == nil, "one and many have the same bound")
	require.Equal(p.t, err == nil, taken == 1)
	return err
}

// Whoever submits, and decides nothing, takes no time from who decides: neither of what waits for
// approval, nor of what comes to wait before their event is due.
func TestWhoSubmitsTakesNoTimeFromWhoDecides(t *testing.T) {
	p := live(t, approvals) // for ten ticks
	require.ErrorIs(t, p.submitAt(10, new(world.Horizon)), world.ErrTooFar, "an effect of tick 0 would have until tick 10")
	require.NoError(t, p.submitAt(9, new(world.Horizon)))
	key := p.ask() // in tick 1
	require.EqualValues(t, 11, p.entry(key).Deadline)
	require.EqualValues(t, 9, p.Time(), "what was due before it came to wait")
	for at := p.Time() + 1; at < 12; at++ {
		require.ErrorIs(t, p.submitAt(at, new(world.Horizon)), world.ErrTooFar, "the clock would jump there, and an event at once would do the rest")
	}
	require.NoError(t, p.submitAt(0, new(world.Horizon)), "at once")
	p.Drive()
	require.EqualValues(t, 10, p.Time())
	require.Equal(t, receipt.StateAwaitingApproval, p.entry(key).State)

	require.NoError(t, p.submitAt(1000, nil), "whoever owns the world may")
	p.Drive()
	require.Equal(t, receipt.StateDenied, p.entry(key).State)
	p.RequireReplay()
}

// A real clock does not jump: only a bound that was said counts.
func TestARealClockHasNoHorizonOfItsOwn(t *testing.T) {
	w, _ := realBots(t, worldtest.Options{}, approvals)
	for _, h := range []*world.Horizon{nil, {}, {Ticks: 5000, Said: true}} {
		_, err := w.World.Submit(t.Context(), world.Submission{Name: "go", Data: mustData(t, order{To: "a"}), When: world.When{At: 5000}, Horizon: h})
		require.NoError(t, err)
	}
	_, err := w.World.Submit(t.Context(), world.Submission{
		Name: "go", Data: mustData(t, order{To: "a"}), When: world.When{At: 5000}, Horizon: &world.Horizon{Ticks: 50, Said: true},
	})
	require.ErrorIs(t, err, world.ErrTooFar)
}

func TestAHorizonCountsFromNow(t *testing.T) {
	ticks := &world.Horizon{Ticks: 3, Said: true}
	span := &world.Horizon{For: 3 * time.Second, Said: true}
	for _, h := range []*world.Horizon{ticks, span} {
		p := live(t, approvals)
		p.Step(5)
		require.ErrorIs(t, p.submitAt(9, h), world.ErrTooFar)
		require.NoError(t, p.submitAt(8, h))
		require.ErrorIs(t, p.submitAt(6, &world.Horizon{Said: true}), world.ErrTooFar, "at once only")
		_, err := p.World.World.Submit(t.Context(), world.Submission{Name: "go", Data: mustData(t, order{To: "b"}), When: world.When{In: time.Hour}, Horizon: h})
		require.ErrorIs(t, err, world.ErrTooFar)
		require.NoError(t, p.submitAt(0, &world.Horizon{Said: true}))
	}
	for _, text := range []string{"0", "3", "3s", "720h0m0s"} {
		h, err := world.ParseHorizon(text)
		require.NoError(t, err)
		require.Equal(t, text, h.String())
	}
	for _, text := range []string{"", "-1", "x", "3 ", "-3s", "18446744073709551616"} {
		_, err := world.ParseHorizon(text)
		require.Error(t, err, text)
	}
}
