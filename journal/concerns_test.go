package journal

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

func TestEachCellNamesTheCellsOfTheBody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for i, body := range bodies(rt) {
			var want, got []string
			switch b := body.(type) {
			case *Submitted:
				want = b.To
			case *Emitted:
				want = b.To
			case *IntentAwaitingApproval:
				want = []string{b.Cell}
			case *InDoubt:
				want = []string{b.Cell}
			case *IntentWaiting:
				want = []string{b.Cell}
			case *IntentEnded:
				want = []string{b.Cell}
			case *IntentCancelled:
				want = []string{b.Cell}
			case *Resumed:
				want = []string{b.Cell}
			case *Stepped:
				want = []string{b.Cell}
			case *Failed:
				want = []string{b.Cell}
			case *Deleted:
				want = []string{b.Cell}
			case *Migrated:
				want = []string{b.Cell}
			case *IntentEmitted:
				want = []string{b.Cell}
			case *IntentDenied:
				want = []string{b.Cell}
			case *TimerSet:
				want = []string{b.Cell}
			case *TimerFired:
				want = []string{b.Cell}
			case *TagCancelled:
				want = []string{b.Cell}
			case *Rests:
				want = []string{b.Cell}
			case *OperatorEffect:
				want = []string{"operator/" + b.Actor}
			}
			err := EachCell(allKinds[i], Append(nil, body), func(cell []byte) { got = append(got, string(cell)) })
			require.NoError(rt, err)
			require.Equal(rt, append([]string(nil), want...), got, allKinds[i])
		}
	})
}

func TestIntentOfNamesTheIntentOfTheBody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for i, body := range bodies(rt) {
			var want Hash
			var cell string
			var named bool
			fields := reflect.ValueOf(body).Elem()
			if key := fields.FieldByName("Key"); key.IsValid() {
				named = true
				want = key.Interface().(receipt.Key).Hash
				if at := fields.FieldByName("Cell"); at.IsValid() {
					cell = at.String()
				}
			}
			switch b := body.(type) {
			case *Finished:
				want, b.Receipt = aReceipt(rt)
				named = true
			case *Late:
				want, b.Receipt = aReceipt(rt)
				named = true
			}
			got, asker, ok := IntentOf(allKinds[i], Append(nil, body))
			require.Equal(rt, want, got, allKinds[i])
			require.Equal(rt, named, ok, allKinds[i])
			require.Equal(rt, cell, string(asker), allKinds[i])
		}
	})
}

// aReceipt returns the bytes of a receipt and the key of the intent that it answers.
func aReceipt(rt *rapid.T) (Hash, Data) {
	key := receipt.Key{Hash: canon.Sum([]byte(rapid.String().Draw(rt, "intent")))}
	r := receipt.New("world", receipt.Permit{Intent: receipt.Intent{Key: key, Kind: "http"}}, receipt.StatusOK, Data(canon.Null))
	b, err := r.Encode()
	require.NoError(rt, err)
	return key.Hash, b
}

func FuzzConcerns(f *testing.F) {
	for i, k := range allKinds {
		f.Add(byte(i), Append(nil, newBody(k)))
	}
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		k := allKinds[int(kind)%len(allKinds)]
		_ = EachCell(k, payload, func([]byte) {}) // no payload makes it panic
		key, cell, ok := IntentOf(k, payload)
		if !ok {
			require.Zero(t, key)
			require.Empty(t, cell)
		}
	})
}

// TestNameAndHowAreThoseOfTheBody, as the rows say where they stand.
func TestNameAndHowAreThoseOfTheBody(t *testing.T) {
	word := func(yes bool, text string) string {
		if yes {
			return text
		}
		return ""
	}
	rapid.Check(t, func(rt *rapid.T) {
		for i, body := range bodies(rt) {
			name, how := "", ""
			switch b := body.(type) {
			case *Created:
				name = b.Name
			case *Submitted:
				name = b.Name
			case *Resumed:
				how = word(b.Skip, "skip")
			case *OperatorEffect:
				name = b.Kind
			case *Resolved:
				how = string(b.How)
			case *Confirmed:
				how = string(b.Verdict)
			case *KeysRotated:
				name = b.KeyID
			case *SnapshotCreated:
				name = b.Name
			case *SnapshotPinned:
				name, how = b.Name, word(b.Pinned, "pinned")
			case *SnapshotPruned:
				name = b.Name
			case *RolledBack:
				name = b.Snapshot
			case *Stepped:
				how = string(b.Outcome)
			case *Failed:
				how = word(b.Halted, "halted")
			case *Emitted:
				name = b.Name
			case *Dropped:
				name = b.Name
			case *IntentEmitted:
				name, how = b.Kind, b.Decision
			case *IntentDenied:
				name, how = b.Kind, b.Code
			case *IntentAwaitingApproval:
				name = b.Kind
			case *InDoubt:
				how = b.Action
			case *IntentWaiting:
				how = string(b.Outcome)
			case *IntentEnded:
				how = string(b.Status)
			case *TimerSet:
				name = b.Name
			case *TimerFired:
				name = b.Name
			case *TagCancelled:
				name = b.Tag
			}
			payload := Append(nil, body)
			require.Equal(rt, name, string(NameOf(allKinds[i], payload)), allKinds[i])
			require.Equal(rt, how, string(HowOf(allKinds[i], payload)), allKinds[i])
		}
	})
	r := receipt.Receipt{Version: receipt.ReceiptVersion, Kind: "bank.pay", Status: receipt.StatusTimeout, Payload: receipt.Data(canon.Null)}
	encoded, err := r.Encode()
	require.NoError(t, err)
	for kind, body := range map[Kind]Body{KindFinished: &Finished{V(1), encoded}, KindLate: &Late{V(1), encoded}} {
		require.Equal(t, "bank.pay timeout", string(NameOf(kind, Append(nil, body)))+" "+string(HowOf(kind, Append(nil, body))))
	}
	require.Empty(t, NameOf(KindSubmitted, nil), "what was redacted")
	require.Empty(t, HowOf(KindFailed, nil))
}
