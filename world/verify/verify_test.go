package verify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

type act map[string]any

func order(to string, acts ...act) map[string]any {
	do := make([]any, len(acts))
	for i, a := range acts {
		do[i] = map[string]any(a)
	}
	return map[string]any{"to": to, "do": do}
}

func bots(t testing.TB) *worldtest.World {
	t.Helper()
	return worldtest.Load(t, "../worldtest/testdata/bots", worldtest.Options{})
}

// story returns a world in which everything has happened once.
func story(t testing.TB) *worldtest.World {
	t.Helper()
	w := bots(t)
	w.Submit("go", order("a",
		act{"effect": "tool.a", "param": "x"}, act{"effect": "tool.b", "param": "error"}, act{"effect": "tool.bad"},
		act{"emit": "ping", "to": "b"}, act{"emit": "lost"}, act{"timer": 2},
	))
	w.Submit("go", order("c", act{"delete": true}))
	w.Submit("go", map[string]any{"to": "d", "say": strings.Repeat("long ", 1000)})
	w.Run()
	w.Submit("go", order("c", act{"fail": "told to"}))
	w.Run()
	return w
}

// run verifies a world, and requires that the same is found with hardly any memory.
func run(t testing.TB, h journal.History, cfg verify.Config) *verify.Report {
	t.Helper()
	r := once(t, h, cfg)
	spills := new(worldtest.Spills)
	cfg.Spilling, cfg.Progress = spills.Spilling(), nil
	require.Equal(t, r, once(t, h, cfg))
	require.Zero(t, spills.Open)
	return r
}

func once(t testing.TB, h journal.History, cfg verify.Config) *verify.Report {
	t.Helper()
	r, err := verify.Verify(t.Context(), h, cfg)
	require.NoError(t, err)
	require.Equal(t, len(r.Faults) == 0, r.OK)
	return r
}

// withKeys verifies with the keys that the world's receipts were signed with.
func withKeys(t testing.TB, h journal.History) *verify.Report {
	t.Helper()
	return run(t, h, verify.Config{Keys: worldtest.Keyring(t, "test")})
}

func TestGoodWorldIsProven(t *testing.T) {
	w := story(t)
	head := w.Status().Head
	seen := uint64(0)
	r := run(t, w.Journal, verify.Config{
		Keys: worldtest.Keyring(t, "test"), Anchor: head,
		Progress: func(done uint64) { require.Equal(t, seen+1, done); seen = done },
	})
	require.Empty(t, r.Faults)
	require.Equal(t, "test", r.WorldID)
	require.EqualValues(t, head.ID, r.Records)
	require.Equal(t, r.Records, seen)
	require.Equal(t, head.Root, r.EventChainRootHash)
	require.Equal(t, w.StateRoot(), r.StateRoot)
	require.Equal(t, verify.Receipts{Checked: 2}, r.Receipts)
	require.True(t, r.Ledger.OK)
	require.True(t, r.Replay.OK)
	require.False(t, r.Trusted, "nobody signed it")
}

func TestEveryWorldThatRanIsProven(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := bots(t)
		for range rapid.IntRange(0, 6).Draw(rt, "actions") {
			switch rapid.IntRange(0, 2).Draw(rt, "action") {
			case 0:
				w.Step(1)
			case 1:
				w.Crash()
			default:
				acts := rapid.SliceOfN(rapid.SampledFrom([]act{
					{"effect": "tool.a", "param": "p"},
					{"effect": "tool.b", "param": "error"},
					{"effect": "other.x"},
					{"timer": 1},
					{"emit": "both", "to": "b"},
					{"delete": true},
					{"fail": "no"},
					{"random": 9},
				}), 0, 4).Draw(rt, "acts")
				w.Submit("go", order(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "to"), acts...))
			}
		}
		head := w.Status().Head
		r := run(t, w.Journal, verify.Config{Keys: worldtest.Keyring(t, "test"), Anchor: head})
		if !r.OK || r.EventChainRootHash != head.Root || r.StateRoot != w.StateRoot() {
			rt.Fatalf("%+v", r)
		}
	})
}

func TestEffectInFlightIsPendingAndNoFault(t *testing.T) {
	w := worldtest.Load(t, "../worldtest/testdata/bots", worldtest.Options{Answer: func(receipt.Permit) worldtest.Reply {
		return worldtest.Reply{Err: fmt.Errorf("no answer")}
	}})
	w.Submit("go", order("a", act{"effect": "tool.a"}))
	require.Error(t, w.World.Step(t.Context()))
	r := withKeys(t, w.Journal)
	require.Empty(t, r.Faults)
	require.Equal(t, []receipt.Key{w.Intents()[0].Intent.Key}, r.Ledger.PendingIdempotencyKeys)
}

