package checkpoint_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
)

// The tree is the one of tlog, at every size, however it was resumed.
func TestTreeIsTheOneOfTheMerkleLog(t *testing.T) {
	var all []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			out[i] = all[x]
		}
		return out, nil
	})
	var tree checkpoint.Tree
	require.Equal(t, canon.Sum(nil), tree.Root())
	for n := range int64(300) {
		record := []byte(strconv.FormatInt(n, 10))
		hashes, err := tlog.StoredHashes(n, record, reader)
		require.NoError(t, err)
		all = append(all, hashes...)
		resumed, err := checkpoint.Resume(tree.Size(), tree.Nodes())
		require.NoError(t, err)
		resumed.Add(record)
		tree.Add(record)
		want, err := tlog.TreeHash(n+1, reader)
		require.NoError(t, err)
		require.Equal(t, checkpoint.Hash(want), tree.Root())
		require.Equal(t, tree, *resumed)
	}
}

// RFC 6962 test vectors of other implementations: the leaves 0, 1 and 2 of
// certificate-transparency's reference tree are "", 00 and 10.
func TestVectorsOfTheTree(t *testing.T) {
	var tree checkpoint.Tree
	for i, want := range []string{
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
	} {
		tree.Add([][]byte{{}, {0x00}, {0x10}}[i])
		require.Equal(t, want, tree.Root().String())
	}
}

func TestTreeIsResumedFromItsNodesOnly(t *testing.T) {
	for _, size := range []uint64{1, 6, checkpoint.MaxSize + 1} {
		_, err := checkpoint.Resume(size, nil)
		require.ErrorIs(t, err, checkpoint.ErrNodes)
	}
}

func TestLeafIsThatOfTheTree(t *testing.T) {
	record := make([]byte, 600)
	for i := range record {
		record[i] = byte(i * 7)
	}
	for n := range record {
		require.Equal(t, checkpoint.Hash(tlog.RecordHash(record[:n])), checkpoint.Leaf(record[:n]), "%d bytes", n)
	}
}
