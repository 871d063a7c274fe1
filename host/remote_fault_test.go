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

// TestWhatIsNotDurableIsNotCommitted has several workers in Commit while the
// disk fails.
func TestWhatIsNotDurableIsNotCommitted(t *testing.T) {
	var mu sync.Mutex
	broken := false
	mem := storeFS(t)
	files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if broken && op.Kind == errorfs.OpFileSyncData {
			return syscall.EIO
		}
		return nil
	}))
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

	mu.Lock()
	broken = true
	mu.Unlock()
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
