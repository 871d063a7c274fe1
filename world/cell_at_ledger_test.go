package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// turnBack goes back to the snapshot "before". The world is not driven.
func (p *play) turnBack(b journal.RolledBack) {
	p.t.Helper()
	b.Snapshot, b.Actor, b.Reason = "before", "ada", "so"
	_, _, err := p.Rollback(p.t.Context(), b)
	require.NoError(p.t, err)
}

// requireCellsAt is for lives in which not every cell's records tell what it was.
// The cell a changes once more, so that its last image does not tell either.
func (p *play) requireCellsAt() {
	p.t.Helper()
	p.Submit("go", order{To: "a", Say: "the end"})
	p.Drive()
	p.snapshot("after")
	var count ways
	requireCellsAt(p.t, p.World, &count)
	require.Less(p.t, count.fast, count.asked)
}

func TestCellAtWaitsForACompensation(t *testing.T) {
	p := live(t, undo)
	p.ask()
	p.reply(halfDone())
	p.snapshot("between")
	p.reply(worldtest.OK(nil))
	p.tells("x0 error")
	p.requireCellsAt()
}

func TestCellAtIsNotToldOfAnEffectThatARollbackLeft(t *testing.T) {
	p := live(t)
	p.snapshot("before")
	p.ask()
	p.turnBack(journal.RolledBack{Ack: true})
	p.snapshot("between")
	p.reply(worldtest.OK(nil))
	p.requireCellsAt()
}

func TestCellAtIsNotToldOfACompensationThatARollbackAskedFor(t *testing.T) {
	p := live(t, undo)
	p.snapshot("before")
	p.ask()
	p.reply(worldtest.OK(map[string]any{"id": 7}))
	p.turnBack(journal.RolledBack{Compensate: true})
	p.Submit("go", order{To: "a", Say: "on"})
	p.snapshot("between")
	out := new(worldtest.Outside)
	fork := &play{out: out, t: t, World: p.Fork(journal.ForkHold, worldtest.Options{ID: "child", Outside: out, Reducers: botRegistry()})}
	p.Drive()
	p.reply(worldtest.OK(nil))
	all := fork.Intents()
	require.NoError(t, fork.resolve(all[len(all)-1].Intent.Key, journal.Approve))
	fork.Drive()
	fork.reply(worldtest.OK(nil))
	fork.requireCellsAt()
}

// What is open when a world forks is parked in the fork, also what a rollback left
// before.
func TestCellAtIsNotToldOfAnEffectThatARollbackLeftAndAForkParked(t *testing.T) {
	for _, how := range []journal.Resolution{journal.Approve, journal.Disapprove} {
		t.Run(string(how), func(t *testing.T) {
			p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 2 }))
			p.snapshot("before")
			key := p.ask()
			p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
			p.turnBack(journal.RolledBack{Ack: true})
			p.Submit("go", order{To: "a", Say: "on"})
			p.snapshot("between")
			out := new(worldtest.Outside)
			fork := &play{out: out, t: t, World: p.Fork(journal.ForkHold, worldtest.Options{ID: "child", Outside: out, Reducers: botRegistry()})}
			fork.snapshot("parked")
			require.NoError(t, fork.resolve(key, how))
			fork.Drive()
			if how == journal.Approve {
				fork.reply(worldtest.OK(nil))
			}
			fork.tells()
			fork.requireCellsAt()
		})
	}
}

func TestCellAtIsToldAgainWhatTheLedgerKnows(t *testing.T) {
	for name, c := range map[string]struct {
		onRepeat, say string
	}{
		"recorded":           {},
		"reused":             {onRepeat: manifest.RepeatReuse, say: "with another history"},
		"reused by a person": {onRepeat: manifest.RepeatPark, say: "with another history"},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t, tool(func(e *manifest.Effect) { e.OnRepeat = c.onRepeat }))
			p.snapshot("before")
			p.ask()
			p.reply(worldtest.OK(nil))
			p.turnBack(journal.RolledBack{Ack: true})
			p.snapshot("between")
			p.Submit("go", order{To: "a", Say: c.say, Do: []act{{Effect: "tool.a", Param: "x"}}})
			p.Drive()
			if all := p.Intents(); all[len(all)-1].State == receipt.StateParked {
				p.decide(all[len(all)-1].Intent.Key, world.Reuse)
			}
			p.tells("x0 ok")
			p.requireCellsAt()
		})
	}
}

func TestCellAtTakesNoReceiptThatIsNotConfirmed(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) { e.Verify = &manifest.Verify{Adapter: "test", Mode: manifest.VerifyHuman} }))
	key := p.ask()
	p.Submit("go", order{To: "a", Do: []act{{Fail: "told to"}}})
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.out.Play = func(task receipt.Task) {
		if task.Work == receipt.Confirm {
			p.out.Find(task, receipt.NotHappened, nil, "it is gone")
		}
	}
	_, err := p.Confirm(t.Context())
	require.ErrorIs(t, err, world.ErrConfirmationRequired)
	require.NoError(t, worldtest.ErrorOf(p.Resume(t.Context(), reducer.Cell{Reducer: "bot", Key: "a"}, world.SkipEvent)))
	require.NoError(t, worldtest.ErrorOf(p.ConfirmByHand(t.Context(), key, "ada", "so")))
	p.Drive()
	p.tells("x0 ok")
	p.requireCellsAt()
}

// A crash may leave an image of just before a cell is told again, which no record
// says.
func TestCellAtIsToldWhatAnImageStillHadToTell(t *testing.T) {
	w := botsWith(t, worldtest.Options{BatchRecords: 1, CheckpointRecords: 1}, tool(func(e *manifest.Effect) { e.OnRepeat = manifest.RepeatReuse }))
	_, err := w.Snapshot(t.Context(), "before", "", "ada")
	require.NoError(t, err)
	same := []act{{Effect: "tool.a", Param: "x"}}
	w.Submit("go", order{To: "a", Do: same})
	w.Run()
	_, _, err = w.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so", Ack: true})
	require.NoError(t, err)
	w.Submit("go", order{To: "a", Say: "with another history", Do: same})
	w.Journal.FailAppend = func(int) error {
		if kinds := w.Kinds(); kinds[len(kinds)-1] == journal.KindEnded {
			return worldtest.ErrInjected
		}
		return nil
	}
	require.ErrorIs(t, w.World.Run(t.Context()), worldtest.ErrInjected)
	w.Crash()
	view, ok := w.Cell(reducer.Cell{Reducer: "bot", Key: "a"})
	require.True(t, ok)
	require.Len(t, view.Mail, 1)
	requireCellsAt(t, w, new(ways))
}
