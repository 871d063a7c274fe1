package world_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// snapshot makes a snapshot.
func (p *play) snapshot(name string) {
	p.t.Helper()
	_, err := p.Snapshot(p.t.Context(), name, "", "ada")
	require.NoError(p.t, err)
}

// back rolls back, whatever that leaves behind, and drives.
func (p *play) back(to string, how ...func(*journal.RolledBack)) *journal.RolledBack {
	p.t.Helper()
	b := journal.RolledBack{Snapshot: to, Actor: "ada", Reason: "a try", Ack: true}
	for _, change := range how {
		change(&b)
	}
	_, done, err := p.Rollback(p.t.Context(), b)
	require.NoError(p.t, err)
	p.Drive()
	return done
}

func compensating(b *journal.RolledBack) { b.Compensate = true }

func fresh(b *journal.RolledBack) { b.Fresh = true }

// requireSideEffects holds a rollback to being refused because nobody has acknowledged
// what it leaves behind.
func (p *play) requireSideEffects(to string, why string, how ...func(*journal.RolledBack)) {
	p.t.Helper()
	b := journal.RolledBack{Snapshot: to, Actor: "ada", Reason: "so"}
	for _, change := range how {
		change(&b)
	}
	_, _, err := p.Rollback(p.t.Context(), b)
	require.ErrorAs(p.t, err, new(*world.SideEffectsError), why)
}

// order lets the bot a ask for one tool.a, with the next tick.
func (p *play) order(param string) {
	p.t.Helper()
	p.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a", Param: param}}})
}

// done orders, drives, and answers what is then performed.
func (p *play) done(param string, r worldtest.Reply) {
	p.t.Helper()
	p.order(param)
	p.Drive()
	p.reply(r)
}

// ordered orders x and makes the snapshot before its step is taken.
func (p *play) ordered() {
	p.t.Helper()
	p.order("x")
	p.snapshot("before")
	p.Drive()
}

func TestEffectInFlightAtARollbackRunsToItsReceiptAndWaitsThere(t *testing.T) {
	p := live(t)
	p.ordered()
	done := p.back("before")
	require.Len(t, done.Abandoned, 1)
	require.Equal(t, receipt.StateInFlight, done.Abandoned[0].State)
	p.tells() // the step was taken again, and waits with the one before
	require.Len(t, p.out.Performed, 1)
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
	p.crash()
	p.back("before")
	p.tells("x0 ok")
	require.Len(t, p.out.Performed, 1, "performed once, in three histories")
}

func TestReceiptOfAnEffectThatNobodyAsksForAgainStaysInTheLedger(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.order("x")
	p.Drive()
	p.back("before")
	p.reply(worldtest.OK(nil))
	require.Equal(t, 1, p.Status().Intents[receipt.StateCommitted])
	require.Zero(t, p.Status().Cells, "the bot was not there yet")
}

func TestWhatWasAskedBeforeASnapshotIsToldAgain(t *testing.T) {
	p := live(t)
	p.order("x")
	p.Drive()
	p.snapshot("waiting")
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok")
	done := p.back("waiting")
	require.Empty(t, done.Abandoned, "it was asked for before")
	p.tells("x0 ok")
	p.crash()
	p.back("waiting")
	p.tells("x0 ok")
	require.Len(t, p.out.Performed, 1)
}

func TestWhatHasNotStartedIsCancelledAndMayStartLater(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight, m.Budget.Calls = 1, 2 })
	p.snapshot("empty")
	p.order("x")
	p.order("y")
	p.Drive()
	require.Equal(t, 1, p.Status().Intents[receipt.StateOpen])
	done := p.back("empty")
	require.Len(t, done.Abandoned, 2)
	require.Equal(t, journal.Acknowledged, done.Abandoned[0].Disposition, "the one that started")
	require.Equal(t, journal.Cancelled, done.Abandoned[1].Disposition)
	require.Equal(t, 1, p.Status().Intents[receipt.StateCancelled])
	p.reply(worldtest.OK(nil))
	require.Len(t, p.out.Performed, 1)
	p.order("x") // the same history as before
	p.order("y") // and its call was given back
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok", "y0 ok")
	require.Len(t, p.out.Performed, 2)
}

func TestRecordedFailureIsToldAgainToo(t *testing.T) {
	p := live(t)
	p.ordered()
	p.reply(worldtest.Fail("no"))
	p.tells("x0 error")
	require.Empty(t, p.back("before").Abandoned, "nothing happened")
	p.tells("x0 error")
	require.Len(t, p.out.Performed, 1)
}

