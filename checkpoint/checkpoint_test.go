package checkpoint_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
)

func key(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func public(b byte) ed25519.PublicKey { return key(b).Public().(ed25519.PublicKey) }

func sample() checkpoint.Checkpoint {
	return checkpoint.Checkpoint{World: "town", Size: 3, Root: canon.Sum([]byte("root"))}
}

// The vector was made by another implementation, of RFC 8032 in Python.
func TestVectorOfCheckpoint(t *testing.T) {
	data, err := sample().Sign(key(1))
	require.NoError(t, err)
	require.Equal(t, "worldkernel/town\n3\n"+
		"SBNJTRN+FjG7owHVrKtue7eqdM4RhdRWVl71HXN2d7I=\n\n"+
		"— worldkernel/town apT9c12H4g9YA63DQ/kMo9KR4+ZXgB6TpYrqN0l+nwrCx/j3yojsBbqPq3zuLdyoVWfdzfCkox8vEzReNpiFupuI0Qw=\n", string(data))
	text, err := checkpoint.FormatKey("town", public(1))
	require.NoError(t, err)
	require.Equal(t, "worldkernel/town+6a94fd73+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c", text)
}

func TestCheckpointIsOpenedByWhomItWasSigned(t *testing.T) {
	data, err := sample().Sign(key(1), key(2))
	require.NoError(t, err)
	for name, c := range map[string]struct{ ask, by []ed25519.PublicKey }{
		"nobody":  {nil, nil},
		"one":     {[]ed25519.PublicKey{public(1)}, []ed25519.PublicKey{public(1)}},
		"both":    {[]ed25519.PublicKey{public(2), public(1), public(2)}, []ed25519.PublicKey{public(1), public(2)}},
		"another": {[]ed25519.PublicKey{public(3)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := checkpoint.Open(data, c.ask...)
			require.NoError(t, err)
			require.Equal(t, sample(), s.Checkpoint)
			require.Equal(t, c.by, s.By)
		})
	}
}

// A checkpoint of another world, size or root has not the signature of this one.
func TestSignatureIsOfAllThreeLines(t *testing.T) {
	data, err := sample().Sign(key(1))
	require.NoError(t, err)
	for _, change := range []func(*checkpoint.Checkpoint){
		func(c *checkpoint.Checkpoint) { c.Size++ },
		func(c *checkpoint.Checkpoint) { c.Root[0] ^= 1 },
	} {
		other := sample()
		change(&other)
		forged := strings.Replace(string(data), sample().Text(), other.Text(), 1)
		_, err := checkpoint.Open([]byte(forged), public(1))
		require.ErrorIs(t, err, checkpoint.ErrBadSignature)
	}
	other := sample()
	other.World = "city"
	s, err := checkpoint.Open([]byte(strings.Replace(string(data), sample().Text(), other.Text(), 1)), public(1))
	require.NoError(t, err)
	require.Empty(t, s.By, "its signature names another signer")
}

// Whatever is changed, it is not the same checkpoint any more.
func TestNoByteOfACheckpointIsFree(t *testing.T) {
	data, err := sample().Sign(key(1))
	require.NoError(t, err)
	for i := range data {
		for bit := range 8 {
			changed := bytes.Clone(data)
			changed[i] ^= 1 << bit
			s, err := checkpoint.Open(changed, public(1))
			require.False(t, err == nil && len(s.By) > 0, "byte %d, bit %d", i, bit)
		}
	}
}

func TestMalformedCheckpoints(t *testing.T) {
	good, err := sample().Sign(key(1))
	require.NoError(t, err)
	root := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, text := range map[string]string{
		"empty":            "",
		"another origin":   strings.ReplaceAll(string(good), "worldkernel/", "example.com/"),
		"no world":         strings.ReplaceAll(string(good), "worldkernel/town", "worldkernel/"),
		"size 0":           strings.Replace(string(good), "\n3\n", "\n0\n", 1),
		"another writing":  strings.Replace(string(good), "\n3\n", "\n03\n", 1),
		"too many records": strings.Replace(string(good), "\n3\n", "\n281474976710657\n", 1),
		"short root":       "worldkernel/town\n3\nAAAA\n\n",
		"unsigned":         "worldkernel/town\n3\n" + root + "\n",
		"a fourth line":    strings.Replace(string(good), "\n\n", "\nmore\n\n", 1),
		"a second empty":   strings.Replace(string(good), "\n\n", "\n\n— worldkernel/town AAAAAAAA\n\n", 1),
		"two empty lines":  strings.Replace(string(good), "\n\n", "\n\n\n", 1),
		"too long":         string(good) + strings.Repeat("x", checkpoint.MaxBytes),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checkpoint.Open([]byte(text), public(1))
			require.ErrorIs(t, err, checkpoint.ErrMalformed)
		})
	}
}

func TestKeysAreReadAsTheyAreWritten(t *testing.T) {
	text, err := checkpoint.FormatKey("town", public(1))
	require.NoError(t, err)
	world, got, err := checkpoint.ParseKey(text)
	require.NoError(t, err)
	require.Equal(t, "town", world)
	require.Equal(t, public(1), got)
	for i := range text {
		changed := []byte(text)
		changed[i] ^= 1
		_, _, err := checkpoint.ParseKey(string(changed))
		require.ErrorIs(t, err, checkpoint.ErrBadKey, "byte %d", i)
	}
}

func FuzzOpen(f *testing.F) {
	data, err := sample().Sign(key(1), key(2))
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := checkpoint.Open(data, public(1))
		if err != nil {
			return
		}
		require.True(t, bytes.HasPrefix(data, []byte(s.Text()+"\n")))
	})
}
