package star

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// A bound of whoever runs a step is no limit of the step: what exceeds it has no
// outcome, and what does not is what it is without.
func TestBoundsEndAStepWithoutAnOutcome(t *testing.T) {
	rich := manifest.ReducerLimits{Gas: 1e9, Value: 64 << 20, Memory: 16 << 30}
	const loop, texts = "    while True:\n        pass\n", "    for _ in range(100000000):\n        x = 'a' * 1000000\n"
	for _, version := range (Engine{}).Versions() {
		for name, x := range map[string]struct {
			body   string
			limits manifest.ReducerLimits
			bounds reducer.Bounds
			bound  string
		}{
			"gas":             {loop, rich, reducer.Bounds{Gas: 5000, Memory: 1 << 40}, "gas"},
			"memory":          {texts, rich, reducer.Bounds{Gas: 1e9, Memory: 10 << 20}, "memory"},
			"nobody waits":    {loop, rich, reducer.Bounds{Gas: 1e9, Memory: 1 << 40, Ended: func() bool { return true }}, ""},
			"its own limit":   {loop, manifest.ReducerLimits{Gas: 5000}, reducer.Bounds{Gas: 1e9, Memory: 1 << 40}, "limit"},
			"neither of them": {"    return 1\n", rich, reducer.Bounds{Gas: 5000, Memory: 1 << 20}, "none"},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				p, err := Compile(version, "a.star", []byte("def reduce(ctx, state, event):\n"+x.body))
				require.NoError(t, err)
				r, err := p.Reducer()
				require.NoError(t, err)
				var out reducer.Output
				err = r.Reduce(&reducer.Input{Limits: x.limits, Bounds: &x.bounds}, &out)
				switch x.bound {
				case "none":
					require.NoError(t, err)
					return
				case "limit":
					require.ErrorIs(t, err, reducer.ErrLimit)
					require.NotErrorIs(t, err, reducer.ErrBound)
					return
				}
				require.ErrorIs(t, err, reducer.ErrBound)
				require.NotErrorIs(t, err, reducer.ErrLimit)
				if x.bound != "" {
					var bound *reducer.BoundError
					require.ErrorAs(t, err, &bound)
					require.Equal(t, x.bound, bound.Name)
				}
			})
		}
	}
}
