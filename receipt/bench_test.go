package receipt_test

import (
	"strconv"
	"testing"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

func benchReceipt(b *testing.B) (*receipt.Keyring, receipt.Receipt) {
	b.Helper()
	keys, err := receipt.NewKeyring("w", []receipt.Epoch{{Number: 1, Secret: make([]byte, receipt.SecretBytes)}})
	if err != nil {
		b.Fatal(err)
	}
	payload, err := canon.Marshal(map[string]any{"user": "mia_li_3668", "email": "mia.li3818@example.com", "n": 12})
	if err != nil {
		b.Fatal(err)
	}
	p := receipt.Permit{Intent: receipt.Intent{Cell: "agent/0.0", Kind: "tool.get_user_details", Params: payload, Cap: "tools"}, Attempt: 1}
	r := receipt.New("w", p, receipt.StatusOK, payload)
	return keys, r
}

func BenchmarkSign(b *testing.B) {
	keys, r := benchReceipt(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := keys.Sign(&r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	keys, r := benchReceipt(b)
	if _, err := keys.Sign(&r); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := keys.Verify(&r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	keys, r := benchReceipt(b)
	data, err := keys.Sign(&r)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := receipt.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewKey(b *testing.B) {
	_, r := benchReceipt(b)
	step := receipt.NewStepID("agent/0.0", 12, 0, receipt.History{1})
	b.ReportAllocs()
	for b.Loop() {
		receipt.NewKey("w", step, r.Kind, r.Payload)
	}
}

func BenchmarkNewStepID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		receipt.NewStepID("agent/0.0", 12, 0, receipt.History{1})
	}
}

// BenchmarkLedger is Emit, Start and Finish of one intent.
func BenchmarkLedger(b *testing.B) {
	intents := make([]receipt.Intent, 1<<16)
	for i := range intents {
		intents[i] = receipt.Intent{Key: receipt.Key{canon.Sum(strconv.AppendInt(nil, int64(i), 10))}, Params: receipt.Data(canon.Null)}
	}
	b.ReportAllocs()
	var l receipt.Ledger
	i := 0
	for b.Loop() {
		if i%len(intents) == 0 {
			l = receipt.Ledger{}
		}
		in := intents[i%len(intents)]
		l.Emit(in, uint64(3*i+1))
		l.Start(0, receipt.Nonce{}, uint64(3*i+2))
		l.Finish(&receipt.Receipt{Key: in.Key, Status: receipt.StatusOK}, uint64(3*i+3))
		i++
	}
}
