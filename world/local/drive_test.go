package local

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world"
)

// TestNewsAreWhatOthersHaveDone waits where the outside has none.
func TestNewsAreWhatOthersHaveDone(t *testing.T) {
	dir, _ := made(t)
	lw, err := Open(dir, Options{})
	require.NoError(t, err)
	p, err := lw.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, world.Idle, p)
	require.NoError(t, lw.awaitNews(t.Context(), 0))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, lw.awaitNews(ctx, 1), context.Canceled)
	require.NoError(t, lw.Close())
}

// TestTheCourseSaysHowFar drives a world in which nothing happens.
func TestTheCourseSaysHowFar(t *testing.T) {
	dir, _ := made(t)
	lw, err := Open(dir, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()

	d, err := lw.Drive(t.Context(), Course{Ticks: 3})
	require.NoError(t, err)
	require.Zero(t, d.Ticks, "nothing can happen")
	var told []uint64
	d, err = lw.Drive(t.Context(), Course{Ticks: 3, Every: true, Ticked: func(n uint64) { told = append(told, n) }})
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3}, told)
	require.EqualValues(t, 3, d.Ticks)
	require.EqualValues(t, 3, d.Status.Time)
	require.EqualValues(t, 3, d.Records)

	_, err = lw.Drive(t.Context(), Course{Stay: true, Stop: func(m *world.Moment) bool { return m.Time() == 3 }})
	require.NoError(t, err)
	_, err = lw.Drive(t.Context(), Course{Stay: true, Until: time.Now().Add(time.Millisecond)})
	require.NoError(t, err, "its time is over")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = lw.Drive(ctx, Course{Stay: true, Until: time.Now().Add(time.Hour)})
	require.ErrorIs(t, err, context.Canceled)
	_, err = lw.Drive(ctx, Course{Ticks: 1, Every: true})
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 3, lw.Status().Time)
}
