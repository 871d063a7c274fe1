package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFullDiskUnderAWorldLosesNothing fills the file system that a world is on,
// while events come in.
func TestFullDiskUnderAWorldLosesNothing(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, syscall.MNT_DETACH)) })
	ballast := filepath.Join(mount, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 8<<20), 0o600))
	dir := filepath.Join(mount, "w")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/worlds/desk")))
	worldctl(t, nil, "init", dir)
	line := `{"event": "ticket.opened", "data": {"customer": "ada", "amount": 1, "note": "` + strings.Repeat("n", 1000) + `"}}` + "\n"
	some := strings.Repeat(line, 1000)
	var acknowledged struct {
		Head struct {
			ID uint64 `json:"id"`
		} `json:"head"`
	}
	require.NoError(t, json.Unmarshal(worldctl(t, strings.NewReader(some), "-w", dir, "send", "-", "-o", "jsonl"), &acknowledged))

	code, _, said := outcomeOf(t, strings.NewReader(strings.Repeat(line, 100_000)), "-w", dir, "send", "-")
	require.Equal(t, exitFailed, code, said)
	require.Contains(t, said, "error: ")
	require.Contains(t, said, dir)
	require.Contains(t, said, "free space on")
	require.NotContains(t, said, "goroutine")

	require.NoError(t, os.Remove(ballast))
	var left struct {
		OK      bool   `json:"ok"`
		Records uint64 `json:"records"`
	}
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "verify", "-o", "json"), &left))
	require.True(t, left.OK)
	require.GreaterOrEqual(t, left.Records, acknowledged.Head.ID)
	worldctl(t, strings.NewReader(line), "-w", dir, "send", "-")
}
