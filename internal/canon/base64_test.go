package canon

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBase64IsTheLibrarys: of all lengths around those that are encoded in one go.
func TestBase64IsTheLibrarys(t *testing.T) {
	b := make([]byte, 3*256)
	for i := range b {
		b[i] = byte(i * 101 >> 3)
	}
	for n := range b {
		require.Equal(t, "x"+base64.StdEncoding.EncodeToString(b[:n]), string(appendBase64([]byte("x"), b[:n])), "%d bytes", n)
	}
	for bits := range 1 << 12 { // every pair, in every place
		v := byte(bits >> 4)
		w := byte(bits<<4) | byte(bits>>8)
		same := []byte{v, w, byte(bits), v, w, byte(bits), 0, 0, 0}
		require.Equal(t, base64.StdEncoding.EncodeToString(same), string(appendBase64(nil, same)))
	}
}

func FuzzBase64(f *testing.F) {
	f.Add([]byte("a record of a journal"))
	f.Fuzz(func(t *testing.T, b []byte) {
		require.Equal(t, base64.StdEncoding.EncodeToString(b), string(appendBase64(nil, b)))
	})
}
