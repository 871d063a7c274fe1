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
	case *journal.IntentParked:
		return journal.KindParked
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
