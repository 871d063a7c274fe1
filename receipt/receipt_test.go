package receipt_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

func TestDecodeGivesWhatWasSigned(t *testing.T) {
	r, data := vectorSigned(t)
	got, err := receipt.Decode(data)
	require.NoError(t, err)
	require.Equal(t, r, got)
	require.NoError(t, vectorKeyring(t).Verify(got))
}

func TestNoFlippedBitGetsThrough(t *testing.T) {
	_, data := vectorSigned(t)
	keys := vectorKeyring(t)
	for bit := range 8 * len(data) {
		data[bit/8] ^= 1 << (bit % 8)
		r, err := receipt.Decode(data)
		if err == nil {
			err = keys.Verify(r)
		}
		require.Error(t, err, "bit %d of byte %d", bit%8, bit/8)
		data[bit/8] ^= 1 << (bit % 8)
	}
}

// TestReceiptsDoNotDependOnThoseBefore: a Decoder shares what they have in common.
func TestReceiptsDoNotDependOnThoseBefore(t *testing.T) {
	var encoded [][]byte
	for _, kind := range []string{"tool.a", "tool.b", "tool.b", ""} {
		for _, class := range append(classes(), "") {
			r := receipt.New("w"+kind, receipt.Permit{Intent: receipt.Intent{Kind: kind, Cap: "tools"}}, receipt.StatusError, receipt.Data(canon.Null))
			r.Class, r.KeyID = class, kind+"key"
			data, err := r.Encode()
			require.NoError(t, err)
			encoded = append(encoded, data, data[:len(data)-1])
		}
	}
	var d receipt.Decoder
	var got []receipt.Receipt
	for _, data := range encoded {
		var r receipt.Receipt
		want, wantErr := receipt.Decode(data)
		err := d.Decode(data, &r)
		if require.Equal(t, wantErr, err); err == nil {
			require.Equal(t, *want, r)
			got = append(got, r)
		}
	}
	require.Len(t, got, len(encoded)/2)
	for i := range got {
		requireBytes(t, encoded[2*i], &got[i])
	}
}

// TestReceiptLikeTheOneBeforeTakesNoMemory: every effect has one.
func TestReceiptLikeTheOneBeforeTakesNoMemory(t *testing.T) {
	_, data := vectorSigned(t)
	var d receipt.Decoder
	var r receipt.Receipt
	keys := vectorKeyring(t)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		require.NoError(t, d.Decode(data, &r))
		require.NoError(t, keys.Verify(&r))
	}))
}

func TestNoCutReceiptDecodes(t *testing.T) {
	_, data := vectorSigned(t)
	for n := range data {
		_, err := receipt.Decode(data[:n])
		require.Error(t, err, "%d bytes", n)
	}
	_, err := receipt.Decode(append(data, 0))
	require.Error(t, err)
}

func TestDecodeRefusesWhatItDoesNotKnow(t *testing.T) {
	encode := func(change func(r *receipt.Receipt)) []byte {
		r, _ := vectorSigned(t)
		change(r)
		b, err := r.Encode()
		require.NoError(t, err)
		return b
	}
	_, err := receipt.Decode(encode(func(r *receipt.Receipt) { r.Version = 2 }))
	require.ErrorIs(t, err, receipt.ErrVersion)
	_, err = receipt.Decode(encode(func(r *receipt.Receipt) { r.Status = "perhaps" }))
	require.ErrorIs(t, err, receipt.ErrStatus)

	for name, text := range map[string]string{
		"no fields":       `{}`,
		"unknown field":   `{"version": 1, "colour": "red"}`,
		"wrong type":      `{"version": "1"}`,
		"not a map":       `[1]`,
		"a field is null": `{"version": null}`,
	} {
		b, err := canon.FromJSON([]byte(text))
		require.NoError(t, err)
		_, err = receipt.Decode(b)
		require.Error(t, err, name)
	}
}

func TestDecodeRefusesOtherForms(t *testing.T) {
	r, _ := vectorSigned(t)
	r.Cap = ""
	data, err := r.Encode()
	require.NoError(t, err)
	require.Equal(t, []byte("\xb0\x63cap\x60"), data[:6])

	long := append([]byte("\xb0\x63cap\x78\x00"), data[6:]...) // the empty text in two bytes
	_, err = receipt.Decode(long)
	require.ErrorIs(t, err, receipt.ErrNotCanonical)

	absent := append([]byte("\xaf"), data[6:]...) // the empty text left out
	_, err = receipt.Decode(absent)
	require.ErrorIs(t, err, receipt.ErrNotCanonical)
}

