package receipt_test

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// The vectors below were computed by testdata/vectors.py, which shares no code
// with this package.
const (
	vectorHistory = "5f79c06e818cc490dc57aba8e0d164c63782000c2d10efbbecadf937155ca723"
	vectorParams  = "a4646e6f7465707370c3a47465204c6965666572756e67656c696e6573840121f6f5656f7264657263412d3766616d6f756e741901f4"
	vectorStep    = "agent/c42@3.1~5f79c06e818cc490"
	vectorKey     = "dbb3a9ed87b214892e96d5a8420de46b50f009e3f5125049062a108398002e51"
	vectorNonce   = "9d7a96175cdd4f462ed693bd076e9461"
	vectorKeyID   = "7-f1d6a5f41b3e1355"
	vectorHash    = "ea80f7691626d468292fa0d36a15081c00d3862e368165833647e0ede74d398a"
	vectorMAC     = "75697d1433de6a16d3fa51ed507013dab5527451f3dbe0a13abe5e180b1c7f82"
	vectorReceipt = "b06363617065746f6f6c73636b65795820dbb3a9ed87b214892e96d5a8420de46b50f009e3f5125049062a108398002e51" +
		"636d6163582075697d1433de6a16d3fa51ed507013dab5527451f3dbe0a13abe5e180b1c7f8264636f7374a26563616c6c7301" +
		"666d6963726f731a0003d09064686173685820ea80f7691626d468292fa0d36a15081c00d3862e368165833647e0ede74d398a" +
		"646b696e646b746f6f6c2e726566756e64656e6f6e6365509d7a96175cdd4f462ed693bd076e946165776f726c6464746f776e" +
		"666b65795f696472372d6631643661356634316233653133353566737461747573626f6b67617474656d707402677061796c6f" +
		"6164a262696462723164646f6e65f56776657273696f6e016a737461727465645f6174206b66696e69736865645f61741b1886" +
		"7251edfa00006b706172616d735f6861736858208d9a231e47257c6fa960986376c91c4e533e473729629c20a555119b6ae09d37"
)

const vectorWorld = "town"

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func vectorPermit(t testing.TB) receipt.Permit {
	t.Helper()
	step := receipt.NewStepID("agent/c42", 3, 1, receipt.History(unhex(t, vectorHistory)))
	params := receipt.Data(unhex(t, vectorParams))
	key := receipt.NewKey(vectorWorld, step, "tool.refund", params)
	return receipt.Permit{
		Intent:  receipt.Intent{Key: key, Step: step, Cell: "agent/c42", Kind: "tool.refund", Params: params, Cap: "tools"},
		Attempt: 2,
		Nonce:   receipt.NewNonce(canon.Sum([]byte("root")), key, 2),
	}
}

func vectorKeyring(t testing.TB) *receipt.Keyring {
	t.Helper()
	keys, err := receipt.NewKeyring(vectorWorld, []receipt.Epoch{
		{Number: 2, Secret: make([]byte, receipt.SecretBytes), Revoked: true},
		{Number: 7, Secret: secret(0)},
	})
	require.NoError(t, err)
	return keys
}

// secret returns bytes that count up from first.
func secret(first byte) []byte {
	b := make([]byte, receipt.SecretBytes)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

// vectorSigned returns the receipt of the vectors and its bytes.
func vectorSigned(t testing.TB) (*receipt.Receipt, []byte) {
	t.Helper()
	payload, err := canon.FromJSON([]byte(`{"id": "r1", "done": true}`))
	require.NoError(t, err)
	r := receipt.New(vectorWorld, vectorPermit(t), receipt.StatusOK, payload)
	r.Cost = receipt.Cost{Calls: 1, Micros: 250_000}
	r.StartedAt, r.FinishedAt = -1, 1_767_225_600_000_000_000
	data, err := vectorKeyring(t).Sign(&r)
	require.NoError(t, err)
	return &r, data
}

func TestIdentityOfAnIntentIsFixed(t *testing.T) {
	p := vectorPermit(t)
	require.Equal(t, receipt.StepID(vectorStep), p.Step)
	require.Equal(t, vectorKey, p.Key.String())
	require.Equal(t, vectorNonce, p.Nonce.String())
	require.Equal(t, "worldkernel:town:"+vectorKey, p.Key.External(vectorWorld))
	parsed, err := receipt.ParseKey(vectorKey)
	require.NoError(t, err)
	require.Equal(t, p.Key, parsed)
}

func TestIdentityOfLongNamesIsFixed(t *testing.T) {
	long := make([]byte, 5000) // beyond every scratch buffer
	h := receipt.History{1, 2, 3, 4, 5, 6, 7, 8}
	require.Equal(t, string(long)+"@1.0~0102030405060708", string(receipt.NewStepID(string(long), 1, 0, h)))
	want := canon.Sum(append([]byte("w\x00s\x00k\x00"), long...))
	require.Equal(t, want, receipt.NewKey("w", "s", "k", long).Hash)
}

func TestNonceCoversRootKeyAndAttempt(t *testing.T) {
	root, key := canon.Sum([]byte("a")), receipt.Key{Hash: canon.Sum([]byte("b"))}
	b := binary.BigEndian.AppendUint64(append(root[:], key.Hash[:]...), 1<<40)
	want := canon.Sum(b)
	require.Equal(t, receipt.Nonce(want[:16]), receipt.NewNonce(root, key, 1<<40))
}

func TestSignatureOfAReceiptIsFixed(t *testing.T) {
	r, data := vectorSigned(t)
	require.Equal(t, vectorKeyID, r.KeyID)
	require.Equal(t, vectorHash, r.Hash.String())
	require.Equal(t, vectorMAC, r.MAC.String())
	require.Equal(t, vectorReceipt, hex.EncodeToString(data))
	require.NoError(t, vectorKeyring(t).Verify(r))
}
