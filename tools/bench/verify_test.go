package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world/local"
)

// BenchmarkVerify is the world's part of `bench verify`, for profiles.
func BenchmarkVerify(b *testing.B) {
	const records = 200_000
	size := verifyBench{cells: 10_000}
	lw, err := size.world(b.Context(), b.TempDir(), records)
	require.NoError(b, err)
	for b.Loop() {
		require.NoError(b, proven(lw.Verify(b.Context(), local.Verification{})))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
	require.NoError(b, lw.Close())
}
