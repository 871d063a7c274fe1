package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// dispositions returns what a rollback said of each side effect, by its tag.
func (p *play) dispositions(b *journal.RolledBack) map[string]journal.Disposition {
	p.t.Helper()
	out := make(map[string]journal.Disposition)
	for _, x := range b.Abandoned {
		out[p.entry(x.Key).Intent.Tag] = x.Disposition
	}
	return out
}

// other has the bot take another step than before, so that what it asks for next has
// another key.
func (p *play) other() {
	p.t.Helper()
	p.Submit("go", order{To: "a", Say: "something else"})
}

// TestWhatComesBackIsCompensatedWhenItIsLeftAgain is the second of the ways in which
// something was lost sight of: a rollback led to the part that another one had left.
func TestWhatComesBackIsCompensatedWhenItIsLeftAgain(t *testing.T) {
	p := undone(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	p.snapshot("after")
	p.back("before")
	p.crash()
	p.back("after")
	done := p.back("before", compensating)
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Compensated}, p.dispositions(done))
	require.Equal(t, "tool.l", p.performing().Kind)
	p.reply(worldtest.OK(nil))
	require.Empty(t, p.back("before", compensating).Abandoned, "it is made up for")
}

// TestWhatAnotherStoodForIsCompensated leaves behind what had its result from a part
// that was left before.
func TestWhatAnotherStoodForIsCompensated(t *testing.T) {
	p := undone(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	p.back("before")
	p.other()
	p.order("x")
	p.Drive()
	second := p.Intents()[1]
	require.Equal(t, receipt.StateParked, second.State)
	require.NoError(t, p.resolve(second.Intent.Key, world.Reuse))
	p.Drive()
	p.tells("x0 ok")
	done := p.back("before", compensating)
	require.Len(t, done.Abandoned, 1)
	require.Equal(t, p.Intents()[0].Intent.Key, done.Abandoned[0].Key, "the intent that was performed")
	require.Equal(t, journal.Compensated, done.Abandoned[0].Disposition)
	p.reply(worldtest.OK(nil))
	p.other()
	p.order("x") // the step of the second history
	p.Drive()
	p.tells("x0 rejected")
	require.Len(t, p.out.Performed, 2, "the payment, and its return")
}

// TestReturnToWhatWasMadeUpForIsSaid returns to a part in which a cell counts on what
// has been undone since: somebody has to know.
func TestReturnToWhatWasMadeUpForIsSaid(t *testing.T) {
	p := undone(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	p.snapshot("after")
	p.back("before", compensating)
	b := journal.RolledBack{Snapshot: "after", Actor: "ada", Reason: "so"}
	_, err := p.Rollback(t.Context(), b)
	require.ErrorAs(t, err, new(*world.SideEffectsError), "while it is under way, too")
	p.reply(worldtest.OK(nil))
	_, err = p.Rollback(t.Context(), b)
	require.ErrorAs(t, err, new(*world.SideEffectsError))
	done := p.back("after")
	require.Equal(t, map[string]journal.Disposition{"x0": journal.MadeUpFor}, p.dispositions(done))
	p.tells("x0 ok")
	require.Empty(t, p.back("before").Abandoned)
	require.Len(t, p.out.Performed, 2)
}

func TestCompensationInVainIsNoReturnToWhatWasMadeUpFor(t *testing.T) {
	p := undone(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	p.snapshot("after")
	p.back("before", compensating)
	p.reply(worldtest.Fail("no"))
	require.Empty(t, p.back("after").Abandoned)
	p.tells("x0 ok")
	require.Len(t, p.back("before").Abandoned, 1)
}

// TestCompensationThatEndsAfterTheReturnIsToldOnce lets the compensation come to its
// end when its intent's cell is where it has its receipt already.
func TestCompensationThatEndsAfterTheReturnIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		reply worldtest.Reply
		left  int
	}{"done": {worldtest.OK(nil), 0}, "in vain": {worldtest.Fail("no"), 1}} {
		t.Run(name, func(t *testing.T) {
			p := undone(t)
			p.snapshot("before")
			p.order("x")
			p.Drive()
			p.reply(worldtest.OK(map[string]any{"id": 7}))
			p.tells("x0 ok")
			p.snapshot("after")
			p.back("before", compensating)
			p.back("after")
			p.reply(c.reply)
			p.tells("x0 ok")
			require.Len(t, p.back("before").Abandoned, c.left)
		})
	}
}

func TestFreshEffectsAreMeantInTheirOwnHistoryOnly(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.back("before", func(b *journal.RolledBack) { b.Fresh = true })
	p.snapshot("fresh")
	p.order("x")
	p.Drive()
	p.reply(worldtest.OK(nil))
	require.Len(t, p.out.Performed, 2, "it is meant anew")
	p.back("fresh")
	p.crash()
	p.other()
	p.order("x")
	p.Drive()
	require.Equal(t, receipt.StateParked, p.Intents()[2].State, "the second is left behind, and the first is waived")
	p.back("before")
	p.other()
	p.order("x")
	p.order("x")
	p.Drive()
	require.Equal(t, 2, p.Status().Intents[receipt.StateParked], "both are left behind")
	require.Len(t, p.out.Performed, 2)
}

func TestAResultIsForOneIntent(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.back("before")
	p.other()
	p.order("x")
	p.order("x")
	p.Drive()
	all := p.Intents()
	require.NoError(t, p.resolve(all[1].Intent.Key, world.Reuse))
	require.ErrorIs(t, p.resolve(all[2].Intent.Key, world.Reuse), world.ErrNoRepeat)
	p.Drive()
	p.tells("x0 ok")
}

// TestWhatIsBeingMadeUpForHasNoResultToReuse parks what would get the result of a
// payment that is on its way back.
func TestWhatIsBeingMadeUpForHasNoResultToReuse(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) {
		e.OnRepeat = manifest.RepeatReuse
		e.Compensate = &manifest.Compensate{Kind: "tool.l", Params: `{"undo": receipt.payload.id}`}
	}))
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	p.back("before", compensating)
	p.other()
	p.order("x")
	p.Drive()
	again := p.Intents()[2].Intent.Key
	require.Equal(t, receipt.StateParked, p.entry(again).State)
	require.ErrorIs(t, p.resolve(again, world.Reuse), world.ErrNoRepeat)
	p.reply(worldtest.OK(nil))
	require.ErrorIs(t, p.resolve(again, world.Reuse), world.ErrNoRepeat)
	require.NoError(t, p.resolve(again, journal.Approve))
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
}

