package worldctl

import (
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// life is a random world in the making: its effects come to all ends there are, its
// rules change by proposals, and it is rolled back, forked and redacted.
type life struct {
	t   *testing.T
	rng *rand.Rand
	w   *worldtest.World
	out *worldtest.Outside // nil: effects are deterministic
	id  string

	lost     []receipt.Task // given up; their receipts may come late
	redacted map[journal.Hash]bool
}

// lived returns a world that has lived through so many actions.
func lived(t *testing.T, seed uint64, loaded *source.Loaded, actions int) *life {
	t.Helper()
	l := &life{t: t, rng: rand.New(rand.NewPCG(seed, 2)), id: "test", redacted: make(map[journal.Hash]bool)}
	m := *loaded.Manifest
	m.Seed = seed
	m.Limits.InFlight = uint64(1 + l.rng.IntN(4))
	m.Limits.EventsPerTick = uint64(1 + l.rng.IntN(30))
	m.Defaults.ApprovalTTL = manifest.Tick(1 + l.rng.IntN(20))
	m.Defaults.SnapshotEvery = uint64(l.rng.IntN(2) * (100 + l.rng.IntN(100)))
	m.Defaults.Retention.MaxSnapshots = uint64(2 + l.rng.IntN(4))
	if l.rng.IntN(2) == 0 {
		m.Governance = manifest.Governance{Approvals: uint64(1 + l.rng.IntN(2)), FourEyes: l.rng.IntN(2) == 0}
		for who := range byte(approvers) {
			key := manifest.PublicKey(worldtest.Public(who + 1))
			m.Governance.Approvers = append(m.Governance.Approvers, manifest.Approver{Name: string(rune('a' + who)), Key: key})
		}
	}
	o := worldtest.Options{ID: l.id, Answer: fateOf}
	if l.rng.IntN(4) > 0 {
		l.out = &worldtest.Outside{Play: l.confirm}
		o = worldtest.Options{ID: l.id, Outside: l.out}
		m.Effects = l.liveEffects()
		m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.kind == "tool.d"`, Decide: manifest.DecideRequireApproval})
	}
	if seed%8 == 5 { // answers say that they used more than they may: the capability rests
		m.Caps, m.Effects = maps.Clone(m.Caps), maps.Clone(m.Effects)
		tools := m.Caps["tools"]
		tools.Budget.Tokens = 1 << 40
		m.Caps["tools"] = tools
		for kind, e := range m.Effects { // order cannot show: all alike
			e.MaxCost.Tokens = new(uint64(5))
			m.Effects[kind] = e
		}
	}
	l.w = worldtest.New(t, m, loaded.Contents, o)
	l.live(actions)
	if l.rng.IntN(3) == 0 {
		l.fork(actions / 2)
	}
	if l.rng.IntN(2) == 0 {
		l.redact()
	}
	return l
}

// liveEffects returns effects that retry, are made up for, are confirmed, and are in
// doubt in every way.
func (l *life) liveEffects() map[string]manifest.Effect {
	pick := func(of ...string) string { return of[l.rng.IntN(len(of))] }
	retry := manifest.Retry{Attempts: uint64(1 + l.rng.IntN(3)), Backoff: 1}
	mode := pick(manifest.VerifyStrict, manifest.VerifyWarn, manifest.VerifyHuman)
	return map[string]manifest.Effect{
		"tool.a": {
			Adapter: "stub", Retry: retry, OnInDoubt: pick(manifest.InDoubtAsk, manifest.InDoubtFail), OnRepeat: pick(manifest.RepeatAsk, manifest.RepeatReuse, manifest.RepeatRun),
			Compensate: &manifest.Compensate{Kind: "tool.b", Params: `{"p": "undo"}`},
		},
		"tool.b": {Adapter: "stub", Idempotent: true, OnInDoubt: manifest.InDoubtRetry, Retry: retry},
		"tool.c": {Adapter: "stub", OnInDoubt: manifest.InDoubtVerify, Verify: &manifest.Verify{Adapter: "stub", Mode: mode}, Retry: retry},
		"tool.d": {Adapter: "stub", OnRepeat: pick(manifest.RepeatAsk, manifest.RepeatReuse)},

		"tool.bad": {Adapter: "stub"},
		"other.x":  {Adapter: "stub"},
	}
}

// fateOf is what the outside answers, to the same effect always the same.
func fateOf(p receipt.Permit) worldtest.Reply {
	switch p.Key.Hash[0] % 5 {
	case 0:
		return worldtest.Fail("no")
	case 1:
		return worldtest.Reply{Status: receipt.StatusTimeout}
	case 2:
		return worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeCompensatable}
	case 3:
		return worldtest.OK(map[string]any{"long": strings.Repeat("answer ", 700)})
	default:
		return worldtest.Reply{Status: receipt.StatusOK, Payload: map[string]any{"occurrence": p.Occurrence}, Cost: receipt.Cost{Calls: 1, Tokens: 7}}
	}
}

func (l *life) live(actions int) {
	for range actions {
		l.action()
	}
	if l.rng.IntN(2) == 0 { // else some of it is under way
		for range 200 {
			l.next()
			l.answer(receipt.Perform, receipt.Retry, receipt.Verify)
		}
	}
}

// try takes what may be refused: the world goes on then.
func (l *life) try(err error) {
	if err != nil {
		require.NoError(l.t, l.w.Sync(), "%v", err)
	}
}

func (l *life) next() {
	_, err := l.w.Next(context.Background())
	l.try(err)
}

func (l *life) action() {
	ctx := context.Background()
	switch l.rng.IntN(16) {
	case 0, 1, 2:
		data := map[string]any{"to": l.cell(), "do": l.acts(2)}
		if l.rng.IntN(4) == 0 {
			data["say"] = strings.Repeat(l.cell(), 5000)
		}
		l.try(l.w.TrySubmit([]string{"go", "go", "both", "skip", "lost"}[l.rng.IntN(5)], data))
	case 3:
		_, _, err := l.w.Emit(ctx, journal.OperatorEffect{Actor: "ada", Kind: "tool." + l.cell(), Cap: "tools", Reason: "so"})
		l.try(err)
	case 4, 5, 6:
		l.answer([]receipt.Work{receipt.Perform, receipt.Retry, receipt.Verify}[l.rng.IntN(3)])
	case 7:
		l.late()
	case 8:
		l.decide()
	case 9:
		l.turnBack()
	case 10:
		l.change()
	case 11:
		l.try(worldtest.ErrorOf(l.w.Resume(ctx, reducer.Cell{Reducer: "bot", Key: l.cell()}, []world.Resumption{world.RetryEvent, world.SkipEvent}[l.rng.IntN(2)], "ada", "why not")))
	case 12:
		l.crash()
	default:
		l.next()
	}
}

// crash ends the process and begins another one, which confirms what was recorded and
// not handled yet, and may sign with other keys.
func (l *life) crash() {
	require.NoError(l.t, l.w.Sync())
	if l.out != nil {
		for _, task := range l.out.Tasks(receipt.Perform) {
			l.receive(task.Permit)
		}
	}
	l.w.Crash()
	_, err := l.w.Confirm(context.Background())
	l.try(err)
	if l.rng.IntN(4) == 0 {
		l.try(worldtest.ErrorOf(l.w.NoteRotation(context.Background(), journal.KeysRotated{KeyID: "2-" + strings.Repeat("0", 16), Revoked: []string{}, Actor: "ada"})))
	}
}

func (l *life) cell() string { return string(rune('a' + l.rng.IntN(4))) }

// acts makes up what an event tells a bot to do.
func (l *life) acts(depth int) []any {
	out := make([]any, l.rng.IntN(4))
	for i := range out {
		act := map[string]any{}
		switch l.rng.IntN(12) {
		case 0:
			act["fail"] = "told to"
		case 1:
			act["delete"] = true
		case 2:
			act["random"] = 100
		case 3, 4:
			act["timer"] = 1 + l.rng.IntN(3)
			act["tag"] = []string{"", l.cell()}[l.rng.IntN(2)]
			if l.rng.IntN(3) == 0 {
				act = map[string]any{"cancel": l.cell()}
			}
		case 5, 6, 7, 8:
			act["effect"] = []string{"tool.a", "tool.b", "tool.c", "tool.d", "tool.bad", "other.x"}[l.rng.IntN(6)]
			act["param"] = l.cell()
		default:
			act["emit"] = []string{"ping", "ping", "both", "lost"}[l.rng.IntN(4)]
			act["to"] = l.cell()
		}
		if depth > 0 {
			act["do"] = l.acts(depth - 1)
		}
		out[i] = act
	}
	return out
}

// answer lets the outside say something about one of its tasks of some kinds.
func (l *life) answer(works ...receipt.Work) {
	if l.out == nil {
		return
	}
	for _, work := range works {
		tasks := l.out.Tasks(work)
		if len(tasks) == 0 {
			continue
		}
		task := tasks[l.rng.IntN(len(tasks))]
		switch work {
		case receipt.Retry:
			l.out.Due(task)
		case receipt.Perform:
			if l.rng.IntN(5) == 0 {
				l.lost = append(l.lost, task)
				l.out.Lose(task, "the line is dead")
				return
			}
			l.out.Reply(task, l.reply(task.Permit))
		default:
			l.out.Find(task, []receipt.FoundVerdict{receipt.Happened, receipt.NotHappened, receipt.Unknown}[l.rng.IntN(3)], nil, "it was asked")
		}
		return
	}
}

func (l *life) reply(p receipt.Permit) worldtest.Reply {
	switch l.rng.IntN(8) {
	case 0:
		return worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure}
	case 1:
		return worldtest.Reply{Status: receipt.StatusCancelled, Class: receipt.OutcomeRetryableFailure, Unsent: true}
	default:
		return fateOf(p)
	}
}

// late offers the receipt of an attempt that was lost.
func (l *life) late() {
	if len(l.lost) == 0 {
		return
	}
	l.receive(l.lost[l.rng.IntN(len(l.lost))].Permit)
}

// receive offers the receipt of an attempt from another hand than the host's.
func (l *life) receive(p receipt.Permit) {
	data, err := worldtest.Sign(worldtest.Keyring(l.t, l.id), l.id, p, fateOf(p))
	require.NoError(l.t, err)
	_, err = l.w.Receive(data)
	l.try(err)
}

// confirm has the outside say at once whether it still shows a recorded result.
func (l *life) confirm(task receipt.Task) {
	if task.Work == receipt.Confirm {
		l.out.Find(task, []receipt.FoundVerdict{receipt.Happened, receipt.NotHappened, receipt.Unknown}[l.rng.IntN(3)], nil, "it was looked at")
	}
}

// decide has a person decide about an intent, if that waits for somebody.
func (l *life) decide() {
	all := l.w.Intents()
	if len(all) == 0 {
		return
	}
	e := &all[l.rng.IntN(len(all))]
	if e.State.AwaitsPerson() && l.rng.IntN(3) == 0 {
		l.try(worldtest.ErrorOf(l.w.ConfirmByHand(context.Background(), e.Intent.Key, "ada", "she looked")))
		return
	}
	how := []journal.Resolution{journal.Approve, journal.Disapprove, journal.Executed, journal.NotExecuted, journal.RetryAnyway, world.Reuse, journal.Edit}[l.rng.IntN(7)]
	b := journal.Resolved{Key: e.Intent.Key, Params: e.Params, How: how, Actor: "ada", Reason: "she looked"}
	if how == journal.Edit {
		b.Payload = journal.Data(canon.AppendText(nil, []string{"less", "more"}[l.rng.IntN(2)]))
	}
	l.try(worldtest.ErrorOf(l.w.Resolve(context.Background(), b)))
}

// turnBack makes a snapshot, lets one go, or goes back to one.
func (l *life) turnBack() {
	ctx := context.Background()
	all := l.w.Snapshots()
	if len(all) == 0 || l.rng.IntN(2) == 0 {
		_, err := l.w.Snapshot(ctx, "", "", "ada")
		l.try(err)
		return
	}
	name := all[l.rng.IntN(len(all))].Name
	switch l.rng.IntN(6) {
	case 0:
		l.try(worldtest.ErrorOf(l.w.Pin(ctx, journal.SnapshotPinned{Name: name, Pinned: true, Actor: "ada"})))
	case 1:
		l.try(worldtest.ErrorOf(l.w.Prune(ctx, journal.SnapshotPruned{Name: name, Actor: "ada"})))
	case 2:
		_, _, err := l.w.Retain(ctx, journal.SnapshotRetention{Max: uint64(1 + l.rng.IntN(4)), Actor: "ada"})
		l.try(err)
	default:
		_, _, err := l.w.Rollback(ctx, journal.RolledBack{
			Snapshot: name, Actor: "ada", Reason: "so", Ack: true, Compensate: l.rng.IntN(2) == 0, Fresh: l.rng.IntN(4) == 0,
		})
		l.try(err)
	}
}

// fork goes on in a fork of the world.
func (l *life) fork(actions int) {
	effects := []journal.ForkEffects{journal.ForkHold, journal.ForkLive, journal.ForkRecorded}[l.rng.IntN(3)]
	l.id = "child"
	o := worldtest.Options{ID: l.id, Answer: fateOf}
	if l.out != nil {
		l.out = &worldtest.Outside{Play: l.confirm}
		o = worldtest.Options{ID: l.id, Outside: l.out}
	}
	if effects == journal.ForkLive {
		o.Seed = new(uint64)
	}
	l.next() // a receipt may have come in the middle of a tick, and forks begin between two
	require.NoError(l.t, l.w.Sync())
	l.w = l.w.Fork(effects, o)
	l.live(actions)
}

// redact destroys a few payloads that the world does not need any more.
func (l *life) redact() {
	require.NoError(l.t, l.w.Sync())
	for s, err := range l.w.Journal.Scan(0) {
		require.NoError(l.t, err)
		rec := s.Record
		if rec.Blob.IsZero() || l.rng.IntN(6) > 0 || l.redacted[rec.Blob] {
			continue
		}
		if l.w.StillNeeds(s.ID) != nil || !strings.HasPrefix(string(rec.Kind), "event.") && !strings.HasPrefix(string(rec.Kind), "invocation.") {
			continue
		}
		require.NoError(l.t, worldtest.ErrorOf(l.w.Redact(context.Background(), journal.Redacted{Blob: rec.Blob, Actor: "ada", Reason: "it names somebody"})))
		l.redacted[rec.Blob] = true
	}
}

// kindsOf counts the kinds of a journal's records.
func kindsOf(t *testing.T, w *worldtest.World, into map[journal.Kind]int) {
	t.Helper()
	for s, err := range w.Journal.Scan(0) {
		require.NoError(t, err)
		into[s.Record.Kind]++
	}
}

// contentsOf returns the manifest that a record brings, and what that names.
func contentsOf(t *testing.T, blobs journal.Blobs, name journal.Hash) [][]byte {
	t.Helper()
	encoded, err := blobs.Blob(name)
	require.NoError(t, err)
	m, err := manifest.Decode(encoded)
	require.NoError(t, err)
	out := [][]byte{encoded}
	for _, name := range m.Contents() {
		content, err := blobs.Blob(name)
		require.NoError(t, err)
		out = append(out, content)
	}
	return out
}

// withholdable returns payloads of a journal that may be left out of a bundle.
func (l *life) withholdable() []journal.Hash {
	names := make(map[journal.Hash]bool)
	for s, err := range l.w.Journal.Scan(0) {
		require.NoError(l.t, err)
		if !s.Record.Blob.IsZero() && !l.redacted[s.Record.Blob] && !journal.BringsManifest(s.Record.Kind) {
			names[s.Record.Blob] = true
		}
	}
	return sortedHashes(maps.Keys(names))
}
