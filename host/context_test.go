package host

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAttemptEndsForWhoeverLooks: also for who looks only afterwards, or from below.
func TestAttemptEndsForWhoeverLooks(t *testing.T) {
	type name struct{}
	life, stop := context.WithCancelCause(context.WithValue(t.Context(), name{}, "x"))
	hour := time.Now().Add(time.Hour)
	attempt := func(deadline time.Time) *attemptContext {
		return &attemptContext{life: life, deadline: deadline}
	}
	at, ok := attempt(hour).Deadline()
	require.True(t, ok)
	require.Equal(t, hour, at)

	late := attempt(time.Now().Add(-time.Second))
	<-late.Done()
	require.ErrorIs(t, late.Err(), context.DeadlineExceeded)

	ended := attempt(hour)
	ended.endAttempt()
	<-ended.Done()
	require.ErrorIs(t, ended.Err(), context.Canceled)

	seen := attempt(hour)
	require.NoError(t, seen.Err())
	require.Equal(t, "x", seen.Value(name{}))
	below, cancel := context.WithCancel(seen)
	defer cancel()
	seen.endAttempt()
	<-below.Done()
	require.ErrorIs(t, below.Err(), context.Canceled)

	seen, unseen := attempt(hour), attempt(hour)
	require.NoError(t, seen.Err())
	stop(errUnwanted)
	for _, c := range []*attemptContext{seen, unseen} {
		<-c.Done()
		require.ErrorIs(t, c.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(c), errUnwanted)
	}
}