func TestWithoutKeysReceiptsAreUnverifiable(t *testing.T) {
	w := story(t)
	none, err := receipt.NewKeyring("test", nil)
	require.NoError(t, err)
	for name, keys := range map[string]*receipt.Keyring{"no keyring": nil, "a keyring without keys": none} {
		r := run(t, w.Journal, verify.Config{Keys: keys})
		require.Empty(t, r.Faults, name)
		require.Equal(t, verify.Receipts{Unverifiable: 2}, r.Receipts, name)
	}
}

func TestReceiptOfARevokedKeyStillProves(t *testing.T) {
	w := story(t)
	first := []byte(strings.Repeat("1", receipt.SecretBytes))
	resigned := edit(t, w.Journal, journal.KindFinished, func(b journal.Body) {
		f := b.(*journal.Finished)
		f.Receipt = resign(t, f.Receipt, keyring(t, receipt.Epoch{Number: 1, Secret: first}), nil)
	})
	rotated := keyring(t, receipt.Epoch{Number: 1, Secret: first, Revoked: true}, receipt.Epoch{Number: 2, Secret: first})
	r := run(t, resigned, verify.Config{Keys: rotated})
	require.EqualValues(t, 1, r.Receipts.Checked)
	require.EqualValues(t, 1, r.Receipts.Bad, "the other one is of a key that nobody knows")

	forger := keyring(t, receipt.Epoch{Number: 1, Secret: []byte(strings.Repeat("2", receipt.SecretBytes))})
	forged := edit(t, w.Journal, journal.KindFinished, func(b journal.Body) {
		f := b.(*journal.Finished)
		f.Receipt = resign(t, f.Receipt, forger, func(r *receipt.Receipt) { r.KeyID = rotated.Keys()[0].ID })
	})
	r = run(t, forged, verify.Config{Keys: rotated})
	require.EqualValues(t, 2, r.Receipts.Bad, "a revoked key's name is not its signature")
}

func TestExecutionHashIsOfWhatHappenedInItsOrder(t *testing.T) {
	w := bots(t)
	w.Submit("go", order("a", act{"effect": "tool.a"}, act{"effect": "tool.bad"}, act{"effect": "tool.b", "param": "error"}))
	w.Submit("go", order("b", act{"fail": "told to"}))
	w.Run()
	_, _, created := find(t, w.Journal, journal.KindCreated)
	step := func(i int) receipt.StepID { return w.Intents()[i].Intent.Step }
	lines := "manifest " + created.(*journal.Created).Manifest.String() + "\n" +
		"bot/a@1:success\n" +
		string(step(1)) + ":permanent_failure\n" + // denied
		"bot/b@1:permanent_failure\n" +
		string(step(0)) + ":side_effect_committed\n" +
		string(step(2)) + ":permanent_failure\n" +
		"bot/a@2:pure\nbot/a@3:pure\nbot/a@4:pure\n"
	require.Equal(t, canon.Sum([]byte(lines)), withKeys(t, w.Journal).ExecutionHash)
}

func TestReportHasTheKeysOfTheSpecification(t *testing.T) {
	w := story(t)
	keys := func(v any) []string {
		object, ok := v.(map[string]any)
		require.True(t, ok, "%v is no object", v)
		var out []string
		for key := range object {
			out = append(out, key)
		}
		return out
	}
	for name, c := range map[string]struct {
		history journal.History
		anchor  journal.Head
		extra   []string
	}{
		"good":            {w.Journal, journal.Head{}, []string{"state_root"}},
		"with an anchor":  {w.Journal, w.Status().Head, []string{"anchor", "state_root"}},
		"with divergence": {edit(t, w.Journal, journal.KindStepped, func(b journal.Body) { b.(*journal.Stepped).Gas++ }), journal.Head{}, nil},
	} {
		text, err := json.Marshal(run(t, c.history, verify.Config{Anchor: c.anchor}))
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(text, &got))
		require.ElementsMatch(t, append([]string{
			"ok", "trusted", "world_id", "records", "execution_hash", "event_chain_root_hash",
			"tool_invocation_ledger_proof", "replay_proof_result", "receipts", "snapshots", "governance", "redacted", "checkpoints", "faults",
		}, c.extra...), keys(got), name)
		ledger := got["tool_invocation_ledger_proof"]
		require.ElementsMatch(t, []string{
			"ok", "pending_idempotency_keys", "duplicate_keys", "orphan_keys",
			"attempts", "in_doubt", "awaiting", "confirmed_not", "no_verifier",
		}, keys(ledger), name)
		for _, list := range []string{"pending_idempotency_keys", "duplicate_keys", "orphan_keys"} {
			require.IsType(t, []any{}, ledger.(map[string]any)[list], "an empty list is a list")
		}
		replay := got["replay_proof_result"]
		require.ElementsMatch(t, []string{"ok", "error", "first_divergence", "gaps"}, keys(replay), name)
		require.ElementsMatch(t, []string{"checked", "bad", "unverifiable", "inherited"}, keys(got["receipts"]), name)
		require.ElementsMatch(t, []string{"checked", "bad"}, keys(got["snapshots"]), name)
		require.ElementsMatch(t, []string{"checked", "bad", "last", "trusted", "signers"}, keys(got["checkpoints"]), name)
		require.IsType(t, []any{}, got["checkpoints"].(map[string]any)["signers"])
		require.ElementsMatch(t, []string{"proposals", "applied", "bad"}, keys(got["governance"]), name)
		require.IsType(t, []any{}, replay.(map[string]any)["gaps"])
		require.IsType(t, []any{}, got["faults"])
		require.Len(t, got["execution_hash"], 64)
		if first := replay.(map[string]any)["first_divergence"]; first != nil {
			require.ElementsMatch(t, []string{"record", "cell", "journal", "computed"}, keys(first), name)
			require.NotEmpty(t, replay.(map[string]any)["error"])
		}
	}
}

