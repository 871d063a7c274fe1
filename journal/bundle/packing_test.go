package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func packedText(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	p := newPacker(&out)
	for i := range 60 {
		_, err := fmt.Fprintf(p, "record %d is like record %d, which follows record %d\n", i, i/2, i/3)
		require.NoError(t, err)
	}
	require.NoError(t, p.Close())
	return out.Bytes()
}

// unpackAll returns what is wrong with a file.
func unpackAll(data []byte) (odd, err error) {
	u, odd, err := newUnpacker(bytes.NewReader(data), io.Discard, DefaultMaxBytes)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, u)
	return odd, err
}

// Among the deflated bits there are some that change nothing: those that fill up a
// byte, and those of distances to a text that stands there twice.
func TestEveryFlippedBitOfTheFileIsNoticed(t *testing.T) {
	data := packedText(t)
	odd, err := unpackAll(data)
	require.NoError(t, odd)
	require.NoError(t, err)
	silent := 0
	for i := range data {
		for bit := range 8 {
			changed := bytes.Clone(data)
			changed[i] ^= 1 << bit
			odd, err := unpackAll(changed)
			require.False(t, odd == nil && err == nil, "byte %d, bit %d", i, bit)
			if i < len(data)-len(sumMember(make([]byte, 32))) && errors.Is(err, errSum) {
				silent++
			}
		}
	}
	require.Positive(t, silent, "the sum is needed")
}

func TestFileMayUnpackToSoManyTimesItsSize(t *testing.T) {
	u, _, err := newUnpacker(bytes.NewReader(packedText(t)), io.Discard, DefaultMaxBytes)
	require.NoError(t, err)
	u.n = freeBytes - 1
	_, err = io.ReadAll(u)
	require.NotErrorIs(t, err, ErrLimit)

	var out bytes.Buffer
	p := newPacker(&out)
	_, err = p.Write(make([]byte, 10<<20))
	require.NoError(t, err)
	require.NoError(t, p.Close())
	u, _, err = newUnpacker(&out, io.Discard, DefaultMaxBytes)
	require.NoError(t, err)
	u.n = freeBytes
	_, err = io.ReadAll(u)
	require.ErrorIs(t, err, ErrLimit)
}
