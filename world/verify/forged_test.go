package verify_test

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func TestForgedLedgerIsNamed(t *testing.T) {
	w := story(t)
	_, started, permit := find(t, w.Journal, journal.KindStarted)
	_, finished, _ := find(t, w.Journal, journal.KindFinished)
	_, emitted, _ := find(t, w.Journal, journal.KindIntent)
	key := permit.(*journal.Started).Key
	absent := *permit.(*journal.Started)
	absent.Key.Hash[0] ^= 1
	absentStart, err := canon.Marshal(&absent)
	require.NoError(t, err)
	end := permit.(*journal.Started)
	absentPermit := receipt.Permit{Intent: receipt.Intent{Key: absent.Key, Kind: "tool.a"}, Attempt: end.Attempt, Nonce: end.Nonce}
	signed, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", absentPermit, worldtest.OK(nil))
	require.NoError(t, err)
	absentEnd, err := canon.Marshal(&journal.Finished{Version: journal.V(1), Receipt: signed})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		kind              journal.Kind
		payload           []byte
		duplicate, orphan []receipt.Key
	}{
		"started twice":             {journal.KindStarted, started, []receipt.Key{key}, nil},
		"finished twice":            {journal.KindFinished, finished, []receipt.Key{key}, nil},
		"decided twice":             {journal.KindIntent, emitted, []receipt.Key{key}, nil},
		"started without decision":  {journal.KindStarted, absentStart, nil, []receipt.Key{absent.Key}},
		"finished without a start":  {journal.KindFinished, absentEnd, nil, []receipt.Key{absent.Key}},
		"denied after it was asked": {journal.KindDenied, deny(t, key), []receipt.Key{key}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := tamper(w.Journal)
			id := x.add(t, c.kind, c.payload)
			r := withKeys(t, x.relink(t))
			require.Contains(t, places(r), place(id))
			require.False(t, r.Ledger.OK)
			require.ElementsMatch(t, c.duplicate, r.Ledger.DuplicateKeys)
			require.ElementsMatch(t, c.orphan, r.Ledger.OrphanKeys)
			require.False(t, r.Replay.OK, "it does not follow from the inputs either")
			require.Equal(t, id, r.Replay.FirstDivergence.Record)
		})
	}
}

func deny(t testing.TB, key receipt.Key) []byte {
	t.Helper()
	payload, err := canon.Marshal(&journal.IntentDenied{Version: journal.V(1), Key: key, Rules: []string{}, Params: journal.Data(canon.Null)})
	require.NoError(t, err)
	return payload
}

func TestForgedReceiptIsNamed(t *testing.T) {
	w := story(t)
	id, _, _ := find(t, w.Journal, journal.KindFinished)
	foreign := keyring(t, receipt.Epoch{Number: 1, Secret: bytes.Repeat([]byte{9}, receipt.SecretBytes)})
	for name, c := range map[string]struct {
		keys  *receipt.Keyring
		after func(*receipt.Receipt)
	}{
		"of another key":                     {foreign, nil},
		"of another key under this one's id": {foreign, func(r *receipt.Receipt) { r.KeyID = worldtest.Keyring(t, "test").Keys()[0].ID }},
		"changed after it was signed":        {worldtest.Keyring(t, "test"), func(r *receipt.Receipt) { r.StartedAt++ }},
	} {
		t.Run(name, func(t *testing.T) {
			x := edit(t, w.Journal, journal.KindFinished, func(b journal.Body) {
				f := b.(*journal.Finished)
				f.Receipt = resign(t, f.Receipt, c.keys, c.after)
			})
			r := withKeys(t, x)
			require.Contains(t, places(r), place(id))
			require.EqualValues(t, 1, r.Receipts.Bad)
			require.EqualValues(t, 1, r.Receipts.Checked)
			require.True(t, r.Ledger.OK)
		})
	}
}