func TestEffectInDoubtIsWaitedForAgain(t *testing.T) {
	p := live(t)
	p.ordered()
	lost := p.lose()
	require.Equal(t, receipt.StateInDoubt, p.back("before").Abandoned[0].State)
	p.tells()
	p.decide(lost.Key, journal.Executed)
	p.tells("x0 ok")
	p.back("before")
	p.tells("x0 ok")
	require.Len(t, p.out.Performed, 1)
}

// undone returns a play whose tool.a is made up for by tool.b.
func undone(t *testing.T) *play {
	t.Helper()
	return live(t, tool(func(e *manifest.Effect) {
		e.Compensate = &manifest.Compensate{Kind: "tool.l", Params: `{"undo": receipt.payload.id, "of": intent.params.p}`}
	}))
}

// paid is a play whose x has happened, and would be made up for.
func paid(t *testing.T) *play {
	t.Helper()
	p := undone(t)
	p.snapshot("before")
	p.done("x", worldtest.OK(map[string]any{"id": 7}))
	return p
}

func TestRollbackCompensatesWhatSaysHow(t *testing.T) {
	p := undone(t)
	p.ordered()
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	first := p.Intents()[0].Intent.Key
	b := journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so", Compensate: true}
	_, done, err := p.Rollback(t.Context(), b)
	require.NoError(t, err, "what is compensated needs no acknowledgement")
	require.Equal(t, journal.Compensated, done.Abandoned[0].Disposition)
	p.Drive()
	task := p.performing()
	require.Equal(t, "tool.l", task.Kind)
	require.JSONEq(t, `{"of": "x", "undo": 7}`, mustJSON(t, task.Params))
	p.tells()
	p.reply(worldtest.OK(nil))
	require.Equal(t, receipt.OutcomeCompensated, p.entry(first).Outcome)
	p.tells("x0 rejected") // the same step cannot do again what was made up for
	p.crash()
	require.Empty(t, p.back("before", compensating).Abandoned)
	p.tells("x0 rejected")
	require.Len(t, p.out.Performed, 2)
}

func TestCompensationThatFailsLeavesWhatWas(t *testing.T) {
	p := undone(t)
	p.ordered()
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	first := p.Intents()[0].Intent.Key
	p.back("before", compensating)
	p.reply(worldtest.Fail("no"))
	require.Equal(t, receipt.StateCommitted, p.entry(first).State)
	p.tells("x0 ok")
}

func TestCompensationThatCannotBeComputedIsAcknowledged(t *testing.T) {
	p := undone(t)
	p.ordered()
	p.reply(worldtest.OK("no id"))
	p.requireSideEffects("before", "its compensation cannot be computed", compensating)
	require.Equal(t, journal.Acknowledged, p.back("before", compensating).Abandoned[0].Disposition)
	require.Len(t, p.out.Performed, 1)
}

func TestRecordedResultIsConfirmedBeforeItIsToldAgain(t *testing.T) {
	for _, c := range []struct {
		mode    string
		verdict receipt.FoundVerdict
		tells   []string
		state   receipt.State
	}{
		{manifest.VerifyStrict, receipt.Happened, []string{"x0 ok"}, receipt.StateCommitted},
		{manifest.VerifyStrict, receipt.NotHappened, []string{"x0 rejected"}, receipt.StateFailed},
		{manifest.VerifyWarn, receipt.NotHappened, []string{"x0 ok"}, receipt.StateCommitted},
		{manifest.VerifyHuman, receipt.NotHappened, nil, receipt.StateAwaitingConfirmation},
		{manifest.VerifyHuman, receipt.Unknown, nil, receipt.StateCommitted},
	} {
		t.Run(c.mode+" "+string(c.verdict), func(t *testing.T) {
			p := live(t, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: c.mode} }))
			p.ordered()
			p.reply(worldtest.OK(nil))
			p.back("before")
			p.tells()
			key := p.Intents()[0].Intent.Key
			p.out.Find(p.out.Task(receipt.Confirm), c.verdict, nil, "it was looked at")
			p.Drive()
			p.tells(c.tells...)
			require.Equal(t, c.state, p.entry(key).State)
			if c.state == receipt.StateAwaitingConfirmation {
				require.NoError(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), key, "ada", "she knows")))
				p.Drive()
				p.tells("x0 ok")
			}
			if c.verdict == receipt.Unknown {
				p.crash()
				p.Drive()
				p.out.Find(p.out.Task(receipt.Confirm), receipt.Happened, nil, "it was looked at again")
				p.Drive()
				p.tells("x0 ok")
			}
			require.Len(t, p.out.Performed, 1)
		})
	}
}

