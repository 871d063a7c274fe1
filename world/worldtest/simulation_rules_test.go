package worldtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
)

// fewLaws is how many worlds are lived in memory whose rules change, where nobody asks for more; a
// twentieth of it in each other place.
const fewLaws = 100

// TestNoAttemptIsStartedThatTheRulesDeny lives random worlds whose rules change while intents
// wait for a slot, a rate, a budget, a backoff, a person, or are in doubt, through crashes, also amid
// a change, and rollbacks, and requires that no attempt starts which the rules in force then deny, or
// which nobody has approved as it is then.
// What rules say is known of how they were drawn, not from the gate. The control holds the same
// starts against the last rules of each world, and has to find many.
//
// Worlds live in memory, in directories, and in logs that two processes take from each other: in
// memory as well, and on PostgreSQL. LIVES says how many in each, SEED with which to begin.
func TestNoAttemptIsStartedThatTheRulesDeny(t *testing.T) {
	loaded, err := source.Load(filepath.Join("testdata", "bots", "world.yaml"))
	require.NoError(t, err)
	t.Run("memory", func(t *testing.T) {
		liveUnderLaws(t, fewLaws, loaded, func(*testing.T, uint64) *placed { return nil })
	})
	t.Run("directory", func(t *testing.T) {
		liveUnderLaws(t, fewLaws/20, loaded, func(t *testing.T, _ uint64) *placed { return placedAmong(t, nil, "") })
	})
	t.Run("log", func(t *testing.T) {
		liveUnderLaws(t, fewLaws/20, loaded, func(t *testing.T, _ uint64) *placed {
			server, p := new(logtest.Server), placedAmong(t, nil, "")
			p.logs = []func() journal.Log{server.Log, server.Log}
			return p
		})
	})
	t.Run("postgres", func(t *testing.T) {
		nodes := nodesOf(t, 2)
		liveUnderLaws(t, fewLaws/20, loaded, func(t *testing.T, seed uint64) *placed {
			return placedAmong(t, nodes, fmt.Sprint("lawful-", seed))
		})
	})
}

// liveUnderLaws lives worlds in a place; nil: in memory.
func liveUnderLaws(t *testing.T, few int, loaded *source.Loaded, place func(*testing.T, uint64) *placed) {
	first, lives := fault.Seeds(t, few, few)
	if text := os.Getenv("LIVES"); text != "" {
		var err error
		lives, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	total := make(map[string]int)
	for seed := first; seed < first+uint64(lives); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { // its world goes with it
			l := newLawful(t, seed, loaded, total, place(t, seed))
			for range 25 + l.rng.IntN(40) {
				l.disturb()
			}
			bad, started := l.judge(func(h journal.Hash) *law { return l.laws[h] })
			require.Empty(t, bad, "LIVES=1 SEED=%d shows it again", seed)
			last := l.laws[l.w.Status().Manifest]
			others, _ := l.judge(func(journal.Hash) *law { return last })
			total["control"] += len(others)
			total["started"] += started
			l.end()
		})
	}
	t.Logf("SEED=%d: %d lives: %v", first, lives, total)
	if lives >= fewLaws {
		for _, what := range []string{
			"started", "control", "applied", "deny", "stop", "crash", "amid", "amid a change", "rolled back",
			"held", "taken back", "slot", "rate", "budget", "backoff", "awaiting", "approved", "in doubt", "in flight",
		} {
			require.NotZero(t, total[what], what)
		}
	}
}

// lawKinds are the kinds of effects of such a world.
var lawKinds = []string{"tool.a", "tool.b", "tool.c", "tool.d"}

// law is what rules say, as they were drawn.
type law struct {
	Deny, Ask, Covers [4]bool   // by kinds
	Timeouts          [4]uint64 // part of what an effect is declared as
	NotB              bool      // the cell b may do nothing
	After, Expires    uint64    // ticks; 0: never
	Revoked           bool
}

