package receipt_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

func keyring(t testing.TB, world string, epochs ...receipt.Epoch) *receipt.Keyring {
	t.Helper()
	k, err := receipt.NewKeyring(world, epochs)
	require.NoError(t, err)
	return k
}

func TestVerifyRefuses(t *testing.T) {
	first, second := receipt.Epoch{Number: 1, Secret: secret(1)}, receipt.Epoch{Number: 2, Secret: secret(2)}
	signed := func() *receipt.Receipt {
		r := receipt.New("w", receipt.Permit{}, receipt.StatusOK, nil)
		_, err := keyring(t, "w", first).Sign(&r)
		require.NoError(t, err)
		return &r
	}
	require.NoError(t, keyring(t, "w", first, second).Verify(signed()), "an old key still verifies")

	r := signed()
	require.ErrorIs(t, keyring(t, "v", first).Verify(r), receipt.ErrWrongWorld)
	require.ErrorIs(t, keyring(t, "w", second).Verify(r), receipt.ErrUnknownKey)
	require.ErrorIs(t, keyring(t, "w").Verify(r), receipt.ErrUnknownKey)

	revoked := first
	revoked.Revoked = true
	require.ErrorIs(t, keyring(t, "w", revoked, second).Verify(r), receipt.ErrRevokedKey)

	r.Payload = receipt.Data("\x01")
	require.ErrorIs(t, keyring(t, "w", first).Verify(r), receipt.ErrBadHash)

	r = signed()
	r.MAC[31] ^= 1
	require.ErrorIs(t, keyring(t, "w", first).Verify(r), receipt.ErrBadMAC)

	// Whoever lacks the secret can make the hash right, but not the mac.
	r = signed()
	forger := keyring(t, "w", receipt.Epoch{Number: 1, Secret: secret(9)})
	keyID := r.KeyID
	_, err := forger.Sign(r)
	require.NoError(t, err)
	require.ErrorIs(t, keyring(t, "w", first).Verify(r), receipt.ErrUnknownKey)
	r.KeyID = keyID
	require.ErrorIs(t, keyring(t, "w", first).Verify(r), receipt.ErrBadHash)
}

// TestSignCheckedIsWhatCheckFinds: who has signed a receipt knows of it what reading it tells,
// whatever becomes of what it was made of.
func TestSignCheckedIsWhatCheckFinds(t *testing.T) {
	ring := keyring(t, "w", receipt.Epoch{Number: 1, Secret: secret(1)})
	rapid.Check(t, func(t *rapid.T) {
		r := anyReceipt(t)
		r.World = "w"
		signed, err := ring.SignChecked(r)
		require.NoError(t, err)
		again := r
		data, err := ring.Sign(&again)
		require.NoError(t, err)
		require.Equal(t, data, signed.Bytes())
		clear(r.Payload)
		if r.StateChange != nil {
			*r.StateChange = receipt.StateChange{}
		}
		found, err := ring.Check(new(receipt.Decoder), data)
		require.NoError(t, err)
		require.Equal(t, found.Receipt(), signed.Receipt())
		require.True(t, signed.By(ring))
	})
}

func TestSignCheckedRefusesWhatCheckWould(t *testing.T) {
	ring := keyring(t, "w", receipt.Epoch{Number: 1, Secret: secret(1)})
	for name, change := range map[string]func(r *receipt.Receipt){
		"another world":   func(r *receipt.Receipt) { r.World = "v" },
		"another version": func(r *receipt.Receipt) { r.Version++ },
		"unknown status":  func(r *receipt.Receipt) { r.Status = "fine" },
		"unknown class":   func(r *receipt.Receipt) { r.Class = "lucky" },
	} {
		r := receipt.New("w", receipt.Permit{}, receipt.StatusError, nil)
		_, err := ring.SignChecked(r)
		require.NoError(t, err)
		change(&r)
		_, err = ring.SignChecked(r)
		require.Error(t, err, name)
		data, err := ring.Sign(&r)
		require.NoError(t, err)
		_, err = ring.Check(new(receipt.Decoder), data)
		require.Error(t, err, name)
	}
	r := receipt.New("w", receipt.Permit{}, receipt.StatusOK, nil)
	_, err := keyring(t, "w").SignChecked(r)
	require.ErrorIs(t, err, receipt.ErrUnknownKey)
}

func TestKeyOfAnotherWorldDoesNotSign(t *testing.T) {
	epoch := receipt.Epoch{Number: 1, Secret: secret(0)}
	r := receipt.New("w", receipt.Permit{}, receipt.StatusOK, nil)
	_, err := keyring(t, "v", epoch).Sign(&r) // same secret, other salt
	require.NoError(t, err)
	require.ErrorIs(t, keyring(t, "w", epoch).Verify(&r), receipt.ErrUnknownKey)
}

