package verify_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func long() string { return strings.Repeat("long ", 1000) }

// redact destroys the payload of a record, and says so.
func (x *tampered) redact(t testing.TB, id journal.Seq) journal.Hash {
	t.Helper()
	blob := x.withhold(t, id)
	x.add(t, journal.KindRedacted, marshal(t, &journal.Redacted{Version: journal.V(1), Blob: blob, Actor: "ada", Reason: "it names somebody"}))
	x.relink(t)
	return blob
}

// told is a play in which somebody said something long (record #2) and an effect
// was performed, both before the snapshot "before", and another one after it.
func told(t *testing.T) *play {
	t.Helper()
	p := live(t)
	p.Submit("go", map[string]any{"to": "a", "say": long()})
	p.order(act{"effect": "tool.a", "param": "x"})
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.snapshot("before")
	p.order(act{"effect": "tool.a", "param": "y"})
	p.Drive()
	p.reply(worldtest.OK(nil))
	return p
}

func snapshots(t *testing.T, p *play) (out []journal.Seq) {
	t.Helper()
	for i, kind := range p.Kinds() {
		if kind == journal.KindSnapshot {
			out = append(out, journal.Seq(i+1))
		}
	}
	return out
}

func TestReplayGoesOnAfterWhatWasRedacted(t *testing.T) {
	p := told(t)
	whole := p.proven()
	x := tamper(p.Journal)
	x.redact(t, 2)
	r := withKeys(t, x)
	require.Empty(t, r.Faults)
	require.EqualValues(t, 1, r.Redacted)
	require.Equal(t, []verify.Gap{{From: 2, To: snapshots(t, p)[0]}}, r.Replay.Gaps)
	require.True(t, r.Replay.OK)
	require.Equal(t, p.StateRoot(), r.StateRoot)
	require.Equal(t, whole.ExecutionHash, r.ExecutionHash, "what was said is not what was done")
	require.Equal(t, whole.Ledger, r.Ledger)
	require.Equal(t, verify.Snapshots{Checked: 1}, r.Snapshots)
}

func TestMissingPayloadThatNothingNamesIsAFault(t *testing.T) {
	p := told(t)
	x := tamper(p.Journal)
	blob := x.redact(t, 2)
	x.records = x.records[:len(x.records)-1]
	r := withKeys(t, x)
	require.Contains(t, places(r), place(2))
	require.Zero(t, r.Redacted)
	require.False(t, r.Replay.OK)
	require.Empty(t, r.Replay.Gaps)

	x = tamper(p.Journal)
	x.redact(t, 2)
	x.blobs[blob] = []byte("something else")
	r = withKeys(t, x)
	require.Contains(t, places(r), place(2), "what is there has to be what its name says")
	require.Zero(t, r.Redacted)
}

func TestReplayEndsWhereNoImageIsKept(t *testing.T) {
	for name, change := range map[string]func(p *play){
		"no snapshot": func(*play) {},
		"pruned": func(p *play) {
			p.snapshot("early")
			p.order()
			p.Drive()
			p.snapshot("last")
			require.NoError(p.t, worldtest.ErrorOf(p.Prune(p.t.Context(), journal.SnapshotPruned{Name: "early", Actor: "ada"})))
			require.NoError(p.t, p.retainOne())
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := live(t)
			p.Submit("go", map[string]any{"to": "a", "say": long()})
			p.Drive()
			change(p)
			x := tamper(p.Journal)
			x.redact(t, 2)
			r := withKeys(t, x)
			require.Empty(t, r.Faults)
			require.True(t, r.Replay.OK)
			if kept := snapshots(t, p); len(kept) > 0 {
				require.Equal(t, []verify.Gap{{From: 2, To: kept[len(kept)-1]}}, r.Replay.Gaps)
				require.Equal(t, p.StateRoot(), r.StateRoot)
				return
			}
			require.Equal(t, []verify.Gap{{From: 2, To: journal.Seq(len(x.records))}}, r.Replay.Gaps)
			require.Zero(t, r.StateRoot)
		})
	}
}

