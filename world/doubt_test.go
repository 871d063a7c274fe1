package world_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func TestEffectInDoubtAsksByDefault(t *testing.T) {
	p := live(t)
	key := p.ask()
	p.lose()
	require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
	require.True(t, p.Idle(), "it waits for a person")
	require.Empty(t, p.out.Tasks(receipt.Retry))
	p.tells()
}

func TestEffectInDoubtFailsWhereItIsToldTo(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtFail))
	key := p.ask()
	lost := p.lose()
	require.Equal(t, receipt.StateFailed, p.entry(key).State)
	p.tells("x0 rejected")
	p.out.Reply(lost, worldtest.OK(nil)) // too late
	p.Drive()
	p.tells("x0 rejected")
	require.Len(t, worldtest.Bodies[*journal.Late](t, p.Journal), 1)
}

func TestIdempotentEffectInDoubtIsAttemptedAgain(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtRetry))
	key := p.ask()
	p.lose()
	require.Equal(t, receipt.StateOpen, p.entry(key).State)
	p.due()
	require.EqualValues(t, 2, p.performing().Attempt)
	require.Equal(t, key, p.performing().Key, "under the same external key")
	p.lose()
	p.due()
	p.lose()
	require.Equal(t, receipt.StateInDoubt, p.entry(key).State, "no attempt is left: a person decides")
	require.Len(t, p.out.Performed, 3)
}

func TestVerifierDecidesAboutAnEffectInDoubt(t *testing.T) {
	payload := mustData(t, "as the outside has it")
	for name, c := range map[string]struct {
		verdict receipt.FoundVerdict
		lost    int // attempts before
		state   receipt.State
		tells   []string
		tried   int
	}{
		"happened":                  {receipt.Happened, 1, receipt.StateCommitted, []string{"x0 ok"}, 1},
		"did not":                   {receipt.NotHappened, 1, receipt.StateInFlight, nil, 2},
		"did not, the last attempt": {receipt.NotHappened, 3, receipt.StateFailed, []string{"x0 rejected"}, 3},
		"nobody can tell":           {receipt.Unknown, 1, receipt.StateInDoubt, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, inDoubt(manifest.InDoubtVerify))
			key := p.ask()
			for range c.lost - 1 {
				p.lose()
				p.out.Find(p.out.Task(receipt.Verify), receipt.NotHappened, nil, "it is not there")
				p.Drive()
			}
			p.lose()
			require.Equal(t, receipt.StateInDoubt, p.entry(key).State)
			p.out.Find(p.out.Task(receipt.Verify), c.verdict, payload, "it was asked")
			p.Drive()
			require.Equal(t, c.state, p.entry(key).State, "it is decided as soon as the verifier has answered")
			p.tells(c.tells...)
			require.Len(t, p.out.Performed, c.tried)
		})
	}
}

func TestVerifierIsAskedAgainByTheNextProcess(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtVerify))
	key := p.ask()
	p.crash()
	require.Empty(t, p.out.Tasks(receipt.Verify), "looking at a world asks nobody")
	p.Drive()
	p.crash()
	p.Drive()
	require.Len(t, p.out.Tasks(receipt.Verify), 1)
	p.out.Find(p.out.Task(receipt.Verify), receipt.Happened, nil, "it is there")
	p.Drive()
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
	require.Len(t, p.out.Performed, 1)
}

func TestVerdictThatComesAfterTheReceiptChangesNothing(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtVerify))
	key := p.ask()
	lost := p.lose()
	p.out.Reply(lost, worldtest.OK(nil)) // in doubt, and still welcome
	p.out.Find(p.out.Task(receipt.Verify), receipt.NotHappened, nil, "it is not there")
	p.Drive()
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
	require.Empty(t, worldtest.Bodies[*journal.Resolved](t, p.Journal))
	p.tells("x0 ok")
}

func TestReceiptOfAnAttemptInDoubtIsTaken(t *testing.T) {
	p := live(t)
	key := p.ask()
	lost := p.lose()
	p.out.Reply(lost, worldtest.OK(nil))
	p.Drive()
	require.Equal(t, receipt.StateCommitted, p.entry(key).State)
	require.Empty(t, worldtest.Bodies[*journal.Late](t, p.Journal))
	require.Zero(t, p.out.Stored())
	p.tells("x0 ok")
}

