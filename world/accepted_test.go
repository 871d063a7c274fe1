package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// atWork is what an attempt says of what the outside has accepted.
func atWork(t testing.TB, id string) worldtest.Reply {
	t.Helper()
	return atWorkUntil(t, id, 0)
}

// atWorkUntil is atWork of what it makes sense to ask about until then.
func atWorkUntil(t testing.TB, id string, until int64) worldtest.Reply {
	t.Helper()
	payload, err := (&receipt.Accepted{ID: id, Message: "half of it", Until: until}).Encode()
	require.NoError(t, err)
	return worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeAccepted, Payload: payload, Cost: receipt.Cost{Calls: 1}}
}

// accepted returns a world whose bot a has an intent that the outside has accepted.
func accepted(t *testing.T, change ...func(*manifest.Manifest)) (*play, receipt.Key) {
	t.Helper()
	p := live(t, change...)
	key := p.ask()
	require.Empty(t, p.performing().Accepted)
	p.out.Reply(p.performing(), atWork(t, "job-1"))
	p.Drive()
	return p, key
}

// accepted returns what the outside calls what it works on.
func (p *play) accepted(key receipt.Key) string {
	e := p.entry(key)
	return e.Accepted()
}

// pollNow ends the wait before the next attempt, and returns that.
func (p *play) pollNow() receipt.Task {
	p.t.Helper()
	p.due()
	return p.performing()
}

func TestWhatTheOutsideHasAcceptedIsAskedAboutUntilItEnds(t *testing.T) {
	p, key := accepted(t, func(m *manifest.Manifest) { m.Budget = manifest.Budget{Calls: 1} }, tool(func(e *manifest.Effect) {
		e.Retry = manifest.Retry{Attempts: 1}
		e.Rate = manifest.Rate{Calls: 1, Per: 1000}
	}))
	require.Equal(t, receipt.StateOpen, p.entry(key).State)
	require.Equal(t, "job-1", p.accepted(key), "it is in the journal before anybody waits for it")
	require.True(t, p.entry(key).Waiting)
	p.tells()
	for range 3 {
		poll := p.pollNow()
		require.Equal(t, "job-1", poll.Accepted)
		require.False(t, poll.Unwanted)
		p.out.Reply(poll, atWork(t, "job-1"))
		p.Drive()
	}
	p.out.Reply(p.pollNow(), worldtest.Reply{Status: receipt.StatusTimeout, Class: receipt.OutcomeRetryableFailure})
	p.Drive()
	require.Equal(t, receipt.StateOpen, p.entry(key).State, "who cannot ask asks again")
	p.out.Reply(p.pollNow(), worldtest.OK(nil))
	p.Drive()
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
	p.tells("x0 ok")
	called := 0
	for _, permit := range p.out.Performed {
		if permit.Accepted == "" {
			called++
		}
	}
	require.Equal(t, 1, called)
}

func TestProcessThatDiesAskingLeavesNoDoubt(t *testing.T) {
	p, key := accepted(t)
	p.crash()
	p.Drive()
	poll := p.pollNow()
	require.Equal(t, "job-1", poll.Accepted)
	p.crash()
	p.Drive()
	again := p.performing()
	require.Equal(t, poll.Attempt+1, again.Attempt)
	require.Equal(t, "job-1", again.Accepted, "asking is given back, and done again")
	p.out.Reply(again, worldtest.OK(nil))
	p.Drive()
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
	p.tells("x0 ok")
}

func TestWhatTheOutsideDoesNotKnowAnyMoreIsInDoubt(t *testing.T) {
	p, key := accepted(t)
	p.out.Lose(p.pollNow(), "the server knows no job-1")
	p.Drive()
	require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
	p.crash()
	p.Drive()
	require.Equal(t, receipt.StateInDoubt, p.entry(key).State, "nobody asks again")
	require.NoError(t, p.resolve(key, journal.RetryAnyway))
	p.Drive()
	require.Empty(t, p.performing().Accepted, "it is asked for anew")
	p.out.Reply(p.performing(), worldtest.OK(nil))
	p.Drive()
	p.tells("x0 ok")
}

