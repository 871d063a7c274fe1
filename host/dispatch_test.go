package host_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
)

// gated is an adapter that answers a call when its gate opens, or when its
// context ends.
type gated map[receipt.Key]chan struct{}

func (g gated) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	select {
	case <-g[call.Permit.Key]:
		return host.Result{Status: receipt.StatusOK, Payload: call.Permit.Params}, nil
	case <-ctx.Done():
		return host.Result{}, ctx.Err()
	}
}
func (gated) Deterministic() bool { return true }

// openGated returns a host of so many workers (0: the default), whose adapter waits at
// the gate of each of n permits.
func openGated(t testing.TB, workers, n int) (*host.Host, gated, []receipt.Permit) {
	t.Helper()
	g := make(gated)
	permits := make([]receipt.Permit, n)
	for i := range permits {
		permits[i] = permit(t, "agent/1", "k", strconv.Itoa(i), uint64(i))
		g[permits[i].Key] = make(chan struct{})
	}
	s := setup{workers: workers}
	s.adapter("k", g)
	return s.open(t), g, permits
}

// The tests below run in bubbles: synctest.Test fails when a goroutine of the
// Host outlives it, and Wait returns when all are blocked.

func TestAnswersComeInTheOrderOfCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g, permits := openGated(t, 5, 5)
		start(h, permits...)
		for _, i := range []int{3, 0, 4, 2, 1} {
			close(g[permits[i].Key])
			a := next(t, h)
			require.NoError(t, a.Err)
			require.Equal(t, permits[i].Key, a.Key)
		}
	})
}

func TestStartNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g, permits := openGated(t, 1, 5000)
		for _, p := range permits {
			start(h, p)
		}
		for _, gate := range g {
			close(gate)
		}
		for i, a := range await(t, h, len(permits)) { // one worker keeps the order
			require.Equal(t, permits[i].Key, a.Key)
		}
	})
}

// counted is gated, and counts what has begun.
type counted struct {
	gated

	begun *atomic.Int64
	waits bool
}

func (c counted) Waits() bool { return c.waits }
func (c counted) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	c.begun.Add(1)
	return c.gated.Perform(ctx, call)
}

// What waits for other machines is not kept waiting for this one, which takes on no more
// of the rest than it can do.
func TestCallsWaitAtOnce(t *testing.T) {
	const asked = 3 * host.DefaultWorkers
	for _, c := range []struct {
		waits         bool
		workers, want int
	}{{false, 0, host.DefaultWorkers}, {true, 0, asked}, {true, 2, 2}} {
		synctest.Test(t, func(t *testing.T) {
			a := counted{make(gated), new(atomic.Int64), c.waits}
			s := setup{workers: c.workers}
			s.adapter("k", a)
			h := s.open(t)
			permits := make([]receipt.Permit, asked)
			for i := range permits {
				permits[i] = permit(t, "agent/1", "k", strconv.Itoa(i), uint64(i))
				a.gated[permits[i].Key] = make(chan struct{})
			}
			start(h, permits...)
			synctest.Wait()
			require.EqualValues(t, c.want, a.begun.Load())
			for _, gate := range a.gated {
				close(gate)
			}
			require.Len(t, await(t, h, asked), asked)
			require.EqualValues(t, asked, a.begun.Load())
		})
	}
}

func TestReceiptsDoNotDependOnTheNumberOfWorkers(t *testing.T) {
	answers := func(workers int) map[receipt.Key]string {
		s := setup{workers: workers}
		s.file(t, "k", "stub", "answers", "a.jsonl", `{"kind": "k", "payload": 1}`)
		h := s.open(t)
		var permits []receipt.Permit
		for i := range 200 {
			permits = append(permits, permit(t, "agent/1", "k", strconv.Itoa(i), uint64(i)))
		}
		start(h, permits...)
		out := make(map[receipt.Key]string)
		for _, a := range await(t, h, len(permits)) {
			require.NoError(t, a.Err)
			out[a.Key] = string(a.Receipt)
		}
		require.Len(t, out, len(permits))
		return out
	}
	require.Equal(t, answers(1), answers(16))
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g, permits := openGated(t, 0, 1)
		start(h, permits...)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Wait(ctx) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)

		close(g[permits[0].Key])
		synctest.Wait()
		require.ErrorIs(t, h.Wait(ctx), context.Canceled, "an ended context waits for nothing")
		require.Equal(t, permits[0].Key, next(t, h).Key)
	})
}

func TestEverybodyWaitsForTheSameAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g, permits := openGated(t, 0, 1)
		start(h, permits...)
		ended := make(chan error)
		for range 3 {
			go func() { ended <- h.Wait(t.Context()) }()
		}
		synctest.Wait()
		none, err := h.Answers()
		require.NoError(t, err)
		require.Empty(t, none)
		close(g[permits[0].Key])
		for range 3 {
			require.NoError(t, <-ended)
		}
		require.Equal(t, permits[0].Key, next(t, h).Key)
		none, err = h.Answers()
		require.NoError(t, err)
		require.Empty(t, none, "each answer comes once")
	})
}

func TestCloseEndsAnIdleWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(setup).open(t)
		ended := make(chan error)
		go func() { ended <- h.Wait(t.Context()) }()
		synctest.Wait()
		require.NoError(t, h.Close())
		require.ErrorIs(t, <-ended, host.ErrClosed)
	})
}

func TestCloseDuringWorkEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, permits := openGated(t, 2, 10)
		start(h, permits...)
		ended := make(chan error)
		go func() { ended <- h.Wait(t.Context()) }()
		synctest.Wait()
		require.NoError(t, h.Close())
		require.ErrorIs(t, <-ended, host.ErrClosed)
		_, err := h.Answers()
		require.ErrorIs(t, err, host.ErrClosed)
		start(h, permits...) // nobody listens, nobody blocks
		require.NoError(t, h.Close())
	})
}

func TestCloseWaitsForWhatIsBeingPerformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release, finished := make(chan struct{}), make(chan struct{}), false
		s := setup{workers: 1}
		s.adapter("k", perform(func(context.Context, host.Call) (host.Result, error) {
			close(began)
			<-release
			finished = true
			return host.Result{Status: receipt.StatusOK}, nil
		}))
		h := s.open(t)
		start(h, permit(t, "agent/1", "k", `1`, 0))
		<-began
		go func() {
			synctest.Wait() // until Close waits
			close(release)
		}()
		require.NoError(t, h.Close())
		require.True(t, finished)
	})
}

// TestWakeEndsEveryWaitUntilAnswers holds for those that wait already and those
// that come later: whoever drives the world looks after Answers.
func TestWakeEndsEveryWaitUntilAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := openGated(t, 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 3)
		wait := func() { ended <- h.Wait(ctx) }
		go wait()
		go wait()
		synctest.Wait()
		require.Empty(t, ended)
		h.Wake()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		require.NoError(t, h.Wait(ctx), "one that comes late")
		_, err := h.Answers()
		require.NoError(t, err)
		go wait()
		synctest.Wait()
		require.Empty(t, ended)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

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

// after performs what it is given once the channel is closed.
func after(release <-chan struct{}) outside {
	return func(context.Context, host.Call) (host.Result, error) {
		<-release
		return host.Result{Status: receipt.StatusOK}, nil
	}
}

func TestCloseGivesBackWhatNobodyStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, release := storeAt(t), make(chan struct{})
		s := newLive(path, after(release))
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

// TestWhatComesAfterShutIsGivenBack: its permit was on the way to the disk when the Host
// was shut.
func TestWhatComesAfterShutIsGivenBack(t *testing.T) {
	path := storeAt(t)
	h := newLive(path, func(context.Context, host.Call) (host.Result, error) {
		t.Error("it was begun")
		return host.Result{}, nil
	}).open(t)
	require.NoError(t, h.Shut())
	start(h, nth(t, 1), nth(t, 1))
	require.NoError(t, h.Close())
	start(h, nth(t, 2))
	require.True(t, decoded(t, recovered(t, path, nth(t, 1))).GivenBack())
	require.NotEmpty(t, recovered(t, path, nth(t, 2)).Lost, "nothing is stored after Close")
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
		s := newLive(path, after(release))
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
		s.adapter("d", closer{close: func() error { panic("it was open") }})
		h, err := s.new(t)
		require.NoError(t, err)
		require.ErrorIs(t, h.Close(), fault, "and does not wait for ever")
		require.ErrorIs(t, h.Close(), fault)
		require.ErrorContains(t, h.Close(), "closing host_test.closer panicked: it was open")
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