func TestLateReceiptIsOnTheRecordAndChangesNothing(t *testing.T) {
	p := live(t)
	key := p.ask()
	lost := p.lose()
	p.decide(key, journal.RetryAnyway)
	second := p.performing()
	before := p.entry(key)
	p.out.Reply(lost, worldtest.OK("too late"))
	p.Drive()
	after := p.entry(key)
	require.Equal(t, before.State, after.State)
	require.Equal(t, before.Nonce, after.Nonce)
	require.Len(t, worldtest.Bodies[*journal.Late](t, p.Journal), 1)
	require.Zero(t, p.out.Stored(), "it is in the journal")
	p.tells()

	data, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", lost.Permit, worldtest.OK("again"))
	require.NoError(t, err)
	_, err = p.Receive(data)
	require.ErrorIs(t, err, receipt.ErrWrongAttempt, "once")
	p.out.Reply(second, worldtest.OK(nil))
	p.Drive()
	p.tells("x0 ok")
	_, err = p.Receive(data)
	require.ErrorIs(t, err, receipt.ErrDuplicate)
}

func TestPersonDecidesAboutAnEffectInDoubt(t *testing.T) {
	t.Run("executed", func(t *testing.T) {
		p := live(t)
		key := p.decided(journal.Executed)
		e := p.entry(key)
		require.Equal(t, []any{receipt.StateCommitted, receipt.OutcomeSideEffectCommitted}, []any{e.State, e.Outcome})
		p.tells("x0 ok")
		require.Len(t, p.out.Performed, 1)
	})
	for _, how := range []journal.Resolution{journal.NotExecuted, journal.RetryAnyway} {
		t.Run(string(how), func(t *testing.T) {
			p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 1 }))
			p.decided(how)
			p.tells()
			require.EqualValues(t, 2, p.performing().Attempt, "a person's word is not counted")
			p.reply(worldtest.OK(nil))
			p.tells("x0 ok")
		})
	}
}

// TestDecisionsAreAboutTheAttemptThatWasSeen: that one did not happen says nothing of the next.
func TestDecisionsAreAboutTheAttemptThatWasSeen(t *testing.T) {
	p := live(t)
	seen := p.entry(p.decided(journal.RetryAnyway)) // open by now
	seen.State, seen.Attempt = receipt.StateInDoubt, 1
	p.lose()
	now := p.entry(seen.Intent.Key)
	require.Equal(t, []any{receipt.StateInDoubt, uint64(2)}, []any{now.State, now.Attempt})
	all := []journal.Resolved{{Key: seen.Intent.Key, How: journal.NotExecuted, Params: seen.Params, Actor: "ada", Reason: "she looked"}}
	refused, err := p.ResolveAll(t.Context(), all, []receipt.Entry{seen})
	require.NoError(t, err)
	require.ErrorIs(t, refused[0], world.ErrNotWaiting)
	require.Equal(t, receipt.StateInDoubt, p.entry(seen.Intent.Key).State)
	refused, err = p.ResolveAll(t.Context(), all, []receipt.Entry{now})
	require.NoError(t, errors.Join(err, refused[0]))
}