func TestForgedHistoryDivergesWhereItStopsFollowing(t *testing.T) {
	w := story(t)
	stepped, _, _ := find(t, w.Journal, journal.KindStepped)
	for name, c := range map[string]struct {
		kind   journal.Kind
		change func(journal.Body)
		at     journal.Seq // 0: at the record that was changed
	}{
		"gas":      {journal.KindStepped, func(b journal.Body) { b.(*journal.Stepped).Gas++ }, 0},
		"outcome":  {journal.KindStepped, func(b journal.Body) { b.(*journal.Stepped).Outcome = receipt.OutcomePure }, 0},
		"decision": {journal.KindIntent, func(b journal.Body) { b.(*journal.IntentEmitted).Rules = []string{"mine"} }, 0},
		"denial":   {journal.KindDenied, func(b journal.Body) { b.(*journal.IntentDenied).Code = "other" }, 0},
		"nonce":    {journal.KindStarted, func(b journal.Body) { b.(*journal.Started).Nonce[0]++ }, 0},
		"deadline": {journal.KindTimer, func(b journal.Body) { b.(*journal.TimerSet).Deadline++ }, 0},
		"to whom":  {journal.KindSubmitted, func(b journal.Body) { b.(*journal.Submitted).To = []string{"bot/z"} }, 0},
		"reason":   {journal.KindFailed, func(b journal.Body) { b.(*journal.Failed).Error = "other" }, 0},
		"clock":    {journal.KindAdvanced, func(b journal.Body) { b.(*journal.Advanced).To++ }, 0},
		"input": {journal.KindSubmitted, func(b journal.Body) {
			data, err := canon.Marshal(map[string]any{"to": "a", "say": "other"})
			require.NoError(t, err)
			b.(*journal.Submitted).Data = data
		}, stepped},
		"engine": {journal.KindCreated, func(b journal.Body) { b.(*journal.Created).Kernel = "kernel/0" }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			id, _, _ := find(t, w.Journal, c.kind)
			r := withKeys(t, edit(t, w.Journal, c.kind, c.change))
			require.False(t, r.OK)
			require.False(t, r.Replay.OK)
			require.NotEmpty(t, r.Replay.Error)
			if c.kind == journal.KindCreated {
				return // replay refuses to begin
			}
			require.NotNil(t, r.Replay.FirstDivergence)
			require.Contains(t, places(r), place(r.Replay.FirstDivergence.Record))
			if c.at == 0 {
				c.at = id
			}
			require.Equal(t, c.at, r.Replay.FirstDivergence.Record)
		})
	}
}

func TestStoresDamageIsAFault(t *testing.T) {
	w := story(t)
	r := run(t, w.Journal, verify.Config{Damage: func(yield func(error) bool) { yield(journal.ErrNotFound) }})
	require.Equal(t, []string{"store"}, places(r))

	// It is looked for beside the journal, and reported before what is wrong with that.
	other := w.Status().Head
	other.Root[0] ^= 1
	damage := func(n int) verify.Config {
		return verify.Config{Anchor: other, Damage: func(yield func(error) bool) {
			for range n {
				yield(journal.ErrNotFound)
			}
		}}
	}
	require.Equal(t, []string{"store", "store", "anchor"}, places(run(t, w.Journal, damage(2))))
	r = run(t, w.Journal, damage(10_005))
	require.Len(t, r.Faults, 10_001)
	require.Equal(t, verify.Fault{Place: "journal", Message: "6 more faults are not listed"}, r.Faults[10_000])
}

// tampered is a journal that somebody changed.
type tampered struct {
	journal.History
	records []journal.Stored
	blobs   map[journal.Hash][]byte // instead of the history's; nil: gone
}

func tamper(j *worldtest.Journal) *tampered {
	return &tampered{History: j, records: slices.Clone(j.Records()), blobs: make(map[journal.Hash][]byte)}
}

func (x *tampered) Record(id journal.Seq) ([]byte, error) {
	if id == 0 || int(id) > len(x.records) {
		return nil, journal.ErrNotFound
	}
	return x.records[id-1].Bytes, nil
}

func (x *tampered) Blob(h journal.Hash) ([]byte, error) {
	if b, ok := x.blobs[h]; ok {
		if b == nil {
			return nil, journal.ErrNotFound
		}
		return b, nil
	}
	return x.History.Blob(h)
}

func (x *tampered) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for _, s := range x.records {
			if s.ID <= after {
				continue
			}
			if !yield(journal.NewScanned(s.ID, s.Bytes, s.Root[:]), nil) {
				return
			}
		}
	}
}

// set replaces the payload of record id.
func (x *tampered) set(t testing.TB, id journal.Seq, payload []byte) {
	t.Helper()
	e, err := canon.DecodeEnvelope(x.records[id-1].Bytes)
	require.NoError(t, err)
	e.Payload, e.Blob, e.BlobSize = payload, journal.Hash{}, 0
	x.records[id-1].Bytes = canon.AppendEnvelope(nil, e)
}

// add appends a record.
func (x *tampered) add(t testing.TB, kind journal.Kind, payload []byte) journal.Seq {
	t.Helper()
	last, err := canon.DecodeEnvelope(x.records[len(x.records)-1].Bytes)
	require.NoError(t, err)
	cause := journal.Seq(last.ID)
	if kind.Input() {
		cause = 0
	}
	return x.addCausedBy(t, kind, cause, payload)
}