// retainOne keeps the last snapshot alone.
func (p *play) retainOne() error {
	_, _, err := p.Retain(p.t.Context(), journal.SnapshotRetention{Max: 1, Actor: "ada"})
	return err
}

func TestEveryGapIsReported(t *testing.T) {
	p := told(t)
	p.Submit("go", map[string]any{"to": "a", "say": long() + "again"})
	second := p.Status().Head.ID
	p.Drive()
	p.snapshot("after")
	x := tamper(p.Journal)
	x.redact(t, 2)
	x.redact(t, second)
	r := withKeys(t, x)
	require.Empty(t, r.Faults)
	at := snapshots(t, p)
	require.Equal(t, []verify.Gap{{From: 2, To: at[0]}, {From: second, To: at[1]}}, r.Replay.Gaps)
	require.EqualValues(t, 2, r.Redacted)
	require.Equal(t, p.StateRoot(), r.StateRoot)
	require.Equal(t, verify.Snapshots{Checked: 2}, r.Snapshots)
}

// A rollback led to a snapshot whose image has been let go since: from record 1 it
// can be recomputed, from a later snapshot it cannot.
func TestRollbackBehindAGapMayLeadToWhatIsNotKept(t *testing.T) {
	p := live(t)
	p.Submit("go", map[string]any{"to": "a", "say": long()})
	p.snapshot("before")
	p.Drive()
	p.snapshot("between")
	p.order()
	p.Drive()
	p.back()
	rolledBack := p.Status().Head.ID
	p.Drive()
	p.snapshot("after")
	require.NoError(t, worldtest.ErrorOf(p.Prune(t.Context(), journal.SnapshotPruned{Name: "before", Actor: "ada"})))
	p.order()
	p.Drive()
	p.proven()
	x := tamper(p.Journal)
	x.redact(t, 2)
	r := withKeys(t, x)
	require.Empty(t, r.Faults)
	at := snapshots(t, p)
	require.Equal(t, []verify.Gap{{From: 2, To: at[1]}, {From: rolledBack, To: at[2]}}, r.Replay.Gaps)
	require.Equal(t, p.StateRoot(), r.StateRoot)
}

// images gives other images than those that a journal keeps.
type images struct {
	*tampered
	change func(*journal.Image)
}

func (h images) Image(at journal.Seq) (*journal.Image, error) {
	img, err := h.tampered.Image(at)
	if img == nil || err != nil {
		return img, err
	}
	changed := *img
	changed.Cells = append([]journal.CellVersion(nil), img.Cells...)
	h.change(&changed)
	return &changed, nil
}

func TestReplayBeginsWithNoImageThatIsNotTheSnapshots(t *testing.T) {
	p := told(t)
	p.snapshot("after")
	at := snapshots(t, p)
	for name, change := range map[string]func(*journal.Image){
		"another state": func(img *journal.Image) {
			for i, c := range img.Cells {
				img.Cells[i].Bytes = bytes.Replace(c.Bytes, []byte("long long"), []byte("short but"), 1)
			}
		},
		"another chain": func(img *journal.Image) { img.Head.Root[0] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			x := tamper(p.Journal)
			x.redact(t, 2)
			r := withKeys(t, images{x, func(img *journal.Image) {
				if img.Head.ID == at[0] {
					change(img)
				}
			}})
			require.Equal(t, []string{place(at[0])}, places(r))
			require.Equal(t, verify.Snapshots{Checked: 1, Bad: 1}, r.Snapshots)
			require.Equal(t, []verify.Gap{{From: 2, To: at[1]}}, r.Replay.Gaps)
		})
	}
}

