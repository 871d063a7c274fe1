package worldtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/verify"
)

// TestSimulationOfLiveEffects lives random worlds whose effects touch an outside
// that remembers what was done to it, through lost, late and stored answers,
// retries, approvals, decisions, crashes and a journal that fails. Whoever is
// asked tells the truth. Then nothing that is not declared idempotent is done
// twice, what is committed was done, and what failed was not.
//
// SEED and SIM_RUNS are as for TestSimulation.
func TestSimulationOfLiveEffects(t *testing.T) {
	first, runs := fault.Seeds(t, fewEffects, manyRuns)
	loaded, err := source.Load(filepath.Join("testdata", "bots", "world.yaml"))
	require.NoError(t, err)
	seed := first
	defer func() {
		if t.Failed() {
			t.Logf("SEED=%d fails; to see it again: make sim SEED=%d", seed, seed)
		}
	}()
	total, struck := make(map[string]int), fault.NewStruck(fault.Effects)
	for ; seed < first+uint64(runs); seed++ {
		s := newLiveSimulation(t, seed, loaded, total, struck)
		s.disturb()
		s.settle()
		s.judge()
	}
	t.Logf("SEED=%d: %d runs: %v\n%s", first, runs, total, struck)
	if runs >= fewEffects { // the simulation does what it is for
		require.Empty(t, struck.Never())
		for _, what := range []string{
			"performed", "done", "verified", "approve", "deny", "executed", "not_executed", "committed", "failed", "denied", "confirmed",
			"given back", "timers cancelled", "timers fired", "cancelled", "told apart",
			"calls given back", "tokens spent", "starts at a rate",
		} {
			require.NotZero(t, total[what], what)
		}
	}
}

type attemptOf struct {
	key     receipt.Key
	attempt uint64
}

// liveSimulation is a world, and the truth about its outside.
type liveSimulation struct {
	t     *testing.T
	rng   *rand.Rand
	total map[string]int
	w     *World
	out   *Outside

	struck *fault.Struck
	images []journal.Images // as they were at some moments
	calls  uint64
	bounds bounds
	fates  map[attemptOf]Reply // what the outside made of an attempt
	done   map[receipt.Key]int // how often it did what it was asked to
	lost   []receipt.Task      // performed, and given up
	sent   uint64              // attempts that left
}

func newLiveSimulation(t *testing.T, seed uint64, loaded *source.Loaded, total map[string]int, struck *fault.Struck) *liveSimulation {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := *loaded.Manifest
	m.Seed = seed
	m.Limits.InFlight = uint64(1 + rng.IntN(4))
	m.Defaults.ApprovalTTL = manifest.Tick(1 + rng.IntN(20))
	m.Effects = map[string]manifest.Effect{
		"tool.a": {Adapter: "stub"},
		"tool.b": {Adapter: "stub", Idempotent: true, OnInDoubt: manifest.InDoubtRetry},
		"tool.c": {Adapter: "stub", OnInDoubt: manifest.InDoubtVerify, Verify: &manifest.Verify{Adapter: "stub"}},
		"tool.d": {Adapter: "stub", Retry: manifest.Retry{Attempts: 1}},
	}
	s := &liveSimulation{
		t: t, rng: rng, total: total, struck: struck, out: new(Outside), calls: uint64(5 + rng.IntN(40)),
		fates: make(map[attemptOf]Reply), done: make(map[receipt.Key]int),
	}
	m.Budget.Calls = s.calls
	s.bounds.rng = rand.New(rand.NewPCG(seed, 2))
	s.bounds.bound(&m)
	m.Policies = []manifest.Policy{
		{Name: "all", When: "true", Decide: manifest.DecideAllow},
		{Name: "ask", When: `intent.kind == "tool.d"`, Decide: manifest.DecideRequireApproval},
	}
	s.out.Play = s.perform
	s.out.Unbegun = s.unbegun
	s.w = New(t, m, loaded.Contents, Options{
		Outside: s.out, BatchRecords: 1 + rng.IntN(12), CheckpointRecords: journal.Seq(1 + rng.IntN(60)), Memory: int(seed % 2),
	})
	s.w.Journal.FailAppend = func(int) error { return s.fail("append refused") }
	s.w.Journal.FailWait = func(int) error { return s.fail("append lost") }
	return s
}

func (s *liveSimulation) fail(how string) error {
	if s.rng.IntN(40) > 0 {
		return nil
	}
	s.struck.Count(how)
	return ErrInjected
}

// perform decides at once what becomes of an attempt; whether anybody hears of
// it is another matter.
func (s *liveSimulation) perform(t receipt.Task) {
	if t.Work != receipt.Perform {
		return
	}
	at := attemptOf{t.Key, t.Attempt}
	require.NotContains(s.t, s.fates, at, "performed twice under one permit")
	require.True(s.t, s.permitted(t), "performed before its permit was durable")
	s.total["performed"]++
	s.sent++
	r := OK(nil)
	switch s.rng.IntN(6) {
	case 0:
		s.struck.Count("busy")
		r = Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure}
	case 1:
		s.struck.Count("refused")
		r = Fail("no")
	case 2:
		s.struck.Count("request never left")
		s.sent--
		r = Reply{Status: receipt.StatusCancelled, Class: receipt.OutcomeRetryableFailure, Unsent: true}
	default:
		s.total["done"]++
		s.done[t.Key]++
	}
	if s.bounds.cost(&r) {
		s.sent--
	}
	s.fates[at] = r
}