func TestRefusedDecisionsLeaveNoTrace(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) {
		tool(func(e *manifest.Effect) { e.Retry.Attempts = 1 })(m)
		m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.kind == "tool.u"`, Decide: manifest.DecideRequireApproval})
		m.Limits.Receipt = 4096
	})
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a"}, {Effect: "tool.u"}, {Effect: "tool.l"}, {Effect: "tool.bad"}}})
	p.Drive()
	p.lose()
	all := p.Intents()
	doubt, asked, flying, denied := all[0], all[1], all[2], all[3]
	require.Equal(t, receipt.StateInDoubt, doubt.State)
	require.Equal(t, receipt.StateAwaitingApproval, asked.State)
	require.Equal(t, receipt.StateInFlight, flying.State)
	require.Equal(t, receipt.StateDenied, denied.State)
	good := func(e receipt.Entry, how journal.Resolution) journal.Resolved {
		return journal.Resolved{Key: e.Intent.Key, How: how, Params: e.Params, Actor: "ada", Reason: "so"}
	}
	with := func(b journal.Resolved, change func(*journal.Resolved)) journal.Resolved { change(&b); return b }
	before, head := p.Status(), p.Journal.Head()
	for name, c := range map[string]struct {
		decision journal.Resolved
		want     error
	}{
		"unknown intent":         {with(good(doubt, journal.Executed), func(b *journal.Resolved) { b.Key.Hash[0]++ }), world.ErrNoIntent},
		"other params":           {with(good(doubt, journal.Executed), func(b *journal.Resolved) { b.Params[0]++ }), world.ErrOtherParams},
		"no params":              {with(good(asked, journal.Approve), func(b *journal.Resolved) { b.Params = journal.Hash{} }), world.ErrOtherParams},
		"no decision":            {good(doubt, "perhaps"), world.ErrNotWaiting},
		"no reason":              {with(good(doubt, journal.Executed), func(b *journal.Resolved) { b.Reason = "" }), world.ErrNoReason},
		"no actor":               {with(good(asked, journal.Approve), func(b *journal.Resolved) { b.Actor = "" }), world.ErrNoReason},
		"a verifier by its name": {with(good(doubt, journal.Executed), func(b *journal.Resolved) { b.Actor = "verifier/exec" }), world.ErrNoReason},
		"approve in doubt":       {good(doubt, journal.Approve), world.ErrNotWaiting},
		"reuse in doubt":         {good(doubt, world.Reuse), world.ErrNotWaiting},
		"reuse of no repeat":     {good(asked, world.Reuse), world.ErrNoRepeat},
		"deny in doubt":          {good(doubt, journal.Disapprove), world.ErrNotWaiting},
		"executed asked":         {good(asked, journal.Executed), world.ErrNotWaiting},
		"not executed asked":     {good(asked, journal.NotExecuted), world.ErrNotWaiting},
		"retry in flight":        {good(flying, journal.RetryAnyway), world.ErrNotWaiting},
		"executed in flight":     {good(flying, journal.Executed), world.ErrNotWaiting},
		"approve denied":         {good(denied, journal.Approve), world.ErrNotWaiting},
		"payload not canonical":  {with(good(doubt, journal.Executed), func(b *journal.Resolved) { b.Payload = []byte{0x18, 1} }), world.ErrBadData},
		"payload not one item":   {with(good(doubt, journal.Executed), func(b *journal.Resolved) { b.Payload = []byte{1, 1} }), world.ErrBadData},
		"payload over the limit": {with(good(doubt, journal.Executed), func(b *journal.Resolved) { b.Payload = mustData(t, make([]byte, 5000)) }), world.ErrTooLarge},
	} {
		err := worldtest.ErrorOf(p.Resolve(t.Context(), c.decision))
		require.ErrorIs(t, err, c.want, name)
		input := new(world.InputError)
		require.ErrorAs(t, err, &input, name)
		require.NotEmpty(t, input.Field, name)
		require.Equal(t, before, p.Status(), name)
		require.Equal(t, head, p.Journal.Head(), name)
	}
	require.ErrorIs(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), asked.Intent.Key, "ada", "so")), world.ErrNotWaiting)
	require.ErrorIs(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), receipt.Key{}, "ada", "so")), world.ErrNoIntent)
	require.Equal(t, before, p.Status())
	require.NoError(t, worldtest.ErrorOf(p.Resolve(t.Context(), good(doubt, journal.Executed))))
	require.ErrorIs(t, worldtest.ErrorOf(p.Resolve(t.Context(), good(doubt, journal.Executed))), world.ErrNotWaiting, "once")
}

func TestDecisionsSurviveACrash(t *testing.T) {
	for i, how := range []journal.Resolution{journal.Executed, journal.NotExecuted, journal.RetryAnyway} {
		t.Run(string(how), func(t *testing.T) {
			p := live(t)
			key := p.ask()
			p.lose()
			require.NoError(t, p.resolve(key, how))
			p.crash()
			p.Drive()
			require.Len(t, p.out.Performed, []int{1, 2, 2}[i])
		})
	}
}

// Whoever lost what is told as one thing: the reason is on the record.
func TestDoubtSaysWhy(t *testing.T) {
	p := live(t)
	p.ask()
	p.lose()
	doubts := worldtest.Bodies[*journal.InDoubt](t, p.Journal)
	require.Len(t, doubts, 1)
	require.Equal(t, "the line is dead", doubts[0].Reason)
	require.Equal(t, "bot/a", doubts[0].Cell)
	require.Equal(t, manifest.InDoubtAsk, doubts[0].Action)
}

func TestManyEffectsInDoubtAreDecidedOneByOne(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtVerify))
	for i := range 4 {
		p.Submit("go", order{To: fmt.Sprint("c", i), Do: []act{{Effect: "tool.a"}}})
	}
	p.Drive()
	p.crash()
	p.Drive()
	tasks := p.out.Tasks(receipt.Verify)
	require.Len(t, tasks, 4)
	for i, task := range tasks {
		p.out.Find(task, []receipt.FoundVerdict{receipt.Happened, receipt.NotHappened}[i%2], nil, "seen")
	}
	p.Drive()
	require.Equal(t, 2, p.Status().Intents[receipt.StateCommitted])
	require.Len(t, p.out.Tasks(receipt.Perform), 2)
}

// twoOrders returns a play in which two attempts are permitted after the snapshot
// "before", and a budget of calls for them.
func twoOrders(t *testing.T) *play {
	t.Helper()
	p := live(t, func(m *manifest.Manifest) { m.Budget.Calls = 2 })
	p.snapshot("before")
	p.order("x")
	p.order("y")
	p.Drive()
	require.Len(t, p.out.Tasks(receipt.Perform), 2)
	return p
}

// TestWhatWasNotBegunNeverIsAfterARollback is the fifth of the ways in which something
// was done that should not be: it was permitted, not begun, rolled back, and performed.
func TestWhatWasNotBegunNeverIsAfterARollback(t *testing.T) {
	p := twoOrders(t)
	p.out.Unbegun = func(task receipt.Task) bool { return task.Tag == "y0" }
	done := p.back("before")
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged, "y0": journal.Cancelled}, p.dispositions(done))
	require.Equal(t, 1, p.Status().Intents[receipt.StateCancelled])
	p.crash()
	p.Drive()
	require.Len(t, p.out.Performed, 1)

	p.order("x") // the same history: y is another attempt, and its call was given back
	p.order("y")
	p.Drive()
	require.Equal(t, "y0", p.performing().Tag)
	require.EqualValues(t, 2, p.performing().Attempt, "a number names one attempt")
	p.reply(worldtest.OK(nil))
	p.tells("y0 ok")
	p.order("z")
	p.Drive()
	require.Equal(t, 1, p.Status().Intents[receipt.StateInDoubt])
	require.Empty(t, p.out.Tasks(receipt.Perform), "no third call is there, until somebody decides")
}

// TestOfMixedAnswersTheReceiptSaysWhatWasGivenBack: which attempt the answer names
// decides nothing. Else what was done would be told as never begun, and done again.
func TestOfMixedAnswersTheReceiptSaysWhatWasGivenBack(t *testing.T) {
	p := twoOrders(t)
	tasks := p.out.Tasks(receipt.Perform)
	p.out.Reply(tasks[0], worldtest.OK(nil))
	p.out.Reply(tasks[1], givenBack())
	p.out.Mix()
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged, "y0": journal.Cancelled}, p.dispositions(p.back("before")))
}

func TestRefusedRollbackLeavesWhatWasNotBegunToBeBegun(t *testing.T) {
	p := twoOrders(t)
	p.out.Unbegun = func(task receipt.Task) bool { return task.Tag == "y0" }
	head := p.Status().Head
	_, _, err := p.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so"})
	var left *world.SideEffectsError
	require.ErrorAs(t, err, &left)
	require.Len(t, left.Effects, 2)
	require.Contains(t, err.Error(), "leaves 1 side effects")
	require.Equal(t, head, p.Status().Head)
	require.Len(t, p.out.Tasks(receipt.Perform), 2)
	p.reply(worldtest.OK(nil))
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok", "y0 ok")
}

// TestWhatAStopGaveBackIsCancelledByARollback: the process before ended with permits
// that nobody had begun, whether the world has heard of that yet or not.
func TestWhatAStopGaveBackIsCancelledByARollback(t *testing.T) {
	t.Run("unheard", func(t *testing.T) {
		p := twoOrders(t)
		p.out.Store(p.out.Tasks(receipt.Perform)[1], givenBack())
		p.out.Store(p.out.Tasks(receipt.Perform)[0], worldtest.OK(nil))
		p.crash()
		done := p.back("before")
		require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged, "y0": journal.Cancelled}, p.dispositions(done))
		require.Empty(t, p.out.Tasks(receipt.Perform))
		require.Zero(t, p.out.Stored())
	})
	t.Run("heard", func(t *testing.T) {
		p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
		p.snapshot("before")
		p.order("x")
		p.order("y")
		p.Drive()
		p.out.Store(p.performing(), givenBack())
		p.crash()
		p.other()
		p.Drive() // x is open again, and in flight again
		require.EqualValues(t, 2, p.performing().Attempt)
		p.out.Store(p.performing(), givenBack())
		p.crash()
		require.Equal(t, map[string]journal.Disposition{"x0": journal.Cancelled, "y0": journal.Cancelled}, p.dispositions(p.back("before")))
		require.Empty(t, p.out.Tasks(receipt.Perform))
	})
	t.Run("after the rollback", func(t *testing.T) {
		p := twoOrders(t)
		p.back("before")
		p.out.Reply(p.out.Tasks(receipt.Perform)[1], givenBack())
		p.Drive()
		require.Len(t, p.out.Tasks(receipt.Perform), 1, "nobody waits for the other")
		require.Equal(t, 1, p.Status().Intents[receipt.StateCancelled])
		p.reply(givenBack())
		require.Empty(t, p.out.Tasks(receipt.Perform))
	})
}

// TestWhatWasAttemptedBeforeIsNotUntouched: an attempt that is given back says nothing
// of the one before.
func TestWhatWasAttemptedBeforeIsNotUntouched(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.decided(journal.RetryAnyway)
	p.out.Unbegun = func(receipt.Task) bool { return true }
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged}, p.dispositions(p.back("before")))
	p.otherwise()
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval], "it may have happened")
}

// TestForkStopsWhatWasAttempted and a rollback there lists it: it may have happened.
func TestForkStopsWhatWasAttempted(t *testing.T) {
	p := live(t, inDoubt(manifest.InDoubtRetry))
	p.snapshot("before")
	p.ask()
	p.lose()
	out := new(worldtest.Outside)
	child := &play{World: p.Fork(journal.ForkLive, worldtest.Options{ID: "child", Reducers: botRegistry(), Outside: out, BatchRecords: 1}), out: out, t: t}
	child.Drive()
	require.Equal(t, 1, child.Status().Intents[receipt.StateAwaitingApproval])
	require.Len(t, child.back("before").Abandoned, 1)
	child.otherwise()
	require.Empty(t, out.Performed)
}

// TestWhatIsAskedForAnewIsWithdrawnAnew, and the history that asked for it first is
// still one that did.
func TestWhatIsAskedForAnewIsWithdrawnAnew(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.snapshot("asked")
	p.out.Unbegun = func(receipt.Task) bool { return true }
	for attempt := range 3 {
		require.EqualValues(t, attempt+1, p.performing().Attempt)
		require.Equal(t, map[string]journal.Disposition{"x0": journal.Cancelled}, p.dispositions(p.back("before")))
		require.Empty(t, p.out.Tasks(receipt.Perform))
		p.order("x")
		p.Drive()
	}
	p.reply(worldtest.OK(nil))
	p.back("asked")
	p.tells("x0 ok")
	require.Equal(t, map[string]journal.Disposition{"x0": journal.Acknowledged}, p.dispositions(p.back("before")))
}