// A receipt whose payload is gone ends its attempt, but nobody can tell which.
func TestRedactedReceiptIsNoFault(t *testing.T) {
	p := live(t, tool(func(e *manifest.Effect) { e.Retry.Attempts = 3 }))
	p.order(act{"effect": "tool.a", "param": "x"}, act{"effect": "tool.a", "param": "y"})
	p.snapshot("before")
	p.Drive()
	p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Payload: long()})
	p.out.Due(p.out.Task(receipt.Retry))
	p.Drive()
	p.reply(worldtest.OK(long() + "y"))
	p.reply(worldtest.OK(long() + "x"))
	p.back()
	p.Drive()
	p.snapshot("after")
	p.proven()
	x := tamper(p.Journal)
	for i, kind := range p.Kinds() {
		if kind == journal.KindFinished {
			x.redact(t, journal.Seq(i+1))
		}
	}
	r := withKeys(t, x)
	require.Empty(t, r.Faults)
	require.EqualValues(t, 3, r.Redacted)
	require.True(t, r.Ledger.OK)
	require.Zero(t, r.ExecutionHash, "it is of what receipts say")
	require.Zero(t, r.Receipts.Checked)

	require.Empty(t, r.Ledger.PendingIdempotencyKeys, "when they were asked for again they had ended")
	first := p.Intents()[0]
	x.add(t, journal.KindStarted, marshal(t, start(&first, first.Attempt+1)))
	require.Equal(t, keysOf(p, 0), withKeys(t, x.relink(t)).Ledger.DuplicateKeys)
}

// What an intent was about may be gone as well as what came of it.
func TestRedactedDecisionIsNoFault(t *testing.T) {
	p := live(t)
	p.order(act{"effect": "tool.a", "param": long()})
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.proven()
	x := tamper(p.Journal)
	id, _, _ := find(t, p.Journal, journal.KindIntent)
	x.redact(t, id)
	r := withKeys(t, x)
	require.Empty(t, r.Faults)
	require.Empty(t, r.Replay.Gaps, "it is computed, and its hash is in its record")

	absent := &journal.Started{Version: journal.V(1), Key: receipt.Key{Hash: journal.Hash{9}}, Attempt: 1}
	at := x.add(t, journal.KindStarted, marshal(t, absent))
	r = withKeys(t, x.relink(t))
	require.Contains(t, places(r), place(at))
	require.Equal(t, []receipt.Key{absent.Key}, r.Ledger.OrphanKeys, "one payload stands for one intent")
}

// It may have been about what had been denied: also where that is not in memory any more.
func TestRedactedDecisionMayLeadToWhatWasDenied(t *testing.T) {
	p := live(t)
	p.order(act{"effect": "tool.bad"}, act{"effect": "tool.a", "param": long()})
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.proven()
	denied := worldtest.Bodies[*journal.IntentDenied](t, p.Journal)
	require.Len(t, denied, 1)
	x := tamper(p.Journal)
	x.add(t, journal.KindDenied, marshal(t, denied[0]))
	require.Equal(t, []receipt.Key{denied[0].Key}, withKeys(t, x.relink(t)).Ledger.DuplicateKeys)

	x = tamper(p.Journal)
	id, _, _ := find(t, p.Journal, journal.KindIntent)
	x.redact(t, id)
	x.add(t, journal.KindDenied, marshal(t, denied[0]))
	require.Empty(t, withKeys(t, x.relink(t)).Ledger.DuplicateKeys)
}

func TestSnapshotOfAnotherStateIsNamed(t *testing.T) {
	p := told(t)
	p.snapshot("after")
	require.Equal(t, verify.Snapshots{Checked: 2}, p.proven().Snapshots)
	id, _, _ := find(t, p.Journal, journal.KindSnapshot)
	r := withKeys(t, edit(t, p.Journal, journal.KindSnapshot, func(b journal.Body) { b.(*journal.SnapshotCreated).StateRoot[0] ^= 1 }))
	require.Contains(t, places(r), place(id))
	require.Equal(t, verify.Snapshots{Bad: 1}, r.Snapshots)
	require.Equal(t, id, r.Replay.FirstDivergence.Record)
}

