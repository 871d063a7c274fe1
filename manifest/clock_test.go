package manifest_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/manifest"
)

// The last tick is the last whose time the calendar has, and each before it has its own.
func TestTheCalendarIsRightUpToItsEnd(t *testing.T) {
	end := time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
	day := manifest.Clock{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), Tick: int64(24 * time.Hour)}
	require.Equal(t, end.AddDate(0, 0, -1).UnixNano(), day.At(day.Last()))
	require.Equal(t, manifest.MaxTick, manifest.Clock{Tick: 1}.Last())
	require.Zero(t, manifest.Clock{Epoch: math.MaxInt64, Tick: 1}.Last())
	rapid.Check(t, func(t *rapid.T) {
		c := manifest.Clock{Epoch: rapid.Int64Max(end.UnixNano()-1).Draw(t, "epoch"), Tick: rapid.Int64Min(1).Draw(t, "tick")}
		last := c.Last()
		require.LessOrEqual(t, last, manifest.MaxTick)
		at := manifest.Tick(rapid.Uint64Max(uint64(last)).Draw(t, "at"))
		want := time.Unix(0, c.Epoch)
		for n := at; n > 0; { // a duration has 292 years, and the calendar twice as many
			part := min(n, max(1, manifest.Tick(math.MaxInt64/c.Tick)))
			want, n = want.Add(time.Duration(int64(part)*c.Tick)), n-part
		}
		require.True(t, want.Before(end))
		require.Equal(t, want.UnixNano(), c.At(at))
		from, err := c.From(c.At(at))
		require.NoError(t, err)
		require.Equal(t, at, from)
		require.Equal(t, at, c.Since(c.At(at)))
		require.Equal(t, c.At(last), c.At(last.Plus(1)))
		require.Equal(t, last, c.Since(math.MaxInt64))
	})
}

func TestTicksAreAddedWithoutWrapping(t *testing.T) {
	require.EqualValues(t, 5, manifest.Tick(2).Plus(3))
	require.EqualValues(t, uint64(math.MaxUint64), manifest.Tick(2).Plus(math.MaxUint64-2))
	require.EqualValues(t, uint64(math.MaxUint64), manifest.Tick(3).Plus(math.MaxUint64-2))
}
