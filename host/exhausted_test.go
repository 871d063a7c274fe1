package host_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
)

// shortOf is the result of an attempt for which nothing was left.
func shortOf(t testing.TB) host.Result {
	return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Unsent: true, Short: true, Payload: data(t, `"short"`)}
}

func TestWhatTheProcessIsShortOfIsWaitedForAndIsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		h := newLive(storeAt(t), func(ctx context.Context, _ host.Call) (host.Result, error) {
			if calls++; calls <= 20 {
				return shortOf(t), nil
			}
			deadline, _ := ctx.Deadline()
			require.Equal(t, 30*time.Second, time.Until(deadline), "its time begins when it can begin")
			<-time.After(29 * time.Second)
			require.NoError(t, ctx.Err())
			return host.Result{Status: receipt.StatusOK}, nil
		}).open(t)
		start(h, nth(t, 1))
		r := decoded(t, next(t, h))
		require.Equal(t, receipt.StatusOK, r.Status)
		require.EqualValues(t, 1, r.Attempt)
		require.Equal(t, 21, calls)
	})
}

func TestWhatWaitsForTooLongIsGivenBackWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLive(storeAt(t), func(context.Context, host.Call) (host.Result, error) { return shortOf(t), nil }).open(t)
		began := time.Now()
		start(h, nth(t, 1))
		r := decoded(t, next(t, h))
		require.True(t, r.GivenBack())
		require.Equal(t, data(t, `"short"`), r.Payload)
		require.Equal(t, host.DefaultLease, time.Since(began).Round(time.Second))
	})
}

func TestWhatWaitsIsGivenBackAtClose(t *testing.T) {
	path := storeAt(t)
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		h, err := newLive(path, func(context.Context, host.Call) (host.Result, error) {
			calls.Add(1)
			return shortOf(t), nil
		}).new(t)
		require.NoError(t, err)
		start(h, nth(t, 1))
		synctest.Wait()
		began := time.Now()
		require.NoError(t, h.Close())
		require.Zero(t, time.Since(began), "nothing is under way")
		require.EqualValues(t, 1, calls.Load())
	})
	r, err := receipt.Decode(recovered(t, path, nth(t, 1)).Receipt)
	require.NoError(t, err)
	require.True(t, r.GivenBack())
}

// What has left is no longer a matter of this process, whatever an adapter says.
func TestWhatHasLeftIsNotMadeAgain(t *testing.T) {
	calls := 0
	h := newLive(storeAt(t), func(context.Context, host.Call) (host.Result, error) {
		calls++
		r := shortOf(t)
		r.Unsent = false
		return r, nil
	}).open(t)
	start(h, nth(t, 1))
	require.False(t, decoded(t, next(t, h)).GivenBack())
	require.Equal(t, 1, calls)
}

func TestShortIsTheProcessAndNotWhatItAsks(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.EBADF, syscall.ENOMEM} {
		require.True(t, host.Short(&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", errno)}))
		require.True(t, host.Short(&os.PathError{Op: "fork/exec", Path: "/bin/true", Err: errno}))
	}
	require.True(t, host.Short(&net.DNSError{Err: "dial udp 1.1.1.1:53: socket: too many open files", Name: "bank.test"}))
	for _, err := range []error{
		nil, syscall.ENOENT, syscall.ECONNREFUSED, syscall.ENOSPC, context.DeadlineExceeded, &net.DNSError{Err: "no such host", IsNotFound: true},
	} {
		require.False(t, host.Short(err), err)
	}
	_, err := os.Open(filepath.Join(t.TempDir(), "none"))
	require.False(t, host.Short(err))
}
