package worldctl

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestInterruptedWhatIfLeavesNothing wherever it is interrupted: neither in the
// temporary directory nor in the world.
func TestInterruptedWhatIfLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	worldctl(t, nil, "init", dir)
	var lines strings.Builder
	for at := range 20 {
		fmt.Fprintf(&lines, `{"event": "counter.added", "data": {"name": "tea", "by": 1}, "at": %d}`+"\n", at+1)
	}
	worldctl(t, strings.NewReader(lines.String()), "-w", dir, "send", "-")
	worldctl(t, nil, "-w", dir, "run")
	_, before, _ := outcome(t, "-w", dir, "status", "-o", "json")

	interrupted := 0
	for after := time.Duration(0); ; after = 2*after + time.Microsecond {
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(after, cancel)
		another := strings.NewReader(`{"event": "counter.added", "data": {"name": "milk", "by": 1}, "at": 30}`)
		var said strings.Builder
		code := run(ctx, released(), []string{"-w", dir, "what-if", "--at", "1", "--send", "-"}, another, io.Discard, &said)
		stop.Stop()
		entries, err := os.ReadDir(tmp)
		require.NoError(t, err)
		require.Empty(t, entries)
		_, after, _ := outcome(t, "-w", dir, "status", "-o", "json")
		require.Equal(t, before, after)
		if code == exitFailed { // it has an answer: they differ
			break
		}
		require.Equal(t, exitInterrupted, code, said.String())
		require.Contains(t, said.String(), "hint: the world has not changed")
		interrupted++
	}
	require.Greater(t, interrupted, 4)
}