func drawLaw(rng *rand.Rand, now uint64) law {
	var x law
	for i := range lawKinds {
		x.Deny[i], x.Ask[i], x.Covers[i] = rng.IntN(5) == 0, rng.IntN(4) == 0, rng.IntN(6) > 0
		x.Timeouts[i] = 1 + uint64(rng.IntN(3))
	}
	x.Covers[rng.IntN(4)] = true
	x.NotB = rng.IntN(6) == 0
	x.Revoked = rng.IntN(12) == 0
	if rng.IntN(4) == 0 {
		x.After = now + uint64(rng.IntN(30))
	}
	if rng.IntN(4) == 0 {
		x.Expires = 1 + now + uint64(rng.IntN(30))
	}
	return x
}

// of writes a law into a manifest.
func (x *law) of(m *manifest.Manifest) {
	effects, grants := make(map[string]manifest.Effect), []string{"tools"}
	tools := m.Caps["tools"]
	tools.Params.Kinds, tools.Expires = nil, manifest.Tick(x.Expires)
	m.Policies = []manifest.Policy{{Name: "all", When: "true", Decide: manifest.DecideAllow}}
	rule := func(name, when, decide string) {
		m.Policies = append(m.Policies, manifest.Policy{Name: name, When: when, Decide: decide})
	}
	for i, kind := range lawKinds {
		e := m.Effects[kind]
		e.Timeout = int64(x.Timeouts[i]) * 1e9
		effects[kind] = e
		if x.Covers[i] {
			tools.Params.Kinds = append(tools.Params.Kinds, kind)
		}
		if x.Deny[i] {
			rule("no "+kind, fmt.Sprintf("intent.kind == %q", kind), manifest.DecideDeny)
		}
		if x.Ask[i] {
			rule("ask "+kind, fmt.Sprintf("intent.kind == %q", kind), manifest.DecideRequireApproval)
		}
	}
	if x.NotB {
		rule("not b", `cell.key == "b"`, manifest.DecideDeny)
	}
	if x.After != 0 {
		rule("late", fmt.Sprintf("world.time > %d", x.After), manifest.DecideDeny)
	}
	if x.Revoked {
		grants = nil
	}
	bot := m.Reducers["bot"]
	bot.Grants = grants
	m.Effects, m.Caps = effects, map[string]manifest.Cap{"tools": tools}
	m.Reducers = map[string]manifest.Reducer{"bot": bot, "skip": m.Reducers["skip"]}
}

// denies reports whether an attempt may not start in a tick.
func (x *law) denies(kind int, cell string, at uint64) bool {
	return x.Deny[kind] || !x.Covers[kind] || x.Revoked || x.NotB && cell == "bot/b" ||
		x.After != 0 && at > x.After || x.Expires != 0 && at >= x.Expires
}

// question is what a person approves who is asked about a kind.
func (x *law) question(kind int) string {
	return fmt.Sprint(x.Timeouts[kind], x.Covers, x.Expires)
}

// lawful is a world whose rules change.
type lawful struct {
	t     *testing.T
	rng   *rand.Rand
	w     *World
	out   *Outside
	laws  map[journal.Hash]*law
	total map[string]int

	place  *placed         // nil: in memory
	past   journal.History // all records
	strike int             // writes until one fails; 0: none does
	deaths int             // of its processes
}