func TestQuestionAboutWhatWasAcceptedBeginsAnew(t *testing.T) {
	p, key := accepted(t)
	p.out.Reply(p.pollNow(), asksToConfirm(t, ""))
	p.Drive()
	require.Equal(t, receipt.StateAwaitingAnswer, p.entry(key).State)
	require.NoError(t, p.answer(key, map[string]any{"yes": true}))
	p.Drive()
	require.Empty(t, p.performing().Accepted)
	require.Len(t, p.performing().Inputs, 1)
	p.out.Reply(p.performing(), worldtest.OK(nil))
	p.Drive()
	p.tells("x0 ok")
}

func TestReceiptThatNamesNothingAcceptedIsAFailure(t *testing.T) {
	p := live(t)
	key := p.ask()
	p.out.Reply(p.performing(), worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeAccepted, Payload: mustData(t, map[string]any{"id": "", "message": ""})})
	p.Drive()
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
	p.tells("x0 error")
}

func TestWhatWasAcceptedAndCancelledIsToldToTheOutside(t *testing.T) {
	p, key := accepted(t)
	p.cancel()
	require.Equal(t, receipt.StateInFlight, p.entry(key).State, "the outside is still at work")
	p.tells()
	p.crash()
	p.Drive()
	poll := p.performing()
	require.Equal(t, "job-1", poll.Accepted)
	require.True(t, poll.Unwanted)
	p.out.Reply(poll, atWork(t, "job-1"))
	p.Drive()
	p.out.Reply(p.pollNow(), worldtest.Fail(nil))
	p.Drive()
	p.tells("x0 error cancelled")
}

// A process that dies when the cell has cancelled, and before the wait has ended, leaves it
// to the next one to tell the outside, and that does so at once.
func TestTheOutsideHearsOfACancelAtOnceAfterACrash(t *testing.T) {
	p, key := accepted(t)
	p.Submit("go", order{To: "a", Do: []act{{Cancel: "x0"}}})
	for e := p.entry(key); len(e.Apart) == 0; e = p.entry(key) {
		_, err := p.Next(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, p.Sync())
	require.True(t, p.entry(key).Waiting)
	p.crash()
	p.Drive()
	require.True(t, p.performing().Unwanted)
	p.out.Reply(p.performing(), worldtest.Fail(nil))
	p.Drive()
	p.tells("x0 error cancelled")
}

// Who asks about what was accepted does not wait behind those that wait for a budget.
func TestAskingPassesThoseThatWaitForABudget(t *testing.T) {
	p, _ := accepted(t, func(m *manifest.Manifest) { m.Budget = manifest.Budget{Calls: 1} })
	p.Submit("go", order{To: "b", Do: []act{{Effect: "tool.a", Param: "y"}}})
	p.Drive()
	require.Equal(t, "job-1", p.pollNow().Accepted)
	p.out.Reply(p.performing(), worldtest.OK(nil))
	p.Drive()
	p.tells("x0 ok")
}

// The wait before the next attempt ends where the cell cancels: the outside hears of it at
// once, and not when it would have been asked again.
func TestWhatWasAcceptedAndCancelledIsAskedAboutAtOnce(t *testing.T) {
	p, key := accepted(t)
	require.True(t, p.entry(key).Waiting)
	p.cancel()
	require.Empty(t, p.out.Tasks(receipt.Retry), "nobody waits")
	require.True(t, p.performing().Unwanted)
}

// Until when the outside is asked its first word says, whatever it says later; another
// thing that it accepts has its own.
func TestAttemptsThatAskKnowUntilWhen(t *testing.T) {
	p := live(t)
	p.ask()
	p.out.Reply(p.performing(), atWorkUntil(t, "job-1", 7000))
	p.Drive()
	p.crash()
	p.Drive()
	poll := p.pollNow()
	require.EqualValues(t, 7000, poll.AskUntil)
	p.out.Reply(poll, atWorkUntil(t, "job-1", 9000))
	p.Drive()
	poll = p.pollNow()
	require.EqualValues(t, 7000, poll.AskUntil)
	p.out.Reply(poll, atWorkUntil(t, "job-2", 9000))
	p.Drive()
	poll = p.pollNow()
	require.EqualValues(t, 9000, poll.AskUntil)
	p.out.Lose(poll, "it took too long")
	p.Drive()
	require.NoError(t, p.resolve(poll.Key, journal.RetryAnyway))
	p.Drive()
	require.Zero(t, p.performing().AskUntil, "it is asked for anew")
}
