package world_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// What is open when a world forks awaits approval in the fork, also what a rollback left
// before.
func TestCellAtIsNotToldOfAnEffectThatARollbackLeftAndAForkHeld(t *testing.T) {
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
			fork.snapshot("asked")
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
		"reused by a person": {onRepeat: manifest.RepeatAsk, say: "with another history"},
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
			if all := p.Intents(); all[len(all)-1].State == receipt.StateAwaitingApproval {
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
	require.NoError(t, worldtest.ErrorOf(p.Resume(t.Context(), reducer.Cell{Reducer: "bot", Key: "a"}, world.SkipEvent, "", "")))
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

// cellAtRegistry has two versions of the bot, which come to other states.
func cellAtRegistry() reducer.Registry {
	r := botRegistry()
	r["bot@2"] = reducer.Typed(1, func(ctx *reducer.Context, s botState, e reducer.Event) (botState, error) {
		s, err := bot(ctx, s, e)
		if len(s.Seen) > 0 {
			s.Seen[len(s.Seen)-1] += "!"
		}
		return s, err
	})
	r["bot@curious"] = reducer.Typed(1, func(ctx *reducer.Context, s botState, e reducer.Event) (botState, error) {
		if e.Name == "go" {
			ctx.Effect("tool.a", map[string]string{"p": "what else?"}, "more")
		}
		return bot(ctx, s, e)
	})
	return r
}

// life lives a random world with effects of every kind.
type life struct {
	*worldtest.World
	t       *testing.T
	rng     *rand.Rand
	out     *worldtest.Outside
	returns bool // rollbacks are made
	total   map[string]int
}

func newLife(t *testing.T, seed uint64, returns bool, total map[string]int) *life {
	return newLifeWith(t, seed, returns, total, func(*manifest.Manifest) {})
}

// newLifeWith is newLife under rules that are changed.
func newLifeWith(t *testing.T, seed uint64, returns bool, total map[string]int, change func(*manifest.Manifest)) *life {
	rng := rand.New(rand.NewPCG(seed, 2))
	m := botManifest()
	m.Seed = seed
	m.Limits.InFlight = uint64(1 + rng.IntN(3))
	m.Limits.EventsPerTick = uint64(2 + rng.IntN(20))
	m.Defaults.ApprovalTTL = manifest.Tick(1 + rng.IntN(6))
	m.Defaults.Retention.MaxSnapshots = uint64(1 + rng.IntN(3))
	m.Effects["tool.a"] = manifest.Effect{Adapter: "test", Idempotent: true, OnInDoubt: manifest.InDoubtRetry}
	m.Effects["tool.l"] = manifest.Effect{Adapter: "test", OnInDoubt: manifest.InDoubtFail, OnRepeat: manifest.RepeatReuse}
	m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.kind == "tool.u"`, Decide: manifest.DecideRequireApproval})
	if returns {
		m.Effects["tool.l"] = manifest.Effect{
			Adapter: "test", OnRepeat: manifest.RepeatReuse, Verify: &manifest.Verify{Adapter: "test", Mode: manifest.VerifyHuman},
			Compensate: &manifest.Compensate{Kind: "tool.a", Params: `{"p": "undo"}`},
		}
	}
	change(&m)
	l := &life{t: t, rng: rng, returns: returns, total: total}
	l.out = l.outside()
	l.World = worldtest.New(t, m, nil, worldtest.Options{
		Outside: l.out, Reducers: cellAtRegistry(),
		BatchRecords: 1 + rng.IntN(12), CheckpointRecords: journal.Seq(5 + rng.IntN(100)),
	})
	return l
}

// outside returns one whose verifiers answer at once.
func (l *life) outside() *worldtest.Outside {
	out := new(worldtest.Outside)
	out.Play = func(task receipt.Task) {
		if task.Work == receipt.Confirm {
			out.Find(task, []receipt.FoundVerdict{receipt.Happened, receipt.NotHappened}[l.rng.IntN(2)], nil, "it was asked")
		}
	}
	return out
}

func (l *life) live() {
	for range 20 + l.rng.IntN(40) {
		l.action()
	}
	l.drive()
	for _, kind := range l.Kinds() {
		l.total[string(kind)]++
	}
}

// try notes what was done. It may have been refused.
func (l *life) try(what string, err error) {
	input := new(world.InputError)
	if errors.As(err, &input) || errors.Is(err, worldtest.ErrNoAnswer) ||
		errors.Is(err, world.ErrOtherState) { // another version of the bot was in force
		return
	}
	require.NoError(l.t, err, what)
	l.total[what]++
}

func (l *life) action() {
	ctx := context.Background()
	switch l.rng.IntN(18) {
	case 0, 1, 2, 3:
		l.submit(ctx)
	case 4:
		l.try("step", l.World.World.Step(ctx))
	case 5, 6:
		l.drive()
	case 7, 8, 14, 15, 16:
		l.answer()
	case 9:
		for _, c := range l.Cells() {
			if c.Halted {
				l.try("resume", worldtest.ErrorOf(l.Resume(ctx, c.Cell, world.Resumption(l.rng.IntN(2)), "ada", "why not")))
				return
			}
		}
	case 10, 17:
		l.decide(ctx)
		if l.returns {
			l.confirm(ctx)
		}
	case 11:
		_, err := l.Snapshot(ctx, "", "", "ada")
		l.try("snapshot", err)
	case 12:
		if l.returns {
			l.turnBack(ctx)
		}
	case 13:
		if l.rng.IntN(4) == 0 {
			l.adopt(ctx)
		}
	}
}

// drive runs until only the outside can bring something.
func (l *life) drive() {
	for range 40 {
		p, err := l.Next(context.Background())
		l.try("drive", err)
		if p == world.Idle || p == world.Waiting || err != nil {
			return
		}
	}
}

func (l *life) submit(ctx context.Context) {
	s := world.Submission{Name: []string{"go", "go", "skip.go", "both"}[l.rng.IntN(4)]}
	s.Data = mustData(l.t, order{To: l.name(), Say: "hello", Do: l.acts(2)})
	if l.rng.IntN(3) == 0 {
		s.At = l.Status().Time + manifest.Tick(l.rng.IntN(4))
	}
	_, err := l.World.World.Submit(ctx, s)
	l.try("submit", err)
}

func (l *life) name() string { return string(rune('a' + l.rng.IntN(3))) }

func (l *life) acts(depth int) []act {
	do := make([]act, l.rng.IntN(4))
	for i := range do {
		switch l.rng.IntN(16) {
		case 0:
			do[i].Fail = "told to"
		case 1:
			do[i].Delete = true
		case 2:
			do[i].Random = 100
		case 3, 4:
			do[i].Timer = uint64(1 + l.rng.IntN(3))
			do[i].Tag = []string{"", l.name() + "1"}[l.rng.IntN(2)]
			if l.rng.IntN(3) == 0 {
				do[i] = act{Cancel: l.name() + []string{"0", "1"}[l.rng.IntN(2)]}
			}
		case 5, 6, 7, 8, 9, 10, 11:
			do[i].Effect = []string{"tool.a", "tool.a", "tool.l", "tool.l", "tool.u", "tool.bad"}[l.rng.IntN(6)]
			do[i].Param = l.name()
		default:
			do[i].Emit, do[i].Key = []string{"ping", "ping", "both", "lost"}[l.rng.IntN(4)], l.name()
		}
		if depth > 0 {
			do[i].Do = l.acts(depth - 1)
		}
	}
	return do
}

// answer lets the outside say something about one of its tasks.
func (l *life) answer() {
	work := []receipt.Work{receipt.Perform, receipt.Perform, receipt.Retry}[l.rng.IntN(3)]
	tasks := l.out.Tasks(work)
	if len(tasks) == 0 {
		return
	}
	task := tasks[l.rng.IntN(len(tasks))]
	replies := []worldtest.Reply{
		worldtest.OK(map[string]any{"id": 7}), worldtest.OK("done"), worldtest.Fail("no"),
		{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure},
		{Status: receipt.StatusCancelled, Class: receipt.OutcomeRetryableFailure, Unsent: true},
	}
	if l.returns {
		replies = append(replies, halfDone())
	}
	switch {
	case work == receipt.Retry:
		l.out.Due(task)
	case l.rng.IntN(4) == 0:
		l.out.Lose(task, "the line is dead")
	default:
		l.out.Reply(task, replies[l.rng.IntN(len(replies))])
	}
	l.drive()
}

// decide lets a person decide about an intent, if that waits for somebody.
func (l *life) decide(ctx context.Context) {
	for _, e := range l.Intents() {
		var how []journal.Resolution
		switch e.State {
		case receipt.StateAwaitingApproval, receipt.StateAwaitingAnswer, receipt.StateAwaitingConfirmation:
			how = []journal.Resolution{journal.Approve, journal.Disapprove}
		case receipt.StateInDoubt:
			how = []journal.Resolution{journal.Executed, journal.NotExecuted, journal.RetryAnyway}
		default:
			continue
		}
		b := journal.Resolved{Key: e.Intent.Key, How: how[l.rng.IntN(len(how))], Params: e.Params, Actor: "ada", Reason: "so"}
		l.try(string(b.How), worldtest.ErrorOf(l.Resolve(ctx, b)))
		return
	}
}

// confirm has recorded results compared with the outside, and takes a person's
// word for one of which that does not hold.
func (l *life) confirm(ctx context.Context) {
	if _, err := l.Confirm(ctx); !errors.Is(err, world.ErrConfirmationRequired) {
		l.try("confirm", err)
	}
	for _, e := range l.Intents() {
		if e.State == receipt.StateAwaitingConfirmation && l.rng.IntN(2) == 0 {
			l.try("by hand", worldtest.ErrorOf(l.ConfirmByHand(ctx, e.Intent.Key, "ada", "so")))
			return
		}
	}
}

func (l *life) turnBack(ctx context.Context) {
	all := l.Snapshots()
	if len(all) == 0 {
		return
	}
	_, _, err := l.Rollback(ctx, journal.RolledBack{
		Snapshot: all[l.rng.IntN(len(all))].Name, Actor: "ada", Reason: "so",
		Ack: true, Compensate: l.rng.IntN(2) == 0, Fresh: l.rng.IntN(8) == 0,
	})
	l.try("rollback", err)
}

// adopt puts another version of the bot in force.
func (l *life) adopt(ctx context.Context) {
	next := *l.Manifest()
	next.Version++
	next.Reducers = map[string]manifest.Reducer{}
	for _, name := range []string{"bot", "skip"} {
		def := l.Manifest().Reducers[name]
		def.Version = fmt.Sprint(1 + l.rng.IntN(2))
		next.Reducers[name] = def
	}
	l.try("adopt", worldtest.Adopt(ctx, l.World.World, &next, nil))
}