// unbegun says of some attempts that never left that nobody has begun them.
func (s *liveSimulation) unbegun(t receipt.Task) bool {
	at := attemptOf{t.Key, t.Attempt}
	if !s.fates[at].Unsent || s.rng.IntN(3) == 0 {
		return false
	}
	delete(s.fates, at)
	s.total["given back"]++
	return true
}

func (s *liveSimulation) permitted(t receipt.Task) bool {
	for _, stored := range s.w.Journal.Records() {
		rec, err := journal.DecodeRecord(stored.Bytes)
		require.NoError(s.t, err)
		if rec.Kind != journal.KindStarted {
			continue
		}
		body, err := rec.Body()
		require.NoError(s.t, err)
		if b, ok := body.(*journal.Started); ok && b.Key == t.Key && b.Attempt == t.Attempt && b.Nonce == t.Nonce {
			return true
		}
	}
	return false
}

// try does something that may fail because the journal does, or because nothing
// is to be decided. It reports whether it was done.
func (s *liveSimulation) try(err error) bool {
	input := new(world.InputError)
	switch {
	case err == nil:
		require.Equal(s.t, s.w.Journal.Head(), s.w.Status().Head, "returned before it was durable")
		return true
	case errors.Is(err, ErrInjected):
		s.crash()
	case errors.As(err, &input), errors.Is(err, ErrNoAnswer):
	default:
		require.NoError(s.t, err)
	}
	return false
}

// crash ends the process and begins another one, which may find that its journal
// fails, too.
func (s *liveSimulation) crash() {
	s.struck.Count("process killed")
	s.w.Journal.Crash()
	s.forget()
	for {
		again, err := world.Open(s.w.cfg)
		if err == nil {
			s.w.World = again
			return
		}
		require.ErrorIs(s.t, err, ErrInjected)
		s.w.Journal.Crash()
	}
}

func (s *liveSimulation) next() world.Progress {
	p, err := s.w.Next(context.Background())
	s.try(err)
	return p
}

func (s *liveSimulation) disturb() {
	ctx := context.Background()
	for range 20 + s.rng.IntN(100) {
		switch s.rng.IntN(15) {
		case 0, 1:
			do := make([]any, s.rng.IntN(4))
			for i := range do {
				switch s.rng.IntN(8) {
				case 0:
					do[i] = map[string]any{"timer": 1 + s.rng.IntN(3), "tag": []string{"p", "q"}[s.rng.IntN(2)]}
				case 1:
					do[i] = map[string]any{"cancel": []string{"p", "q"}[s.rng.IntN(2)]}
				default:
					do[i] = map[string]any{"effect": "tool." + cellName(s.rng), "param": []string{"p", "q"}[s.rng.IntN(2)]}
				}
			}
			s.try(s.w.TrySubmit("go", map[string]any{"to": cellName(s.rng), "do": do}))
		case 2:
			_, _, err := s.w.Emit(ctx, journal.OperatorEffect{Actor: "ada", Kind: "tool." + cellName(s.rng), Cap: "tools", Reason: "so"})
			s.try(err)
		case 3, 4, 5:
			s.answer()
		case 6:
			s.late()
		case 7:
			if all := s.w.Intents(); len(all) > 0 {
				e := &all[s.rng.IntN(len(all))]
				s.decide(e)
				s.tooLate(e)
			}
		case 8:
			if s.rng.IntN(4) == 0 {
				s.crash()
			}
		case 9:
			s.turnBack()
		case 10:
			s.govern()
		case 11:
			s.rare()
		default:
			s.next()
		}
		s.conserved()
	}
}

// turnBack makes a snapshot, or goes back to one.
func (s *liveSimulation) turnBack() {
	ctx := context.Background()
	all := s.w.Snapshots()
	if len(all) == 0 || s.rng.IntN(2) == 0 {
		_, err := s.w.Snapshot(ctx, "", "", "ada")
		s.try(err)
		return
	}
	under := s.underWay()
	_, _, err := s.w.Rollback(ctx, journal.RolledBack{
		Snapshot: all[s.rng.IntN(len(all))].Name, Actor: "ada", Reason: "so", Ack: true, Fresh: s.rng.IntN(8) == 0,
	})
	if s.try(err) && under {
		s.struck.Count("rollback amid effects")
	}
}

