package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// What a record says of its payload is what the payload is: the hash says which it
// is, and the size how long, since that is all that is left after a redaction.
func TestPayloadIsOfTheSizeThatItsRecordSays(t *testing.T) {
	content := []byte("a payload")
	blobs := journal.BlobList{{Hash: canon.Sum(content), Bytes: content}}
	r := journal.Record{ID: 7, Blob: canon.Sum(content), BlobSize: uint64(len(content))}
	right := r
	require.NoError(t, right.Load(blobs))
	require.Equal(t, content, right.Payload)
	for _, size := range []uint64{0, 8, 10, 1 << 40} {
		wrong := r
		wrong.BlobSize = size
		require.ErrorContains(t, wrong.Load(blobs), "has 9 bytes, and the record says")
		require.Nil(t, wrong.Payload)
	}
}
