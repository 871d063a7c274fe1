package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// failed is an effect that the outside said no to, of which the cell has been told.
func (p *play) failed() receipt.Key {
	p.t.Helper()
	key := p.ask()
	p.reply(worldtest.Fail("no"))
	require.Equal(p.t, receipt.StateFailed, p.entry(key).State)
	return key
}

// newest is the intent that was asked for last.
func (p *play) newest() receipt.Entry {
	all := p.Intents()
	return all[len(all)-1]
}

// edit has other params asked for in the place of an intent.
func (p *play) edit(key receipt.Key, param string) error {
	data, err := canon.Marshal(map[string]string{"p": param})
	require.NoError(p.t, err)
	return worldtest.ErrorOf(p.Resolve(p.t.Context(), journal.Resolved{
		Key: key, How: journal.Edit, Params: p.entry(key).Params, Actor: "ada", Reason: "she looked", Payload: data,
	}))
}

// refuses requires that a decision was refused.
func (p *play) refuses(want, err error) {
	p.t.Helper()
	require.ErrorIs(p.t, err, want)
}

// TestWhatFailedForGoodIsAskedForAgain: by an intent of its own, of which the same cell is told
// under the same tag; once, as long as that stands.
func TestWhatFailedForGoodIsAskedForAgain(t *testing.T) {
	p := live(t)
	first := p.failed()
	p.tells("x0 error")
	head := p.Journal.Head().ID
	require.NoError(t, p.resolve(first, journal.RetryAnyway))
	second := p.newest()
	require.NotEqual(t, first, second.Intent.Key)
	require.Equal(t, p.entry(first).Params, second.Params)
	require.Equal(t, p.entry(first).Intent.Step+"!again", second.Intent.Step)
	require.Equal(t, p.entry(first).Intent.Tag, second.Intent.Tag)
	require.Equal(t, receipt.StateFailed, p.entry(first).State, "an end is an end")
	emitted := worldtest.Bodies[*journal.IntentEmitted](t, p.Journal)
	require.Equal(t, "allow", emitted[len(emitted)-1].Decision, "the gate judged it anew")
	require.Greater(t, p.Journal.Head().ID, head)

	p.refuses(world.ErrNotWaiting, p.resolve(first, journal.RetryAnyway))
	p.crash()
	p.Drive()
	require.Equal(t, second.Intent.Key, p.performing().Key)
	p.reply(worldtest.Fail("no"))
	p.refuses(world.ErrNotWaiting, p.resolve(first, journal.RetryAnyway))
	require.NoError(t, p.resolve(second.Intent.Key, journal.RetryAnyway))
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.tells("x0 error", "x0 error", "x0 ok")
	p.refuses(world.ErrNotWaiting, p.resolve(p.newest().Intent.Key, journal.RetryAnyway))
	require.Len(t, p.out.Performed, 3)
}

// TestWhatMayHaveHappenedTakesSomebodyWhoLooked before it is asked for again.
func TestWhatMayHaveHappenedTakesSomebodyWhoLooked(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtFail))
	key := p.ask()
	p.lose()
	p.tells("x0 rejected")
	head := p.Journal.Head().ID
	p.refuses(world.ErrMayBeDone, p.resolve(key, journal.RetryAnyway))
	require.Equal(t, head, p.Journal.Head().ID, "refused without a trace")
	p.decide(key, journal.NotExecuted)
	p.reply(worldtest.OK(nil))
	p.tells("x0 rejected", "x0 ok")
	e := p.entry(key)
	require.False(t, e.MayHaveHappened())
}

// TestWhatIsAskedInThePlaceOfWhatDidNotHappenNeedsItsBudget: what was kept when nobody could
// tell stays kept.
func TestWhatIsAskedInThePlaceOfWhatDidNotHappenNeedsItsBudget(t *testing.T) {
	p := live(t, tokens, inDoubt(manifest.InDoubtFail))
	key := p.ask()
	p.lose()
	p.tells("x0 rejected")
	p.decide(key, journal.NotExecuted)
	require.Equal(t, receipt.StateInFlight, p.newest().State)
	require.Equal(t, uint64(40), p.Budgets()[0].Kept.Tokens)
	require.Equal(t, uint64(20), p.Budgets()[0].Left.Tokens)
}

// TestWhatIsTriedAgainIsGatedAgain: a decision to try again is no approval, and no budget.
func TestWhatIsTriedAgainIsGatedAgain(t *testing.T) {
	t.Run("a person has to approve", func(t *testing.T) {
		p := live(t, approvals)
		p.decide(p.ask(), journal.Approve)
		p.reply(worldtest.Fail("no"))
		p.decide(p.newest().Intent.Key, journal.RetryAnyway)
		again := p.newest()
		require.Equal(t, receipt.StateAwaitingApproval, again.State)
		p.decide(again.Intent.Key, journal.Approve)
		p.reply(worldtest.OK(nil))
		p.tells("x0 error", "x0 ok")
	})
	t.Run("the budget is spent", func(t *testing.T) {
		p := live(t, calls(1))
		key := p.failed()
		head := p.Journal.Head().ID
		p.refuses(world.ErrGate, p.resolve(key, journal.RetryAnyway))
		require.Equal(t, head, p.Journal.Head().ID, "refused without a trace")
		p.tells("x0 error")
	})
}

