package host

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

type tallied func(Call)

func (p tallied) Perform(_ context.Context, call Call) (Result, error) {
	p(call)
	return Result{Status: receipt.StatusOK, Payload: call.Permit.Params}, nil
}

// failing returns files that fail to be written and synced once the function was called.
func failing(mem vfs.FS) (vfs.FS, func()) {
	var broken atomic.Bool
	files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && (op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileWriteAt) {
			return syscall.EIO
		}
		return nil
	}))
	return files, func() { broken.Store(true) }
}

func TestAFailingStoreStopsTheWorld(t *testing.T) {
	calls := 0
	mem := storeFS(t)
	files, breakDown := failing(mem)
	h := liveHost(t, files, storePath, func(Call) { calls++ })

	h.Start([]receipt.Task{{Permit: aPermit(1)}})
	require.NoError(t, h.Wait(t.Context()))
	answers, err := h.Answers()
	require.NoError(t, err)
	require.Len(t, answers, 1)

	breakDown()
	h.Start([]receipt.Task{{Permit: aPermit(2)}})
	require.ErrorIs(t, h.Wait(t.Context()), syscall.EIO)
	for range 2 {
		answers, err = h.Answers()
		require.ErrorIs(t, err, syscall.EIO, "for good")
		require.Empty(t, answers)
	}
	h.Start([]receipt.Task{{Permit: aPermit(3)}})
	h.workers.Wait() // for all that ever ran: calls is ours
	require.Equal(t, 2, calls, "what cannot be stored is not tallied")
	require.ErrorIs(t, h.Close(), syscall.EIO)
	require.NotContains(t, reopen(t, crash(mem)), attempt{aPermit(2).Key, 1})
}

// TestWhatIsNotDurableIsNotCommitted has several workers in Commit while the
// disk fails.
func TestWhatIsNotDurableIsNotCommitted(t *testing.T) {
	mem := storeFS(t)
	files, breakDown := failing(mem)
	h := liveHost(t, files, storePath, nil)
	h.cfg.Remote, h.cfg.Grace = true, 1
	said := make([][]byte, 4)
	for n := range said {
		p := aPermit(uint64(n))
		h.Start([]receipt.Task{{Permit: p}})
		r := receipt.New("town", p, receipt.StatusOK, nil)
		var err error
		said[n], err = h.cfg.Keys.Sign(&r)
		require.NoError(t, err)
	}
	offers, err := h.Acquire(t.Context(), "w", nil, len(said))
	require.NoError(t, err)
	require.Len(t, offers, len(said))
	require.NoError(t, h.Commit("w", said[0], 0))

	breakDown()
	errs := make(chan error)
	for range 3 {
		for _, data := range said[1:3] {
			go func() { errs <- h.Commit("w", data, 0) }()
		}
	}
	for range 6 {
		require.ErrorIs(t, <-errs, syscall.EIO)
	}
	require.ErrorIs(t, h.Commit("w", said[3], 0), syscall.EIO)
	require.NoError(t, h.Commit("w", said[0], 0), "that one is durable")
	_, err = h.Acquire(context.Background(), "w", nil, 1)
	require.ErrorIs(t, err, syscall.EIO)

	h.Start([]receipt.Task{{Work: receipt.Forget, Permit: aPermit(3)}})
	require.ErrorIs(t, h.Close(), syscall.EIO)
	kept := reopen(t, crash(mem))
	require.Contains(t, kept, attempt{aPermit(0).Key, 1})
	require.Len(t, kept, 1)
}

// TestAttemptsHaveOneExternalKeyUnlessTheirEffectSaysOtherwise: by it the outside knows
// that it has done what it is asked for again.
func TestAttemptsHaveOneExternalKeyUnlessTheirEffectSaysOtherwise(t *testing.T) {
	h := liveHost(t, storeFS(t), storePath, nil)
	for declared, same := range map[string]bool{"": true, manifest.ExternalPerAttempt: false} {
		first := &job{Task: receipt.Task{Permit: aPermit(1)}, effect: &effect{declared: manifest.Effect{ExternalKey: declared}}}
		second := &job{Task: first.Task, effect: first.effect}
		second.Attempt++
		require.Equal(t, same, h.call(first).External == h.call(second).External, declared)
	}
	require.NoError(t, h.Close())
}