// answer lets the outside say something about one of its tasks.
func (s *liveSimulation) answer() {
	works := []receipt.Work{receipt.Perform, receipt.Retry, receipt.Verify, receipt.Confirm}
	tasks := s.out.Tasks(works[s.rng.IntN(len(works))])
	if len(tasks) == 0 {
		return
	}
	t := tasks[s.rng.IntN(len(tasks))]
	switch t.Work {
	case receipt.Retry:
		s.out.Due(t)
	case receipt.Confirm:
		s.total["confirmed"]++
		s.out.Find(t, receipt.Happened, nil, "it is still there")
	case receipt.Verify:
		s.total["verified"]++
		verdict := receipt.Unknown
		if s.rng.IntN(3) == 0 {
			s.struck.Count("verifier cannot tell")
		} else {
			verdict = receipt.NotHappened
			if s.happened(t.Key, t.Attempt) {
				verdict = receipt.Happened
			}
		}
		s.out.Find(t, verdict, nil, "it was asked")
	default:
		s.tell(t)
	}
}

// tell says what became of an attempt, or loses it on the way.
func (s *liveSimulation) tell(t receipt.Task) {
	r := s.fates[attemptOf{t.Key, t.Attempt}]
	switch s.rng.IntN(8) {
	case 0, 1:
		s.struck.Count("answer lost")
		s.lost = append(s.lost, t)
		s.out.Lose(t, "the line is dead")
	case 2:
		s.struck.Count("answer stored, nobody told")
		s.out.Store(t, r)
		s.crash()
	default:
		s.out.Reply(t, r)
		s.muddle()
	}
}

func (s *liveSimulation) happened(key receipt.Key, attempt uint64) bool {
	return s.fates[attemptOf{key, attempt}].Status == receipt.StatusOK
}

// late offers the receipt of an attempt that was lost.
func (s *liveSimulation) late() {
	if len(s.lost) == 0 {
		return
	}
	t := s.lost[s.rng.IntN(len(s.lost))]
	data, err := Sign(s.w.cfg.Keys, "test", t.Permit, s.fates[attemptOf{t.Key, t.Attempt}])
	require.NoError(s.t, err)
	_, err = s.w.Receive(data)
	if errors.Is(err, receipt.ErrDuplicate) || errors.Is(err, receipt.ErrWrongAttempt) {
		return // it came before
	}
	if s.try(err) {
		s.struck.Count("answer after the decision")
	}
}

// decide lets a person who knows the truth decide about an intent, if that
// waits for somebody.
func (s *liveSimulation) decide(e *receipt.Entry) {
	b := journal.Resolved{Key: e.Intent.Key, Params: e.Params, Actor: "ada", Reason: "she looked"}
	switch {
	case e.State.AwaitsPerson():
		b.How = []journal.Resolution{journal.Approve, journal.Disapprove}[s.rng.IntN(2)]
	case e.State == receipt.StateInDoubt && s.happened(e.Intent.Key, e.Attempt):
		b.How = journal.Executed
	case e.State == receipt.StateInDoubt:
		b.How = journal.NotExecuted
	default:
		return
	}
	if s.try(ErrorOf(s.w.Resolve(context.Background(), b))) {
		s.total[string(b.How)]++
	}
}

// settle ends all disturbance and lets everything end that can.
func (s *liveSimulation) settle() {
	s.w.Journal.FailAppend, s.w.Journal.FailWait = nil, nil
	s.crash()
	for range 10_000 {
		p := s.next()
		if p == world.Handled || p == world.Ticked {
			continue
		}
		before := s.w.Status().Head
		for _, e := range s.w.Intents() {
			s.decide(&e)
		}
		if len(s.out.tasks)+len(s.out.answers) == 0 && s.w.Status().Head == before {
			return // what is still in doubt did not happen, and no call is left for it
		}
		s.answer()
	}
	s.t.Fatal("it never ends")
}

// judge holds the journal against the truth.
func (s *liveSimulation) judge() {
	require.LessOrEqual(s.t, s.sent, s.calls, "the budget was overspent")
	for _, b := range Bodies[*journal.IntentDenied](s.t, s.w.Journal) {
		if b.Code == string(governance.CodeBudgetExceeded) {
			s.struck.Count("budget exhausted")
		}
	}
	for _, e := range s.w.Intents() {
		s.total[string(e.State)]++
		if e.Intent.Kind == "tool.b" {
			continue // idempotent: it may be done again
		}
		n := s.done[e.Intent.Key]
		switch e.State {
		case receipt.StateCommitted:
			require.Equal(s.t, 1, n, "%s is committed", e.Intent.Step)
		case receipt.StateFailed, receipt.StateDenied, receipt.StateInDoubt:
			require.Zero(s.t, n, "%s is %s", e.Intent.Step, e.State)
		default:
			require.Fail(s.t, "it has not ended", "%s is %s", e.Intent.Step, e.State)
		}
	}
	s.cancelled()
	s.conserved()
	s.drawn()
	s.rated()
	s.w.RequireReplay()
	r, err := verify.Verify(s.t.Context(), s.w.Journal, verify.Config{Keys: s.w.cfg.Keys, Anchor: s.w.Status().Head})
	require.NoError(s.t, err)
	require.Empty(s.t, r.Faults)
	require.True(s.t, r.Ledger.OK)
	require.LessOrEqual(s.t, uint64(len(s.out.Performed)), r.Ledger.Attempts)
}
