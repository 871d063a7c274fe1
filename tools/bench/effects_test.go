package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkEffects is the world's part of `bench effects`, for profiles.
func BenchmarkEffects(b *testing.B) {
	const cells, effects = 100, 100
	for b.Loop() {
		var m measured
		_, err := (&scope{dir: b.TempDir()}).measure(b.Context(), func(ctx context.Context, r *run) {
			m, _, _ = r.runEffects(ctx, cells, effects)
		})
		require.NoError(b, err)
		b.ReportMetric(cells*effects/m.Wall.Seconds(), "effects/s")
		b.ReportMetric(float64(m.CPU.Microseconds())/cells/effects, "cpu-us/effect")
	}
}