func (x *tampered) addCausedBy(t testing.TB, kind journal.Kind, cause journal.Seq, payload []byte) journal.Seq {
	t.Helper()
	last, err := canon.DecodeEnvelope(x.records[len(x.records)-1].Bytes)
	require.NoError(t, err)
	id := last.ID + 1
	bytes := canon.AppendEnvelope(nil, canon.Envelope{ID: id, Time: last.Time, Kind: string(kind), CausedBy: uint64(cause), Payload: payload})
	x.records = append(x.records, journal.Stored{ID: journal.Seq(id), Bytes: bytes})
	return journal.Seq(id)
}

func marshal(t testing.TB, body journal.Body) []byte {
	t.Helper()
	payload, err := canon.Marshal(body)
	require.NoError(t, err)
	return payload
}

// relink computes the chain anew, as a forger would.
func (x *tampered) relink(t testing.TB) *tampered {
	t.Helper()
	chain := new(canon.Chain)
	for i := range x.records {
		s := &x.records[i]
		e, err := canon.DecodeEnvelope(s.Bytes)
		require.NoError(t, err)
		s.Root = chain.Add(e.ID, e.Kind, s.Bytes)
	}
	return x
}

// find returns the id, payload and body of the first record of a kind.
func find(t testing.TB, j *worldtest.Journal, kind journal.Kind) (journal.Seq, []byte, journal.Body) {
	t.Helper()
	for _, s := range j.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		if rec.Kind == kind {
			require.NoError(t, rec.Load(j))
			body, err := rec.Body()
			require.NoError(t, err)
			return rec.ID, rec.Payload, body
		}
	}
	t.Fatalf("the journal holds no %s", kind)
	return 0, nil, nil
}

// edit changes the body of the first record of a kind and computes the chain
// anew.
func edit(t testing.TB, j *worldtest.Journal, kind journal.Kind, change func(journal.Body)) *tampered {
	t.Helper()
	id, _, body := find(t, j, kind)
	change(body)
	payload, err := canon.Marshal(body)
	require.NoError(t, err)
	x := tamper(j)
	x.set(t, id, payload)
	return x.relink(t)
}

func keyring(t testing.TB, epochs ...receipt.Epoch) *receipt.Keyring {
	t.Helper()
	keys, err := receipt.NewKeyring("test", epochs)
	require.NoError(t, err)
	return keys
}

// resign signs a receipt with other keys and may change it after that.
func resign(t testing.TB, data []byte, keys *receipt.Keyring, after func(*receipt.Receipt)) []byte {
	t.Helper()
	r, err := receipt.Decode(data)
	require.NoError(t, err)
	out, err := keys.Sign(r)
	require.NoError(t, err)
	if after == nil {
		return out
	}
	// The name of the key is part of what is hashed: sign as if it were the one.
	after(r)
	unsigned := *r
	unsigned.Hash, unsigned.MAC = receipt.Hash{}, receipt.Hash{}
	content, err := canon.Marshal(unsigned)
	require.NoError(t, err)
	r.Hash = canon.Sum(content)
	out, err = r.Encode()
	require.NoError(t, err)
	return out
}

func places(r *verify.Report) []string {
	var out []string
	for _, f := range r.Faults {
		out = append(out, f.Place)
	}
	return out
}

func place(id journal.Seq) string { return fmt.Sprintf("record #%d", id) }

// What an approval is bound to is what the manifest in force says.
func TestForgedBindingOfAnApprovalIsNamed(t *testing.T) {
	w := ledgerStory(t)
	require.Empty(t, withKeys(t, w.Journal).Faults)
	id, _, _ := find(t, w.Journal, journal.KindAwaitingApproval)
	for name, change := range map[string]func(*journal.IntentAwaitingApproval){
		"effect":                func(b *journal.IntentAwaitingApproval) { b.Seen.Effect[0] ^= 1 },
		"capability":            func(b *journal.IntentAwaitingApproval) { b.Seen.Cap[0] ^= 1 },
		"rules":                 func(b *journal.IntentAwaitingApproval) { b.Seen.Rules[0] ^= 1 },
		"to nothing":            func(b *journal.IntentAwaitingApproval) { b.Seen = receipt.ApprovalBasis{} },
		"to no rule":            func(b *journal.IntentAwaitingApproval) { b.Rules = []string{} },
		"to another capability": func(b *journal.IntentAwaitingApproval) { b.Cap = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			r := withKeys(t, edit(t, w.Journal, journal.KindAwaitingApproval, func(b journal.Body) { change(b.(*journal.IntentAwaitingApproval)) }))
			require.True(t, slices.ContainsFunc(r.Faults, func(f verify.Fault) bool {
				return f.Place == place(id) && strings.Contains(f.Message, "bound to")
			}), "%v", r.Faults)
		})
	}
}
