package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// shadowed is the report of a shadow of the whole history under changed rules.
func (p *play) shadowed(changes ...func(*manifest.Manifest)) *governance.Report {
	p.t.Helper()
	next := *p.Manifest()
	for _, change := range changes {
		change(&next)
	}
	r, err := p.Rehearse(p.t.Context(), &next, nil, world.ShadowConfig{At: 1})
	require.NoError(p.t, err)
	return r
}

// What asks a person does so in a shadow of rules that mean the same, and goes on with the
// recorded answer: at each moment of its life.
func TestShadowGoesOnWithWhatAPersonHasAnswered(t *testing.T) {
	p, key := asked(t)
	same := func() {
		t.Helper()
		requireNoOp(t, p.shadowed())
		requireNoOp(t, p.shadowed(renamed))
	}
	same()
	require.NoError(t, p.answer(key, map[string]any{"yes": true}))
	same()
	p.Drive()
	p.out.Reply(p.performing(), asksToConfirm(t, "s2"))
	p.Drive()
	same()
	require.NoError(t, p.answer(key, map[string]any{"yes": false}))
	p.Drive()
	p.out.Reply(p.performing(), worldtest.OK(nil))
	p.Drive()
	p.tells("x0 ok")
	same()
}

func TestShadowEndsWhatAPersonHasDeniedToAnswer(t *testing.T) {
	p, key := asked(t)
	p.decide(key, journal.Disapprove)
	p.Drive()
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
	requireNoOp(t, p.shadowed())
	requireNoOp(t, p.shadowed(renamed))
}

// Under rules that do not let it come to its question, nobody is asked and the answer is
// left out: the report says so, and what the attempts after it brought still counts.
func TestShadowOfOtherRulesLeavesOutAnAnswerToWhatNobodyAsked(t *testing.T) {
	for name, change := range map[string]func(*manifest.Manifest){
		"it is denied":     deciding("tool.a", manifest.DecideDeny),
		"it is to approve": deciding("tool.a", manifest.DecideRequireApproval),
		"nobody asks":      func(m *manifest.Manifest) { m.Routing = m.Routing[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			p, key := asked(t)
			require.Zero(t, p.shadowed(change).Counts.LeftOut)
			require.NoError(t, p.answer(key, map[string]any{"yes": true}))
			p.Drive()
			p.out.Reply(p.performing(), worldtest.OK(nil))
			p.Drive()
			r := p.shadowed(change)
			require.EqualValues(t, 1, r.Counts.LeftOut)
			require.False(t, r.NoOp())
		})
	}
}

// Where the candidate has fewer slots what asks is asked for later than its question came:
// the answer is left out, and its end is known all the same.
func TestShadowWithFewerSlotsEndsWhatWasAnswered(t *testing.T) {
	p := live(t)
	p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.l", Param: "y"}}})
	key := p.ask()
	slow, asks := p.out.Tasks(receipt.Perform)[0], p.out.Tasks(receipt.Perform)[1]
	p.out.Reply(asks, asksToConfirm(t, "s1"))
	p.Drive()
	require.NoError(t, p.answer(key, map[string]any{"yes": true}))
	p.Drive()
	p.out.Reply(p.out.Tasks(receipt.Perform)[1], worldtest.OK(nil))
	p.out.Reply(slow, worldtest.OK(nil))
	p.Drive()
	requireNoOp(t, p.shadowed())
	r := p.shadowed(func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	require.EqualValues(t, 1, r.Counts.LeftOut)
	require.Zero(t, r.Counts.Unknown, "%+v", r)
	require.Zero(t, r.Counts.IntentsGone+r.Counts.IntentsNew)
}

// From a snapshot where it waits for the answer, it goes on likewise.
func TestShadowFromASnapshotWithAQuestion(t *testing.T) {
	p, key := asked(t)
	p.snapshot("waits")
	require.NoError(t, p.answer(key, map[string]any{"yes": true}))
	p.Drive()
	p.out.Reply(p.performing(), worldtest.OK(nil))
	p.Drive()
	for _, change := range []func(*manifest.Manifest){func(*manifest.Manifest) {}, renamed} {
		next := *p.Manifest()
		change(&next)
		r, err := p.Rehearse(t.Context(), &next, nil, world.ShadowConfig{From: "waits"})
		require.NoError(t, err)
		requireNoOp(t, r)
	}
}