// partOf returns the records of a journal from one on, and where they begin.
func partOf(j *worldtest.Journal, id string, first journal.Seq) (*tampered, verify.Begin) {
	x := tamper(j)
	past := x.records[:first-1]
	x.records = slices.Clone(x.records[first-1:])
	return x, verify.Begin{First: first, Root: past[len(past)-1].Root, Nodes: worldtest.TreeOf(past).Nodes(), World: id}
}

// relinkFrom computes the chain of a part anew.
func (x *tampered) relinkFrom(t testing.TB, root journal.Hash) {
	t.Helper()
	chain := canon.ResumeChain(root)
	for i := range x.records {
		s := &x.records[i]
		e, err := canon.DecodeEnvelope(s.Bytes)
		require.NoError(t, err)
		s.Root = chain.Add(e.ID, e.Kind, s.Bytes)
	}
}

// editFrom changes what the record at an index of a part says, and the chain with it.
func (x *tampered) editFrom(t testing.TB, root journal.Hash, at int, change func(*canon.Envelope)) {
	t.Helper()
	e, err := canon.DecodeEnvelope(x.records[at].Bytes)
	require.NoError(t, err)
	change(&e)
	x.records[at].Bytes = canon.AppendEnvelope(nil, e)
	x.relinkFrom(t, root)
}

func TestEveryPartOfAGoodJournalIsGood(t *testing.T) {
	p := told(t)
	all := p.Journal.Records()
	head := p.Status().Head
	whole := withKeys(t, p.Journal)
	for first := journal.Seq(2); first <= head.ID; first++ {
		x, begin := partOf(p.Journal, "test", first)
		done := uint64(0)
		r := run(t, x, verify.Config{
			Begin: begin, Keys: worldtest.Keyring(t, "test"), Anchor: head, Trust: publics(1), Sealed: true,
			Checkpoints: notes(sign(t, "test", all, 1)), Kept: [][]byte{sign(t, "test", all[:first-1], 1)},
			Progress: func(n uint64) { done = n },
		})
		require.Empty(t, r.Faults, "from #%d", first)
		require.True(t, r.Trusted)
		require.Equal(t, first, r.From)
		require.EqualValues(t, head.ID, r.Records)
		require.EqualValues(t, head.ID, done)
		require.Equal(t, head.Root, r.EventChainRootHash)
		require.Equal(t, "test", r.WorldID)
		require.True(t, r.Anchor.OK)
		require.EqualValues(t, 2, r.Checkpoints.Checked)
		require.LessOrEqual(t, r.Receipts.Checked, whole.Receipts.Checked)
		require.Zero(t, r.Receipts.Unverifiable)

		require.Zero(t, r.ExecutionHash)
		require.Zero(t, r.StateRoot)
		require.Zero(t, r.Snapshots)
		require.False(t, r.Ledger.OK, "nothing is known of it")
		require.Equal(t, verify.ReplayProof{Error: "not checked: the journal begins with record #" + place(first)[len("record #"):], Gaps: []verify.Gap{}}, r.Replay)
	}
}

