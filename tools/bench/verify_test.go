package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world/local"
)

// BenchmarkVerify is the world's part of `bench verify`, for profiles.
func BenchmarkVerify(b *testing.B) {
	const records = 200_000
	size := verifyBench{cells: 10_000}
	_, err := (&scope{dir: b.TempDir()}).measure(b.Context(), func(ctx context.Context, r *run) {
		lw := size.world(ctx, r, r.dir, records)
		for b.Loop() {
			r.must(proven(lw.Verify(ctx, local.Verification{})))
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
		r.must(lw.Close())
	})
	require.NoError(b, err)
}