func TestSigningTwiceGivesTheSameBytes(t *testing.T) {
	r, data := vectorSigned(t)
	again, err := vectorKeyring(t).Sign(r)
	require.NoError(t, err)
	require.Equal(t, data, again)
}

func TestNewestEpochSigns(t *testing.T) {
	k := keyring(t, "w", receipt.Epoch{Number: 1, Secret: secret(1)}, receipt.Epoch{Number: 4, Secret: secret(2)})
	r := receipt.New("w", receipt.Permit{}, receipt.StatusOK, nil)
	_, err := k.Sign(&r)
	require.NoError(t, err)
	status := k.Keys()
	require.Len(t, status, 2)
	require.Equal(t, receipt.KeyStatus{ID: r.KeyID, Epoch: 4, Current: true}, status[1])
	require.False(t, status[0].Current)
}

func TestEmptyKeyringDoesNotSign(t *testing.T) {
	k := keyring(t, "w")
	require.False(t, k.CanSign())
	r := receipt.New("w", receipt.Permit{}, receipt.StatusOK, nil)
	_, err := k.Sign(&r)
	require.ErrorIs(t, err, receipt.ErrUnknownKey)
}

func TestKeyringRefusesFaultyEpochs(t *testing.T) {
	for name, epochs := range map[string][]receipt.Epoch{
		"short secret": {{Number: 1, Secret: []byte("x")}},
		"epoch zero":   {{Secret: secret(0)}},
		"same number":  {{Number: 1, Secret: secret(0)}, {Number: 1, Secret: secret(1)}},
		"downwards":    {{Number: 2, Secret: secret(0)}, {Number: 1, Secret: secret(1)}},
		"last revoked": {{Number: 1, Secret: secret(0), Revoked: true}},
	} {
		_, err := receipt.NewKeyring("w", epochs)
		require.Error(t, err, name)
	}
}

func TestKeyringSurvivesItsFile(t *testing.T) {
	for _, k := range []*receipt.Keyring{keyring(t, "w"), vectorKeyring(t)} {
		data, err := k.Encode()
		require.NoError(t, err)
		back, err := receipt.DecodeKeyring(data)
		require.NoError(t, err)
		require.Equal(t, k.World(), back.World())
		require.Equal(t, k.Keys(), back.Keys())
		again, err := back.Encode()
		require.NoError(t, err)
		require.Equal(t, data, again)
	}
	r, _ := vectorSigned(t)
	data, err := vectorKeyring(t).Encode()
	require.NoError(t, err)
	back, err := receipt.DecodeKeyring(data)
	require.NoError(t, err)
	require.NoError(t, back.Verify(r))
}

func TestDecodeKeyringRefuses(t *testing.T) {
	data, err := vectorKeyring(t).Encode()
	require.NoError(t, err)
	for n := range data {
		_, err := receipt.DecodeKeyring(data[:n])
		require.Error(t, err, "%d bytes", n)
	}
	for _, text := range []string{
		`{}`, `[]`, `{"version": 2, "world": "w", "epochs": []}`, `{"version": 1, "world": "w", "epochs": [], "more": 1}`,
	} {
		b, err := canon.FromJSON([]byte(text))
		require.NoError(t, err)
		_, err = receipt.DecodeKeyring(b)
		require.Error(t, err, text)
	}
}

