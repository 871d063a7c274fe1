package verify_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// parent is a play with an intent that has ended, one in flight and two that are
// open, the last because its first attempt failed.
func parent(t *testing.T) *play {
	t.Helper()
	p := live(t, func(m *manifest.Manifest) { m.Limits.InFlight = 1 })
	p.order(act{"effect": "tool.a", "param": "done"})
	p.Drive()
	p.reply(worldtest.OK(nil))
	p.order(act{"effect": "tool.a", "param": "failed"})
	p.Drive()
	p.reply(worldtest.Reply{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure})
	p.order(act{"effect": "tool.a", "param": "flying"}, act{"effect": "tool.a", "param": "open"})
	p.Drive()
	return p
}

func (p *play) fork(effects journal.ForkEffects) *play {
	p.t.Helper()
	out := new(worldtest.Outside)
	return &play{World: p.Fork(effects, worldtest.Options{ID: "child", Outside: out}), out: out, t: p.t}
}

func (p *play) provenChild() *verify.Report {
	p.t.Helper()
	r := run(p.t, p.Journal, verify.Config{Keys: worldtest.Keyring(p.t, "child"), Anchor: p.Status().Head})
	require.Empty(p.t, r.Faults)
	require.Equal(p.t, "child", r.WorldID)
	require.Equal(p.t, p.StateRoot(), r.StateRoot)
	return r
}

func TestForkLeavesToItsParentWhatIsUnderWay(t *testing.T) {
	for _, effects := range []journal.ForkEffects{journal.ForkHold, journal.ForkLive} {
		t.Run(string(effects), func(t *testing.T) {
			p := parent(t).fork(effects)
			r := p.provenChild()
			require.Equal(t, verify.Receipts{Inherited: 2}, r.Receipts)
			require.EqualValues(t, 1, r.Ledger.InDoubt)
			require.EqualValues(t, 2, r.Ledger.Awaiting)
			resolve(t, p.World, 3, journal.Disapprove)
			resolve(t, p.World, 2, journal.NotExecuted)
			resolve(t, p.World, 1, journal.Approve)
			p.Drive()
			p.reply(worldtest.OK(nil))
			p.reply(worldtest.OK(nil))
			r = p.provenChild()
			require.Equal(t, verify.Receipts{Inherited: 2, Checked: 2}, r.Receipts)
			require.EqualValues(t, 5, r.Ledger.Attempts)
			require.Empty(t, r.Ledger.PendingIdempotencyKeys)
		})
	}
}

func TestForkWithRecordedEffectsAsksAgain(t *testing.T) {
	p := parent(t).fork(journal.ForkRecorded)
	p.Drive()
	p.out.Due(p.out.Task(receipt.Retry))
	p.Drive()
	for len(p.out.Tasks(receipt.Perform)) > 0 {
		p.reply(worldtest.OK(nil))
	}
	r := p.provenChild()
	require.Equal(t, verify.Receipts{Inherited: 2, Checked: 3}, r.Receipts)
	require.EqualValues(t, 6, r.Ledger.Attempts)
}

func TestRollbackInAForkPastItsBeginning(t *testing.T) {
	p := asked(t)
	p.reply(worldtest.OK(nil))
	p = p.fork(journal.ForkLive)
	p.back()
	p.Drive()
	require.Equal(t, []string{"possible_repeat"}, worldtest.Bodies[*journal.IntentAwaitingApproval](t, p.Journal)[0].Rules, "it has another key in another world")
	p.provenChild()
}

func TestForkOfAForkIsItsOwnWorld(t *testing.T) {
	p := parent(t).fork(journal.ForkHold)
	resolve(t, p.World, 1, journal.Approve)
	p.Drive()
	p.reply(worldtest.OK(nil))
	f := p.Fork(journal.ForkHold, worldtest.Options{ID: "grandchild", Outside: new(worldtest.Outside)})
	for keys, want := range map[*receipt.Keyring]verify.Receipts{
		worldtest.Keyring(t, "grandchild"): {Inherited: 3},
		nil:                                {Inherited: 3},
	} {
		r := run(t, f.Journal, verify.Config{Keys: keys})
		require.Empty(t, r.Faults)
		require.Equal(t, "grandchild", r.WorldID)
		require.Equal(t, want, r.Receipts)
	}
}