// TestWhatIsTriedAgainInVainIsTriedOnceMore: each is decided about once, so what was denied
// has another one in its place.
func TestWhatIsTriedAgainInVainIsTriedOnceMore(t *testing.T) {
	p := live(t, approvals)
	first := p.ask()
	p.decide(first, journal.Approve)
	p.reply(worldtest.Fail("no"))
	for _, step := range []receipt.StepID{"!again", "!again!again"} {
		p.decide(first, journal.RetryAnyway)
		require.Equal(t, p.entry(first).Intent.Step+step, p.newest().Intent.Step)
		p.decide(p.newest().Intent.Key, journal.Disapprove)
	}
	p.tells("x0 error", "x0 denied", "x0 denied")
}

// TestWhatIsTriedAgainAndEditedIsNotTriedAgain beside what it was edited to.
func TestWhatIsTriedAgainAndEditedIsNotTriedAgain(t *testing.T) {
	p := live(t, approvals)
	first := p.ask()
	p.decide(first, journal.Approve)
	p.reply(worldtest.Fail("no"))
	p.decide(first, journal.RetryAnyway)
	require.NoError(t, p.edit(p.newest().Intent.Key, "y"))
	edited := p.newest().Intent.Key
	p.refuses(world.ErrNotWaiting, p.resolve(first, journal.RetryAnyway))
	p.decide(edited, journal.Approve)
	p.reply(worldtest.OK(nil))
	p.refuses(world.ErrNotWaiting, p.resolve(first, journal.RetryAnyway))
	p.tells("x0 error", "x0 ok")
	require.Len(t, p.out.Performed, 2)
}

// TestEditedIntentIsAnother: what waited ends untold, and what is asked for in its place waits
// for its own approval.
func TestEditedIntentIsAnother(t *testing.T) {
	p := live(t, approvals)
	first := p.ask()
	p.refuses(world.ErrSameParams, p.edit(first, "x"))
	require.NoError(t, p.edit(first, "y"))
	second := p.newest()
	require.Equal(t, receipt.StateDenied, p.entry(first).State)
	require.Equal(t, receipt.StateAwaitingApproval, second.State, "an edit is no approval")
	require.Equal(t, p.entry(first).Intent.Tag, second.Intent.Tag)
	ended := worldtest.Bodies[*journal.IntentEnded](t, p.Journal)
	require.Equal(t, receipt.StatusCancelled, ended[0].Status)
	p.refuses(world.ErrNotWaiting, p.edit(first, "z"))
	p.refuses(world.ErrNotWaiting, p.resolve(first, journal.Approve))
	p.crash()
	p.Drive()
	p.tells()
	require.Empty(t, p.out.Performed)
	p.decide(second.Intent.Key, journal.Approve)
	require.Equal(t, second.Params, canon.Sum(p.performing().Params))
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
	p.refuses(world.ErrNotWaiting, p.edit(second.Intent.Key, "z"))
}

// TestEditThatTheGateDeniesChangesNothing: what waits goes on waiting.
func TestEditThatTheGateDeniesChangesNothing(t *testing.T) {
	p := live(t, approvals, func(m *manifest.Manifest) {
		m.Policies = append(m.Policies, manifest.Policy{Name: "no z", When: `intent.params.p == "z"`, Decide: manifest.DecideDeny})
	})
	key := p.ask()
	head := p.Journal.Head().ID
	p.refuses(world.ErrGate, p.edit(key, "z"))
	require.Equal(t, head, p.Journal.Head().ID)
	require.Equal(t, receipt.StateAwaitingApproval, p.entry(key).State)
}

// TestWhatWasTriedAgainIsLeftBehindByARollback: it is listed, and whoever tries again in the
// history that goes on gets its result. Nothing is done twice.
func TestWhatWasTriedAgainIsLeftBehindByARollback(t *testing.T) {
	p := live(t)
	first := p.failed()
	p.snapshot("noon")
	p.decide(first, journal.RetryAnyway)
	again := p.newest().Intent.Key
	p.reply(worldtest.OK(nil))
	p.tells("x0 error", "x0 ok")
	b := p.back("noon")
	require.Len(t, b.Abandoned, 1)
	require.Equal(t, again, b.Abandoned[0].Key)
	p.tells("x0 error")
	p.decide(first, journal.RetryAnyway)
	p.tells("x0 error", "x0 ok")
	require.Len(t, p.out.Performed, 2, "nothing is done twice")
}

// TestWhatWasEditedStaysOverAfterARollback to where it waited: its cell is told so.
func TestWhatWasEditedStaysOverAfterARollback(t *testing.T) {
	p := live(t, approvals)
	first := p.ask()
	p.snapshot("noon")
	require.NoError(t, p.edit(first, "y"))
	p.back("noon")
	p.tells("x0 cancelled")
}