func TestRollbackReachesAHistoryThatWasLeft(t *testing.T) {
	p := live(t)
	p.snapshot("root")
	p.done("x", worldtest.OK(nil))
	p.order("y")
	p.Drive()
	p.snapshot("left")
	p.reply(worldtest.OK(nil))
	p.tells("x0 ok", "y0 ok")
	require.Len(t, p.back("root").Abandoned, 2)
	p.done("z", worldtest.OK(nil))
	p.crash()
	done := p.back("left")
	require.Len(t, done.Abandoned, 1, "what was done for z")
	p.tells("x0 ok", "y0 ok") // y was asked for before the snapshot, and answered after it
	require.Len(t, p.out.Performed, 3)
	p.order("z") // another history: it only looks the same
	p.Drive()
	require.Equal(t, 1, p.Status().Intents[receipt.StateAwaitingApproval])
}

func TestSpentBudgetStaysSpent(t *testing.T) {
	p := live(t, func(m *manifest.Manifest) {
		r := m.Reducers["bot"]
		r.Budget.Calls = 2
		m.Reducers["bot"] = r
	})
	p.snapshot("empty")
	p.done("x", worldtest.OK(nil))
	p.back("empty", fresh)
	p.crash()
	p.done("x", worldtest.OK(nil))
	p.order("y")
	p.Drive()
	p.tells("x0 ok", "y0 denied")
	require.Len(t, p.out.Performed, 2)
}

func TestOtherStateThanTheSnapshotsIsNotReturnedTo(t *testing.T) {
	p := live(t)
	p.ordered()
	p.reply(worldtest.OK(nil))
	before := p.Status()
	require.NoError(t, p.Checkpoint())
	img, err := p.Journal.Image(journal.Last)
	require.NoError(t, err)
	forged := *img
	record := journal.Seq(p.Snapshots()[0].Record)
	forged.Head.ID = record // the state of now under the snapshot's name
	keep := p.Journal.Images.Clone()
	p.Journal.Images = journal.Images{}
	p.Journal.Add(&forged)
	_, _, err = p.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so", Ack: true})
	require.ErrorIs(t, err, world.ErrOtherState)
	require.Equal(t, before, p.Status())
	p.Journal.Images = keep
	p.back("before")
	p.tells("x0 ok")
}

func TestRollbackListsAThousandSideEffects(t *testing.T) {
	w := botsWith(t, worldtest.Options{Answer: func(receipt.Permit) worldtest.Reply { return worldtest.OK(nil) }})
	_, err := w.Snapshot(t.Context(), "before", "", "ada")
	require.NoError(t, err)
	for i := range 250 {
		do := []act{{Effect: "tool.a", Param: "x"}, {Effect: "tool.a", Param: "y"}, {Effect: "tool.l"}, {Effect: "tool.u"}}
		w.Submit("go", order{To: fmt.Sprint("b", i), Do: do})
	}
	w.Run()
	before, records := w.Status(), len(w.Journal.Records())
	b := journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "all of it"}
	_, _, err = w.Rollback(t.Context(), b)
	left := new(world.SideEffectsError)
	require.ErrorAs(t, err, &left)
	require.Len(t, left.Effects, 1000)
	require.Equal(t, before, w.Status())
	require.Len(t, w.Journal.Records(), records)
	b.Ack = true
	_, done, err := w.Rollback(t.Context(), b)
	require.NoError(t, err)
	require.Len(t, done.Abandoned, 1000)
	require.Len(t, w.Journal.Records(), records+1, "the journal only grows")
	require.Zero(t, w.Status().Cells)
	w.RequireReplay()
	w.Crash()
	require.Zero(t, w.Status().Cells)
}

func TestReplayFromASnapshotPassesRollbacksToOnesThatAreGone(t *testing.T) {
	w := bots(t)
	for _, name := range []string{"one", "two"} {
		w.Submit("go", order{To: "a", Say: name})
		w.Run()
		_, err := w.Snapshot(t.Context(), name, "", "ada")
		require.NoError(t, err)
	}
	w.Submit("go", order{To: "a", Say: "three"})
	w.Run()
	_, _, err := w.Rollback(t.Context(), journal.RolledBack{Snapshot: "one", Reason: "so", Actor: "ada", Ack: true})
	require.NoError(t, err)
	require.NoError(t, worldtest.ErrorOf(w.Prune(t.Context(), journal.SnapshotPruned{Name: "one", Actor: "ada"})))
	two, err := w.FindSnapshot("two")
	require.NoError(t, err)
	var visited []journal.Seq
	got, err := world.Replay(t.Context(), w.Journal, world.ReplayConfig{
		Registry: botRegistry(), From: journal.Seq(two.Record),
		Visit: func(s journal.Scanned) error { visited = append(visited, s.ID); return nil },
	})
	require.NoError(t, err)
	require.Equal(t, w.Status().Head, got.Head)
	require.Equal(t, w.StateRoot(), got.StateRoot)
	require.Len(t, visited, int(w.Status().Head.ID)-int(two.Record), "each record after the snapshot, once")
}
