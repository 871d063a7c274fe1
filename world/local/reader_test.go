package local

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// FuzzExportReader is FuzzImport without the disk, and so much faster: reading
// ends, and every blob has the name that its content asks for.
func FuzzExportReader(f *testing.F) {
	for _, seed := range []string{
		"", "{", "{}", `{"raw": "AA=="}`, `{"raw": "hQEAYWFBAA==", "blobs": {"00": "AA=="}}`, "\x41\x00\x85\x01\x00\x61\x61\x00\x41\x00",
		"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "\x9f\x5f\xff\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		next, err := exportReader(newStinted(bytes.NewReader(data), DefaultBounds()))
		if err != nil {
			require.Empty(t, data)
			return
		}
		for n := 0; ; n++ {
			require.LessOrEqual(t, n, len(data), "it reads on and on")
			x, err := next()
			if err != nil {
				return
			}
			for _, b := range x.blobs {
				require.Equal(t, canon.Sum(b.Bytes), b.Hash)
			}
		}
	})
}