// nested returns so many lists in each other.
func nested(lists int) receipt.Data {
	return append(bytes.Repeat([]byte{0x81}, lists-1), 0x80)
}

func TestEncodedReceiptsAreCanonical(t *testing.T) {
	r, _ := vectorSigned(t)
	r.Payload = nested(canon.MaxDepth - 1)
	data, err := r.Encode()
	require.NoError(t, err)
	require.NoError(t, canon.Valid(data))
	r.Payload = nil
	data, err = r.Encode()
	require.NoError(t, err)
	require.NoError(t, canon.Valid(data))
}

func TestEncodeRefusesWhatHasNoCanonicalForm(t *testing.T) {
	for name, change := range map[string]func(r *receipt.Receipt){
		"text that is not UTF-8":      func(r *receipt.Receipt) { r.Kind = "\xff" },
		"payload of two items":        func(r *receipt.Receipt) { r.Payload = receipt.Data("\x01\x02") },
		"payload in another form":     func(r *receipt.Receipt) { r.Payload = receipt.Data("\x18\x01") },
		"payload that adds a field":   func(r *receipt.Receipt) { r.Payload = receipt.Data("\x01\x61a\x01") },
		"payload that is not a value": func(r *receipt.Receipt) { r.Payload = receipt.Data("\xff") },
		"payload that is too deep":    func(r *receipt.Receipt) { r.Payload = nested(canon.MaxDepth) },
		"outcome that is not UTF-8":   func(r *receipt.Receipt) { r.Class = "\xff" },
		"change that is not UTF-8":    func(r *receipt.Receipt) { r.StateChange = &receipt.StateChange{ETag: "\xff"} },
	} {
		r, _ := vectorSigned(t)
		change(r)
		_, err := r.Encode()
		require.Error(t, err, name)
		_, err = vectorKeyring(t).Sign(r)
		require.Error(t, err, name)
		_, err = vectorKeyring(t).SignChecked(*r)
		require.Error(t, err, name)
	}
}

// anyReceipt draws a receipt of a failure.
func anyReceipt(t *rapid.T) receipt.Receipt {
	number := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64())
	hash := rapid.Custom(func(t *rapid.T) receipt.Hash {
		return receipt.Hash(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 255}), 32, 32).Draw(t, "hash"))
	})
	if rapid.Bool().Draw(t, "unsigned") {
		hash = rapid.Just(receipt.Hash{})
	}
	optional := rapid.OneOf(rapid.Just(""), rapid.String())
	r := receipt.Receipt{
		Version: receipt.ReceiptVersion, World: rapid.String().Draw(t, "world"),
		Key: receipt.Key{Hash: hash.Draw(t, "key")}, Kind: rapid.String().Draw(t, "kind"),
		ParamsHash: hash.Draw(t, "params"), Cap: rapid.String().Draw(t, "cap"), Attempt: number.Draw(t, "attempt"),
		Nonce:  receipt.Nonce(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "nonce")),
		Status: rapid.SampledFrom([]receipt.Status{receipt.StatusError, receipt.StatusTimeout}).Draw(t, "status"), Payload: canon.AppendText(nil, rapid.String().Draw(t, "payload")),
		Cost: receipt.Cost{
			Calls: number.Draw(t, "calls"), Tokens: number.Draw(t, "tokens"),
			Bytes: number.Draw(t, "bytes"), Micros: number.Draw(t, "micros"),
		},
		StartedAt: rapid.Int64().Draw(t, "started"), FinishedAt: rapid.Int64().Draw(t, "finished"),
		Class:  rapid.SampledFrom(classes()).Draw(t, "class"),
		Unsent: rapid.Bool().Draw(t, "unsent"), Exact: rapid.Bool().Draw(t, "exact"), ExternalRef: optional.Draw(t, "external ref"),
		KeyID: rapid.String().Draw(t, "key id"), Hash: hash.Draw(t, "hash"), MAC: hash.Draw(t, "mac"),
	}
	if rapid.Bool().Draw(t, "changed something") {
		r.StateChange = &receipt.StateChange{
			Resource: rapid.String().Draw(t, "resource"), Version: optional.Draw(t, "its version"), ETag: optional.Draw(t, "etag"),
			ContentHash: hash.Draw(t, "content"), ExternalRef: optional.Draw(t, "its external ref"),
		}
	}
	return r
}

