package host_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

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

// newGated returns an adapter and n permits for it.
func newGated(t testing.TB, n int) (gated, []receipt.Permit) {
	t.Helper()
	g := make(gated)
	permits := make([]receipt.Permit, n)
	for i := range permits {
		permits[i] = permit(t, "agent/1", "k", strconv.Itoa(i), uint64(i))
		g[permits[i].Key] = make(chan struct{})
	}
	return g, permits
}

// The tests below run in bubbles: synctest.Test fails when a goroutine of the
// Host outlives it, and Wait returns when all are blocked.

func TestAnswersComeInTheOrderOfCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, permits := newGated(t, 5)
		s := setup{workers: 5}
		s.adapter("k", g)
		h := s.open(t)
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
		g, permits := newGated(t, 5000)
		s := setup{workers: 1}
		s.adapter("k", g)
		h := s.open(t)
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
		g, permits := newGated(t, 1)
		var s setup
		s.adapter("k", g)
		h := s.open(t)
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
		g, permits := newGated(t, 1)
		var s setup
		s.adapter("k", g)
		h := s.open(t)
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
		g, permits := newGated(t, 10)
		s := setup{workers: 2}
		s.adapter("k", g)
		h := s.open(t)
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
		g, _ := newGated(t, 0)
		s := setup{}
		s.adapter("k", g)
		h := s.open(t)
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