func TestReceiptsOfAnotherWorldThanTheForkAreNamed(t *testing.T) {
	p := parent(t).fork(journal.ForkLive)
	resolve(t, p.World, 2, journal.NotExecuted)
	p.Drive()
	p.reply(worldtest.OK(nil))
	r := run(t, p.Journal, verify.Config{Keys: worldtest.Keyring(t, "test")})
	require.Equal(t, verify.Receipts{Inherited: 2, Bad: 1}, r.Receipts, "the parent's keys are not the fork's")

	all := p.Journal.Records()
	var last journal.Seq
	for _, s := range all {
		if rec, err := journal.DecodeRecord(s.Bytes); err == nil && rec.Kind == journal.KindFinished {
			last = rec.ID
		}
	}
	first, _, _ := find(t, p.Journal, journal.KindFinished)
	for name, c := range map[string]struct {
		id    journal.Seq
		world string
	}{
		"a child's before the fork": {first, "child"},
		"a parent's after it":       {last, "test"},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := journal.DecodeRecord(all[c.id-1].Bytes)
			require.NoError(t, err)
			body, err := rec.Body()
			require.NoError(t, err)
			r, err := receipt.Decode(body.(*journal.Finished).Receipt)
			require.NoError(t, err)
			r.World = c.world
			data, err := worldtest.Keyring(t, c.world).Sign(r)
			require.NoError(t, err)
			x := tamper(p.Journal)
			x.set(t, c.id, marshal(t, &journal.Finished{Version: journal.V(1), Receipt: data}))
			got := run(t, x.relink(t), verify.Config{Keys: worldtest.Keyring(t, "child")})
			require.Contains(t, places(got), place(c.id))
			require.EqualValues(t, 1, got.Receipts.Bad)
		})
	}
}

// Nobody has the parent's keys, and still its receipts say what they say.
func TestInheritedReceiptWithAnotherHashIsNamed(t *testing.T) {
	p := parent(t).fork(journal.ForkHold)
	id, _, body := find(t, p.Journal, journal.KindFinished)
	data := bytes.Clone(body.(*journal.Finished).Receipt)
	r, err := receipt.Decode(data)
	require.NoError(t, err)
	r.Hash[0] ^= 1
	data, err = r.Encode()
	require.NoError(t, err)
	x := tamper(p.Journal)
	x.set(t, id, marshal(t, &journal.Finished{Version: journal.V(1), Receipt: data}))
	got := run(t, x.relink(t), verify.Config{Keys: worldtest.Keyring(t, "child")})
	require.Contains(t, places(got), place(id))
	require.Equal(t, verify.Receipts{Inherited: 1, Bad: 1}, got.Receipts)
}

// What a fork does is not done by records that only look like it.
func TestForkedLedgerIsHeldToWhatAForkDoes(t *testing.T) {
	p := parent(t)
	all := p.Intents()
	doubt := &journal.InDoubt{Version: journal.V(1), Key: all[2].Intent.Key, Attempt: 1, Action: manifest.InDoubtAsk}
	require.Equal(t, keysOf(p, 2), p.forged(doubt).OrphanKeys, "nothing expired, and there was no fork")
	f := p.fork(journal.ForkHold)
	fork, _, _ := find(t, f.Journal, journal.KindForked)
	for name, c := range map[string]struct {
		body journal.Body
		key  receipt.Key
	}{
		"awaits approval and had ended": {&journal.IntentAwaitingApproval{Version: journal.V(1), Key: all[0].Intent.Key, Rules: []string{}, Params: journal.Data{0xf6}}, all[0].Intent.Key},
		"in doubt already":              {&journal.InDoubt{Version: journal.V(1), Key: all[2].Intent.Key, Attempt: 1, Action: manifest.InDoubtAsk}, all[2].Intent.Key},
	} {
		t.Run(name, func(t *testing.T) {
			x := tamper(f.Journal)
			id := x.addCausedBy(t, kindOf(t, c.body), fork, marshal(t, c.body))
			r := run(t, x.relink(t), verify.Config{Keys: worldtest.Keyring(t, "child")})
			require.Contains(t, places(r), place(id))
			require.Equal(t, []receipt.Key{c.key}, r.Ledger.OrphanKeys)
		})
	}
}
