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
			case *IntentParked:
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
