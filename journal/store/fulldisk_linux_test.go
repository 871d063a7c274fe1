package store

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// TestFullDiskForReal fills a small file system of its own with a process, frees
// space, and finds all that the process was told is durable.
func TestFullDiskForReal(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=18m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, syscall.MNT_DETACH)) })
	ballast := filepath.Join(mount, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 12<<20), 0o600))
	dir := filepath.Join(mount, ".world")
	s, err := Create(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	acked := fillUp(t, dir)
	require.NotEmpty(t, acked)
	acked = append(acked, fillUp(t, dir)...) // tables are smaller than logs, so there may be room

	require.NoError(t, os.Remove(ballast))
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	last, err := strconv.Atoi(acked[len(acked)-1])
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Head().ID, journal.Seq(last))
	require.Len(t, scanAll(t, s, 0), int(s.Head().ID))
	require.Empty(t, damageOf(s))
	appendAll(t, s, resume(s).batch("more"))
	require.NoError(t, s.Close())
}

// fillUp runs a process that appends until the disk is full, and returns what it
// was told is durable.
func fillUp(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fillWorldEnv+"="+dir)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	exit := (*exec.ExitError)(nil)
	require.ErrorAs(t, cmd.Run(), &exit)
	require.Equal(t, 1, exit.ExitCode(), complaint.String())
	require.Contains(t, complaint.String(), "free space on "+dir)
	require.NotContains(t, complaint.String(), "goroutine")
	return strings.Fields(out.String())
}
