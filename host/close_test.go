package host_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
)

// closing closes h in the background and reports how long that took.
func closing(h *host.Host) <-chan time.Duration {
	took := make(chan time.Duration, 1)
	began := time.Now()
	go func() {
		_ = h.Close() // asked again by the setup, with the same answer
		took <- time.Since(began)
	}()
	return took
}

func TestCloseGivesBackWhatNobodyStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, release := storeAt(t), make(chan struct{})
		s := newLive(path, func(context.Context, host.Call) (host.Result, error) {
			<-release
			return host.Result{Status: receipt.StatusOK}, nil
		})
		s.workers = 1
		h := s.open(t)
		start(h, nth(t, 1))
		synctest.Wait()
		start(h, nth(t, 1), nth(t, 2), nth(t, 2), nth(t, 3))
		h.Start(task(receipt.Verify, nth(t, 4)))
		took := closing(h)
		<-time.After(host.DefaultGrace / 2)
		close(release)
		require.Equal(t, host.DefaultGrace/2, <-took, "it waits no longer than it must")

		require.Equal(t, receipt.StatusOK, decoded(t, recovered(t, path, nth(t, 1))).Status, "what ran was not given back")
		for n := 2; n <= 3; n++ {
			r := decoded(t, recovered(t, path, nth(t, n)))
			require.Equal(t, receipt.StatusCancelled, r.Status)
			require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
			require.True(t, r.Unsent)
			require.Zero(t, r.Cost)
		}
		require.NotEmpty(t, recovered(t, path, nth(t, 4)).Lost)
	})
}

func TestCloseEndsWhatTakesLongerThanItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := storeAt(t)
		s := newLive(path, func(ctx context.Context, call host.Call) (host.Result, error) {
			<-ctx.Done()
			if call.Permit.Key == nth(t, 1).Key {
				return host.Result{Status: receipt.StatusCancelled, Class: receipt.OutcomeRetryableFailure, Unsent: true}, nil
			}
			return host.Result{}, ctx.Err()
		})
		s.workers = 2
		h := s.open(t)
		start(h, nth(t, 1), nth(t, 2))
		synctest.Wait()
		start(h, nth(t, 2)) // runs already: it is not for giving back
		require.Equal(t, host.DefaultGrace, <-closing(h))
		require.Equal(t, receipt.StatusCancelled, decoded(t, recovered(t, path, nth(t, 1))).Status)
		require.NotEmpty(t, recovered(t, path, nth(t, 2)).Lost, "nobody can tell")
	})
}

func TestCancelledIsForWhoWasStopped(t *testing.T) {
	h := newLive(storeAt(t), outside(result(receipt.StatusCancelled, nil))).open(t)
	start(h, nth(t, 1))
	require.Equal(t, receipt.StatusError, decoded(t, next(t, h)).Status, "or a world would start it for ever")
}

func TestCloseNeverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, release := storeAt(t), make(chan struct{})
		s := newLive(path, func(context.Context, host.Call) (host.Result, error) {
			<-release
			return host.Result{Status: receipt.StatusOK}, nil
		})
		h := s.open(t)
		start(h, nth(t, 1))
		synctest.Wait()
		took := <-closing(h)
		require.GreaterOrEqual(t, took, host.DefaultGrace)
		require.LessOrEqual(t, took, 2*host.DefaultGrace)
		close(release)
		synctest.Wait()
		require.NotEmpty(t, recovered(t, path, nth(t, 1)).Lost, "it came too late")
	})
}

// closer is an adapter that can be closed.
type closer struct {
	perform
	close func() error
}

func (c closer) Close() error { return c.close() }

func TestCloseClosesAdapters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault, release, closed := errors.New("it was in use"), make(chan struct{}), 0
		var s setup
		s.adapter("a", closer{close: func() error { closed++; return fault }})
		s.adapter("b", closer{close: func() error { <-release; return nil }})
		h, err := s.new(t)
		require.NoError(t, err)
		require.ErrorIs(t, h.Close(), fault, "and does not wait for ever")
		require.ErrorIs(t, h.Close(), fault)
		require.Equal(t, 1, closed)

		s.adapters["c"] = func(host.Setup) (host.Adapter, error) { return nil, fault }
		s.effects["c"] = s.effects["a"]
		e := s.effects["c"]
		e.Adapter = "c"
		s.effects["c"] = e
		_, err = s.new(t)
		require.Error(t, err)
		require.Equal(t, 2, closed, "also where New fails")
		close(release)
	})
}
