package verify_test

import (
	"bytes"
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
}
