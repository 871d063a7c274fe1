package governance

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// keyOf returns the key of a person, who is known by a number.
func keyOf(who byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{who}, ed25519.SeedSize))
}

func publicOf(who byte) manifest.PublicKey {
	return manifest.PublicKey(keyOf(who).Public().(ed25519.PublicKey))
}

func hashOf(text string) Hash { return canon.Sum([]byte(text)) }

// What is signed is read by people and by other programs: these bytes never change.
// The signatures are OpenSSL's, with the key whose seed is 00 01 … 1f.
func TestStatementsAndSignaturesAreWhatOthersMake(t *testing.T) {
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(i)
	}
	const public = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
	terms := manifest.Terms{World: "0f1e2d3c", Base: hashOf("the manifest in force"), Candidate: hashOf("the candidate")}
	reported := terms
	reported.Report = hashOf("the report")
	for name, c := range map[string]struct {
		terms     manifest.Terms
		statement string
		signature string
	}{
		"proposal": {
			terms,
			"worldkernel proposal v1\n" +
				"world 0f1e2d3c\n" +
				"base f630531e5572e4a3979aa9cb06a52f99d187fb6758f7629bfaba6946d75a5f5f\n" +
				"candidate bc7a982934003462e6c278f798e90fddaf5f7f81429d664f20097834571d1ad7\n",
			"e4826e612ff8a981d182d350b429d829ca3fbfd8f4e9e373826b063bf722a9ab" +
				"eb4eaf19f0c65e3ea3b0620bd21916c5e865fc3fe84440be78922e8b0fb9f105",
		},
		"approval": {
			reported,
			"worldkernel approval v1\n" +
				"world 0f1e2d3c\n" +
				"base f630531e5572e4a3979aa9cb06a52f99d187fb6758f7629bfaba6946d75a5f5f\n" +
				"candidate bc7a982934003462e6c278f798e90fddaf5f7f81429d664f20097834571d1ad7\n" +
				"report 14e4cce86788499d03144f70ab24ca83d1abe97d55153c71ee1df55c5296c1f9\n",
			"f34e1b528c6b91905f4c80e40e95152d0a66d27ecce92ee2f9162db8520cae50" +
				"a8bd208afd935a58e3a7c71ab60660724c6511bd676b802b8d158ac00b3a2703",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.statement, string(c.terms.Statement()))
			s := manifest.Sign(ed25519.NewKeyFromSeed(seed), c.terms)
			require.Equal(t, public, s.Key.String())
			require.Equal(t, c.signature, hex.EncodeToString(s.Bytes))
			require.True(t, s.Verifies(c.terms))
			require.True(t, ed25519.Verify(s.Key[:], []byte(c.statement), s.Bytes))
		})
	}
}

func termsGen() *rapid.Generator[manifest.Terms] {
	hash := rapid.Custom(func(t *rapid.T) Hash { return Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash")) })
	few := rapid.OneOf(hash, rapid.SampledFrom([]Hash{{}, hashOf("a"), hashOf("b")}))
	return rapid.Custom(func(t *rapid.T) manifest.Terms {
		return manifest.Terms{
			World: rapid.StringMatching(`[a-z0-9-]{1,8}`).Draw(t, "world"),
			Base:  few.Draw(t, "base"), Candidate: few.Draw(t, "candidate"), Report: few.Draw(t, "report"),
		}
	})
}

func TestSignatureHoldsForItsTermsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := termsGen().Draw(t, "a"), termsGen().Draw(t, "b")
		who := rapid.ByteRange(1, 3).Draw(t, "who")
		s := manifest.Sign(keyOf(who), a)
		require.True(t, s.Verifies(a))
		require.Equal(t, a == b, bytes.Equal(a.Statement(), b.Statement()), "other terms read otherwise")
		require.Equal(t, a == b, s.Verifies(b))
		s.Key = publicOf(who + 1)
		require.False(t, s.Verifies(a), "another person's")
	})
}

func TestDamagedSignatureDoesNotVerify(t *testing.T) {
	terms := manifest.Terms{World: "w", Base: hashOf("a"), Candidate: hashOf("b"), Report: hashOf("r")}
	good := manifest.Sign(keyOf(1), terms)
	for _, n := range []int{0, 1, 63} {
		require.False(t, manifest.Signature{Key: good.Key, Bytes: good.Bytes[:n]}.Verifies(terms), "%d bytes", n)
	}
	require.False(t, manifest.Signature{Key: good.Key, Bytes: append(bytes.Clone(good.Bytes), 0)}.Verifies(terms), "65 bytes")
	require.False(t, manifest.Signature{}.Verifies(terms))
	for bit := range 8 * len(good.Bytes) {
		bad := manifest.Signature{Key: good.Key, Bytes: bytes.Clone(good.Bytes)}
		bad.Bytes[bit/8] ^= 1 << (bit % 8)
		require.False(t, bad.Verifies(terms), "bit %d", bit)
	}
	for bit := range 8 * len(good.Key) {
		bad := good
		bad.Key[bit/8] ^= 1 << (bit % 8)
		require.False(t, bad.Verifies(terms), "bit %d of the key", bit)
	}
}
