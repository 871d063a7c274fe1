package verify_test

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// tampered is a journal that somebody changed.
type tampered struct {
	world.History
	records []world.Stored
	blobs   map[world.Hash][]byte // instead of the history's; nil: gone
}

func tamper(j *worldtest.Journal) *tampered {
	return &tampered{History: j, records: slices.Clone(j.Records()), blobs: make(map[world.Hash][]byte)}
}

func (x *tampered) Image() (*world.Image, error) { return nil, nil }

func (x *tampered) Record(id world.Seq) ([]byte, error) {
	if id == 0 || int(id) > len(x.records) {
		return nil, world.ErrNotFound
	}
	return x.records[id-1].Bytes, nil
}

func (x *tampered) Blob(h world.Hash) ([]byte, error) {
	if b, ok := x.blobs[h]; ok {
		if b == nil {
			return nil, world.ErrNotFound
		}
		return b, nil
	}
	return x.History.Blob(h)
}

func (x *tampered) Scan(world.Seq) iter.Seq2[world.Scanned, error] {
	return func(yield func(world.Scanned, error) bool) {
		for _, s := range x.records {
			if !yield(world.Scanned{ID: s.ID, Bytes: s.Bytes, Link: [world.LinkBytes]byte(s.Root[:])}, nil) {
				return
			}
		}
	}
}

// set replaces the payload of record id.
func (x *tampered) set(t testing.TB, id world.Seq, payload []byte) {
	t.Helper()
	e, err := canon.DecodeEnvelope(x.records[id-1].Bytes)
	require.NoError(t, err)
	e.Payload, e.Blob, e.BlobSize = payload, world.Hash{}, 0
	x.records[id-1].Bytes = canon.AppendEnvelope(nil, e)
}