func newLawful(t *testing.T, seed uint64, loaded *source.Loaded, total map[string]int, place *placed) *lawful {
	rng := rand.New(rand.NewPCG(seed, 37))
	m := *loaded.Manifest
	m.Seed = seed
	m.Limits.InFlight = uint64(1 + rng.IntN(3))
	m.Defaults.ApprovalTTL = manifest.Tick(5 + rng.IntN(40))
	tokens := uint64(40)
	m.Effects = map[string]manifest.Effect{
		"tool.a": {Adapter: "stub", Rate: manifest.Rate{Calls: 1, Per: manifest.Tick(2 + rng.IntN(20))}},
		"tool.b": {Adapter: "stub", Retry: manifest.Retry{Attempts: 3}, OnInDoubt: manifest.InDoubtRetry, Idempotent: true},
		"tool.c": {Adapter: "stub", MaxCost: manifest.MaxCost{Tokens: &tokens}},
		"tool.d": {Adapter: "stub", Retry: manifest.Retry{Attempts: 2}},
	}
	none := uint64(0)
	for _, kind := range []string{"tool.a", "tool.b", "tool.d"} {
		e := m.Effects[kind]
		e.MaxCost.Tokens = &none
		m.Effects[kind] = e
	}
	tools := m.Caps["tools"]
	tools.Budget.Tokens = 60
	m.Caps = map[string]manifest.Cap{"tools": tools}
	x := drawLaw(rng, 30)
	x.of(&m)
	m = m.WithDefaults()
	l := &lawful{t: t, rng: rng, out: new(Outside), laws: make(map[journal.Hash]*law), total: total, place: place}
	l.out.Unbegun = func(receipt.Task) bool { return rng.IntN(2) == 0 }
	l.begin(m, loaded.Contents, 1+rng.IntN(12), journal.Seq(1+rng.IntN(60)), int(seed%2))
	l.laws[l.w.Status().Manifest] = &x
	return l
}

// begin makes the world. Batches, checkpoints and memory are those of world.Config.
func (l *lawful) begin(m manifest.Manifest, contents map[manifest.Hash][]byte, batches int, checkpoints journal.Seq, memory int) {
	if l.place == nil {
		var j Journal
		l.w = New(l.t, m, contents, Options{
			Outside: l.out, Journal: &j, BatchRecords: batches, CheckpointRecords: checkpoints, Memory: memory,
		})
		j.FailAppend, j.FailWait = func(int) error { return l.fails() }, func(int) error { return l.fails() }
		l.past = &j
		return
	}
	cfg := &l.place.cfg
	cfg.BatchRecords, cfg.CheckpointRecords, cfg.Memory = batches, checkpoints, memory
	cfg.NewHost = func(id string, _ *manifest.Manifest) (world.Host, error) {
		l.out.open(id, cfg.Keys)
		return l.out, nil
	}
	l.place.over = func(s *store.Store) journal.Journal { return &sudden{s, l.fails} }
	l.place.make(m, contents)
	l.w, l.past = l.place.w, l.place.store
}

// sudden is a journal whose process dies before or after a write. A write is waited for at once, so
// that equal seeds give equal lives.
type sudden struct {
	*store.Store

	fails func() error
}

func (s *sudden) Append(b journal.Batch) (journal.Pending, error) {
	if err := s.fails(); err != nil {
		return nil, err
	}
	p, err := s.Store.Append(b)
	if err == nil {
		err = errors.Join(p.Wait(), s.fails())
	}
	return p, err
}

// fails fails a write where it is time for that.
func (l *lawful) fails() error {
	if l.strike--; l.strike == 0 {
		return ErrInjected
	}
	l.strike = max(l.strike, 0)
	return nil
}

// crash ends the process, whatever it is at. The next one goes on.
func (l *lawful) crash(how string) {
	l.total[how]++
	l.deaths++
	l.strike = 0
	if l.place == nil {
		l.w.Crash()
		return
	}
	if left := l.place.again(); left != nil {
		_ = left.Close() // it has lost the world
	}
	l.w, l.past = l.place.w, l.place.store
}

// end requires that the life can be computed again, and lets go of it.
func (l *lawful) end() {
	_, err := world.Replay(l.t.Context(), l.past, world.ReplayConfig{Keys: l.w.cfg.Keys, Registry: l.w.cfg.Registry})
	require.NoError(l.t, err)
	if l.place != nil {
		require.NoError(l.t, l.place.store.Close())
	}
}