// TestReceiptEncodesLikeTheLibrary holds the encoding by hand equal to the
// struct tags.
func TestReceiptEncodesLikeTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyReceipt(t)
		want, err := canon.Marshal(r)
		require.NoError(t, err)
		got, err := r.Encode()
		require.NoError(t, err)
		require.Equal(t, want, got)
		back, err := receipt.Decode(got)
		require.NoError(t, err)
		require.Equal(t, &r, back)
	})
}

// classes are the outcomes that an adapter can give a receipt that is not ok.
func classes() []receipt.Outcome {
	return []receipt.Outcome{"", receipt.OutcomePermanentFailure, receipt.OutcomeRetryableFailure, receipt.OutcomeCompensatable}
}

func TestClassFitsTheStatus(t *testing.T) {
	keys := vectorKeyring(t)
	decode := func(status receipt.Status, class receipt.Outcome) (*receipt.Receipt, error) {
		r := receipt.New(vectorWorld, vectorPermit(t), status, nil)
		r.Class = class
		data, err := keys.Sign(&r)
		require.NoError(t, err)
		return receipt.Decode(data)
	}
	for _, class := range classes() {
		for _, status := range []receipt.Status{receipt.StatusError, receipt.StatusTimeout, receipt.StatusCancelled} {
			r, err := decode(status, class)
			require.NoError(t, err, "%s, %s", status, class)
			want := class
			if class == "" {
				want = receipt.OutcomePermanentFailure
			}
			require.Equal(t, want, r.Outcome(), "%s, %s", status, class)
		}
	}
	for _, class := range []receipt.Outcome{receipt.OutcomeRetryableFailure, receipt.OutcomeCompensatable} {
		_, err := decode(receipt.StatusOK, class)
		require.ErrorIs(t, err, receipt.ErrClass, class)
	}
	for _, class := range []receipt.Outcome{
		receipt.OutcomePure, receipt.OutcomeSuccess, receipt.OutcomeSideEffectCommitted, receipt.OutcomeCompensated, "perhaps",
	} {
		for _, status := range []receipt.Status{receipt.StatusOK, receipt.StatusError} {
			_, err := decode(status, class)
			require.ErrorIs(t, err, receipt.ErrClass, "%s, %s", status, class)
		}
	}
}

func TestOutcomeOfAStatus(t *testing.T) {
	for _, s := range []receipt.Status{
		receipt.StatusError, receipt.StatusTimeout, receipt.StatusDenied, receipt.StatusRejected, receipt.StatusCancelled,
	} {
		require.True(t, s.Known())
		require.Equal(t, receipt.OutcomePermanentFailure, (&receipt.Receipt{Status: s}).Outcome())
	}
	require.Equal(t, receipt.OutcomeSideEffectCommitted, (&receipt.Receipt{Status: receipt.StatusOK}).Outcome())
	require.False(t, receipt.Status("").Known())
}

// requireBytes requires that what was decoded from bytes encodes to them.
func requireBytes(t testing.TB, want []byte, decoded interface{ Encode() ([]byte, error) }) {
	t.Helper()
	got, err := decoded.Encode()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func FuzzDecode(f *testing.F) {
	_, data := vectorSigned(f)
	f.Add(data)
	unsigned := receipt.New("w", receipt.Permit{}, receipt.StatusError, nil)
	bare, err := unsigned.Encode()
	require.NoError(f, err)
	f.Add(bare)
	full := receipt.New("w", receipt.Permit{}, receipt.StatusError, nil)
	full.Class, full.Exact, full.Unsent, full.ExternalRef = receipt.OutcomeRetryableFailure, true, true, "x"
	full.StateChange = &receipt.StateChange{Resource: "r", Version: "1", ETag: "e", ContentHash: receipt.Hash{1}, ExternalRef: "y"}
	all, err := full.Encode()
	require.NoError(f, err)
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := receipt.Decode(data)
		if err != nil {
			return
		}
		requireBytes(t, data, r)
		require.NoError(t, canon.Valid(data))
	})
}

func FuzzNonce(f *testing.F) {
	f.Add([]byte("\x50abcdefghijklmnop"))
	f.Add([]byte("\x41a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var n receipt.Nonce
		if n.UnmarshalCBOR(data) != nil {
			return
		}
		back, err := n.MarshalCBOR()
		require.NoError(t, err)
		require.Equal(t, data, back)
	})
}