// TestDoubtThatCountsAsFailedIsSomethingToRepeat: on_in_doubt fail, retry and a
// person's retry make nothing undone.
func TestDoubtThatCountsAsFailedIsSomethingToRepeat(t *testing.T) {
	repeated := func(p *play) {
		p.t.Helper()
		require.Len(t, p.back("before").Abandoned, 1, "it may have happened")
		p.other()
		p.order("x")
		p.Drive()
		all := p.Intents()
		require.Equal(p.t, receipt.StateParked, all[len(all)-1].State)
	}
	t.Run("fail", func(t *testing.T) {
		p := live(t, inDoubt(manifest.InDoubtFail))
		p.snapshot("before")
		p.ask()
		p.lose()
		p.crash()
		repeated(p)
	})
	t.Run("retry by a person", func(t *testing.T) {
		p := live(t)
		p.snapshot("before")
		key := p.ask()
		p.lose()
		require.NoError(t, p.resolve(key, journal.RetryAnyway))
		p.Drive()
		p.reply(worldtest.Fail("no"))
		repeated(p)
	})
	t.Run("late", func(t *testing.T) {
		p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 1 }), func(m *manifest.Manifest) { m.Budget.Calls = 1 })
		p.snapshot("before")
		key := p.ask()
		lost := p.lose()
		require.NoError(t, p.resolve(key, journal.NotExecuted))
		p.Drive()
		require.Equal(t, receipt.StateFailed, p.entry(key).State)
		p.out.Reply(lost, worldtest.OK(nil))
		p.Drive()
		repeated(p)
	})
}

func TestWhatSurelyDidNotHappenIsNothingToRepeat(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	key := p.ask()
	p.lose()
	require.NoError(t, p.resolve(key, journal.NotExecuted))
	p.Drive()
	p.reply(worldtest.Fail("no"))
	require.Empty(t, p.back("before").Abandoned)
	p.other()
	p.order("x")
	p.Drive()
	require.Len(t, p.out.Tasks(receipt.Perform), 1)
}