// disturb does something at random.
func (l *lawful) disturb() {
	ctx := context.Background()
	switch l.rng.IntN(15) {
	case 0, 1, 2:
		do := make([]any, 1+l.rng.IntN(3))
		for i := range do {
			do[i] = map[string]any{"effect": lawKinds[l.rng.IntN(4)], "param": fmt.Sprint(l.rng.IntN(1000))}
		}
		l.must(l.w.TrySubmit("go", map[string]any{"to": []string{"a", "b", "c"}[l.rng.IntN(3)], "do": do}))
	case 3, 4, 5:
		l.answer()
	case 6, 7:
		l.decide()
	case 8:
		switch l.rng.IntN(6) {
		case 0, 1:
			l.crash("crash")
		case 2:
			l.strike = 1 + l.rng.IntN(12)
		}
	case 9, 10:
		l.govern(ctx)
	case 11:
		l.turnBack(ctx)
	default:
		for range 1 + l.rng.IntN(3) {
			_, err := l.w.Next(ctx)
			l.must(err)
		}
	}
	l.must(l.w.Sync())
}

// must fails the test but where the world refuses what it is told, or waits.
func (l *lawful) must(err error) bool {
	var refused *world.InputError
	if errors.As(err, &refused) || errors.Is(err, ErrNoAnswer) {
		return false
	}
	if errors.Is(err, ErrInjected) {
		l.crash("amid")
		return false
	}
	require.NoError(l.t, err)
	return true
}