func TestContentsOfProposedManifestsAreChecked(t *testing.T) {
	p := live(t)
	p.order()
	p.Drive()
	next := *p.Manifest()
	next.Version++
	next.Effects = map[string]manifest.Effect{}
	for kind, e := range p.Manifest().Effects {
		next.Effects[kind] = e
	}
	next.Effects["tool.a"] = func(e manifest.Effect) manifest.Effect {
		e.Verify = &manifest.Verify{Adapter: "test", Mode: manifest.VerifyStrict}
		return e
	}(next.Effects["tool.a"])
	require.NoError(t, worldtest.Adopt(t.Context(), p.World.World, &next, nil))
	p.order(act{"effect": "tool.a"})
	p.Drive()
	p.reply(worldtest.OK(nil))
	require.Zero(t, p.proven().Ledger.NoVerifier, "the manifest in force declares one")
	id, _, body := find(t, p.Journal, journal.KindProposed)
	x := tamper(p.Journal)
	x.blobs[body.(*journal.ManifestProposed).Candidate] = nil
	require.Contains(t, places(withKeys(t, x)), place(id))
}

// Whatever was said at length may be gone: no fault is made of it.
func TestAnyPayloadMayBeRedacted(t *testing.T) {
	approval := func(m *manifest.Manifest) {
		m.Policies = append(m.Policies, manifest.Policy{Name: "ask", When: `intent.kind == "tool.b"`, Decide: manifest.DecideRequireApproval})
	}
	p := live(t, approval, tool(func(e *manifest.Effect) { e.Retry.Attempts = 3 }))
	said := long()
	p.order(
		act{"effect": "tool.a", "param": said}, act{"effect": "tool.b", "param": said}, act{"effect": "tool.b", "param": said + "too"},
		act{"effect": "tool.bad", "param": said}, act{"emit": "ping", "to": "b", "do": []any{map[string]any{"fail": said}}},
	)
	p.snapshot("before")
	p.Drive()
	resolve(t, p.World, 2, journal.Disapprove)
	resolve(t, p.World, 1, journal.Approve)
	p.Drive()
	p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Payload: said})
	p.out.Due(p.out.Task(receipt.Retry))
	p.out.Lose(p.out.Task(receipt.Perform), "the line is dead")
	p.Drive()
	all := p.Intents()
	e := all[slices.IndexFunc(all, func(e receipt.Entry) bool { return e.State == receipt.StateInDoubt })]
	payload, err := canon.Marshal(said)
	require.NoError(t, err)
	require.NoError(t, worldtest.ErrorOf(p.Resolve(t.Context(), journal.Resolved{
		Key: e.Intent.Key, How: journal.Executed, Params: e.Params, Actor: "ada", Reason: "so", Payload: payload,
	})))
	p.Drive()
	p.reply(worldtest.OK(said))
	for range 2 {
		p.back()
		p.Drive()
	}
	p.snapshot("after")
	p.proven()
	redacted := make(map[journal.Kind]bool)
	every := tamper(p.Journal)
	for i, s := range p.Journal.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		if rec.Blob.IsZero() {
			continue
		}
		redacted[rec.Kind] = true
		one := tamper(p.Journal)
		for _, x := range []*tampered{one, every} {
			x.redact(t, journal.Seq(i+1))
			r := withKeys(t, x)
			require.Empty(t, r.Faults, "without %s #%d", rec.Kind, rec.ID)
			require.Equal(t, p.StateRoot(), r.StateRoot)
		}
	}
	for _, kind := range []journal.Kind{
		journal.KindSubmitted, journal.KindIntent, journal.KindAwaitingApproval, journal.KindDenied, journal.KindFinished, journal.KindEnded,
		journal.KindResolved, journal.KindEmitted,
	} {
		require.True(t, redacted[kind], "%s", kind)
	}
}
