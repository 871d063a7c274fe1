package host

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

type tallied func(Call)

func (p tallied) Perform(_ context.Context, call Call) (Result, error) {
	p(call)
	return Result{Status: receipt.StatusOK, Payload: call.Permit.Params}, nil
}

func TestAFailingStoreStopsTheWorld(t *testing.T) {
	var mu sync.Mutex
	broken, calls := false, 0
	mem := storeFS(t)
	files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if broken && op.Kind == errorfs.OpFileSyncData {
			return syscall.EIO
		}
		return nil
	}))
	h := liveHost(t, files, storePath, func(Call) { calls++ })

	h.Start([]receipt.Task{{Permit: aPermit(1)}})
	require.NoError(t, h.Wait(t.Context()))
	answers, err := h.Answers()
	require.NoError(t, err)
	require.Len(t, answers, 1)

	mu.Lock()
	broken = true
	mu.Unlock()
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