func TestKeyringKeepsItsOwnSecrets(t *testing.T) {
	mine := secret(1)
	k := keyring(t, "w", receipt.Epoch{Number: 1, Secret: mine})
	before, err := k.Encode()
	require.NoError(t, err)
	clear(mine)
	after, err := k.Encode()
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestRotationKeepsOldReceiptsValid(t *testing.T) {
	before := keyring(t, "w", receipt.Epoch{Number: 1, Secret: secret(1)})
	old := receipt.New("w", receipt.Permit{}, receipt.StatusOK, nil)
	_, err := before.Sign(&old)
	require.NoError(t, err)
	after, err := before.Rotate(secret(2))
	require.NoError(t, err)
	require.NoError(t, after.Verify(&old))

	fresh := receipt.New("w", receipt.Permit{}, receipt.StatusOK, nil)
	_, err = after.Sign(&fresh)
	require.NoError(t, err)
	require.NotEqual(t, old.KeyID, fresh.KeyID)
	require.Equal(t, after.Keys()[1].ID, fresh.KeyID)
	require.NoError(t, after.Verify(&fresh))
	require.ErrorIs(t, before.Verify(&fresh), receipt.ErrUnknownKey)
	require.Len(t, before.Keys(), 1, "a keyring does not change")

	_, err = before.Rotate(secret(2)[1:])
	require.Error(t, err, "a short secret")
}

func TestRevokedEpochVerifiesNothing(t *testing.T) {
	first := keyring(t, "w", receipt.Epoch{Number: 3, Secret: secret(1)})
	old := receipt.New("w", receipt.Permit{}, receipt.StatusOK, nil)
	_, err := first.Sign(&old)
	require.NoError(t, err)
	_, err = first.Revoke(3)
	require.ErrorIs(t, err, receipt.ErrNoEpoch, "the last one signs")

	both, err := first.Rotate(secret(2))
	require.NoError(t, err)
	for _, other := range []uint64{0, 1, 4, 5} {
		_, err = both.Revoke(other)
		require.ErrorIs(t, err, receipt.ErrNoEpoch, other)
	}
	revoked, err := both.Revoke(3)
	require.NoError(t, err)
	require.ErrorIs(t, revoked.Verify(&old), receipt.ErrRevokedKey)
	require.NoError(t, both.Verify(&old), "a keyring does not change")

	want, err := first.AnchorKey()
	require.NoError(t, err)
	got, err := revoked.AnchorKey()
	require.NoError(t, err)
	require.Equal(t, want, got, "the anchor outlives the epoch whose secret it is of")
}

func TestKeyringIsBounded(t *testing.T) {
	var epochs []receipt.Epoch
	for n := range uint64(4096) {
		epochs = append(epochs, receipt.Epoch{Number: n + 1, Secret: secret(0)})
	}
	_, err := keyring(t, "w", epochs...).Rotate(secret(1))
	require.ErrorIs(t, err, receipt.ErrTooManyEpochs)
}

func FuzzDecodeKeyring(f *testing.F) {
	data, err := vectorKeyring(f).Encode()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := receipt.DecodeKeyring(data)
		if err != nil {
			return
		}
		requireBytes(t, data, k)
	})
}

// TestMACIsTheLibrarys holds the MAC written out equal to crypto/hmac's.
func TestMACIsTheLibrarys(t *testing.T) {
	r, _ := vectorSigned(t)
	e := receipt.Epoch{Number: 7, Secret: bytes.Repeat([]byte{9}, receipt.SecretBytes)}
	k, err := receipt.NewKeyring(r.World, []receipt.Epoch{e})
	require.NoError(t, err)
	_, err = k.Sign(r)
	require.NoError(t, err)
	key, err := hkdf.Key(sha256.New, e.Secret, []byte(r.World), "worldkernel/receipt-key/v1/7", sha256.Size)
	require.NoError(t, err)
	want := hmac.New(sha256.New, key)
	want.Write([]byte("worldkernel/receipt/v1"))
	want.Write(r.Hash[:])
	require.Equal(t, want.Sum(nil), r.MAC[:])
}

// The keys of checkpoints are an epoch's and a world's, and outlive rotations.
func TestCheckpointKeysAreOnePerEpochAndWorld(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, receipt.SecretBytes)
	k, err := receipt.NewKeyring("town", []receipt.Epoch{{Number: 1, Secret: secret}})
	require.NoError(t, err)
	first, err := k.CheckpointKeys()
	require.NoError(t, err)
	require.Len(t, first, 1)
	rotated, err := k.Rotate(secret)
	require.NoError(t, err)
	both, err := rotated.CheckpointKeys()
	require.NoError(t, err)
	require.Equal(t, first[0], both[0])
	require.NotEqual(t, both[0], both[1], "though the secret is the same")
	other, err := receipt.NewKeyring("city", []receipt.Epoch{{Number: 1, Secret: secret}})
	require.NoError(t, err)
	theirs, err := other.CheckpointKeys()
	require.NoError(t, err)
	require.NotEqual(t, first, theirs)
}

func TestCheckedIsWhatItsKeyringFoundGenuine(t *testing.T) {
	r, data := vectorSigned(t)
	keys, d := vectorKeyring(t), new(receipt.Decoder)
	c, err := keys.Check(d, data)
	require.NoError(t, err)
	require.Equal(t, r, c.Receipt())
	require.Equal(t, data, c.Bytes())
	require.True(t, c.By(keys))
	require.False(t, c.By(vectorKeyring(t)), "another one, though its keys are the same")
	require.False(t, new(receipt.Checked).By(nil), "nobody has looked")

	for bit := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		c, err := keys.Check(d, bad)
		require.Error(t, err, "bit %d of byte %d", bit%8, bit/8)
		require.False(t, c.By(keys))
	}
	_, err = keyring(t, vectorWorld, receipt.Epoch{Number: 7, Secret: secret(1)}).Check(d, data)
	require.ErrorIs(t, err, receipt.ErrUnknownKey)
}