func TestPartThatWasChangedIsNamed(t *testing.T) {
	p := told(t)
	all := p.Journal.Records()
	finished, _, _ := find(t, p.Journal, journal.KindFinished)
	made, _, _ := find(t, p.Journal, journal.KindSnapshot)
	last := placeOfHead(len(all))
	const first = 4
	for name, c := range map[string]struct {
		change func(t *testing.T, x *tampered, b *verify.Begin)
		found  []string
	}{
		"a record": {func(_ *testing.T, x *tampered, _ *verify.Begin) {
			x.records[1].Bytes = bytes.Clone(x.records[1].Bytes)
			x.records[1].Bytes[2] ^= 1
		}, []string{place(first + 1), last}},
		"a record and the chain": {func(t *testing.T, x *tampered, b *verify.Begin) {
			x.editFrom(t, b.Root, len(x.records)-1, func(e *canon.Envelope) { e.Time++ })
		}, []string{last}},
		"its number": {func(t *testing.T, x *tampered, b *verify.Begin) {
			x.editFrom(t, b.Root, len(x.records)-1, func(e *canon.Envelope) { e.ID++ })
		}, []string{place(journal.Seq(len(all))), last}},
		"a receipt": {func(t *testing.T, x *tampered, b *verify.Begin) {
			x.editFrom(t, b.Root, int(finished-first), func(e *canon.Envelope) {
				e.Payload = bytes.Replace(e.Payload, []byte("started_at"), []byte("startef_at"), 1)
			})
		}, []string{place(finished), place(made), last}},
		"the chain root before it": {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.Root[9] ^= 1 }, []string{place(first)}},
		"the chain root and all links": {func(t *testing.T, x *tampered, b *verify.Begin) {
			b.Root[9] ^= 1
			x.relinkFrom(t, b.Root)
		}, []string{place(made)}},
		"a node":        {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.Nodes[0][0] ^= 1 }, []string{last}},
		"no node":       {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.Nodes = nil }, []string{place(first - 1), last}},
		"its world":     {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.World = "city" }, []string{last}},
		"its beginning": {func(_ *testing.T, _ *tampered, b *verify.Begin) { b.First-- }, []string{place(first), last}},
		"no record":     {func(_ *testing.T, x *tampered, _ *verify.Begin) { x.records = nil }, []string{place(first), last}},
	} {
		t.Run(name, func(t *testing.T) {
			x, begin := partOf(p.Journal, "test", first)
			c.change(t, x, &begin)
			r := run(t, x, verify.Config{Begin: begin, Trust: publics(1), Checkpoints: notes(sign(t, "test", all, 1))})
			for _, place := range c.found {
				require.Contains(t, places(r), place)
			}
			require.Equal(t, slices.Contains(c.found, last), !r.Trusted)
		})
	}
	x, begin := partOf(p.Journal, "test", first)
	require.Contains(t, places(run(t, x, verify.Config{})), place(first), "a part that does not say so is a fault")
	begin.First = 1
	require.Contains(t, places(run(t, x, verify.Config{Begin: begin})), place(first))
}

func TestPartSaysNothingOfWhatIsBeforeIt(t *testing.T) {
	p := told(t)
	x, begin := partOf(p.Journal, "test", 5)
	r := run(t, x, verify.Config{Begin: begin, Kept: [][]byte{sign(t, "test", p.Journal.Records()[:3], 1)}, Trust: publics(1)})
	require.Equal(t, []string{"kept " + placeOfHead(3)}, places(r))
}

// Receipts and checkpoints from before a fork are its parent's.
func TestPartThatAForkIsIn(t *testing.T) {
	p := parent(t)
	before := journal.Seq(len(p.Journal.Records()))
	child := p.fork(journal.ForkHold)
	all := child.Journal.Records()
	for first := journal.Seq(2); first <= before+2; first++ {
		x, begin := partOf(child.Journal, "child", first)
		list := [][]byte{sign(t, "child", all, 1)}
		if first <= before+1 {
			list = append([][]byte{sign(t, "test", all[:before], 1)}, list...)
		}
		r := run(t, x, verify.Config{
			Begin: begin, Keys: worldtest.Keyring(t, "child"), Signers: publics(1), Checkpoints: notes(list...),
		})
		require.Empty(t, r.Faults, "from #%d", first)
		require.Equal(t, "child", r.WorldID)
		if first <= before+1 {
			begin.World = "test"
			require.Equal(t, []string{"world"}, places(run(t, x, verify.Config{Begin: begin})), "from #%d", first)
		}
	}
}

func TestMalformedNodesAreAFaultAndNotAnError(t *testing.T) {
	p := told(t)
	x, begin := partOf(p.Journal, "test", 3)
	begin.Nodes = []checkpoint.Hash{{}, {}, {}}
	require.Equal(t, []string{place(2)}, places(run(t, x, verify.Config{Begin: begin})))
}