// add appends a record.
func (x *tampered) add(t testing.TB, kind world.Kind, payload []byte) world.Seq {
	t.Helper()
	last, err := canon.DecodeEnvelope(x.records[len(x.records)-1].Bytes)
	require.NoError(t, err)
	id := last.ID + 1
	cause := uint64(0)
	if !kind.Input() {
		cause = last.ID
	}
	bytes := canon.AppendEnvelope(nil, canon.Envelope{ID: id, Time: last.Time, Kind: string(kind), CausedBy: cause, Payload: payload})
	x.records = append(x.records, world.Stored{ID: world.Seq(id), Bytes: bytes})
	return world.Seq(id)
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
func find(t testing.TB, j *worldtest.Journal, kind world.Kind) (world.Seq, []byte, world.Body) {
	t.Helper()
	for _, s := range j.Records() {
		rec, err := world.DecodeRecord(s.Bytes)
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
func edit(t testing.TB, j *worldtest.Journal, kind world.Kind, change func(world.Body)) *tampered {
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

func place(id world.Seq) string { return fmt.Sprintf("record #%d", id) }

func TestAnyFlippedByteOfARecordIsNamed(t *testing.T) {
	w := bots(t)
	w.Submit("go", order("a", act{"effect": "tool.a", "param": "x"}, act{"emit": "ping", "to": "b"}))
	w.Run()
	require.Empty(t, withKeys(t, w.Journal).Faults)
	for i, s := range w.Journal.Records() {
		for at := range s.Bytes {
			if testing.Short() && at%7 > 0 {
				continue
			}
			x := tamper(w.Journal)
			x.records[i].Bytes = bytes.Clone(s.Bytes)
			x.records[i].Bytes[at] ^= 1 << (at % 8)
			r := withKeys(t, x)
			require.Contains(t, places(r), place(s.ID), "byte %d", at)
		}
	}
}

func TestAnyFlippedByteOfALinkIsNamed(t *testing.T) {
	w := bots(t)
	w.Submit("go", order("a"))
	w.Run()
	for i, s := range w.Journal.Records() {
		for at := range world.LinkBytes {
			x := tamper(w.Journal)
			x.records[i].Root[at] ^= 0x10
			require.Contains(t, places(withKeys(t, x)), place(s.ID), "byte %d", at)
		}
	}
}

func TestMissingRepeatedAndSwappedRecordsAreNamed(t *testing.T) {
	w := story(t)
	n := len(w.Journal.Records())
	for i := range n {
		dropped := tamper(w.Journal)
		dropped.records = slices.Delete(dropped.records, i, i+1)
		if i < n-1 { // the last one is the anchor's to miss
			require.Contains(t, places(withKeys(t, dropped)), place(world.Seq(i+2)), "without #%d", i+1)
		}
		repeated := tamper(w.Journal)
		repeated.records = slices.Insert(repeated.records, i, repeated.records[i])
		require.Contains(t, places(withKeys(t, repeated)), place(world.Seq(i+1)), "#%d twice", i+1)
		if i > 0 {
			swapped := tamper(w.Journal)
			swapped.records[i], swapped.records[i-1] = swapped.records[i-1], swapped.records[i]
			require.Contains(t, places(withKeys(t, swapped)), place(world.Seq(i+1)), "#%d before #%d", i+1, i)
		}
	}
}

func TestJournalThatEndsBeforeItsAnchorIsNamed(t *testing.T) {
	w := story(t)
	head := w.Status().Head
	for n := range head.ID {
		r := run(t, w.Journal.Truncate(n), verify.Config{Anchor: head})
		require.Contains(t, places(r), "anchor", "cut after #%d", n)
		require.Equal(t, &verify.AnchorProof{OK: false, ID: head.ID}, r.Anchor)
	}
	other := head
	other.Root[31] ^= 1
	require.Equal(t, []string{"anchor"}, places(run(t, w.Journal, verify.Config{Anchor: other})))
}

func TestMissingAndFlippedBlobsAreNamed(t *testing.T) {
	w := story(t)
	_, _, created := find(t, w.Journal, world.KindCreated)
	want := map[world.Hash]world.Seq{created.(*world.Created).Manifest: 1}
	for _, h := range w.Manifest().Contents() {
		want[h] = 1
	}
	for _, s := range w.Journal.Records() {
		rec, err := world.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		if !rec.Blob.IsZero() {
			want[rec.Blob] = rec.ID
		}
	}
	require.Len(t, want, 5, "manifest, reducer, schema, answers and a long event")
	for hash, id := range want {
		content, err := w.Journal.Blob(hash)
		require.NoError(t, err)
		flipped := bytes.Clone(content)
		flipped[len(flipped)/2] ^= 1
		for name, b := range map[string][]byte{"missing": nil, "flipped": flipped} {
			x := tamper(w.Journal)
			x.blobs[hash] = b
			require.Contains(t, places(withKeys(t, x)), place(id), name)
		}
	}
}

func TestForgedLedgerIsNamed(t *testing.T) {
	w := story(t)
	_, started, permit := find(t, w.Journal, world.KindStarted)
	_, finished, _ := find(t, w.Journal, world.KindFinished)
	_, emitted, _ := find(t, w.Journal, world.KindIntent)
	key := permit.(*world.Started).Key
	ghost := *permit.(*world.Started)
	ghost.Key.Hash[0] ^= 1
	ghostStart, err := canon.Marshal(&ghost)
	require.NoError(t, err)
	end := permit.(*world.Started)
	ghostPermit := receipt.Permit{Intent: receipt.Intent{Key: ghost.Key, Kind: "tool.a"}, Attempt: end.Attempt, Nonce: end.Nonce}
	signed, err := worldtest.Sign(worldtest.Keyring(t, "test"), "test", ghostPermit, worldtest.OK(nil))
	require.NoError(t, err)
	ghostEnd, err := canon.Marshal(&world.Finished{V: 1, Receipt: signed})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		kind              world.Kind
		payload           []byte
		duplicate, orphan []receipt.Key
	}{
		"started twice":             {world.KindStarted, started, []receipt.Key{key}, nil},
		"finished twice":            {world.KindFinished, finished, []receipt.Key{key}, nil},
		"decided twice":             {world.KindIntent, emitted, []receipt.Key{key}, nil},
		"started without decision":  {world.KindStarted, ghostStart, nil, []receipt.Key{ghost.Key}},
		"finished without a start":  {world.KindFinished, ghostEnd, nil, []receipt.Key{ghost.Key}},
		"denied after it was asked": {world.KindDenied, deny(t, key), []receipt.Key{key}, nil},
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
	payload, err := canon.Marshal(&world.IntentDenied{V: 1, Key: key, Rules: []string{}, Params: world.Data(canon.Null)})
	require.NoError(t, err)
	return payload
}

func TestForgedReceiptIsNamed(t *testing.T) {
	w := story(t)
	id, _, _ := find(t, w.Journal, world.KindFinished)
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
			x := edit(t, w.Journal, world.KindFinished, func(b world.Body) {
				f := b.(*world.Finished)
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
	stepped, _, _ := find(t, w.Journal, world.KindStepped)
	for name, c := range map[string]struct {
		kind   world.Kind
		change func(world.Body)
		at     world.Seq // 0: at the record that was changed
	}{
		"gas":      {world.KindStepped, func(b world.Body) { b.(*world.Stepped).Gas++ }, 0},
		"outcome":  {world.KindStepped, func(b world.Body) { b.(*world.Stepped).Outcome = receipt.OutcomePure }, 0},
		"decision": {world.KindIntent, func(b world.Body) { b.(*world.IntentEmitted).Rules = []string{"mine"} }, 0},
		"denial":   {world.KindDenied, func(b world.Body) { b.(*world.IntentDenied).Code = "other" }, 0},
		"nonce":    {world.KindStarted, func(b world.Body) { b.(*world.Started).Nonce[0]++ }, 0},
		"deadline": {world.KindTimer, func(b world.Body) { b.(*world.TimerSet).Deadline++ }, 0},
		"to whom":  {world.KindSubmitted, func(b world.Body) { b.(*world.Submitted).To = []string{"bot/z"} }, 0},
		"reason":   {world.KindFailed, func(b world.Body) { b.(*world.Failed).Error = "other" }, 0},
		"clock":    {world.KindAdvanced, func(b world.Body) { b.(*world.Advanced).To++ }, 0},
		"input": {world.KindSubmitted, func(b world.Body) {
			data, err := canon.Marshal(map[string]any{"to": "a", "say": "other"})
			require.NoError(t, err)
			b.(*world.Submitted).Data = data
		}, stepped},
		"engine": {world.KindCreated, func(b world.Body) { b.(*world.Created).Kernel = "kernel/0" }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			id, _, _ := find(t, w.Journal, c.kind)
			r := withKeys(t, edit(t, w.Journal, c.kind, c.change))
			require.False(t, r.OK)
			require.False(t, r.Replay.OK)
			require.NotEmpty(t, r.Replay.Error)
			if c.kind == world.KindCreated {
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
	r := run(t, w.Journal, verify.Config{Damage: func(yield func(error) bool) { yield(world.ErrNotFound) }})
	require.Equal(t, []string{"store"}, places(r))
}
