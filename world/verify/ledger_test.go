package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// liveBots returns the bots with live effects, of which tool.b needs approval.
func liveBots(t testing.TB) (*worldtest.World, *worldtest.Outside) {
	t.Helper()
	loaded, err := source.Load("../worldtest/testdata/bots/world.yaml")
	require.NoError(t, err)
	m := *loaded.Manifest
	m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.kind == "tool.b"`, Decide: manifest.DecideRequireApproval})
	out := new(worldtest.Outside)
	return worldtest.New(t, m, loaded.Contents, worldtest.Options{Outside: out}), out
}

// ledgerStory is a world in which an intent failed, was in doubt, attempted
// again and answered, with a late receipt; one waits for approval, one is in
// doubt and one in flight.
func ledgerStory(t testing.TB) *worldtest.World {
	t.Helper()
	w, out := liveBots(t)
	w.Submit("go", order("a", act{"effect": "tool.a", "param": "x"}, act{"effect": "tool.b", "param": "y"}))
	w.Drive()
	out.Reply(out.Task(receipt.Perform), worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
	w.Drive()
	out.Due(out.Task(receipt.Retry))
	w.Drive()
	lost := out.Task(receipt.Perform)
	out.Lose(lost, "the line is dead")
	w.Drive()
	resolve(t, w, 0, journal.RetryAnyway)
	w.Drive()
	out.Reply(lost, worldtest.OK("late"))
	out.Reply(out.Task(receipt.Perform), worldtest.OK(nil))
	w.Drive()
	w.Submit("go", order("b", act{"effect": "tool.a"}, act{"effect": "tool.a"}))
	w.Drive()
	out.Lose(out.Task(receipt.Perform), "the line is dead")
	w.Drive()
	return w
}

func resolve(t testing.TB, w *worldtest.World, intent int, how journal.Resolution) {
	t.Helper()
	e := w.Intents()[intent]
	require.NoError(t, worldtest.ErrorOf(w.Resolve(t.Context(), journal.Resolved{
		Key: e.Intent.Key, How: how, Params: e.Params, Actor: "ada", Reason: "so",
	})))
}

func TestOpenDecisionsAreNoFaults(t *testing.T) {
	w := ledgerStory(t)
	r := withKeys(t, w.Journal)
	require.Empty(t, r.Faults)
	all := w.Intents()
	require.Equal(t, verify.LedgerProof{
		OK: true, PendingIdempotencyKeys: []receipt.Key{all[2].Intent.Key, all[3].Intent.Key},
		DuplicateKeys: []receipt.Key{}, OrphanKeys: []receipt.Key{},
		Attempts: 5, InDoubt: 1, Awaiting: 1, NoVerifier: 2,
	}, r.Ledger)
	require.Equal(t, verify.Receipts{Checked: 3}, r.Receipts, "late ones count")
}

func TestBadLateReceiptIsNamed(t *testing.T) {
	w := ledgerStory(t)
	id, _, _ := find(t, w.Journal, journal.KindLate)
	x := edit(t, w.Journal, journal.KindLate, func(b journal.Body) {
		late := b.(*journal.Late)
		late.Receipt = resign(t, late.Receipt, worldtest.Keyring(t, "test"), func(r *receipt.Receipt) { r.StartedAt++ })
	})
	r := withKeys(t, x)
	require.Contains(t, places(r), place(id))
	require.EqualValues(t, 1, r.Receipts.Bad)
}

// forger adds records to the journal of ledgerStory that cannot follow.
type forger struct {
	t                               *testing.T
	done, asked, doubtful, inFlight receipt.Entry
	absent                          receipt.Key
}

func (f *forger) receipt(e receipt.Entry, attempt uint64, nonce receipt.Nonce) journal.Data {
	in := e.Intent
	in.Params = journal.Data(canon.Null)
	data, err := worldtest.Sign(worldtest.Keyring(f.t, "test"), "test", receipt.Permit{Intent: in, Attempt: attempt, Nonce: nonce}, worldtest.OK(nil))
	require.NoError(f.t, err)
	return data
}

func TestMadeUpLedgersAreNamed(t *testing.T) {
	w := ledgerStory(t)
	all := w.Intents()
	f := &forger{t: t, done: all[0], asked: all[1], doubtful: all[2], inFlight: all[3]}
	for _, b := range worldtest.Bodies[*journal.Started](t, w.Journal) {
		if b.Key == f.done.Intent.Key {
			f.done.Nonce = b.Nonce // the ledger needs it no more
		}
	}
	f.absent.Hash[0] = 9
	null := journal.Data(canon.Null)
	started := func(e receipt.Entry, attempt uint64) *journal.Started {
		return &journal.Started{Version: journal.V(1), Key: e.Intent.Key, Attempt: attempt, Nonce: receipt.Nonce{7}}
	}
	resolved := func(key receipt.Key, how journal.Resolution) *journal.Resolved {
		return &journal.Resolved{Version: journal.V(1), Key: key, How: how, Actor: "eve", Reason: "so", Payload: null}
	}
	ended := func(key receipt.Key) *journal.IntentEnded {
		return &journal.IntentEnded{Version: journal.V(1), Key: key, Cell: "bot/a", Status: receipt.StatusOK, Outcome: receipt.OutcomeSideEffectCommitted, Payload: null}
	}
	const dup, lone = "duplicate", "orphan"
	for name, c := range map[string]struct {
		kind journal.Kind
		body journal.Body
		key  receipt.Key
		list string
	}{
		"started while in doubt":        {journal.KindStarted, started(f.doubtful, 2), f.doubtful.Intent.Key, dup},
		"started while in flight":       {journal.KindStarted, started(f.inFlight, 2), f.inFlight.Intent.Key, dup},
		"started after its end":         {journal.KindStarted, started(f.done, 4), f.done.Intent.Key, dup},
		"started while asked":           {journal.KindStarted, started(f.asked, 1), f.asked.Intent.Key, lone},
		"allowed without approval":      {journal.KindIntent, &journal.IntentEmitted{Version: journal.V(1), Key: f.asked.Intent.Key, Decision: "approved", Rules: []string{}, Params: null}, f.asked.Intent.Key, lone},
		"asked twice":                   {journal.KindAwaitingApproval, &journal.IntentAwaitingApproval{Version: journal.V(1), Key: f.asked.Intent.Key, Rules: []string{}, Params: null}, f.asked.Intent.Key, dup},
		"finished with another nonce":   {journal.KindFinished, &journal.Finished{Version: journal.V(1), Receipt: f.receipt(f.inFlight, 1, receipt.Nonce{7})}, f.inFlight.Intent.Key, lone},
		"finished ahead":                {journal.KindFinished, &journal.Finished{Version: journal.V(1), Receipt: f.receipt(f.inFlight, 2, f.inFlight.Nonce)}, f.inFlight.Intent.Key, lone},
		"finished twice":                {journal.KindFinished, &journal.Finished{Version: journal.V(1), Receipt: f.receipt(f.done, f.done.Attempt, f.done.Nonce)}, f.done.Intent.Key, dup},
		"late for what is in flight":    {journal.KindLate, &journal.Late{Version: journal.V(1), Receipt: f.receipt(f.inFlight, 1, f.inFlight.Nonce)}, f.inFlight.Intent.Key, lone},
		"late for nothing":              {journal.KindLate, &journal.Late{Version: journal.V(1), Receipt: f.receipt(f.done, 2, receipt.Nonce{7})}, f.done.Intent.Key, lone},
		"expired after its end":         {journal.KindExpired, &journal.Expired{Version: journal.V(1), Key: f.done.Intent.Key, Attempt: f.done.Attempt}, f.done.Intent.Key, lone},
		"expired and never started":     {journal.KindExpired, &journal.Expired{Version: journal.V(1), Key: f.absent, Attempt: 1}, f.absent, lone},
		"in doubt without expiry":       {journal.KindInDoubt, &journal.InDoubt{Version: journal.V(1), Key: f.inFlight.Intent.Key, Attempt: 1, Action: "fail"}, f.inFlight.Intent.Key, lone},
		"waiting without a receipt":     {journal.KindWaiting, &journal.IntentWaiting{Version: journal.V(1), Key: f.inFlight.Intent.Key, Attempt: 1, Outcome: receipt.OutcomeRetryableFailure}, f.inFlight.Intent.Key, lone},
		"executed, nothing in doubt":    {journal.KindResolved, resolved(f.inFlight.Intent.Key, journal.Executed), f.inFlight.Intent.Key, lone},
		"retried after its end":         {journal.KindResolved, resolved(f.done.Intent.Key, journal.RetryAnyway), f.done.Intent.Key, lone},
		"answered, and nothing asked":   {journal.KindResolved, resolved(f.asked.Intent.Key, journal.Answer), f.asked.Intent.Key, lone},
		"approved, and in doubt":        {journal.KindResolved, resolved(f.doubtful.Intent.Key, journal.Approve), f.doubtful.Intent.Key, lone},
		"stopped in flight":             {journal.KindResolved, resolved(f.inFlight.Intent.Key, journal.Stop), f.inFlight.Intent.Key, lone},
		"stopped in doubt":              {journal.KindResolved, resolved(f.doubtful.Intent.Key, journal.Stop), f.doubtful.Intent.Key, lone},
		"denied, and never asked":       {journal.KindResolved, resolved(f.absent, journal.Disapprove), f.absent, lone},
		"an unknown decision":           {journal.KindResolved, resolved(f.absent, "perhaps"), f.absent, lone},
		"confirmed without a receipt":   {journal.KindConfirmed, &journal.Confirmed{Version: journal.V(1), Key: f.inFlight.Intent.Key, Mode: "strict", Verdict: receipt.NotHappened}, f.inFlight.Intent.Key, lone},
		"ended while in flight":         {journal.KindEnded, ended(f.inFlight.Intent.Key), f.inFlight.Intent.Key, lone},
		"ended while in doubt":          {journal.KindEnded, ended(f.doubtful.Intent.Key), f.doubtful.Intent.Key, lone},
		"ended after its receipt":       {journal.KindEnded, ended(f.done.Intent.Key), f.done.Intent.Key, dup},
		"ended and never asked for":     {journal.KindEnded, ended(f.absent), f.absent, lone},
		"denied after it was committed": {journal.KindDenied, &journal.IntentDenied{Version: journal.V(1), Key: f.done.Intent.Key, Rules: []string{}, Params: null}, f.done.Intent.Key, dup},
	} {
		t.Run(name, func(t *testing.T) {
			payload, err := canon.Marshal(c.body)
			require.NoError(t, err)
			x := tamper(w.Journal)
			id := x.add(t, c.kind, payload)
			r := withKeys(t, x.relink(t))
			require.Contains(t, places(r), place(id))
			require.False(t, r.Ledger.OK)
			lists := map[string][]receipt.Key{dup: r.Ledger.DuplicateKeys, lone: r.Ledger.OrphanKeys}
			require.Equal(t, []receipt.Key{c.key}, lists[c.list])
			delete(lists, c.list)
			for _, other := range lists {
				require.Empty(t, other)
			}
			require.False(t, r.Replay.OK)
		})
	}
}

// What a kernel adds after a decision, nobody may leave out.
func TestDecisionThatNothingFollowsDoesNotLetAnAttemptGo(t *testing.T) {
	for how, intent := range map[journal.Resolution]int{journal.Executed: 2, journal.Disapprove: 1, journal.Approve: 1} {
		t.Run(string(how), func(t *testing.T) {
			w := ledgerStory(t)
			e := w.Intents()[intent]
			decision, err := canon.Marshal(&journal.Resolved{Version: journal.V(1), Key: e.Intent.Key, How: how, Params: e.Params, Actor: "eve", Reason: "so", Payload: journal.Data(canon.Null)})
			require.NoError(t, err)
			permit, err := canon.Marshal(&journal.Started{Version: journal.V(1), Key: e.Intent.Key, Attempt: e.Attempt + 1})
			require.NoError(t, err)
			x := tamper(w.Journal)
			x.add(t, journal.KindResolved, decision)
			id := x.add(t, journal.KindStarted, permit)
			r := withKeys(t, x.relink(t))
			require.Contains(t, places(r), place(id))
			require.False(t, r.Ledger.OK)
		})
	}
}

func TestLateReceiptThatComesTwiceIsNamed(t *testing.T) {
	w := ledgerStory(t)
	_, late, _ := find(t, w.Journal, journal.KindLate)
	x := tamper(w.Journal)
	id := x.add(t, journal.KindLate, late)
	r := withKeys(t, x.relink(t))
	require.Contains(t, places(r), place(id))
	require.Equal(t, []receipt.Key{w.Intents()[0].Intent.Key}, r.Ledger.OrphanKeys)
}

func TestAttemptThatIsNotTheNextIsNamed(t *testing.T) {
	w := ledgerStory(t)
	e := w.Intents()[2]
	resolve(t, w, 2, journal.RetryAnyway)
	for attempt, fine := range map[uint64]bool{e.Attempt: false, e.Attempt + 1: true, e.Attempt + 2: false} {
		permit, err := canon.Marshal(&journal.Started{Version: journal.V(1), Key: e.Intent.Key, Attempt: attempt})
		require.NoError(t, err)
		x := tamper(w.Journal)
		x.add(t, journal.KindStarted, permit)
		require.Equal(t, fine, withKeys(t, x.relink(t)).Ledger.OK)
	}
}

// play is a world of bots whose effects are live, and its outside.
type play struct {
	*worldtest.World
	out *worldtest.Outside
	t   *testing.T
}

func live(t *testing.T, change ...func(*manifest.Manifest)) *play {
	t.Helper()
	loaded, err := source.Load("../worldtest/testdata/bots/world.yaml")
	require.NoError(t, err)
	m := *loaded.Manifest
	for _, c := range change {
		c(&m)
	}
	out := new(worldtest.Outside)
	return &play{World: worldtest.New(t, m, loaded.Contents, worldtest.Options{Outside: out}), out: out, t: t}
}

// tool changes what the manifest says about the effect tool.a.
func tool(change func(*manifest.Effect)) func(*manifest.Manifest) {
	return func(m *manifest.Manifest) {
		e := m.Effects["tool.a"]
		change(&e)
		m.Effects["tool.a"] = e
	}
}

func (p *play) order(acts ...act) { p.Submit("go", order("a", acts...)) }

func (p *play) snapshot(name string) {
	p.t.Helper()
	_, err := p.Snapshot(p.t.Context(), name, "", "ada")
	require.NoError(p.t, err)
}

// back rolls back to the snapshot "before".
func (p *play) back(change ...func(*journal.RolledBack)) {
	p.t.Helper()
	b := journal.RolledBack{Snapshot: "before", Reason: "a try", Actor: "ada", Ack: true}
	for _, c := range change {
		c(&b)
	}
	_, _, err := p.Rollback(p.t.Context(), b)
	require.NoError(p.t, err)
}

func compensate(b *journal.RolledBack) { b.Compensate = true }

// reply answers the attempt that the outside has longest to perform.
func (p *play) reply(r worldtest.Reply) {
	p.t.Helper()
	p.out.Reply(p.out.Task(receipt.Perform), r)
	p.Drive()
}

// asked is a play in which the bot a has asked for tool.a, after a snapshot.
func asked(t *testing.T, change ...func(*manifest.Manifest)) *play {
	t.Helper()
	p := live(t, change...)
	p.order(act{"effect": "tool.a", "param": "x"})
	p.snapshot("before")
	p.Drive()
	return p
}

func (p *play) decisions() (out []string) {
	for _, b := range worldtest.Bodies[*journal.IntentEmitted](p.t, p.Journal) {
		out = append(out, b.Decision)
	}
	return out
}

// proven requires that nothing is wrong with a world.
func (p *play) proven() *verify.Report {
	p.t.Helper()
	r := withKeys(p.t, p.Journal)
	require.Empty(p.t, r.Faults)
	require.True(p.t, r.Ledger.OK)
	require.Equal(p.t, p.StateRoot(), r.StateRoot)
	return r
}

// forged adds records with these bodies, and requires that a ledger is found out
// at the last one. It returns the proof.
func (p *play) forged(add ...journal.Body) verify.LedgerProof {
	p.t.Helper()
	x := tamper(p.Journal)
	var id journal.Seq
	for _, b := range add {
		id = x.add(p.t, kindOf(p.t, b), marshal(p.t, b))
	}
	r := withKeys(p.t, x.relink(p.t))
	require.Contains(p.t, places(r), place(id))
	require.False(p.t, r.Ledger.OK)
	return r.Ledger
}

func kindOf(t *testing.T, b journal.Body) journal.Kind {
	t.Helper()
	switch b.(type) {
	case *journal.IntentEmitted:
		return journal.KindIntent
	case *journal.IntentAwaitingApproval:
		return journal.KindAwaitingApproval
	case *journal.IntentDenied:
		return journal.KindDenied
	case *journal.Started:
		return journal.KindStarted
	case *journal.Finished:
		return journal.KindFinished
	case *journal.IntentEnded:
		return journal.KindEnded
	case *journal.Confirmed:
		return journal.KindConfirmed
	case *journal.InDoubt:
		return journal.KindInDoubt
	case *journal.RolledBack:
		return journal.KindRollback
	case *journal.ManifestProposed:
		return journal.KindProposed
	case *journal.ManifestShadowed:
		return journal.KindShadowed
	case *journal.ManifestApproved:
		return journal.KindApproved
	case *journal.ManifestRejected:
		return journal.KindRejected
	case *journal.Applied:
		return journal.KindApplied
	}
	t.Fatalf("no kind for %T", b)
	return ""
}

// The records that a forger adds.
func claim(key receipt.Key, decision string) *journal.IntentEmitted {
	return &journal.IntentEmitted{Version: journal.V(1), Key: key, Decision: decision, Rules: []string{}, Params: journal.Data(canon.Null)}
}

func start(e *receipt.Entry, attempt uint64) *journal.Started {
	return &journal.Started{Version: journal.V(1), Key: e.Intent.Key, Attempt: attempt, Nonce: receipt.Nonce{7}}
}

func end(key receipt.Key, status receipt.Status) *journal.IntentEnded {
	return &journal.IntentEnded{Version: journal.V(1), Key: key, Cell: "bot/a", Status: status, Outcome: receipt.OutcomePermanentFailure, Payload: journal.Data(canon.Null)}
}

func keysOf(p *play, intents ...int) (out []receipt.Key) {
	for _, i := range intents {
		out = append(out, p.Intents()[i].Intent.Key)
	}
	return out
}