// answer lets the outside say something.
func (l *lawful) answer() {
	tasks := slices.Concat(l.out.Tasks(receipt.Perform), l.out.Tasks(receipt.Retry))
	if len(tasks) == 0 {
		return
	}
	t := tasks[l.rng.IntN(len(tasks))]
	switch n := l.rng.IntN(5); {
	case t.Work == receipt.Retry:
		l.out.Due(t)
	case n == 0:
		l.out.Lose(t, "the line is dead")
	case n < 3:
		l.out.Reply(t, Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
	default:
		l.out.Reply(t, OK(nil))
	}
}

// decide has a person decide about an intent.
func (l *lawful) decide() {
	all := slices.DeleteFunc(l.w.Intents(), func(e receipt.Entry) bool { return e.Ended() })
	if len(all) == 0 {
		return
	}
	e := all[l.rng.IntN(len(all))]
	b := journal.Resolved{Key: e.Intent.Key, Params: e.Params, Actor: "ada", Reason: "so", How: journal.Approve}
	switch n := l.rng.IntN(8); {
	case n == 0:
		b.How = journal.Stop
	case e.State == receipt.StateInDoubt && n < 4:
		b.How = journal.NotExecuted
	case e.State == receipt.StateInDoubt:
		b.How = journal.RetryAnyway
	case n == 1:
		b.How = journal.Disapprove
	}
	if l.must(ErrorOf(l.w.Resolve(context.Background(), b))) {
		l.total[string(b.How)]++
	}
}

// govern puts other rules in force.
func (l *lawful) govern(ctx context.Context) {
	next := *l.w.Manifest()
	next.Version++
	x := drawLaw(l.rng, uint64(l.w.Status().Time))
	x.of(&next)
	l.tally()
	encoded, err := next.Encode()
	require.NoError(l.t, err)
	l.laws[canon.Sum(encoded)] = &x
	if l.rng.IntN(4) == 0 {
		l.strike = 1 + l.rng.IntN(10)
	}
	release := l.hold(ctx)
	err = Adopt(ctx, l.w.World, &next, nil)
	if l.must(err) {
		l.total["applied"]++
	}
	release()
	if errors.Is(err, ErrInjected) {
		l.total["amid a change"]++
		if l.w.Status().Manifest != canon.Sum(encoded) && l.rng.IntN(2) == 0 {
			l.must(Adopt(ctx, l.w.World, &next, nil))
		}
	}
}

// hold has the world live on and begin nothing, as where somebody waits for what is under way, in
// three of four cases.
func (l *lawful) hold(ctx context.Context) (release func()) {
	if l.rng.IntN(4) == 0 {
		return func() {}
	}
	flight, deaths := len(l.w.InFlight()), l.deaths
	release, err := l.w.Hold(ctx)
	if !l.must(err) {
		return func() {}
	}
	l.total["taken back"] += flight - len(l.w.InFlight())
	for from, n := l.w.Status().Head.ID, l.rng.IntN(8); n > 0 && l.deaths == deaths; n-- {
		switch l.rng.IntN(4) {
		case 0:
			l.must(l.w.TrySubmit("go", map[string]any{"to": "a", "do": []any{map[string]any{"effect": lawKinds[l.rng.IntN(4)], "param": fmt.Sprint(n)}}}))
		case 1:
			l.answer()
		default:
			l.must(ErrorOf(l.w.Next(ctx)))
		}
		l.must(l.w.Sync())
		if l.deaths == deaths {
			require.Zero(l.t, l.startedSince(from), "it is held")
			l.total["held"]++
		}
	}
	return release
}

// startedSince counts the attempts that started after a record.
func (l *lawful) startedSince(from journal.Seq) (n int) {
	for stored, err := range l.past.Scan(from) {
		require.NoError(l.t, errors.Join(err, stored.Err))
		if stored.Record.Kind == journal.KindStarted {
			n++
		}
	}
	return n
}

// turnBack makes a snapshot, or goes back to one: rules stay.
func (l *lawful) turnBack(ctx context.Context) {
	all := l.w.Snapshots()
	if len(all) == 0 || l.rng.IntN(2) == 0 {
		_, err := l.w.Snapshot(ctx, "", "", "ada")
		l.must(err)
		return
	}
	l.tally()
	_, _, err := l.w.Rollback(ctx, journal.RolledBack{
		Snapshot: all[l.rng.IntN(len(all))].Name, Actor: "ada", Reason: "so", Ack: true, Fresh: l.rng.IntN(8) == 0,
	})
	if l.must(err) {
		l.total["rolled back"]++
	}
}

// tally counts what waits, by why.
func (l *lawful) tally() {
	waits := l.w.Waits()
	for _, e := range l.w.Intents() {
		w, is := waits[e.Intent.Key]
		switch {
		case e.State.AwaitsPerson():
			l.total["awaiting"]++
		case e.State == receipt.StateInDoubt:
			l.total["in doubt"]++
		case e.State == receipt.StateInFlight:
			l.total["in flight"]++
		case e.State != receipt.StateOpen:
		case e.Seen != nil:
			l.total["approved"]++
		case e.Waiting:
			l.total["backoff"]++
		case is && w.Until != 0:
			l.total["rate"]++
		case is:
			l.total["budget"]++
		default:
			l.total["slot"]++
		}
	}
}

// judge returns the attempts that were started and may not have been, by the laws of manifests.
// It counts all.
func (l *lawful) judge(of func(journal.Hash) *law) (bad []string, started int) {
	var now *law
	kinds, cells, approved := map[receipt.Key]int{}, map[receipt.Key]string{}, map[receipt.Key]string{}
	for stored, err := range l.past.Scan(0) {
		require.NoError(l.t, errors.Join(err, stored.Err))
		rec := stored.Record
		body, err := rec.LoadBody(l.past)
		require.NoError(l.t, err)
		switch b := body.(type) {
		case *journal.Created:
			now = of(b.Manifest)
		case *journal.Applied:
			now = of(b.Manifest)
		case *journal.IntentAwaitingApproval:
			kinds[b.Key], cells[b.Key] = slices.Index(lawKinds, b.Kind), b.Cell
		case *journal.IntentEmitted:
			kinds[b.Key], cells[b.Key] = slices.Index(lawKinds, b.Kind), b.Cell
			if b.Decision == "approved" {
				approved[b.Key] = now.question(kinds[b.Key])
			}
		case *journal.Started:
			started++
			kind := kinds[b.Key]
			if now.denies(kind, cells[b.Key], uint64(rec.Time)) {
				bad = append(bad, fmt.Sprintf("#%d: %s is denied in tick %d", rec.ID, lawKinds[kind], rec.Time))
			} else if now.Ask[kind] && approved[b.Key] != now.question(kind) {
				bad = append(bad, fmt.Sprintf("#%d: %s is not approved as it is", rec.ID, lawKinds[kind]))
			}
		}
	}
	return bad, started
}
